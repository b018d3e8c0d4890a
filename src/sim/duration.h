/* duration.h -- how long the tasks of a plan take on a cluster: cost's seconds as nanoseconds, for
 * the first rank of every row. Room: sim. */
#ifndef HP_SIM_DURATION_H
#define HP_SIM_DURATION_H

#include "cost/cost.h"
#include "sim/classes.h"

/* A transfer's time, and the level whose ports it uses (-1: none; n_levels of the cluster: the
 * host's link). */
typedef struct hp_transfer_time {
    int64_t ns;
    int level;
    const char *algorithm; /* a literal */
} hp_transfer_time;

/* hp_duration_op returns the nanoseconds of a task that computes (OP, LOAD, slicing COLL) on a
 * rank, its slowness included. */
int64_t hp_duration_op(const hp_cluster *c, const hp_program *p, const hp_task *t, int rank);

/* hp_duration_collective returns the time of a COLL in a group of rows; the largest of their ranks'
 * bytes counts. */
hp_transfer_time hp_duration_collective(const hp_cluster *c, const hp_program *p,
                                        const hp_program_rows *k, const hp_task *t,
                                        const hp_row_group *g);

/* hp_duration_message returns the time in which a rank of row `dst` gets all that a link
 * brings it. */
hp_transfer_time hp_duration_message(const hp_cluster *c, const hp_row_link *l, int dst);

/* hp_duration_copy returns the time of a COPY on a rank. */
hp_transfer_time hp_duration_copy(const hp_cluster *c, const hp_program *p, const hp_task *t,
                                  int rank);

/* hp_xfer_of returns cost's name for a collective of shard (not for slices). */
hp_xfer hp_xfer_of(hp_coll k);

#endif

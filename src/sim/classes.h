/* classes.h -- devices whose timelines must be equal are simulated once.
 *
 * A *row* stands for ranks of a program that no task, group or message tells apart: the coarsest
 * equitable partition of the plan's communication structure, found by refining colours (Weisfeiler,
 * Leman 1968). Ranks begin with equal colours where their boxes cost the same, they are no
 * stragglers, and their groups lie alike on the cluster's levels; then a rank's colour is refined
 * by the colours of its group in every collective and of its partners in every message, until
 * nothing changes. So ranks of one colour see partners of the same colours at the same times. Room:
 * sim.
 */
#ifndef HP_SIM_CLASSES_H
#define HP_SIM_CLASSES_H

#include "cluster/cluster.h"
#include "plan/expand.h"

/* The rows that meet in one collective, and how the devices of such a group lie. */
typedef struct hp_row_group {
    int n;
    int *row;
    hp_group shape;
    /* Ranks of one such group: first, last but one, last. Where boxes are even, parts of a
     * collective differ by an element at most, the first ones being larger: one of these sends the
     * most. */
    int probe[3];
} hp_row_group;

/* hp_row_groups is the groups of one set of atoms. */
typedef struct hp_row_groups {
    uint32_t atoms;
    int n;
    hp_row_group *group;
    int *of_row; /* row -> group */
} hp_row_groups;

/* A message between rows: what `src` sends to `dst`, with two devices that stand for them. */
typedef struct hp_row_message {
    int src, dst;
    int src_device, dst_device;
    int64_t bytes; /* all that one rank of `dst` gets from ranks of `src` */
    int takers;    /* ranks of `dst` that one rank of `src` sends to */
} hp_row_message;

/* hp_row_link is the messages from a SEND task to a RECV task, of every microbatch. */
typedef struct hp_row_link {
    const hp_task *send, *recv;
    int from, to; /* programs */
    int n;
    hp_row_message *message;
    /* Messages are sorted by dst: row r's are [first_of_dst[r], first_of_dst[r + 1]). */
    int *first_of_dst;
    int *n_dst;    /* per source row: rows that take from it */
    int64_t *sent; /* per source row: bytes that one of its ranks sends */
} hp_row_link;

typedef struct hp_program_rows {
    int n;
    int *row; /* rank -> row */
    int *rep; /* row -> its first rank */
    int n_groups;
    hp_row_groups *groups;
} hp_program_rows;

typedef struct hp_classes {
    hp_arena arena;
    int n_programs;
    hp_program_rows *program;
    int n_links;
    hp_row_link *link;
} hp_classes;

/* hp_classes_find fills *k (zeroed). With fold false each rank is a row. HP_EINFEASIBLE when
 * a SEND has no RECV that fits it. Freed by hp_classes_fini. */
hp_err hp_classes_find(const hp_plan *p, const hp_expansion *x, const hp_cluster *c, bool fold,
                       hp_classes *k, hp_errmsg *e);
void hp_classes_fini(hp_classes *k);

/* hp_classes_groups returns the groups of a set of atoms in a program. */
const hp_row_groups *hp_classes_groups(const hp_classes *k, int program, uint32_t atoms);

/* hp_classes_link returns the number of the link from a SEND to a RECV task, -1 when there
 * is none. */
int hp_classes_link(const hp_classes *k, const hp_task *send, const hp_task *recv);

#endif

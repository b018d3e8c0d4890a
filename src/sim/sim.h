/* sim.h -- one training step of a plan on a modelled clock, task by task: the other reader of a
 * plan.
 *
 * A discrete-event simulation in integer nanoseconds over the instances of plan/expand.h: a task
 * starts when its dependencies are satisfied and its stream is free; a collective transfers from
 * its last participant's arrival; a SEND leaves its stream when posted, its RECV transfers once
 * both are there. Durations come from the cost room, or from measured ones. A transfer uses one
 * port of each participant at the level that bounds it; n transfers on one port have a 1/n of their
 * rate each (measured durations are taken as they are). Ranks that nothing tells apart are
 * simulated once (sim/classes.h), and the trace has a row for each class. Ties of time are broken
 * by (device, stream, instance): the same inputs give the same trace, always. Room: sim.
 */
#ifndef HP_SIM_SIM_H
#define HP_SIM_SIM_H

#include "cluster/cluster.h"
#include "trace/trace.h"

/* hp_measured is durations of a real run. */
typedef struct hp_measured {
    const int64_t *const
        *busy_ns; /* per program [rank * n_inst + inst]: the work alone; < 0: ask the cost room */
    const hp_step_trace *bytes; /* bytes really sent, NULL: the plan's */
} hp_measured;

typedef struct hp_sim_options {
    const hp_measured *measured; /* NULL: durations from the cost room */
    bool every_device;           /* no folding: a row a rank */
} hp_sim_options;

/* hp_sim_step simulates a step and makes *t its (owned) trace; `o` may be NULL. HP_EINFEASIBLE: the
 * plan deadlocks or has a message without a partner, with the task that waits; then *t is
 * untouched. With measured durations on a cluster whose links are paced, transfers take the paced
 * links' time. */
hp_err hp_sim_step(const hp_plan *p, const hp_expansion *x, const hp_cluster *c,
                   const hp_sim_options *o, hp_step_trace *t, hp_errmsg *e);

#endif

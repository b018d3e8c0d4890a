/* sched.h -- workers and the order in which they take instances: one lock for all that changes in a step. Room: exec. */
#ifndef HP_EXEC_SCHED_H
#define HP_EXEC_SCHED_H

#include "exec/engine.h"

/* hp_sched_start starts the workers of a prepared engine (the caller is worker 0) and the link thread where links are paced; HP_EINTERNAL when the
 * machine refuses a thread. hp_sched_stop ends and joins them. */
typedef struct hp_sched hp_sched;
hp_err hp_sched_start(hp_engine *g, hp_sched **out, hp_errmsg *e);
void hp_sched_stop(hp_sched *s);

/* hp_sched_step runs one step in the open slot and returns when all its instances are done; else the run's first error, or HP_ECANCELLED. */
hp_err hp_sched_step(hp_engine *g, hp_errmsg *e);

#endif

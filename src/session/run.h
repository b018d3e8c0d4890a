/* run.h -- trains for real on virtual devices of this machine, in a child process, and measures
 * it. Room: session. */
#ifndef HP_SESSION_RUN_H
#define HP_SESSION_RUN_H

#include "session/outcome.h"

/* hp_progress is told after every step. */
typedef struct hp_progress {
    int64_t step, steps; /* done, asked for */
    double loss, step_s, masking_ratio;
} hp_progress;

typedef struct hp_run_ask {
    hp_ask what;
    int64_t steps; /* 0: 20 */
    uint64_t seed;
    const char *data; /* a file to train on, NULL: the corpus that comes along */
    bool model_clock; /* replay the measured durations on the modelled clock */
    void (*progress)(void *ctx, const hp_progress *p); /* may be NULL */
    void *ctx;
} hp_run_ask;

/* hp_session_run runs and stores. *out (zeroed) must be freed by hp_outcome_fini in any case. A
 * run that the user stopped is HP_ECANCELLED with a whole outcome when at least one step was
 * done. HP_EUSAGE: the cluster is not this host; HP_EINTERNAL: the engine crashed (its task is
 * named). */
hp_err hp_session_run(const hp_run_ask *ask, hp_outcome *out, hp_errmsg *e);

#endif

/* outcome.h -- what a run or a prediction leaves: the case, the result record, the trace of one
 * step. Room: session. */
#ifndef HP_SESSION_OUTCOME_H
#define HP_SESSION_OUTCOME_H

#include "plan/expand.h"
#include "session/load.h"
#include "trace/result.h"
#include "trace/trace.h"

#include <stdbool.h>

typedef struct hp_outcome {
    hp_case c;
    hp_expansion *x;     /* one a program */
    hp_step_trace trace; /* owned: a typical whole step */
    hp_result *result;
    bool interrupted; /* the user asked to stop; the figures are those of the steps that were done */
    int64_t stored;   /* its number in the store; 0: not written, a warning says why */
} hp_outcome;

/* hp_outcome_open loads and plans what is asked for and expands the plan; *o (zeroed) must be
 * freed by hp_outcome_fini in any case. */
hp_err hp_outcome_open(const hp_ask *ask, hp_outcome *o, hp_errmsg *e);
void hp_outcome_fini(hp_outcome *o);

/* hp_outcome_copy_trace makes o->trace an owned copy of `t`, whose spans may lie in memory that
 * goes away. */
void hp_outcome_copy_trace(hp_outcome *o, const hp_step_trace *t);

/* hp_outcome_describe makes o->result with names, strategy and hashes; hp_outcome_measure fills
 * it with the figures of o->trace and what cluster and build assumed; the step takes `step_s`
 * seconds, or as long as the trace when that is NAN. */
void hp_outcome_describe(hp_outcome *o, const char *mode, const char *clock, const char *grain,
                         uint64_t seed);
void hp_outcome_measure(hp_outcome *o, double step_s);

/* hp_outcome_warn and hp_outcome_assume append to the record; the strings are copied. */
void hp_outcome_warn(hp_outcome *o, const char *text);
void hp_outcome_assume(hp_outcome *o, const char *name, const char *value, const char *source,
                       bool unverified);

/* hp_outcome_keep stores the record; where that fails it warns instead. */
void hp_outcome_keep(hp_outcome *o);

#endif

/* trace.h -- what happened in one step: a span for every task instance of every device.
 *
 * exec writes slots in shared memory while the step runs, sim fills the same struct; everything that people see of time is computed from
 * plan and trace (trace/owners.h). A slot is written once and published with release (`state`); readers acquire. Times are nanoseconds from the step's
 * start. A transfer runs from `xfer_ns` (the last participant has arrived) to `end_ns`; for other tasks xfer_ns = start_ns. Room: trace.
 */
#ifndef HP_TRACE_TRACE_H
#define HP_TRACE_TRACE_H

#include "plan/expand.h"
#include "plan/plan.h"

#include <stdatomic.h>

typedef struct hp_span {
    int64_t ready_ns; /* dependencies satisfied */
    int64_t start_ns; /* this rank began (or arrived at the collective) */
    int64_t xfer_ns;  /* transfer began */
    int64_t end_ns;
    int64_t bytes;    /* sent by this rank (real sizes for routed data) */
    _Atomic int state; /* 0 not yet, 1 running, 2 done */
} hp_span;

/* hp_step_trace covers one step of a plan: span[program][rank * n_inst + inst]. */
typedef struct hp_step_trace {
    int64_t step;
    int64_t step_ns;
    int n_programs;
    int *n_inst;     /* per program */
    hp_span **span;  /* per program; borrowed when it lies in shared memory */
    bool owned;
} hp_step_trace;

/* hp_step_trace_init makes an empty, owned trace for a plan whose programs expand to x[i]. */
void hp_step_trace_init(hp_step_trace *t, const hp_plan *p, const hp_expansion *x);
void hp_step_trace_fini(hp_step_trace *t);

#endif

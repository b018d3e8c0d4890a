/* trace.h -- what happened in one step: a span for every task instance of every device.
 *
 * exec writes slots in shared memory while the step runs, sim fills the same struct; everything
 * that people see of time is computed from plan and trace (trace/owners.h). A slot is written once
 * and published with release (`state`); readers acquire. Times are nanoseconds from the step's
 * start. A transfer runs from `xfer_ns` (the last participant has arrived) to `end_ns`; for other
 * tasks xfer_ns = start_ns. Room: trace.
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

enum { HP_SPAN_NOT_YET, HP_SPAN_RUNNING, HP_SPAN_DONE };

/* hp_step_trace covers one step of a plan. A program has `n_rows` rows of n_inst spans: one a rank
 * (row = NULL), or one for ranks whose timelines are equal (row[rank] says which; sim folds classes
 * so). Readers ask hp_trace_spans. */
typedef struct hp_step_trace {
    int64_t step;
    int64_t step_ns;
    int n_programs;
    int *n_inst;     /* per program */
    hp_span **span;  /* per program: row * n_inst + inst; borrowed when it lies in shared memory */
    bool owned;
    int *n_rows;     /* per program; NULL in a trace of exec: as many as ranks */
    int **row;       /* per program, rank -> row; NULL, or NULL for a program: each rank has its own */
} hp_step_trace;

/* hp_step_trace_init makes an empty, owned trace for a plan whose programs expand to x[i], a row a
 * rank. */
void hp_step_trace_init(hp_step_trace *t, const hp_plan *p, const hp_expansion *x);

/* hp_step_trace_init_rows makes one with n_rows[i] rows a program; row[i] (a rank's row, copied)
 * may be NULL where each rank has its own. */
void hp_step_trace_init_rows(hp_step_trace *t, const hp_plan *p, const hp_expansion *x, const int *n_rows,
                             int *const *row);

/* hp_step_trace_fini frees what the trace owns; it is empty again. */
void hp_step_trace_fini(hp_step_trace *t);

/* hp_trace_spans returns the n_inst spans of a rank; hp_trace_row the number of its row. */
const hp_span *hp_trace_spans(const hp_step_trace *t, int program, int rank);
int hp_trace_row(const hp_step_trace *t, int program, int rank);

#endif

/* trace.h -- one step as Chrome trace events, which Perfetto and chrome://tracing open.
 *
 * A device is a process, a stream a thread. Tasks are complete slices ("X") that never overlap
 * within a thread; a collective that waited for its partners holds a slice "wait" inside.
 * Dependencies between streams are flows ("s", "f"), live bytes by kind are counters ("C"), times
 * are microseconds with three decimals. Source: "Trace Event Format", Google, 2016. Room: fmt.
 */
#ifndef HP_FMT_TRACE_H
#define HP_FMT_TRACE_H

#include "base/str.h"
#include "trace/trace.h"

/* hp_trace_chrome appends the events of the step `t` of `p`, whose program i expands to x[i], as
 * one JSON map. Spans that never ended are left out. */
void hp_trace_chrome(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t, hp_str *out);

#endif

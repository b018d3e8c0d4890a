/* planview.h -- a plan for people: what lies in memory, which ranks form groups, what is sent. Room: session. */
#ifndef HP_SESSION_PLANVIEW_H
#define HP_SESSION_PLANVIEW_H

#include "base/str.h"
#include "plan/plan.h"

/* hp_planview_memory appends, for each program, the bytes of a device by scope and kind, and its largest buffers. */
void hp_planview_memory(const hp_plan *p, hp_str *out);

/* hp_planview_groups appends each program's mesh: axes of all views with their size and the first groups of ranks. */
void hp_planview_groups(const hp_plan *p, hp_str *out);

/* hp_planview_comm appends what a device of each program sends in a step: by axis, collective and template, how often and how many bytes (largest rank). */
void hp_planview_comm(const hp_plan *p, hp_str *out);

/* hp_planview_runs says whether a task runs in this entry (its `when` against the entry's place in the step). */
bool hp_planview_runs(const hp_task *t, const hp_entry *e);

#endif

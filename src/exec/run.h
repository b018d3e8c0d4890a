/* run.h -- a plan run in this process. Room: exec. */
#ifndef HP_EXEC_RUN_H
#define HP_EXEC_RUN_H

#include "exec/segment.h"

/* hp_exec_run runs a plan's steps in this process and fills *out, which the caller ends with hp_exec_report_fini; `h` may be NULL.
 * HP_EINFEASIBLE: over budget, or more routed rows than planned; HP_ECANCELLED: by h->cancel; HP_EINTERNAL: a bad plan, a deadlock, the machine; else what an
 * operation or the loader says. After an error *out still holds the steps before it. The environment variable HPBENCH_INJECT=KIND:GLOB (KIND abort, segv or
 * fail) harms the operations whose task name matches, for tests. */
hp_err hp_exec_run(const hp_plan *p, const hp_exec_options *o, const hp_exec_hooks *h,
                   hp_exec_report *out, hp_errmsg *e);

/* hp_exec_run_in does the same in a segment that is there already (its cancel word counts too). */
hp_err hp_exec_run_in(const hp_plan *p, const hp_expansion *x, const hp_exec_options *o,
                      const hp_exec_hooks *h, hp_segment *s, hp_errmsg *e);

void hp_exec_report_fini(hp_exec_report *r);

/* hp_exec_expand expands all programs of a plan; hp_exec_expansions_free frees that. */
hp_expansion *hp_exec_expand(const hp_plan *p);
void hp_exec_expansions_free(const hp_plan *p, hp_expansion *x);

#endif

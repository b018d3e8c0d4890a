/* fit.h -- does a plan fit its devices, and what would make it. Room: plan. */
#ifndef HP_PLAN_FIT_H
#define HP_PLAN_FIT_H

#include "plan/build.h"

/* hp_fit_check is HP_OK when every program's arena is within the plan's budget; else HP_EINFEASIBLE with the moment of the peak, the five largest tensors
 * alive then, and the cheapest change of the strategy that fits (found by planning each). */
hp_err hp_fit_check(hp_graph *g, const hp_cluster *c, const hp_strategy *s, const hp_plan *p, hp_errmsg *e);

/* hp_build_any is hp_build without the judgement of the fit. */
hp_err hp_build_any(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_built *out, hp_errmsg *e);

#endif

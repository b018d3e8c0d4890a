/* fit.h -- does a plan fit its devices, and what would make it. Room: plan. */
#ifndef HP_PLAN_FIT_H
#define HP_PLAN_FIT_H

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "plan/strategy.h"

/* hp_fits says whether every program's arena is within the plan's budget (0: no budget). */
bool hp_fits(const hp_plan *p);

/* hp_try_fn plans a changed strategy without judging its fit; the caller frees *plan. */
typedef hp_err hp_try_fn(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_plan **plan, hp_errmsg *e);

/* hp_fit_check is HP_OK when the plan fits; else HP_EINFEASIBLE with the moment of the peak, the five largest tensors
 * alive then, and the cheapest change of the strategy that fits (found by planning each with `try`). */
hp_err hp_fit_check(hp_graph *g, const hp_cluster *c, const hp_strategy *s, const hp_plan *p, hp_try_fn *try, hp_errmsg *e);

#endif

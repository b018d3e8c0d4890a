/* build.h -- from model, cluster and strategy to a plan. Room: plan. */
#ifndef HP_PLAN_BUILD_H
#define HP_PLAN_BUILD_H

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/note.h"
#include "plan/plan.h"
#include "plan/strategy.h"

typedef struct hp_built {
    hp_plan *plan;
    hp_str resolved;   /* `plan --resolved`: everything that was derived, one a line */
    int n_notes, cap_notes;
    hp_note *note;     /* strings live in the plan's arena */
} hp_built;

/* hp_build plans one training step of the model (whose `batch` and `micro` dimensions it binds; autodiff must have run) on the cluster.
 * HP_EINFEASIBLE: an illegal split (tensor, axis, sizes, nearest legal value) or no fit (moment, five largest tensors, cheapest change that fits);
 * HP_EINPUT: unknown axis, dimension or glob in a strategy file, with near names. */
hp_err hp_build(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_built *out, hp_errmsg *e);

/* hp_built_fini frees what a build left; zeroed = empty. */
void hp_built_fini(hp_built *b);

#endif

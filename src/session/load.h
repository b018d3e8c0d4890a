/* load.h -- from what the user named to what the engine needs: cluster, graph, strategy, plan.
 * Room: session. */
#ifndef HP_SESSION_LOAD_H
#define HP_SESSION_LOAD_H

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/build.h"
#include "plan/strategy.h"

#include <stdint.h>

enum { HP_MAX_OVERRIDES = 64 };

/* hp_ask is a request in the user's words. Zeroed, with names filled in, it asks for the
 * defaults. Strings are borrowed, but those that `arena` owns. */
typedef struct hp_ask {
    hp_arena arena;
    const char *model, *cluster, *strategy;
    int n_over;
    hp_override over[HP_MAX_OVERRIDES]; /* `-o key=value`: "model.seq", "64" */
} hp_ask;

/* hp_ask_over appends an override; HP_EUSAGE when there are too many. */
hp_err hp_ask_over(hp_ask *ask, const char *key, const char *value, hp_errmsg *e);

/* hp_ask_fini frees what the request owns; a copy of a request owns nothing of its own. */
void hp_ask_fini(hp_ask *ask);

/* hp_case is everything that belongs to one plan. */
typedef struct hp_case {
    hp_cluster *cluster;
    hp_graph *graph;
    hp_strategy *strategy;
    hp_built built;
} hp_case;

/* hp_case_open loads cluster, model and strategy, in this order, without planning; hp_case_load
 * plans as well. Each error is the exit status that CLI users get: 2 for an unknown name, 3 for
 * a bad file, 4 for a split that cannot be. *c (zeroed) must be freed by hp_case_fini in any
 * case. */
hp_err hp_case_open(const hp_ask *ask, hp_case *c, hp_errmsg *e);
hp_err hp_case_load(const hp_ask *ask, hp_case *c, hp_errmsg *e);

/* hp_case_fini frees what loading made; zeroed = empty. */
void hp_case_fini(hp_case *c);

#endif

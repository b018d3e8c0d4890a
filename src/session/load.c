/* load.c -- the strategy's script may look at model and cluster, so it comes last. */
#include "session/load.h"

#include "script/cluster.h"
#include "script/model.h"
#include "script/source.h"
#include "script/strategy.h"

hp_err hp_ask_over(hp_ask *ask, const char *key, const char *value, hp_errmsg *e)
{
    if (ask->n_over == HP_MAX_OVERRIDES)
        return hp_fail(e, HP_EUSAGE, "more than %d overrides", HP_MAX_OVERRIDES);
    ask->over[ask->n_over++] = (hp_override){key, value};
    return HP_OK;
}

void hp_ask_fini(hp_ask *ask)
{
    hp_arena_fini(&ask->arena);
}

hp_err hp_case_open(const hp_ask *ask, hp_case *c, hp_errmsg *e)
{
    hp_err err = hp_script_overrides(ask->n_over, ask->over, e);
    if (!err)
        err = hp_script_cluster(ask->cluster, ask->n_over, ask->over, &c->cluster, e);
    if (!err)
        err = hp_script_model(ask->model, ask->n_over, ask->over, &c->graph, e);
    if (!err)
        err = hp_script_strategy(ask->strategy, c->graph, c->cluster, ask->n_over, ask->over,
                                 &c->strategy, e);
    return err;
}

hp_err hp_case_load(const hp_ask *ask, hp_case *c, hp_errmsg *e)
{
    hp_err err = hp_case_open(ask, c, e);
    return err ? err : hp_build(c->graph, c->cluster, c->strategy, &c->built, e);
}

void hp_case_fini(hp_case *c)
{
    hp_built_fini(&c->built);
    hp_strategy_free(c->strategy);
    hp_graph_free(c->graph);
    hp_cluster_free(c->cluster);
    *c = (hp_case){0};
}

/* strategy.c -- the canonical text names every key in one fixed order, so that equal strategies have equal hashes. */
#include "plan/strategy.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

hp_strategy *hp_strategy_new(void)
{
    hp_strategy *s = hp_xcalloc(1, sizeof *s);
    s->name = "strategy";
    s->mode = "train";
    s->param_split.n = -1;
    s->states.after_forward = "free";
    s->moe.routing = "dropless";
    s->moe.headroom = 2;
    s->moe.imbalance = 1;
    s->dtype = "f32";
    s->zero = -1;
    s->pipeline.vpp = 1;
    return s;
}

void hp_strategy_free(hp_strategy *s)
{
    if (!s)
        return;
    hp_rules *lists[] = {&s->layout, &s->states.over, &s->recompute, &s->cuts, &s->offload, &s->other};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->rule);
    hp_arena_fini(&s->arena);
    free(s);
}

void hp_rules_add(hp_strategy *s, hp_rules *r, const char *glob, const char *key, const char *value)
{
    r->rule = hp_grow(r->rule, &r->cap, r->n + 1, sizeof *r->rule);
    r->rule[r->n++] = (hp_rule){.glob = hp_arena_strdup(&s->arena, glob),
                                .key = hp_arena_strdup(&s->arena, key),
                                .value = hp_arena_strdup(&s->arena, value)};
}

static void put_text(hp_str *out, const char *key, const char *value)
{
    if (value)
        hp_str_add(out, "%s %s\n", key, value);
}

static void put_int(hp_str *out, const char *key, int64_t value, int64_t silent)
{
    if (value != silent)
        hp_str_add(out, "%s %lld\n", key, (long long)value);
}

static void put_splits(hp_str *out, const char *key, const hp_splits *s)
{
    for (int i = 0; i < s->n; i++)
        hp_str_add(out, "%s %s = %s%s%s\n", key, s->rule[i].dim, s->rule[i].axes, s->rule[i].order ? " " : "",
                   s->rule[i].order ? s->rule[i].order : "");
}

static void put_rules(hp_str *out, const char *list, const hp_rules *r)
{
    for (int i = 0; i < r->n; i++)
        hp_str_add(out, "%s %s %s = %s\n", list, r->rule[i].glob, r->rule[i].key, r->rule[i].value);
}

static void put_states(hp_str *out, const hp_strategy *s)
{
    put_text(out, "states.like", s->states.like);
    put_text(out, "states.params", s->states.params);
    put_text(out, "states.grads", s->states.grads);
    put_text(out, "states.optimizer", s->states.optimizer);
    put_rules(out, "states", &s->states.over);
    for (int i = 0; i < s->states.n_units; i++)
        put_text(out, "states.unit", s->states.unit[i]);
    put_text(out, "states.after_forward", s->states.after_forward);
    put_text(out, "states.reduce.dtype", s->states.reduce_dtype);
    put_text(out, "states.reduce.between", s->states.reduce_between);
}

static void put_pipeline(hp_str *out, const hp_strategy *s)
{
    put_text(out, "pipeline.over", s->pipeline.over);
    put_text(out, "pipeline.schedule", s->pipeline.schedule);
    put_int(out, "pipeline.vpp", s->pipeline.vpp, 1);
    put_text(out, "pipeline.stages", s->pipeline.stages);
    for (int i = 0; i < s->pipeline.n_stages; i++)
        put_text(out, "pipeline.stage", s->pipeline.stage[i]);
}

static void put_overlap(hp_str *out, const hp_strategy *s)
{
    put_int(out, "overlap.grads", s->overlap.grads, 0);
    put_int(out, "overlap.grads.bucket", s->overlap.bucket_bytes, 0);
    put_int(out, "overlap.params", s->overlap.params, 0);
    put_int(out, "overlap.params.ahead", s->overlap.ahead, 0);
    put_int(out, "overlap.params.limit", s->overlap.ahead_limit, 0);
    put_int(out, "overlap.pp", s->overlap.pp, 0);
    put_int(out, "overlap.cp", s->overlap.cp, 0);
    put_int(out, "overlap.ep", s->overlap.ep, 0);
    put_int(out, "overlap.tp.chunks", s->overlap.tp_chunks, 0);
}

void hp_strategy_print(const hp_strategy *s, hp_str *out)
{
    put_text(out, "mode", s->mode);
    for (int i = 0; i < s->n_views; i++)
        hp_str_add(out, "mesh%s%s %s\n", *s->view_name[i] ? "." : "", s->view_name[i], s->view_mesh[i]);
    put_splits(out, "split", &s->split);
    if (s->param_split.n == 0)
        hp_str_add(out, "param_split none\n");
    put_splits(out, "param_split", &s->param_split);
    put_rules(out, "layout", &s->layout);
    put_states(out, s);
    put_int(out, "batch.global", s->batch.global, 0);
    put_int(out, "batch.micro", s->batch.micro, 0);
    put_int(out, "batch.accum", s->batch.accum, 0);
    put_text(out, "batch.normalise", s->batch.normalise);
    put_rules(out, "recompute", &s->recompute);
    put_overlap(out, s);
    put_pipeline(out, s);
    put_text(out, "cp.inner", s->cp.inner);
    put_text(out, "cp.outer", s->cp.outer);
    put_text(out, "cp.send", s->cp.send);
    put_text(out, "moe.routing", s->moe.routing);
    hp_str_add(out, "moe.headroom %g\nmoe.imbalance %g\n", s->moe.headroom, s->moe.imbalance);
    put_int(out, "moe.tiles", s->moe.tiles, 0);
    put_text(out, "moe.shared", s->moe.shared);
    put_int(out, "uneven", s->uneven, 0);
    put_rules(out, "cut", &s->cuts);
    put_text(out, "dtype", s->dtype);
    put_int(out, "memory.hbm", s->hbm_bytes, 0);
    put_rules(out, "offload", &s->offload);
    put_rules(out, "other", &s->other);
}

uint64_t hp_strategy_hash(const hp_strategy *s)
{
    hp_str t = {0};
    hp_strategy_print(s, &t);
    uint64_t h = hp_hash_str(hp_str_text(&t));
    hp_str_fini(&t);
    return h;
}

/* The written form of a strategy: one canonical text, whose hash is the same for the same choice
 * and another for any other. */
#include "plan/strategy.h"

#include "tap.h"

static hp_strategy *base(void)
{
    hp_strategy *s = hp_strategy_new();
    s->n_views = 1;
    s->view_name[0] = "";
    s->view_mesh[0] = "dp=*";
    s->split.n = 1;
    s->split.rule[0] = (hp_split_rule){"batch", "dp", NULL};
    return s;
}

static void text(void)
{
    hp_strategy *s = base();
    hp_str t = {0};
    s->states.optimizer = "dp";
    hp_rules_add(s, &s->layout, "layers.*.resid", "seq", "tp");
    hp_rules_add(s, &s->layout, "layers.*.norm*", "seq", "tp");
    hp_strategy_print(s, &t);
    is_str(hp_str_text(&t),
           "mode train\nmesh dp=*\nsplit batch = dp\nlayout layers.*.resid seq = tp\nlayout "
           "layers.*.norm* seq = tp\nstates.optimizer dp\n"
           "states.after_forward free\nmoe.routing dropless\nmoe.headroom 2\nmoe.imbalance "
           "1\ndtype f32\n",
           "one line a choice, in one order; lists keep theirs");
    hp_str_fini(&t);
    hp_strategy_free(s);
    hp_strategy_free(NULL);
}

typedef void change_fn(hp_strategy *s);

#define CHANGE(name, what)                                                                         \
    static void name(hp_strategy *s)                                                               \
    {                                                                                              \
        what;                                                                                      \
    }
CHANGE(mode, s->mode = "decode")
CHANGE(mesh, s->view_mesh[0] = "dp=4")
CHANGE(view, (s->n_views = 2, s->view_name[1] = "moe", s->view_mesh[1] = "edp=*, ep=2"))
CHANGE(split, s->split.rule[0].axes = "dp+cp")
CHANGE(order, s->split.rule[0].order = "zigzag")
CHANGE(no_params, s->param_split.n = 0)
CHANGE(params, (s->param_split.n = 1, s->param_split.rule[0] = (hp_split_rule){"ffn", "dp", NULL}))
CHANGE(layout, hp_rules_add(s, &s->layout, "head", "vocab", "tp"))
CHANGE(layout_order, (hp_rules_add(s, &s->layout, "a", "vocab", "tp"),
                      hp_rules_add(s, &s->layout, "b", "vocab", "tp")))
CHANGE(layout_reversed, (hp_rules_add(s, &s->layout, "b", "vocab", "tp"),
                         hp_rules_add(s, &s->layout, "a", "vocab", "tp")))
CHANGE(like, s->states.like = "fsdp2")
CHANGE(zero3, s->states.params = "dp")
CHANGE(zero2, s->states.grads = "dp")
CHANGE(zero1, s->states.optimizer = "dp")
CHANGE(over, hp_rules_add(s, &s->states.over, "head", "optimizer", "whole"))
CHANGE(unit, (s->states.n_units = 1, s->states.unit[0] = "layers.*"))
CHANGE(after, s->states.after_forward = "keep")
CHANGE(reduce, s->states.reduce_dtype = "f32")
CHANGE(between, s->states.reduce_between = "rep")
CHANGE(global, s->batch.global = 8)
CHANGE(micro, s->batch.micro = 2)
CHANGE(accum, s->batch.accum = 2)
CHANGE(recompute, hp_rules_add(s, &s->recompute, "layers.*", "what", "inside"))
CHANGE(grads, s->overlap.grads = true)
CHANGE(bucket, s->overlap.bucket_bytes = 64)
CHANGE(gather, s->overlap.params = true)
CHANGE(ahead, s->overlap.ahead = 2)
CHANGE(limit, s->overlap.ahead_limit = 64)
CHANGE(pp, s->overlap.pp = true)
CHANGE(cp, s->overlap.cp = true)
CHANGE(ep, s->overlap.ep = true)
CHANGE(chunks, s->overlap.tp_chunks = 4)
CHANGE(pipe, s->pipeline.over = "pp")
CHANGE(schedule, s->pipeline.schedule = "gpipe")
CHANGE(vpp, s->pipeline.vpp = 2)
CHANGE(stages, s->pipeline.stages = "1+3")
CHANGE(stage, (s->pipeline.n_stages = 1, s->pipeline.stage[0] = "embed"))
CHANGE(inner, s->cp.inner = "ulysses:2")
CHANGE(outer, s->cp.outer = "ring")
CHANGE(routing, s->moe.routing = "1.25")
CHANGE(headroom, s->moe.headroom = 3)
CHANGE(imbalance, s->moe.imbalance = 1.5)
CHANGE(tiles, s->moe.tiles = 4)
CHANGE(uneven, s->uneven = true)
CHANGE(cut, hp_rules_add(s, &s->cuts, "ffn", "cut", "balanced"))
CHANGE(dtype, s->dtype = "bf16")
CHANGE(hbm, s->hbm_bytes = 64)
CHANGE(offload, hp_rules_add(s, &s->offload, "optim:**", "to", "host"))
CHANGE(other, hp_rules_add(s, &s->other, "edges", "", "x"))

static change_fn *const changes[] = {mode,      mesh,      view,      split,        order,
                                     no_params, params,    layout,    layout_order, layout_reversed,
                                     like,      zero3,     zero2,     zero1,        over,
                                     unit,      after,     reduce,    between,      global,
                                     micro,     accum,     recompute, grads,        bucket,
                                     gather,    ahead,     limit,     pp,           cp,
                                     ep,        chunks,    pipe,      schedule,     vpp,
                                     stages,    stage,     inner,     outer,        routing,
                                     headroom,  imbalance, tiles,     uneven,       cut,
                                     dtype,     hbm,       offload,   other};

static void hashes(void)
{
    enum { N = sizeof changes / sizeof *changes };
    uint64_t seen[N + 1];
    int same = 0;
    for (int i = 0; i <= N; i++) {
        hp_strategy *s = base();
        if (i < N)
            changes[i](s);
        seen[i] = hp_strategy_hash(s);
        for (int k = 0; k < i; k++)
            same += seen[k] == seen[i];
        hp_strategy_free(s);
    }
    is_int(same, 0, "%d changes of one key each have %d hashes, none that of the unchanged", N, N);
    hp_strategy *a = base(), *b = base();
    b->name = "other";
    b->shorthand = "dp=4";
    b->zero = 1;
    ok(hp_strategy_hash(a) == hp_strategy_hash(b),
       "how a strategy is called and was typed is not in its hash");
    hp_strategy_free(a);
    hp_strategy_free(b);
}

int main(void)
{
    text();
    hashes();
    return done_testing();
}

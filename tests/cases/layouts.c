/* V08, V09 and V10: partial values through a second matmul, axes that keep to themselves, nested
 * uneven shards.
 *
 * V08: hyper-parallel issue 685. V09: autoparallel PR 517. V10: pytorch PR 194457, issue 143372.
 */
#include "planned.h"

/* --- V08 ------------------------------------------------------------------------------------- */

static const char lora[] =
    "local cfg = override { name = 'lora', embed = 64, ffn = 256, rank = 4, vocab = 32, seq = 16 "
    "}\n"
    "dims(cfg, 'embed ffn rank vocab seq', { batch = free })\n"
    "return model(cfg.name, function(tokens, targets)\n"
    "  local x = linear('up', embedding('embed', tokens, 'vocab -> embed'), 'embed -> ffn')\n"
    "  local y = linear('b', linear('a', x, 'ffn -> rank'), 'rank -> embed')\n"
    "  return cross_entropy('loss', linear('head', rmsnorm('norm', y), 'embed -> vocab'), "
    "targets)\n"
    "end)\n";

static void second_matmul(void)
{
    const char *model = script_of(lora),
               *strategy = script_of("return strategy { mesh = 'tp=*', split = { ffn = 'tp' } }");
    for (int n = 2; n <= 4; n++) {
        char cluster[16], over[32];
        snprintf(cluster, sizeof cluster, "ideal:%d", n);
        snprintf(over, sizeof over, "model.ffn=%d", 60 * n);
        planned p = must_plan(model, over, cluster, strategy);
        traffic reduced = traffic_of(&p, 0, "F", "tp", HP_COLL_ALL_REDUCE);
        double rank_bytes = 2.0 * (n - 1) / n * 16 * 4 * 4;
        is_int(reduced.n, 1, "V08: x A is partial over tp=%d through B: one all-reduce forward", n);
        near(reduced.bytes, rank_bytes, 4, "V08: of [.., rank], which is narrower than [.., out]");
        ok(task_of(&p, 0, "a>all-reduce") != NULL, "V08: before B");
        is_int(hp_layout_partial_mask(&buffer_of(&p, 0, "b.w:acc")->layout), 0,
               "V08: the gradient of B is whole on every rank");
        proved(&p, 0, "V08");
        planned_free(&p);
    }
    unlink(model);
    unlink(strategy);
}

/* --- V09 ------------------------------------------------------------------------------------- */

static hp_mesh mesh_of(const char *spec)
{
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, 1, (const char *const[]){""}, &spec, 0, NULL, NULL, &e))
        bail("%s: %s", spec, e.text);
    return m;
}

static hp_path path_of(const hp_mesh *m, const hp_shape *s, const char *from, const char *to)
{
    static const char *const dims[] = {"r", "c"};
    hp_layout a, b;
    hp_path path = {0};
    hp_errmsg e;
    if (hp_layout_parse(m, 2, dims, from, &a, &e) || hp_layout_parse(m, 2, dims, to, &b, &e) ||
        hp_redist_path(m, s, 4, &a, &b, &(hp_price){0}, &path, &e))
        bail("%s -> %s: %s", from, to, e.text);
    return path;
}

static void one_axis_changes(void)
{
    hp_mesh m = mesh_of("dp_shard=2,cp=2");
    hp_shape w = {.nd = 2, .size = {512, 128}}, t = {.nd = 2, .size = {128, 512}};
    hp_path p = path_of(&m, &w, "partial:sum(cp)", "c:dp_shard partial:sum(cp)");
    ok(p.n == 1 && p.move[0].kind == HP_COLL_SLICE,
       "V09: (Replicate, Partial) to (Shard(1), Partial) is a local slice");
    ok(hp_layout_partial_mask(&p.move[0].to) == hp_layout_partial_mask(&p.move[0].from),
       "V09: which stays partial over cp");
    p = path_of(&m, &t, "r:dp_shard partial:sum(cp)", "r:dp_shard");
    ok(p.n == 1 && p.move[0].kind == HP_COLL_ALL_REDUCE && p.move[0].atoms == 2u,
       "V09: transposed, one all-reduce over cp");
    near(hp_move_bytes(&m, &p.move[0], &t, 4, 0), 2.0 * 1 / 2 * 64 * 512 * 4, 0,
         "V09: of the shard's bytes");
    p = path_of(&m, &w, "partial:sum(cp)", "c:dp_shard");
    int reduced = 0;
    for (int i = 0; i < p.n; i++)
        reduced += p.move[i].kind != HP_COLL_SLICE;
    is_int(reduced, 1, "V09: both at once: one collective");
}

/* In a plan: gradients sharded over dp_shard stay partial over cp until the step ends, tied
 * (transposed) head included. */
static void gradients_keep_axes_apart(void)
{
    const char *s = script_of("return strategy { mesh = 'dp_shard=2, cp=2', roles = { dp_shard = "
                              "'dp' }, split = { batch = 'dp_shard', seq = 'cp' },\n"
                              "  states = { params = 'dp_shard', grads = 'dp_shard', optimizer = "
                              "'dp_shard' }, cp = { outer = 'gather' }, batch = { accum = 3 } }\n");
    planned p =
        must_plan("llama-small", "model.layers=1 model.seq=8 model.tied=true", "ideal:4", s);
    double params = (double)hp_graph_params(p.c.graph) * 4;
    traffic cp = traffic_of(&p, 0, "FBO", "cp", HP_COLL_ALL_REDUCE),
            dp = traffic_of(&p, 0, "FBO", "dp_shard", HP_COLL_REDUCE_SCATTER);
    near(cp.bytes, 2.0 * 1 / 2 * params / 2, 64,
         "V09: every gradient's shard is reduced over cp once a step");
    ok(dp.bytes >= 3 * params / 2, "V09: and scattered over dp_shard in every microbatch");
    proved(&p, 0, "V09: gradients");
    planned_free(&p);
    unlink(s);
}

/* --- V10 ------------------------------------------------------------------------------------- */

static void rows_are(const planned *p, const char *buffer, int n, const int *want, const char *name)
{
    const hp_program *g = &p->plan->program[0];
    int same = 0;
    for (int r = 0; r < n; r++) {
        hp_box b = hp_buffer_box(g, (int)(buffer_of(p, 0, buffer) - g->buffer), r);
        same += b.hi[0] - b.lo[0] == want[r];
    }
    is_int(same, n, "%s", name);
}

static const char tiny[] = "local cfg = override { name = 'tiny', embed = 3, vocab = 5, seq = 8 }\n"
                           "dims(cfg, 'embed vocab seq', { batch = free })\n"
                           "return model(cfg.name, function(tokens, targets)\n"
                           "  local x = embedding('embed', tokens, 'vocab -> embed')\n"
                           "  return cross_entropy('loss', linear('head', x, 'embed -> vocab', { "
                           "tied = 'embed' }), targets)\n"
                           "end)\n";

static void nested(void)
{
    const char *model = script_of(tiny);
    const char *zero =
        script_of("return strategy { mesh = 'a=2, b=2', split = { batch = 'a+b' }, uneven = true,\n"
                  "  states = { params = 'a+b', grads = 'a+b', optimizer = 'a+b' } }\n");
    const char *split = script_of(
        "return strategy { mesh = 'a=2, b=2', split = { vocab = 'a+b' }, uneven = true }\n");
    planned p = must_plan(model, "", "ideal:4", zero);
    rows_are(&p, "embed.w", 4, (int[]){2, 1, 1, 1},
             "V10: 5x3 twice sharded on dim 0 of a 2x2 mesh is 2, 1, 1, 1");
    is_int(traffic_of(&p, 0, "F", "", HP_COLL_SLICE).n, 0, "V10: nothing is sliced away");
    proved(&p, 0, "V10: gathered from nested uneven shards, no row is lost");
    planned_free(&p);
    p = must_plan(model, "", "ideal:4", split);
    rows_are(&p, "embed.w", 4, (int[]){2, 1, 1, 1}, "V10: computed on, too");
    proved(&p, 0, "V10: computed on nested uneven shards");
    planned_free(&p);
    p = must_plan(model, "model.embed=256 model.vocab=6", "ideal:4", "tp=4,uneven");
    rows_are(&p, "embed.w", 4, (int[]){2, 2, 2, 0},
             "V10: 6x256 on 4 ranks is 2, 2, 2 and an empty one");
    proved(&p, 0, "V10: computed on with an empty rank");
    planned_free(&p);
    refused("V10", model, "model.embed=256 model.vocab=6", "ideal:4", "tp=4", HP_EINFEASIBLE,
            "embed.w|vocab (6)|tp (4 parts)|nearest legal: 3 or 6 parts|uneven");
    unlink(model);
    unlink(zero);
    unlink(split);
}

int main(void)
{
    second_matmul();
    one_axis_changes();
    gradients_keep_axes_apart();
    nested();
    return done_testing();
}

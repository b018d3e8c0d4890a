/* place.c -- placements that Megatron would make, collective for collective, and that compute the right numbers. */
#include "unit/shard/tiny.h"

static const tiny_sizes dense = {.batch = 4, .seq = 8, .embed = 16, .kv_heads = 4, .group = 2, .head = 4, .ffn = 32, .vocab = 24, .layers = 2};
static const tiny_sizes big = {.batch = 8, .seq = 4096, .embed = 8192, .kv_heads = 8, .group = 8, .head = 128, .ffn = 28672, .vocab = 128256, .layers = 2};

static hp_mesh mesh_of(const char *spec)
{
    const char *view[] = {""};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, 1, view, &spec, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static void with_rules(tiny_plan *p, const hp_graph *g, const hp_mesh *m, int n, const tiny_rule *rule)
{
    tiny_begin(p, g, m);
    for (int t = 0; t < g->n_tensors; t++)
        p->target[t] = tiny_target(g, m, t, n, rule);
}

static const tiny_rule tp[] = {{"**", "vocab", "tp"}, {"**", "kv_heads", "tp"}, {"**", "ffn", "tp"}, {"**", "batch", "dp"}};
static const tiny_rule tp_sp[] = {{"**", "vocab", "tp"},           {"**", "kv_heads", "tp"},         {"**", "ffn", "tp"},     {"**", "batch", "dp"},
                                  {"layers.*.resid", "seq", "tp"}, {"layers.*.mid", "seq", "tp"},    {"embed", "seq", "tp"},
                                  {"layers.*.norm*", "seq", "tp"}, {"layers.*.norm*.rstd", "seq", "tp"}, {"norm", "seq", "tp"}, {"norm.rstd", "seq", "tp"}};

/* The collectives made for nodes whose name begins with `prefix`, in order: "all-reduce layers.1.norm2/dx; ..." */
static const char *collectives(const tiny_plan *p, hp_phase lo, hp_phase hi, const char *prefix)
{
    static char buf[4096];
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < p->out.n_steps; i++) {
        const hp_step *s = &p->out.step[i];
        const char *name = p->in.g->node[s->consumer].name;
        if (s->node >= 0 || s->phase < lo || s->phase > hi || s->move.kind == HP_COLL_SLICE || strncmp(name, prefix, strlen(prefix)))
            continue;
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%s %s", n ? "; " : "", hp_coll_name(s->move.kind), name + strlen(prefix));
    }
    return buf;
}

static void place(tiny_plan *p)
{
    hp_errmsg e = {0};
    if (hp_place(&p->in, &p->out, &e))
        bail("%s", e.text);
}

static void test_megatron(const tiny_sizes *z, const char *size)
{
    hp_mesh m = mesh_of("dp=2,tp=4");
    hp_graph *g = tiny_model(z);
    tiny_plan p;
    with_rules(&p, g, &m, 4, tp);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.1."), "all-reduce mid; all-reduce resid",
           "tp, %s: a layer's forward all-reduces after attention and after the mlp", size);
    is_str(collectives(&p, HP_P_BWD, HP_P_WGRAD, "layers.1."), "all-reduce norm2/dx; all-reduce norm1/dx",
           "tp, %s: a layer's backward all-reduces the summed gradients of gate and up, and of q, k and v", size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.0.norm1"), "all-reduce ", "tp, %s: the split embedding is reduced once", size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "loss"), "all-reduce ", "tp, %s: the split vocabulary reduces its statistics alone", size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "stats"), "", "tp, %s: logits stay split", size);
    tiny_end(&p);
    with_rules(&p, g, &m, 11, tp_sp);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.1."), "all-gather q; reduce-scatter mid; all-gather gate; reduce-scatter resid",
           "tp+sp, %s: forward gathers and scatters around attention and mlp", size);
    is_str(collectives(&p, HP_P_BWD, HP_P_BWD, "layers.1."), "all-gather down/dx; reduce-scatter norm2/dx; all-gather o/dx; reduce-scatter norm1/dx",
           "tp+sp, %s: backward mirrors it", size);
    is_str(collectives(&p, HP_P_WGRAD, HP_P_WGRAD, "layers.1."), "all-gather up/dw; all-gather v/dw",
           "tp+sp, %s: saved shards are gathered again, once for gate and up, once for q, k and v", size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.0.norm1"), "reduce-scatter ", "tp+sp, %s: the split embedding is scattered", size);
    tiny_end(&p);
    hp_graph_free(g);
}

static void test_numbers(const char *what, const tiny_sizes *z, const char *mesh, int n, const tiny_rule *rule)
{
    hp_mesh m = mesh_of(mesh);
    hp_graph *g = tiny_model(z);
    tiny_plan p;
    with_rules(&p, g, &m, n, rule);
    const char *wrong = tiny_check(&p, 5);
    ok(!wrong, "%s on %s computes every tensor right", what, mesh) || (diag("%s", wrong), 0);
    tiny_end(&p);
    hp_graph_free(g);
}

int main(void)
{
    test_megatron(&dense, "small");
    test_megatron(&big, "70B");
    test_numbers("tp", &dense, "dp=2,tp=4", 4, tp);
    test_numbers("tp+sp", &dense, "dp=2,tp=4", 11, tp_sp);
    return done_testing();
}

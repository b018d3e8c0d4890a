/* place.c -- placements that Megatron would make, collective for collective, and that compute the right numbers. */
#include "shard/antipattern.h"
#include "unit/shard/tiny.h"

static const tiny_sizes dense = {.batch = 4,
                                 .seq = 8,
                                 .embed = 16,
                                 .kv_heads = 4,
                                 .group = 2,
                                 .head = 4,
                                 .ffn = 32,
                                 .vocab = 24,
                                 .layers = 2};
static const tiny_sizes big = {.batch = 8,
                               .seq = 4096,
                               .embed = 8192,
                               .kv_heads = 8,
                               .group = 8,
                               .head = 128,
                               .ffn = 28672,
                               .vocab = 128256,
                               .layers = 2};

static hp_mesh mesh_of(const char *spec)
{
    const char *view[] = {""};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, 1, view, &spec, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static void with_rules(tiny_plan *p, const hp_graph *g, const hp_mesh *m, int n,
                       const tiny_rule *rule)
{
    tiny_begin(p, g, m);
    for (int t = 0; t < g->n_tensors; t++)
        p->target[t] = tiny_target(g, m, t, n, rule);
}

static const tiny_rule tp[] = {
    {"**", "vocab", "tp"}, {"**", "kv_heads", "tp"}, {"**", "ffn", "tp"}, {"**", "batch", "dp"}};
static const tiny_rule tp_sp[] = {
    {"**", "vocab", "tp"},  {"**", "kv_heads", "tp"},        {"**", "ffn", "tp"},
    {"**", "batch", "dp"},  {"layers.*.resid", "seq", "tp"}, {"layers.*.mid", "seq", "tp"},
    {"embed", "seq", "tp"}, {"layers.*.norm*", "seq", "tp"}, {"layers.*.norm*.rstd", "seq", "tp"},
    {"norm", "seq", "tp"},  {"norm.rstd", "seq", "tp"}};

/* The collectives made for nodes whose name begins with `prefix`, in order: "all-reduce layers.1.norm2/dx; ..." */
static const char *collectives(const tiny_plan *p, hp_phase lo, hp_phase hi, const char *prefix)
{
    static char buf[4096];
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < p->out.n_steps; i++) {
        const hp_step *s = &p->out.step[i];
        const char *name = p->in.g->node[s->consumer].name;
        if (s->node >= 0 || s->phase < lo || s->phase > hi || s->move.kind == HP_COLL_SLICE ||
            strncmp(name, prefix, strlen(prefix)))
            continue;
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%s %s", n ? "; " : "",
                              hp_coll_name(s->move.kind), name + strlen(prefix));
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
    is_str(collectives(&p, HP_P_BWD, HP_P_WGRAD, "layers.1."),
           "all-reduce norm2/dx; all-reduce norm1/dx",
           "tp, %s: a layer's backward all-reduces the summed gradients of gate and up, and of q, "
           "k and v",
           size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.0.norm1"), "all-reduce ",
           "tp, %s: the split embedding is reduced once", size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "loss"), "all-reduce ",
           "tp, %s: the split vocabulary reduces its statistics alone", size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "stats"), "", "tp, %s: logits stay split", size);
    tiny_end(&p);
    with_rules(&p, g, &m, 11, tp_sp);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.1."),
           "all-gather q; reduce-scatter mid; all-gather gate; reduce-scatter resid",
           "tp+sp, %s: forward gathers and scatters around attention and mlp", size);
    is_str(collectives(&p, HP_P_BWD, HP_P_BWD, "layers.1."),
           "all-gather down/dx; reduce-scatter norm2/dx; all-gather o/dx; reduce-scatter norm1/dx",
           "tp+sp, %s: backward mirrors it", size);
    is_str(collectives(&p, HP_P_WGRAD, HP_P_WGRAD, "layers.1."),
           "all-gather up/dw; all-gather v/dw",
           "tp+sp, %s: saved shards are gathered again, once for gate and up, once for q, k and v",
           size);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.0.norm1"), "reduce-scatter ",
           "tp+sp, %s: the split embedding is scattered", size);
    tiny_end(&p);
    hp_graph_free(g);
}

static void test_numbers(const char *what, const tiny_sizes *z, const char *mesh, int n,
                         const tiny_rule *rule)
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

static const tiny_rule cp[] = {{"**", "seq", "cp"}, {"**", "batch", "dp"}};
static const tiny_rule ulysses[] = {{"layers.*.rope*", "kv_heads", "cp"},
                                    {"layers.*.core*", "kv_heads", "cp"},
                                    {"**", "seq", "cp"},
                                    {"**", "batch", "dp"}};
static const tiny_rule ep[] = {{"layers.*.up.w", "experts", "ep"},
                               {"layers.*.down.w", "experts", "ep"},
                               {"layers.*.expert*", "experts", "ep"},
                               {"**", "batch", "dp+ep"}};

static void test_context_parallel(void)
{
    hp_mesh m = mesh_of("dp=2,cp=4");
    hp_graph *g = tiny_model(&big);
    tiny_plan p;
    with_rules(&p, g, &m, 2, cp);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.1."), "all-gather core; all-gather core",
           "cp gathers keys and values, and nothing else");
    is_str(collectives(&p, HP_P_BWD, HP_P_BWD, "layers.1."),
           "all-gather core/dx; all-gather core/dx; reduce-scatter rope_k/dx; reduce-scatter v/dx",
           "backward gathers the saved shards and scatters their gradients");
    is_str(collectives(&p, HP_P_WGRAD, HP_P_WGRAD, "layers.1."), "",
           "weight gradients stay partial");
    tiny_end(&p);
    with_rules(&p, g, &m, 4, ulysses);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.1."),
           "all-to-all core; all-to-all core; all-to-all core; all-to-all o",
           "Ulysses moves the split from sequence to heads and back");
    tiny_end(&p);
    hp_graph_free(g);
}

static void test_experts(void)
{
    tiny_sizes z = {.batch = 8,
                    .seq = 1024,
                    .embed = 1024,
                    .kv_heads = 8,
                    .group = 1,
                    .head = 128,
                    .ffn = 4096,
                    .vocab = 32000,
                    .layers = 2,
                    .experts = 8,
                    .k = 2};
    hp_mesh m = mesh_of("dp=2,ep=4");
    hp_graph *g = tiny_model(&z);
    tiny_plan p;
    with_rules(&p, g, &m, 4, ep);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "layers.1."),
           "all-to-all expert_up; all-gather expert_up; all-to-all combine",
           "ep: rows go to their experts and back, the choices to all");
    tiny_end(&p);
    hp_graph_free(g);
    z = (tiny_sizes){.batch = 4,
                     .seq = 8,
                     .embed = 8,
                     .kv_heads = 2,
                     .group = 1,
                     .head = 4,
                     .ffn = 8,
                     .vocab = 16,
                     .layers = 1,
                     .experts = 5,
                     .k = 2};
    test_numbers("ep with 5 experts", &z, "dp=2,ep=3", 4, ep);
}

/* The bytes of one reduction in a chain of two matmuls decide where it stands (V08). */
static void test_lora(void)
{
    static const tiny_rule narrow[] = {{"head.a.w", "embed", "tp"}, {"norm", "embed", "tp"}};
    hp_mesh m = mesh_of("tp=4");
    tiny_sizes z = dense;
    z.lora = true;
    hp_graph *g = tiny_model(&z);
    tiny_plan p;
    with_rules(&p, g, &m, 2, narrow);
    place(&p);
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "head"), "all-reduce .b",
           "V08: x A is partial, and reduced where it is narrow: before B");
    is_str(collectives(&p, HP_P_FWD, HP_P_FWD, "stats"), "", "V08: once");
    const char *wrong;
    hp_placement_fini(&p.out);
    ok(!(wrong = tiny_check(&p, 3)), "V08: and the gradient of B is whole") ||
        (diag("%s", wrong), 0);
    tiny_end(&p);
    hp_graph_free(g);
}

static const hp_copy *copy_of(const tiny_plan *p, const char *tensor, int which)
{
    for (int c = 0; c < p->out.n_copies; c++)
        if (strcmp(p->in.g->tensor[p->out.copy[c].tensor].name, tensor) == 0 && which-- == 0)
            return &p->out.copy[c];
    bail("no copy of %s", tensor);
    return NULL;
}

static void test_rules(void)
{
    hp_mesh m = mesh_of("dp=2,tp=4");
    hp_graph *g = tiny_model(&dense);
    tiny_plan p;
    with_rules(&p, g, &m, 11, tp_sp);
    place(&p);
    int moved = 0, whole = 0, sharded = 0;
    for (int i = 0; i < p.out.n_steps; i++) {
        const hp_step *s = &p.out.step[i];
        moved += s->node < 0 && tiny_is_param(&g->tensor[p.out.copy[s->copy[0]].tensor]);
    }
    for (int c = 0; c < p.out.n_copies; c++) {
        const hp_copy *k = &p.out.copy[c];
        const hp_tensor *t = &g->tensor[k->tensor];
        if (t->kind != HP_T_WGRAD)
            continue;
        sharded++;
        for (int d = 0; d < t->nd; d++)
            whole += hp_layout_mask(&k->layout, d) != hp_layout_mask(&p.target[t->of], d);
    }
    is_int(moved, 0, "parameters never move");
    ok(sharded > 0 && whole == 0, "weight gradients are split exactly as their parameters");
    is_str(collectives(&p, HP_P_INIT, HP_P_INIT, ""), "all-reduce seed",
           "the count of tokens is reduced once a step");
    ok(hp_layout_partial_mask(&copy_of(&p, "grad:layers.0.norm1.w", 0)->layout) == 3u,
       "a norm's weight gradient is partial over dp and tp under sp");
    ok(p.out.n_memo > 0 && p.out.n_decisions + p.out.n_memo == g->n_nodes,
       "decisions are remembered");
    tiny_end(&p);

    with_rules(&p, g, &m, 4, tp);
    int w = hp_map_get(&g->tensor_id, "layers.0.norm1.w", -1);
    uint8_t atom = 1;
    hp_layout_append(&p.target[w], 0, &atom, 1);
    hp_errmsg e = {0};
    is_int(hp_place(&p.in, &p.out, &e), HP_EINFEASIBLE,
           "a norm cannot compute with a split weight");
    ok(strstr(e.text, "\"layers.0.norm1\"") && strstr(e.text, "\"layers.0.norm1.w\"") &&
           strstr(e.text, "\"tp\"") && strstr(e.text, "\"embed\""),
       "the refusal names node, weight, axis and dimension") ||
        (diag("%s", e.text), 0);
    tiny_end(&p);
    hp_graph_free(g);
}

/* Backward alone, as a stage's template of its own would ask: what forward made is given. */
static void test_given(void)
{
    hp_mesh m = mesh_of("dp=2,tp=4");
    hp_graph *g = tiny_model(&dense);
    tiny_plan p;
    with_rules(&p, g, &m, 4, tp);
    bool *given = hp_xcalloc((size_t)g->n_tensors, sizeof *given);
    p.in.n_nodes = 0;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->node[i].phase >= HP_P_BWD)
            p.node[p.in.n_nodes++] = i;
    hp_errmsg e = {0};
    is_int(hp_place(&p.in, &p.out, &e), HP_EINTERNAL,
           "a node that reads what nobody made is our own fault");
    for (int t = 0; t < g->n_tensors; t++)
        given[t] = g->tensor[t].kind == HP_T_ACT || g->tensor[t].kind == HP_T_STEP;
    p.in.given = given;
    is_int(hp_place(&p.in, &p.out, &e), HP_OK, "given tensors exist from the start") ||
        (diag("%s", e.text), 0);
    free(given);
    tiny_end(&p);
    hp_graph_free(g);
}

static void test_split_weights(void)
{
    hp_mesh m = mesh_of("dp=2,tp=4");
    hp_graph *g = tiny_model(&dense);
    tiny_plan p;
    with_rules(&p, g, &m, 11, tp_sp);
    p.in.split_weights = true;
    place(&p);
    int seen = 0;
    for (int i = 0; i < p.out.n_steps; i++)
        for (int k = 0; k < HP_MAX_OPERANDS && p.out.step[i].phase == HP_P_BWD; k++) {
            int c = p.out.step[i].copy[k];
            seen += c >= 0 && p.out.copy[c].phase == HP_P_WGRAD;
        }
    is_int(seen, 0, "nothing that W makes is read by B");
    tiny_end(&p);
    hp_graph_free(g);
}

static void test_antipatterns(void)
{
    hp_mesh m = mesh_of("dp=2,tp=4");
    hp_graph *g = tiny_model(&dense);
    tiny_plan p;
    hp_antipattern *found;
    with_rules(&p, g, &m, 11, tp_sp);
    place(&p);
    is_int(hp_antipattern_find(&p.out, &found), 0, "Megatron's plan has no anti-pattern");
    free(found);
    hp_step *gather = NULL, *reduce = NULL;
    for (int i = 0; i < p.out.n_steps; i++) {
        hp_step *s = &p.out.step[i];
        if (s->node < 0 && s->move.kind == HP_COLL_ALL_GATHER && !gather)
            gather = s;
        if (s->node < 0 && s->move.kind == HP_COLL_ALL_REDUCE)
            reduce = s;
    }
    /* by hand: gather, gather again, slice; reduce, slice */
    hp_copy copy[] = {{.tensor = 0}, {.tensor = 0}, {.tensor = 0}, {.tensor = 0},
                      {.tensor = 1}, {.tensor = 1}, {.tensor = 1}};
    hp_step slice = *gather, step[] = {*gather, *gather, slice, *reduce, slice};
    const int from[] = {0, 0, 2, 4, 5}, to[] = {1, 2, 3, 5, 6};
    for (int i = 0; i < 5; i++) {
        step[i].copy[0] = from[i], step[i].copy[1] = to[i];
        step[i].move.kind = i == 2 || i == 4 ? HP_COLL_SLICE : step[i].move.kind;
        step[i].move.atoms = 2;
    }
    hp_placement bad = {.n_copies = 7, .copy = copy, .n_steps = 5, .step = step};
    int n = hp_antipattern_find(&bad, &found);
    is_int(n, 3, "three are found in a plan made bad by hand");
    ok(n == 3 && found[0].kind == HP_ANTI_GATHER_TWICE && found[0].step == 0 &&
           found[0].other == 1 && found[1].kind == HP_ANTI_GATHER_SLICE && found[1].step == 1 &&
           found[1].other == 2 && found[2].kind == HP_ANTI_ALL_REDUCE && found[2].step == 3 &&
           found[2].other == 4,
       "the same gather twice, gather then slice, all-reduce then slice");
    hp_str text = {0};
    hp_antipattern_print(g, &m, &bad, &found[1], &text);
    ok(strstr(hp_str_text(&text), "gathered and then only sliced") &&
           strstr(hp_str_text(&text), "\"tp\""),
       "a find is a sentence") ||
        (diag("%s", hp_str_text(&text)), 0);
    hp_str_fini(&text);
    free(found);
    tiny_end(&p);
    hp_graph_free(g);
}

static const tiny_rule uneven[] = {{"**", "vocab", "tp"},
                                   {"**", "kv_heads", "tp"},
                                   {"**", "ffn", "tp"},
                                   {"**", "batch", "dp+cp"},
                                   {"**", "seq", "cp"}};

int main(void)
{
    test_megatron(&dense, "small");
    test_megatron(&big, "70B");
    test_numbers("tp", &dense, "dp=2,tp=4", 4, tp);
    test_numbers("tp+sp", &dense, "dp=2,tp=4", 11, tp_sp);
    test_numbers("kv-gather", &dense, "dp=2,cp=3", 2, cp);
    test_numbers("Ulysses", &dense, "dp=2,cp=3", 4, ulysses);
    tiny_sizes odd = dense;
    odd.batch = 2, odd.kv_heads = 3, odd.vocab = 7, odd.ffn = 5;
    test_numbers("3 kv heads, 2 sequences, vocabulary 7", &odd, "dp=3,cp=2,tp=2", 5, uneven);
    odd.kv_heads = 1, odd.vocab = 7;
    test_numbers("one kv head, vocabulary 7 on 9", &odd, "tp=9", 4 - 1, tp);
    test_context_parallel();
    test_experts();
    test_lora();
    test_rules();
    test_given();
    test_split_weights();
    test_antipatterns();
    return done_testing();
}

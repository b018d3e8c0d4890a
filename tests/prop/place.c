/* place.c -- random small models, meshes and targets: every tensor that a placement computes is right, whatever the plan.
 *
 * Targets of activations are drawn without regard to sense (they are wishes), layouts of parameters among those that the operations can compute in. Sizes are
 * small and odd, so that uneven and empty parts are common. HP_SEED=n starts elsewhere; HP_TEST_LONG=1 draws ten times as much.
 */
#include "unit/shard/tiny.h"

static hp_rng rng;

static int below(int n)
{
    return (int)hp_rng_below(&rng, n);
}

static hp_mesh draw_mesh(void)
{
    static const char *const spec[] = {"dp=2,tp=2", "tp=4",      "dp=2,cp=2,tp=2",
                                       "dp=3,tp=2", "dp=2,ep=3", "tp=3",
                                       "cp=2,tp=2", "dp=4,tp=2", "dp=8"};
    static const char *const moe[] = {"ep=4", "edp=2,ep=2", "edp=2,ep=4", "ep=6",      NULL,
                                      NULL,   "ep=4",       "edp=2,ep=4", "edp=2,ep=4"};
    int i = below((int)(sizeof spec / sizeof spec[0]));
    const char *view[] = {"", "moe"}, *both[] = {spec[i], moe[i]};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, moe[i] && below(2) ? 2 : 1, view, both, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static tiny_sizes draw_sizes(void)
{
    static const int kv[] = {1, 2, 3, 4}, group[] = {1, 2, 3}, ffn[] = {8, 6, 5},
                     vocab[] = {7, 16, 9}, seq[] = {4, 5, 8}, batch[] = {2, 3, 4};
    tiny_sizes z = {.batch = batch[below(3)],
                    .seq = seq[below(3)],
                    .embed = 8,
                    .kv_heads = kv[below(4)],
                    .group = group[below(3)],
                    .head = 4,
                    .ffn = ffn[below(3)],
                    .vocab = vocab[below(3)],
                    .layers = 1 + below(2),
                    .lora = below(4) == 0};
    if (below(3) == 0)
        z.experts = 3 + below(3), z.k = 2;
    return z;
}

/* Whether an operation computes with the named dimension of its parameters split; the same order everywhere keeps parameters of one node consistent. */
static bool splittable(const char *param, const char *dim)
{
    bool vector = strstr(param, "norm") != NULL;
    return !vector && strcmp(dim, "head") != 0 && strcmp(dim, "choices") != 0;
}

static void draw_targets(tiny_plan *p, const hp_graph *g, const hp_mesh *m)
{
    static const char *const dims[] = {"batch", "seq",   "kv_heads", "group",
                                       "ffn",   "vocab", "experts",  "embed"};
    const char *home
        [HP_MAX_ATOMS]; /* a dimension that each atom likes, so that most targets fit each other */
    for (int a = 0; a < m->n_atoms; a++)
        home[a] = dims[below(below(4) ? 7 : 8)];
    for (int t = 0; t < g->n_tensors; t++) {
        const hp_tensor *x = &g->tensor[t];
        hp_layout l = hp_layout_replicated(x->nd);
        bool reversed = below(4) == 0;
        for (int k = 0; k < m->n_atoms && x->kind != HP_T_WGRAD; k++)
            for (int d = 0; d < x->nd; d++) {
                int a = reversed ? m->n_atoms - 1 - k : k;
                const char *dim = g->dim[x->dim[d]].name;
                bool liked = strcmp(dim, home[a]) == 0 ? below(8) > 0 : below(10) == 0;
                uint8_t atom = (uint8_t)a;
                if (!liked || hp_layout_split_mask(&l) >> a & 1 ||
                    (tiny_is_param(x) && !splittable(x->name, dim)))
                    continue;
                hp_layout_append(&l, d, &atom, 1);
            }
        p->target[t] = l;
    }
}

/* Some dimensions are cut balanced or by explicit sizes, the same in every tensor. */
static void draw_cuts(tiny_plan *p, const hp_graph *g, hp_cut *cut)
{
    for (int d = 0; d < g->n_dims; d++) {
        cut[d] = (hp_cut){.kind = below(2) ? HP_CUT_BALANCED : HP_CUT_SIZES,
                          .n = 2,
                          .size = {1, g->dim[d].size - 1}};
        if (below(6))
            continue;
        for (int t = 0; t < g->n_tensors; t++)
            for (int k = 0; k < g->tensor[t].nd; k++)
                if (g->tensor[t].dim[k] == d)
                    p->shape[t].cut[k] = &cut[d];
    }
}

int main(void)
{
    const char *seed = getenv("HP_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    int draws = getenv("HP_TEST_LONG") ? 4000 : 400, failed = 0, moves = 0, nodes = 0;
    note("seeds from %llu", (unsigned long long)first);
    for (int i = 0; i < draws && failed < 5; i++) {
        rng = (hp_rng){first + (uint64_t)i, 0};
        hp_mesh m = draw_mesh();
        tiny_sizes z = draw_sizes();
        hp_graph *g = tiny_model(&z);
        tiny_plan p;
        tiny_begin(&p, g, &m);
        hp_cut *cut = hp_xcalloc((size_t)g->n_dims, sizeof *cut);
        draw_cuts(&p, g, cut);
        draw_targets(&p, g, &m);
        p.in.split_weights = below(2);
        const char *wrong = tiny_check(&p, first + (uint64_t)i);
        if (wrong)
            failed++,
                diag("seed %llu: %s", (unsigned long long)first + (unsigned long long)i, wrong);
        for (int k = 0; k < p.out.n_steps; k++)
            p.out.step[k].node < 0 ? moves++ : nodes++;
        tiny_end(&p);
        free(cut);
        hp_graph_free(g);
    }
    is_int(failed, 0, "%d random placements (%d nodes, %d moves) compute every tensor right", draws,
           nodes, moves);
    return done_testing();
}

/* Every gradient against finite differences of the loss that the interpreter computes: central differences at two steps,
 * extrapolated (Richardson), along random directions and single elements of every parameter. Routers replay their choices. */
#include "cases.h"

#include "op/data.h"

typedef struct record {
    const hp_graph *g;
    bool replay;
    int32_t *choice[256]; /* by node */
} record;

static int64_t choice_bytes(const hp_operand *o)
{
    return o->len[0] * o->len[1] * o->len[2] * (int64_t)sizeof(int32_t);
}

static void keep_choices(void *ctx, int t, int64_t step, int64_t micro, const hp_operand *o)
{
    record *r = ctx;
    (void)step, (void)micro;
    int node = r->g->tensor[t].producer;
    if (r->replay || node < 0 || o->dtype != HP_I32)
        return;
    r->choice[node] = realloc(r->choice[node], (size_t)choice_bytes(o));
    memcpy(r->choice[node], o->data, (size_t)choice_bytes(o));
}

static bool choices(void *ctx, int node, int64_t step, int64_t micro, const hp_operand *given)
{
    record *r = ctx;
    (void)step, (void)micro;
    if (!r->replay)
        return false;
    memcpy(given->data, r->choice[node], (size_t)choice_bytes(given));
    return true;
}

static double loss_at(hp_interp *it, float *p, const float *at, const double *dir, double by,
                      int64_t n)
{
    hp_errmsg e;
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)(at[i] + by * dir[i]);
    if (hp_interp_gradients(it, 0, &e))
        bail("%s", e.text);
    return hp_interp_result(it)->loss;
}

/* The derivative along `dir` at the point `at`, and leaves the parameter there. */
static double slope(hp_interp *it, float *p, const float *at, const double *dir, int64_t n)
{
    double h = 0.02, d[2];
    for (int k = 0; k < 2; k++, h *= 2)
        d[k] = (loss_at(it, p, at, dir, h, n) - loss_at(it, p, at, dir, -h, n)) / (2 * h);
    loss_at(it, p, at, dir, 0, n);
    return (4 * d[0] - d[1]) / 3;
}

static void check_param(hp_interp *it, const hp_graph *g, int t, hp_rng *rng)
{
    int64_t n = hp_graph_size(g, t);
    float *p = hp_interp_param(it, t), *at = malloc((size_t)n * sizeof *at),
          *grad = malloc((size_t)n * sizeof *grad);
    double *dir = calloc((size_t)n, sizeof *dir), worst = 0, largest = 1e-3;
    memcpy(at, p, (size_t)n * sizeof *at);
    loss_at(it, p, at, dir, 0, n);
    memcpy(grad, hp_interp_grad(it, t), (size_t)n * sizeof *grad);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)grad[i]));
    for (int trial = 0; trial < 5; trial++) {
        double want = 0;
        int64_t one = hp_rng_below(rng, n);
        for (int64_t i = 0; i < n; i++) {
            dir[i] = trial < 2 ? (hp_rng_below(rng, 2) ? 0.5 : -0.5) : i == one;
            want += dir[i] * (double)grad[i];
        }
        worst = fmax(worst, fabs(slope(it, p, at, dir, n) - want));
    }
    near(worst / largest, 0, 4e-3, "%s: the gradient of %s is the slope of the loss", g->name,
         g->tensor[t].name);
    free(at), free(grad), free(dir);
}

static void check_case(int i)
{
    hp_graph *g = build_case(i);
    record r = {.g = g};
    hp_interp *it = hp_interp_new(&(hp_interp_in){.g = g,
                                                  .seed = 7,
                                                  .fill = fill,
                                                  .tap = keep_choices,
                                                  .tap_ctx = &r,
                                                  .choices = choices,
                                                  .choices_ctx = &r});
    hp_rng rng = {hp_rng_key(3, (uint64_t)i), 0};
    hp_errmsg e;
    ok(hp_interp_gradients(it, 0, &e) == HP_OK, "case %d (%s) runs", i, g->name);
    r.replay = true;
    for (int t = 0; t < g->n_tensors && g->loss >= 0; t++)
        if (hp_interp_grad(it, t))
            check_param(it, g, t, &rng);
    hp_interp_free(it);
    for (int k = 0; k < 256; k++)
        free(r.choice[k]);
    hp_graph_free(g);
}

/* The embedding, one block and the tied head of a byte model. */
static hp_graph *language_model(int64_t batch, int64_t micro)
{
    tg t = start("bytes");
    dim(&t, "batch", batch), dim(&t, "micro", micro), dim(&t, "seq", 16), dim(&t, "embed", 16),
        dim(&t, "vocab", 64), dim(&t, "ffn", 32);
    int tokens = input(&t, "tokens", HP_I32, "batch seq"),
        targets = input(&t, "targets", HP_I32, "batch seq");
    int all = input(&t, "targets.all", HP_I32, "micro batch seq"),
        table = param(&t, "table", "vocab embed");
    int seed = node(&t, "recip", "seed", IN(node(&t, "count", "count", IN(all), NONE)), NONE);
    int x = node(&t, "embedding", "embed", IN(tokens, table), NONE);
    int y = node(&t, "gelu", "act",
                 IN(node(&t, "linear", "up", IN(x, param(&t, "up.w", "embed ffn")), NONE)), NONE);
    x = node(&t, "add", "resid",
             IN(x, node(&t, "linear", "down", IN(y, param(&t, "down.w", "ffn embed")), NONE)),
             NONE);
    x = node(&t, "rmsnorm", "norm", IN(x, param(&t, "norm.w", "embed")), NONE);
    int logits = node(&t, "linear", "head", IN(x, table), AT({"transpose", 1}));
    int stats = node(&t, "ce_stats", "stats", IN(logits, targets), NONE);
    t.loss[t.n_losses++] = node(&t, "ce_loss", "loss", IN(stats, targets, seed), NONE);
    t.g->train.lr = 0.02;
    for (int i = 0; i < t.g->n_tensors; i++)
        t.g->tensor[i].init_std = 0.1f;
    return finish(&t);
}

static hp_interp *run_model(hp_graph *g, hp_corpus *data, int steps, double *first)
{
    hp_interp *it =
        hp_interp_new(&(hp_interp_in){.g = g, .seed = 5, .fill = hp_corpus_fill, .fill_ctx = data});
    hp_errmsg e;
    for (int s = 0; s < steps; s++) {
        if (hp_interp_step(it, s, &e))
            bail("%s", e.text);
        if (s == 0)
            *first = hp_interp_result(it)->loss;
    }
    return it;
}

static double apart(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

static void check_training(void)
{
    hp_errmsg e;
    hp_corpus data;
    hp_data_options opt = {.seed = 1, .vocab = 64, .ignore = 0.3};
    char path[] = "/tmp/hp-interp-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    for (int i = 0; i < 400; i++)
        fprintf(f, "in the beginning %d ", i % 10);
    fclose(f);
    if (hp_corpus_open(&data, path, &opt, &e))
        bail("%s", e.text);
    remove(path);
    double first[2];
    hp_graph *a = language_model(4, 1), *b = language_model(1, 4);
    hp_interp *whole = run_model(a, &data, 60, &first[0]),
              *parts = run_model(b, &data, 1, &first[1]);
    near(first[0], log(64), 0.7, "an untrained model knows nothing");
    ok(hp_interp_result(whole)->loss < 0.6 * first[0], "the loss of a byte model falls");
    note("loss %g -> %g", first[0], hp_interp_result(whole)->loss);
    near(first[1], first[0], 1e-5,
         "four microbatches of one sequence have the loss of one of four");
    hp_interp_free(whole);
    whole = run_model(a, &data, 1, &first[0]);
    int t = hp_map_get(&a->tensor_id, "table", -1);
    ok(apart(hp_interp_grad(whole, t), hp_interp_grad(parts, t), 64 * 16) < 1e-6,
       "and its gradient");
    ok(apart(hp_interp_grad(whole, t), hp_interp_m(whole, t), 64 * 16) > 0 && hp_interp_v(whole, t),
       "a step has moved the moments");
    is_int(hp_interp_grad(whole, hp_map_get(&a->tensor_id, "embed", -1)) == NULL, 1,
           "an activation has no summed gradient");
    hp_interp_free(whole), hp_interp_free(parts);
    hp_graph_free(a), hp_graph_free(b);
    hp_corpus_fini(&data);
}

int main(void)
{
    for (int i = 0; i < N_CASES; i++)
        check_case(i);
    check_training();
    return done_testing();
}

/* N02 and N03: a loss is the sum over all valid tokens divided by their number, wherever they lie.
 *
 * N02: Megatron-LM PR 7513: one valid token under context parallelism; local normalisation gives
 * 1/2 and 1/4 of the gradient. N03: transformers PR 34191: microbatches weigh by their tokens: (2 +
 * 3) / (1 + 3) = 1.25, not the mean of means 1.5.
 *
 * The model has no parameter but a table whose rows are the logits; the values of its outputs are
 * put in by the engine's tap, so that tokens have the losses the case gives: a row whose target's
 * logit is log(3 / (e^l - 1)) and whose three others are 0 has the cross-entropy l.
 */
#include "exec/run.h"
#include "planned.h"

enum { SEQ = 8, VOCAB = 4 };

static const char table[] =
    "local cfg = override { name = 'table', out = 4, vocab = 4, seq = 8 }\n"
    "dims(cfg, 'out vocab seq', { batch = free })\n"
    "return model(cfg.name, function(tokens, targets)\n"
    "  return cross_entropy('loss', embedding('embed', tokens, 'vocab -> out'), targets)\n"
    "end)\n";

/* valid[i], loss[i]: of sequence i of the step, how many leading tokens count, and the loss of
 * each. */
typedef struct data {
    int n;
    const int *valid;
    const double *loss;
    double sum;
} data;

static hp_err fill(void *ctx, const char *input, int64_t step, int64_t micro, const hp_operand *box,
                   hp_errmsg *e)
{
    const data *d = ctx;
    (void)step, (void)e;
    bool all = box->nd == 3, target = !strncmp(input, "targets", 7);
    int b = box->nd - 2, t = box->nd - 1;
    int32_t *to = box->data;
    for (int64_t m = all ? box->lo[0] : micro; m < (all ? box->lo[0] + box->len[0] : micro + 1);
         m++)
        for (int64_t i = box->lo[b]; i < box->lo[b] + box->len[b]; i++)
            for (int64_t j = box->lo[t]; j < box->lo[t] + box->len[t]; j++) {
                bool counts = j < d->valid[(m * box->full[b] + i) % d->n];
                *to++ = (int32_t)(target                        ? (counts ? 1 : -100)
                                  : !strcmp(input, "positions") ? j
                                                                : 0);
            }
    return HP_OK;
}

/* Puts the logits in. */
static void put(void *ctx, const hp_exec_tap *t)
{
    const data *d = ctx;
    if (!t->task->op || strcmp(t->task->op, "embedding") || t->output)
        return;
    float *at = t->operand.data;
    for (int64_t i = t->operand.lo[0]; i < t->operand.lo[0] + t->operand.len[0]; i++) {
        double l = d->loss[(t->entry->micro * t->operand.full[0] + i) % d->n];
        for (int64_t j = 0; j < t->operand.len[1]; j++, at += VOCAB) {
            memset(at, 0, VOCAB * sizeof *at);
            at[1] = (float)log(3 / (exp(l) - 1));
        }
    }
}

static void step(void *ctx, const hp_exec_metrics *m)
{
    ((data *)ctx)->sum = m->loss;
}

static void loss_is(const char *model, const char *cluster, const char *strategy, data *d,
                    double want, const char *name)
{
    planned p = must_plan(model, "", cluster, strategy);
    hp_exec_options o = hp_exec_options_default();
    hp_exec_hooks h = {.ctx = d, .load = fill, .load_ctx = d, .tap = put, .step = step};
    hp_exec_report r;
    hp_errmsg e = {0};
    d->sum = NAN;
    if (hp_exec_run(p.plan, &o, &h, &r, &e))
        diag("%s", e.text);
    near(d->sum, want, 1e-6, "%s with %s", name, strategy);
    hp_exec_report_fini(&r);
    planned_free(&p);
}

static void one_valid_token(const char *model)
{
    static const char *const ways[] = {
        "dp=1", "cp=2", "cp=4", "cp=2,zigzag", "cp=4,zigzag", "cp=4,cp_kind=allgather", "cp=8"};
    data d = {.n = 1, .valid = (const int[]){1}, .loss = (const double[]){2.0}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char cluster[16];
        snprintf(cluster, sizeof cluster, "ideal:%c", strchr(ways[i], '=')[1]);
        loss_is(model, cluster, ways[i], &d, 2.0, "N02: one valid token of loss 2");
    }
    loss_is(model, "ideal:4", "dp=2,cp=2",
            &(data){.n = 2, .valid = (const int[]){1, 0}, .loss = (const double[]){2.0, 5.0}}, 2.0,
            "N02: one valid token in the whole batch");
}

/* The gradients of a real model under every way of context parallelism are those without, for a
 * step with exactly one valid target. */
static uint64_t seed_with_one_target(double ignore)
{
    for (uint64_t seed = 1;; seed++) {
        int32_t target[16];
        int valid = 0;
        hp_corpus c;
        hp_errmsg e;
        hp_operand o = {.data = target, .dtype = HP_I32, .nd = 2, .len = {1, 16}, .full = {1, 16}};
        hp_corpus_open(&c, NULL, &(hp_data_options){.seed = seed, .vocab = 256, .ignore = ignore},
                       &e);
        if (hp_corpus_fill(&c, "targets", 0, 0, &o, &e))
            bail("%s", e.text);
        hp_corpus_fini(&c);
        for (int i = 0; i < 16; i++)
            valid += target[i] >= 0;
        if (valid == 1)
            return seed;
    }
}

static void one_valid_gradient(void)
{
    static const char *const ways[] = {"dp=1",
                                       "cp=2",
                                       "cp=4",
                                       "cp=2,zigzag",
                                       "cp=4,cp_kind=ulysses",
                                       "cp=4,cp_kind=allgather",
                                       "cp=2,zero=3"};
    const double ignore = 0.9;
    uint64_t seed = seed_with_one_target(ignore);
    double first = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char cluster[16];
        snprintf(cluster, sizeof cluster, "ideal:%c", strchr(ways[i], '=')[1]);
        planned p = must_plan("llama-small", "model.layers=1 model.seq=16", cluster, ways[i]);
        hp_check_report r;
        hp_errmsg e = {0};
        hp_check_options o = {.seed = seed, .ignore = ignore};
        hp_err err = hp_check(p.c.graph, p.plan, &o, &r, &e);
        ok(!err && r.ok, "N02: %s has the gradient of one device, of one valid token", ways[i]) ||
            (diag("%s %g %g", e.text, r.err_loss, r.err_grads), 0);
        first = i ? first : r.loss;
        near(r.loss, first, 1e-5, "N02: and its loss");
        planned_free(&p);
    }
}

static void accumulation(const char *model)
{
    static const struct {
        const char *cluster, *strategy;
    } ways[] = {{"ideal:1", "accum=2"},
                {"ideal:2", "dp=2"},
                {"ideal:2", "cp=2,accum=2"},
                {"ideal:2", "dp=2,zero=2"},
                {"ideal:1", "mbs=2"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        data d = {.n = 2, .valid = (const int[]){1, 3}, .loss = (const double[]){2.0, 1.0}};
        loss_is(model, ways[i].cluster, ways[i].strategy, &d, 1.25,
                "N03: 1 and 3 valid tokens, sums 2 and 3: 1.25");
        data masked = {.n = 2, .valid = (const int[]){4, 0}, .loss = (const double[]){1.0, 7.0}};
        loss_is(model, ways[i].cluster, ways[i].strategy, &masked, 1.0,
                "N03: 4 valid tokens and a masked sample: divided by 4");
        data equal = {.n = 2, .valid = (const int[]){4, 4}, .loss = (const double[]){2.0, 1.0}};
        loss_is(model, ways[i].cluster, ways[i].strategy, &equal, 1.5,
                "N03: equal lengths: the mean of means too");
    }
}

static void accumulated_gradient(void)
{
    static const char *const ways[] = {"gbs=8,mbs=1", "gbs=8,mbs=8", "gbs=8,mbs=2"};
    double first = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        planned p = must_plan("llama-small", "model.layers=1 model.seq=16", "ideal:1", ways[i]);
        hp_check_report r;
        hp_errmsg e = {0};
        hp_check_options o = {.seed = 5, .ignore = 0.7};
        hp_err err = hp_check(p.c.graph, p.plan, &o, &r, &e);
        ok(!err && r.ok, "N03: %s: the gradient weighs tokens", ways[i]);
        first = i ? first : r.loss;
        near(r.loss, first, 1e-5, "N03: 8 x 1, 1 x 8 and 4 x 2 have one loss");
        planned_free(&p);
    }
}

int main(void)
{
    const char *model = script_of(table);
    one_valid_token(model);
    one_valid_gradient();
    accumulation(model);
    accumulated_gradient();
    unlink(model);
    return done_testing();
}

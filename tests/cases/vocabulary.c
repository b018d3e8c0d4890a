/* V05 and N01: a vocabulary that is padded, and pads that never enter the softmax.
 *
 * V05: ColossalAI issue 6167, Megatron-LLM issue 103: padded = ceil(V / (unit TP)) unit TP, memory
 * and executed flops use it, model flops the true size. Without a pad what does not divide is
 * refused here, and the pad is named. N01: bionemo PR 631: at uniform logits the loss is ln 33 for
 * any TP, never ln 128 or ln 256.
 */
#include "planned.h"

static int64_t rows(const planned *p, int rank)
{
    const hp_program *g = &p->plan->program[0];
    hp_box b = hp_buffer_box(g, (int)(buffer_of(p, 0, "embed.w") - g->buffer), rank);
    return b.hi[0] - b.lo[0];
}

static void padded(const char *id, int vocab, int tp, int unit, int rows_padded)
{
    char over[256], cluster[32], strategy[32];
    snprintf(over, sizeof over,
             "model.layers=1 model.seq=8 model.embed=16 model.heads=%d model.kv_heads=%d "
             "model.head=2 model.ffn=%d model.vocab=%d model.vocab_pad=%d",
             tp, tp, 4 * tp, vocab, unit * tp);
    snprintf(cluster, sizeof cluster, "ideal:%d", tp);
    snprintf(strategy, sizeof strategy, "tp=%d", tp);
    planned p = must_plan("llama-small", over, cluster, strategy);
    const hp_buffer *table = buffer_of(&p, 0, "embed.w");
    is_int(table->shape.size[0], rows_padded, "V05 %s: %d rows are padded to %d", id, vocab,
           rows_padded);
    int64_t each = rows_padded / tp, same = 0;
    for (int r = 0; r < tp; r++)
        same += rows(&p, r) == each;
    is_int(same, tp, "V05 %s: %lld on each of %d ranks", id, (long long)each, tp);
    is_int(table->bytes, each * 16 * 4, "V05 %s: memory is that of the padded table", id);
    is_int(p.plan->vocab, vocab, "V05 %s: tokens are drawn from the true size", id);
    planned_free(&p);
}

static void refuses(const char *id, int vocab, int tp, const char *words)
{
    char over[256], cluster[32], strategy[32];
    snprintf(over, sizeof over,
             "model.layers=1 model.seq=8 model.embed=16 model.heads=%d model.kv_heads=%d "
             "model.ffn=%d model.vocab=%d",
             tp, tp, 4 * tp, vocab);
    snprintf(cluster, sizeof cluster, "ideal:%d", tp);
    snprintf(strategy, sizeof strategy, "tp=%d", tp);
    refused(id, "llama-small", over, cluster, strategy, HP_EINFEASIBLE, words);
}

static double model_flops(const char *over)
{
    planned p = must_plan("llama-small", over, "ideal:1", "dp=1");
    double f = p.plan->model_flops_causal;
    planned_free(&p);
    return f;
}

static double loss_of(const char *over, const char *cluster, const char *strategy)
{
    planned p = must_plan("llama-small", over, cluster, strategy);
    hp_check_report r;
    hp_errmsg e = {0};
    hp_check_options o = {.seed = 3};
    hp_err err = hp_check(p.c.graph, p.plan, &o, &r, &e);
    ok(!err && r.ok, "N01: %s with %s: the same numbers as one device", over, strategy) ||
        (diag("%s", e.text), 0);
    planned_free(&p);
    return err ? NAN : r.loss;
}

static void masked(void)
{
    static const struct {
        int pad, tp;
    } c[] = {{128, 1}, {256, 2}, {128, 4}, {64, 8}};
    double plain =
        loss_of("model.layers=1 model.seq=8 model.vocab=33 model.tied=true", "ideal:1", "dp=1");
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char over[160], cluster[32], strategy[32], trained[192];
        snprintf(over, sizeof over,
                 "model.layers=1 model.seq=8 model.heads=8 model.kv_heads=8 model.vocab=33 "
                 "model.vocab_pad=%d model.std=0",
                 c[i].pad);
        snprintf(trained, sizeof trained,
                 "model.layers=1 model.seq=8 model.vocab=33 model.vocab_pad=%d model.tied=true",
                 c[i].pad);
        snprintf(cluster, sizeof cluster, "ideal:%d", c[i].tp);
        snprintf(strategy, sizeof strategy, "dp=1,tp=%d", c[i].tp);
        near(loss_of(over, cluster, strategy), log(33), 1e-6,
             "N01: 33 tokens padded to %d on tp=%d at uniform logits: ln 33", c[i].pad, c[i].tp);
        near(loss_of(trained, cluster, strategy), plain, 2e-6,
             "N01: and at others the loss without pads");
    }
    near(loss_of("model.layers=1 model.seq=8 model.vocab=33 model.std=0", "ideal:2", "tp=2,uneven"),
         log(33), 1e-6, "N01: 33 tokens cut unevenly: ln 33");
}

int main(void)
{
    padded("(a)", 128256, 8, 64, 128512);
    padded("(b)", 32002, 2, 128, 32256);
    padded("(c)", 129280, 24, 1, 129288);
    padded("(d)", 151552, 6, 1, 151554);
    refuses("V05 (c)", 129280, 24,
            "embed.w|vocab (129280)|tp (24 parts)|padded to 129288|model.vocab_pad=24|uneven");
    refuses("V05 (d)", 151552, 6,
            "embed.w|vocab (151552)|tp (6 parts)|padded to 151554|model.vocab_pad=6|uneven");
    refuses("V05 (e)", 65535, 2, "vocab (65535)|tp (2 parts)|padded to 65536");
    refuses("V05 (e)", 65535, 4, "vocab (65535)|tp (4 parts)|padded to 65536");
    refuses("V05 (e)", 65535, 8, "vocab (65535)|tp (8 parts)|padded to 65536");
    runs_right("V05 (e)", "llama-small",
               "model.layers=1 model.seq=8 model.embed=16 model.vocab=65535", "ideal:2",
               "tp=2,uneven");
    near(model_flops("model.layers=1 model.seq=8 model.vocab=1000 model.vocab_pad=512"),
         model_flops("model.layers=1 model.seq=8 model.vocab=1000"), 0,
         "V05: model flops are those of the true vocabulary");
    masked();
    return done_testing();
}

/* M01, M02, M07, M08, M11, M12 and M14 (b): bytes of states and of what is kept for backward, from
 * plans alone.
 *
 * States here are Megatron's: bf16 parameters (2), f32 gradients (4), f32 master, m and v (12): 18
 * bytes a parameter. Figures of frameworks that keep other bytes (bf16 gradients, fp16 copies) are
 * compared by what is common to them.
 */
#include "planned.h"

#define MIB (1024.0 * 1024.0)
#define GIB (1024.0 * MIB)

static double states(const planned *p, int program)
{
    return (double)(held_bytes(p, program, HP_B_PARAMS, HP_S_PERSIST) +
                    held_bytes(p, program, HP_B_GRADS, HP_S_STEP) +
                    held_bytes(p, program, HP_B_OPTIMIZER, HP_S_PERSIST));
}

/* llm.c PR 309: stage 1 over 4 devices saves 12 P (3/4): (a) 1068 and (b) 13,374 MiB measured. */
static void m01(const char *id, const char *over, double params, int mbs, double measured)
{
    char plain[64], sharded[64];
    snprintf(plain, sizeof plain, "dp=4,mbs=%d,dtype=bf16", mbs);
    snprintf(sharded, sizeof sharded, "%s,zero=1", plain);
    planned a = must_plan("gpt2", over, "ideal:4", plain),
            b = must_plan("gpt2", over, "ideal:4", sharded);
    double saved =
        (double)(hp_program_arena(&a.plan->program[0]) - hp_program_arena(&b.plan->program[0]));
    is_int(hp_graph_params(a.c.graph), (long long)params,
           "M01 %s: %.0f parameters with the padded vocabulary", id, params);
    near(saved / MIB, 12 * params * 3 / 4 / MIB, 12 * params * 3 / 4 / MIB * 0.001,
         "M01 %s: ZeRO-1 saves 12 bytes x P x 3/4 of a device's arena", id);
    near(saved / MIB, measured, 0.005 * measured, "M01 %s: within 0.5 %% of what was measured", id);
    near((double)held_bytes(&b, 0, HP_B_PARAMS, HP_S_PERSIST) / MIB, 2 * params / MIB, 0.5,
         "M01 %s: parameters in bf16", id);
    near((double)held_bytes(&b, 0, HP_B_OPTIMIZER, HP_S_PERSIST) / MIB, 3 * params / MIB, 0.5,
         "M01 %s: master, m and v a quarter each", id);
    planned_free(&a);
    planned_free(&b);
}

/* DeepSpeed PRs 965 and 1536: Z3 keeps 18 P / N; of Z2 what is not the framework's own full
 * gradient copy is 2 P + 16 P / N. */
static void m02(void)
{
    const char *over = "model.layers=4 model.seq=128";
    for (int n = 4; n <= 8; n += 4) {
        char cluster[16];
        snprintf(cluster, sizeof cluster, "ideal:%d", n);
        planned two = must_plan("llama3-8b", over, cluster, "zero=2,dtype=bf16"),
                three = must_plan("llama3-8b", over, cluster, "zero=3,dtype=bf16");
        double p = (double)hp_graph_params(two.c.graph);
        near(states(&two, 0) / GIB, (2 * p + 16 * p / n) / GIB, 0.005,
             "M02: ZeRO-2 on %d devices keeps 2 P + 16 P / N", n);
        near(states(&three, 0) / GIB, 18 * p / n / GIB, 0.005,
             "M02: ZeRO-3 on %d devices keeps 18 P / N", n);
        planned_free(&two);
        planned_free(&three);
    }
}

/* Bytes kept for backward in tensors whose name holds `part`, one microbatch. */
static double kept(const planned *p, const char *begins, const char *but)
{
    const hp_program *g = &p->plan->program[0];
    double sum = 0;
    for (int i = 0; i < g->n_buffers; i++) {
        const hp_buffer *b = &g->buffer[i];
        if (b->scope == HP_S_FRAME && b->alias < 0 && !strncmp(b->name, begins, strlen(begins)) &&
            strcmp(b->name, but))
            sum += (double)b->bytes;
    }
    return sum;
}

static planned decoder(int layers, int embed, int seq, const char *cluster, const char *strategy)
{
    char over[256];
    snprintf(over, sizeof over,
             "model.layers=%d model.embed=%d model.ffn=%d model.heads=%d model.kv_heads=%d "
             "model.head=128 model.vocab=4096 model.seq=%d",
             layers, embed, 3 * embed, embed / 128, embed / 128, seq);
    return must_plan("llama", over, cluster, strategy);
}

/* transformers PR 48444: full recomputation keeps layers x tokens x hidden x 2 bytes: (a) 128.0
 * MiB measured, (b) 36.0 GiB. */
static void m07(void)
{
    planned p = decoder(8, 1024, 8192, "ideal:1", "recompute=full,dtype=bf16");
    near((kept(&p, "embed", "") + kept(&p, "layers.", "layers.7.add2")) / MIB, 128.0, 0.64,
         "M07 (a): the inputs of 8 layers are 128.0 MiB");
    planned_free(&p);
    p = decoder(36, 4096, 131072, "ideal:32", "dp=1,tp=32,recompute=full,dtype=bf16");
    near((kept(&p, "embed", "") + kept(&p, "layers.", "layers.35.add2")) / GIB, 36.0, 0.18,
         "M07 (b): those of 36 layers 36.0 GiB");
    planned_free(&p);
    p = decoder(8, 1024, 8192, "ideal:4", "cp=2,tp=2,sp,recompute=full,dtype=bf16");
    near((kept(&p, "embed", "") + kept(&p, "layers.", "layers.7.add2")) / MIB, 32.0, 0.16,
         "M07: divided by cp and, with sequence parallelism, by tp");
    planned_free(&p);
}

/* accelerate PR 4172: a checkpoint around each child (attention, mlp, two norms) keeps 4 tensors
 * a layer: 7.52 GB against 30.1. */
static void m08(void)
{
    const char *child = script_of("return strategy { mesh = 'dp=1, tp=8', split = { heads = 'tp', "
                                  "kv_heads = 'tp', ffn = 'tp', vocab = 'tp' }, dtype = 'bf16',\n"
                                  "  recompute = { { 'layers.*', 'per-child' } } }\n");
    planned layer = decoder(28, 1024, 131072, "ideal:8", "dp=1,tp=8,recompute=full,dtype=bf16"),
            each = decoder(28, 1024, 131072, "ideal:8", child);
    double whole = kept(&layer, "embed", "") + kept(&layer, "layers.", "layers.27.add2"),
           four = kept(&each, "embed", "") + kept(&each, "layers.", "layers.27.add2");
    near(whole / 1e9, 7.52, 0.02, "M08: a checkpoint a layer keeps 7.52 GB");
    near(four / 1e9, 30.1, 0.1, "M08: one a child 30.1 GB (29 measured)");
    near(four / whole, 4, 1e-9, "M08: four times as much");
    planned_free(&layer);
    planned_free(&each);
    unlink(child);
}

/* Megatron-Bridge PR 5077: the heaviest stage counts, not the mean. */
static void m11(void)
{
    planned p = must_plan("llama-small", "model.layers=8 model.seq=16 model.vocab=1024", "ideal:4",
                          "pp=4,stages=1+2+2+3,gbs=4,dtype=bf16");
    double most = 0, sum = 0, own = 0;
    for (int i = 0; i < 4; i++) {
        double s = states(&p, i) / 18;
        own = i == 3 ? s : own;
        most = s > most ? s : most;
        sum += s;
    }
    double layer = 256 * (256 + 128 + 128 + 256 + 3 * 688) + 2 * 256, head = 256 * 1024 + 256;
    near(sum, (double)hp_graph_params(p.c.graph), 4, "M11: all parameters are on some stage, once");
    near(own, 3 * layer + head, 4,
         "M11: the last stage has its 3 layers, the final norm and the head");
    near(most, own, 0, "M11: and is the heaviest");
    near(states(&p, 0) / 18, layer + 256 * 1024, 4,
         "M11: the first has one layer and the embedding");
    planned_free(&p);
}

/* Megatron-LM issue 4050: routed experts divide by EP and their optimizer by world / EP, the
 * rest by dp: 53.9 GB (50.2 GiB). */
static void m12(void)
{
    const char *over = "model.layers=48 model.embed=2048 model.heads=32 model.kv_heads=4 "
                       "model.head=128 model.vocab=151936 model.experts=128 model.top=8 "
                       "model.expert_ffn=768 model.qk_norm=head model.seq=4096 model.aux=0";
    planned p = must_plan("mixtral", over, "ideal:16", "ep=8,zero=1,dtype=bf16,recompute=full");
    double routed = 48.0 * 128 * 3 * 2048 * 768,
           other = (double)hp_graph_params(p.c.graph) - routed;
    near(routed / 1e9, 28.99, 0.005, "M12: 28.99 billion routed parameters");
    near(other / 1e9, 1.54, 0.005, "M12: 1.54 billion others");
    double want = routed / 8 * (6 + 12.0 / 2) + other * (6 + 12.0 / 16);
    near(states(&p, 0) / 1e9, want / 1e9, 0.001 * want / 1e9,
         "M12: a device keeps routed / 8 x (6 + 12/2) + others x (6 + 12/16)");
    near(states(&p, 0) / 1e9, 53.9, 0.1, "M12: 53.9 GB");
    planned_free(&p);
    /* Activations of routed tokens do not shrink with EP: every rank has its own microbatch. */
    double rows[2];
    for (int i = 0; i < 2; i++) {
        p = must_plan("moe-small", "model.layers=1 model.seq=64", "ideal:4",
                      i ? "ep=4,dp=4" : "dp=4");
        rows[i] = (double)buffer_of(&p, 0, "layers.0.moe.dispatch")->bytes;
        planned_free(&p);
    }
    near(rows[1], rows[0], 0, "M12: dispatched rows are as many with experts over 4 ranks");
}

/* zero-bubble issue 36, bigscience PR 256: embedding over a block is V h / (12 h^2): 1.46 at
 * 14336, 1.80 at 11600. */
static void m14(void)
{
    static const struct {
        int h;
        double ratio;
    } c[] = {{14336, 1.46}, {11600, 1.80}};
    for (int i = 0; i < 2; i++) {
        char over[256];
        snprintf(over, sizeof over,
                 "model.embed=%d model.ffn=%d model.heads=16 model.kv_heads=16 model.head=%d "
                 "model.rotary=0 model.layers=4 model.vocab=250880 model.seq=64",
                 c[i].h, 4 * c[i].h, c[i].h / 16);
        planned p = must_plan("neox", over, "ideal:256", "pp=4,tp=16,zero=1,dtype=bf16,gbs=16");
        double stage[4];
        for (int k = 0; k < 4; k++)
            stage[k] = (double)held_bytes(&p, k, HP_B_PARAMS, HP_S_PERSIST);
        near((stage[0] - stage[1]) / stage[1], c[i].ratio, 0.01,
             "M14 (b): at h=%d the first stage holds %.2f blocks more: the embedding", c[i].h,
             c[i].ratio);
        near((stage[3] - stage[1]) / stage[1], c[i].ratio, 0.01, "M14 (b): the last the head");
        planned_free(&p);
    }
}

int main(void)
{
    m01("(a)", "model.vocab_pad=128", 124475904, 32, 1068);
    m01("(b)", "model.vocab_pad=128 model.layers=48 model.embed=1600 model.ffn=6400 model.heads=25",
        1557686400, 4, 13374);
    m02();
    m07();
    m08();
    m11();
    m12();
    m14();
    return done_testing();
}

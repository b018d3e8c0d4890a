/* Golden plans: what published systems send, by kind and byte.
 *
 * A layer's share is the difference between a model with one layer more and one without, so that
 * embedding, head and loss fall away. Bytes are those that a rank sends by ring algorithms.
 * Sources: Megatron-LM (arXiv 1909.08053, 2205.05198), ZeRO (1910.02054), FSDP (2304.11277), ring
 * attention (2310.01889), Ulysses (2309.14509).
 */
#include "planned.h"

enum { B = 2, S = 64, H = 256, KV = 4, HEAD = 32, TOP = 2 };

static const hp_coll kinds[] = {HP_COLL_ALL_GATHER, HP_COLL_REDUCE_SCATTER, HP_COLL_ALL_REDUCE,
                                HP_COLL_ALL_TO_ALL, HP_COLL_PERMUTE};

static planned plan_layers(const char *model, int layers, const char *cluster, const char *strategy)
{
    char over[64];
    snprintf(over, sizeof over, "model.layers=%d model.seq=%d", layers, S);
    return must_plan(model, over, cluster, strategy);
}

/* One layer in the templates listed has `n` collectives of `kind` with `bytes` in all. */
static void layer_has(const planned *two, const planned *three, const char *templates, hp_coll kind,
                      int n, double bytes, const char *name)
{
    traffic a = traffic_of(two, 0, templates, "", kind),
            b = traffic_of(three, 0, templates, "", kind);
    is_int(b.n - a.n, n, "%s, %s: a layer has %d %s", name, templates, n, hp_coll_name(kind));
    near(b.bytes - a.bytes, bytes, 0.5, "%s, %s: of %.0f bytes", name, templates, bytes);
}

static void layer_has_no_other(const planned *two, const planned *three, const hp_coll *allowed,
                               int n, const char *name)
{
    int others = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool is_allowed = false;
        for (int k = 0; k < n; k++)
            is_allowed = is_allowed || kinds[i] == allowed[k];
        if (!is_allowed)
            others += traffic_of(three, 0, "FB", "", kinds[i]).n -
                      traffic_of(two, 0, "FB", "", kinds[i]).n;
    }
    is_int(others, 0, "%s: and nothing else", name);
}

/* Tensor parallelism: an all-reduce behind attention and one behind the mlp, forward and
 * backward. */
static void tensor_parallel(int t)
{
    char cluster[16], strategy[32], name[32];
    snprintf(cluster, sizeof cluster, "ideal:%d", t);
    snprintf(strategy, sizeof strategy, "tp=%d,mbs=%d", t, B);
    snprintf(name, sizeof name, "tp=%d", t);
    planned two = plan_layers("llama-small", 2, cluster, strategy),
            three = plan_layers("llama-small", 3, cluster, strategy);
    double x = 2.0 * (t - 1) / t * B * S * H * 4;
    layer_has(&two, &three, "F", HP_COLL_ALL_REDUCE, 2, 2 * x, name);
    layer_has(&two, &three, "B", HP_COLL_ALL_REDUCE, 2, 2 * x, name);
    layer_has(&two, &three, "IO", HP_COLL_ALL_REDUCE, 0, 0, name);
    layer_has_no_other(&two, &three, (hp_coll[]){HP_COLL_ALL_REDUCE}, 1, name);
    /* vocabulary parallel: the embedding's sum, and three numbers a token instead of its logits */
    traffic f = traffic_of(&two, 0, "F", "tp", HP_COLL_ALL_REDUCE);
    near(f.bytes - 4 * x, x + 2.0 * (t - 1) / t * B * S * 3 * 4, 0.5,
         "%s: beside layers, forward sums the embedding and 3 numbers a token of the loss", name);
    is_int(f.n - 4, 2, "%s: in two all-reduces", name);
    is_int(traffic_of(&two, 0, "FB", "", HP_COLL_ALL_GATHER).n, 0, "%s: no logits are gathered",
           name);
    is_int(traffic_of(&two, 0, "B", "tp", HP_COLL_ALL_REDUCE).n - 4, 1,
           "%s: backward the gradient of what the head read", name);
    planned_free(&two);
    planned_free(&three);
}

/* With sequence parallelism: gather before, reduce-scatter behind; backward the same reversed,
 * and the two inputs gathered again for weight gradients. */
static void sequence_parallel(int t)
{
    char cluster[16], strategy[32], name[32];
    snprintf(cluster, sizeof cluster, "ideal:%d", t);
    snprintf(strategy, sizeof strategy, "tp=%d,sp,mbs=%d", t, B);
    snprintf(name, sizeof name, "tp=%d,sp", t);
    planned two = plan_layers("llama-small", 2, cluster, strategy),
            three = plan_layers("llama-small", 3, cluster, strategy);
    double x = 1.0 * (t - 1) / t * B * S * H * 4;
    layer_has(&two, &three, "F", HP_COLL_ALL_GATHER, 2, 2 * x, name);
    layer_has(&two, &three, "F", HP_COLL_REDUCE_SCATTER, 2, 2 * x, name);
    layer_has(&two, &three, "B", HP_COLL_ALL_GATHER, 4, 4 * x, name);
    layer_has(&two, &three, "B", HP_COLL_REDUCE_SCATTER, 2, 2 * x, name);
    layer_has_no_other(&two, &three, (hp_coll[]){HP_COLL_ALL_GATHER, HP_COLL_REDUCE_SCATTER}, 2,
                       name);
    near(traffic_of(&three, 0, "O", "tp", HP_COLL_ALL_REDUCE).bytes -
             traffic_of(&two, 0, "O", "tp", HP_COLL_ALL_REDUCE).bytes,
         2.0 * (t - 1) / t * 2 * H * 4, 0.5, "%s: once a step the gradients of a layer's two norms",
         name);
    planned_free(&two);
    planned_free(&three);
}

/* Full recomputation repeats forward but its last reduction, which nobody reads. */
static void recomputed(void)
{
    planned two = plan_layers("llama-small", 2, "ideal:2", "tp=2,mbs=2,recompute=full"),
            three = plan_layers("llama-small", 3, "ideal:2", "tp=2,mbs=2,recompute=full");
    double x = 2.0 / 2 * B * S * H * 4;
    layer_has(&two, &three, "F", HP_COLL_ALL_REDUCE, 2, 2 * x, "tp=2,recompute=full");
    layer_has(&two, &three, "B", HP_COLL_ALL_REDUCE, 3, 3 * x, "tp=2,recompute=full");
    planned_free(&two);
    planned_free(&three);
}

/* --- data parallelism ------------------------------------------------------------------------ */

static void data_parallel(void)
{
    enum { N = 4, M = 3 };
    planned p = plan_layers("llama-small", 2, "ideal:4", "dp=4,accum=3");
    double all = (double)hp_graph_params(p.c.graph) * 4, table = (double)H * 256 * 4,
           part = (N - 1.0) / N;
    traffic t = traffic_of(&p, 0, "FBO", "dp", HP_COLL_ALL_REDUCE);
    near(t.bytes, 2 * part * all, 2 * N * 4,
         "dp: gradients are all-reduced once a step, whatever the number of microbatches");
    planned_free(&p);

    p = plan_layers("llama-small", 2, "ideal:4", "zero=1,accum=3");
    near(traffic_of(&p, 0, "FBO", "dp", HP_COLL_REDUCE_SCATTER).bytes, part * all, 0,
         "zero-1: scattered once");
    near(traffic_of(&p, 0, "FBO", "dp", HP_COLL_ALL_GATHER).bytes, part * all, 0,
         "zero-1: parameters gathered once");
    near(traffic_of(&p, 0, "FBO", "dp", HP_COLL_ALL_REDUCE).bytes, 0, 2 * 2 * N * 4,
         "zero-1: nothing else but scalars");
    planned_free(&p);

    p = plan_layers("llama-small", 2, "ideal:4", "zero=2,accum=3");
    near(traffic_of(&p, 0, "FBO", "dp", HP_COLL_REDUCE_SCATTER).bytes, M * part * all, 0,
         "zero-2: scattered in each of 3 microbatches");
    near(traffic_of(&p, 0, "FBO", "dp", HP_COLL_ALL_GATHER).bytes, part * all, 0,
         "zero-2: parameters gathered once");
    planned_free(&p);

    p = plan_layers("llama-small", 2, "ideal:4", "zero=3,accum=3");
    near(traffic_of(&p, 0, "F", "dp", HP_COLL_ALL_GATHER).bytes, M * part * all, 0,
         "zero-3: forward gathers every parameter in each microbatch");
    near(traffic_of(&p, 0, "B", "dp", HP_COLL_ALL_GATHER).bytes, M * part * (all - table), 0,
         "zero-3: backward again, but the table of the embedding");
    near(traffic_of(&p, 0, "FBO", "dp", HP_COLL_REDUCE_SCATTER).bytes, M * part * all, 0,
         "zero-3: gradients scattered in each");
    is_int(traffic_of(&p, 0, "O", "dp", HP_COLL_ALL_GATHER).n, 0,
           "zero-3: nothing is gathered behind the update");
    planned_free(&p);

    p = plan_layers("llama-small", 2, "ideal:4", "fsdp=2,accum=3");
    near(traffic_of(&p, 0, "FB", "fsdp", HP_COLL_ALL_GATHER).bytes, M * 0.5 * (2 * all - table), 0,
         "hsdp: parameters are gathered within the group of 2");
    near(traffic_of(&p, 0, "FBO", "fsdp", HP_COLL_REDUCE_SCATTER).bytes, M * 0.5 * all, 0,
         "hsdp: gradients scattered within it");
    near(traffic_of(&p, 0, "FBO", "rep", HP_COLL_ALL_REDUCE).bytes, 2 * 0.5 * all / 2, 0,
         "hsdp: and shards all-reduced between groups once a step, not in each microbatch");
    planned_free(&p);
}

/* --- context parallelism --------------------------------------------------------------------- */

static void context_parallel(void)
{
    for (int n = 2; n <= 8; n *= 2) {
        char cluster[16], strategy[64], name[64];
        snprintf(cluster, sizeof cluster, "ideal:%d", n);
        snprintf(strategy, sizeof strategy, "cp=%d,mbs=%d", n, B);
        snprintf(name, sizeof name, "cp=%d as a ring", n);
        planned two = plan_layers("llama-small", 2, cluster, strategy),
                three = plan_layers("llama-small", 3, cluster, strategy);
        double kv = 2.0 * B * S / n * KV * HEAD * 4;
        layer_has(&two, &three, "F", HP_COLL_PERMUTE, n - 1, (n - 1) * kv, name);
        layer_has(&two, &three, "B", HP_COLL_PERMUTE, 2 * n - 1, (2 * n - 1) * kv, name);
        layer_has_no_other(&two, &three, (hp_coll[]){HP_COLL_PERMUTE}, 1, name);
        planned_free(&two);
        planned_free(&three);

        snprintf(strategy, sizeof strategy, "cp=%d,cp_kind=allgather,mbs=%d", n, B);
        snprintf(name, sizeof name, "cp=%d gathered", n);
        two = plan_layers("llama-small", 2, cluster, strategy),
        three = plan_layers("llama-small", 3, cluster, strategy);
        double gathered = (n - 1.0) * kv;
        layer_has(&two, &three, "F", HP_COLL_ALL_GATHER, 2, gathered, name);
        layer_has(&two, &three, "B", HP_COLL_ALL_GATHER, 2, gathered, name);
        layer_has(&two, &three, "B", HP_COLL_REDUCE_SCATTER, 2, gathered, name);
        layer_has_no_other(&two, &three, (hp_coll[]){HP_COLL_ALL_GATHER, HP_COLL_REDUCE_SCATTER}, 2,
                           name);
        planned_free(&two);
        planned_free(&three);
    }
}

/* Queries, keys, values and the result change from sequence to heads and back; backward moves
 * the result once more instead of keeping it twice. */
static void ulysses(void)
{
    planned two = plan_layers("llama-small", 2, "ideal:4", "cp=4,cp_kind=ulysses,mbs=2"),
            three = plan_layers("llama-small", 3, "ideal:4", "cp=4,cp_kind=ulysses,mbs=2");
    double q = 0.75 * B * S / 4 * H * 4, kv = q / 2;
    layer_has(&two, &three, "F", HP_COLL_ALL_TO_ALL, 4, 2 * q + 2 * kv, "Ulysses");
    layer_has(&two, &three, "B", HP_COLL_ALL_TO_ALL, 5, 3 * q + 2 * kv, "Ulysses");
    layer_has_no_other(&two, &three, (hp_coll[]){HP_COLL_ALL_TO_ALL}, 1, "Ulysses");
    planned_free(&two);
    planned_free(&three);
}

/* --- experts --------------------------------------------------------------------------------- */

/* Two all-to-alls a layer each way, of top-k rows a token; the choices (4 bytes each) are
 * gathered along. */
static void expert_parallel(void)
{
    for (int n = 2; n <= 8; n *= 2) {
        char cluster[16], strategy[32], name[32];
        snprintf(cluster, sizeof cluster, "ideal:%d", n);
        snprintf(strategy, sizeof strategy, "ep=%d,mbs=%d", n, B);
        snprintf(name, sizeof name, "ep=%d", n);
        planned two = plan_layers("moe-small", 2, cluster, strategy),
                three = plan_layers("moe-small", 3, cluster, strategy);
        double rows = (n - 1.0) / n * B * S * TOP * H * 4, choices = (n - 1.0) * B * S * TOP * 4;
        layer_has(&two, &three, "F", HP_COLL_ALL_TO_ALL, 2, 2 * rows, name);
        layer_has(&two, &three, "B", HP_COLL_ALL_TO_ALL, 2, 2 * rows, name);
        layer_has(&two, &three, "F", HP_COLL_ALL_GATHER, 1, choices, name);
        layer_has_no_other(&two, &three, (hp_coll[]){HP_COLL_ALL_TO_ALL, HP_COLL_ALL_GATHER}, 2,
                           name);
        is_int(traffic_of(&two, 0, "FB", "moe.ep", HP_COLL_ALL_TO_ALL).n, 8,
               "%s: rows go over the experts' axis, though dp has the same devices", name);
        planned_free(&two);
        planned_free(&three);
    }
}

int main(void)
{
    tensor_parallel(2);
    tensor_parallel(4);
    sequence_parallel(2);
    sequence_parallel(4);
    recomputed();
    data_parallel();
    context_parallel();
    ulysses();
    expert_parallel();
    return done_testing();
}

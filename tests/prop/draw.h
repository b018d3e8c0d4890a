/* draw.h -- random training jobs: a model, a cluster, a strategy and how they are checked, all small and odd.
 *
 * A draw is a function of (seed, number) alone. Models are families of models/ with random overrides; parameters that begin as zeros or ones are made random, since a bias of
 * zero hides whoever adds it twice. Strategies are Lua text, so that what fails can be handed to people as it is (draw_print). Sizes are biased: half of all draws shall have a dimension
 * that is cut unevenly, has empty parts, or is split by two axes (draw_is_odd). What cannot be is refused by hp_build and is no failure; the caller draws again.
 */
#ifndef HP_TESTS_PROP_DRAW_H
#define HP_TESTS_PROP_DRAW_H

#include "base/rng.h"
#include "plan/build.h"
#include "script/cluster.h"
#include "script/model.h"
#include "script/strategy.h"
#include "session/check.h"

#include "tap.h"

#include <unistd.h>

enum { DRAW_AXES = 4, DRAW_OVER = 48, DRAW_DEVICES = 12 };

/* Words that a split can name, as bits of an axis' use. */
enum { W_BATCH, W_SEQ, W_HEADS, W_KV, W_FFN, W_VOCAB, W_EXPERTS, W_EMBED, N_WORDS };
static const char *const draw_word[] = {"batch", "seq", "heads", "kv_heads", "ffn", "vocab", "experts", "embed"};

typedef struct draw_axis {
    char name[8];
    int size;
} draw_axis;

typedef struct draw {
    uint64_t seed;
    int64_t number;
    hp_rng rng;
    /* the model */
    const char *family;
    int n_over;
    hp_override over[DRAW_OVER];
    char text[DRAW_OVER][2][32];
    int64_t size[N_WORDS], kv, layers, packed; /* size[W_HEADS]: query heads; 0: the model lacks it */
    bool mla, moe, tied, gated, bf16, uneven;
    hp_train train;
    /* the mesh */
    int n_axes, pp, vpp, ranks; /* axes and ranks inside a stage */
    draw_axis axis[DRAW_AXES];
    int n_split[N_WORDS], split[N_WORDS][DRAW_AXES]; /* which axes split a word, outer to inner */
    int64_t batch, accum;                            /* sequences of a microbatch and rank; microbatches */
    char cluster[32];
    hp_str strategy;
    hp_check_options check;
    /* what they make */
    hp_cluster *made_cluster;
    hp_graph *graph;
    hp_strategy *made_strategy;
    hp_built built;
} draw;

/* --- chance -------------------------------------------------------------------------------------------------- */

static int below(draw *d, int n)
{
    return (int)hp_rng_below(&d->rng, n);
}

static bool chance(draw *d, int percent)
{
    return below(d, 100) < percent;
}

static int between(draw *d, int lo, int hi)
{
    return lo + below(d, hi - lo + 1);
}

#define one_of(d, ...) \
    ((int[]){__VA_ARGS__})[below(d, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))]

static void shuffle(draw *d, int *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int k = below(d, i + 1), keep = v[i];
        v[i] = v[k];
        v[k] = keep;
    }
}

/* --- the model ------------------------------------------------------------------------------------------------ */

static __attribute__((format(printf, 3, 4))) void set(draw *d, const char *key, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char(*t)[32] = d->text[d->n_over];
    snprintf(t[0], sizeof t[0], "model.%s", key);
    vsnprintf(t[1], sizeof t[1], fmt, ap);
    d->over[d->n_over] = (hp_override){t[0], t[1]};
    d->n_over++;
    va_end(ap);
}

static void flag(draw *d, const char *key, int percent)
{
    if (chance(d, percent))
        set(d, key, "true");
}

static void draw_sizes(draw *d)
{
    int group = one_of(d, 1, 1, 2, 2, 3);
    d->kv = one_of(d, 1, 2, 2, 3, 4);
    d->size[W_EMBED] = between(d, 6, 24);
    d->size[W_VOCAB] = between(d, 9, 23);
    d->size[W_SEQ] = one_of(d, 5, 6, 7, 8, 8, 9, 10, 12, 12, 13, 16);
    d->layers = d->bf16 ? 1 : one_of(d, 1, 1, 2, 2, 3);
    if (!strcmp(d->family, "gpt2") || !strcmp(d->family, "deepseek"))
        group = 1;
    d->size[W_HEADS] = d->kv * group;
    d->size[W_KV] = d->kv;
    set(d, "embed", "%lld", (long long)d->size[W_EMBED]);
    set(d, "vocab", "%lld", (long long)d->size[W_VOCAB]);
    set(d, "seq", "%lld", (long long)d->size[W_SEQ]);
    set(d, "heads", "%lld", (long long)d->size[W_HEADS]);
    set(d, "layers", "%lld", (long long)d->layers);
    set(d, "std", d->bf16 ? "0.1" : "0.3");
    if (chance(d, 30)) {
        int pad = one_of(d, 4, 8, 16);
        set(d, "vocab_pad", "%d", pad);
        d->size[W_VOCAB] = (d->size[W_VOCAB] + pad - 1) / pad * pad;
    }
    if (chance(d, 15))
        set(d, "dropout", "0.2");
    if (chance(d, 15)) {
        set(d, "packed", "true");
        d->packed = between(d, 2, 4);
    }
}

/* What decoders with ordinary attention can be told. */
static void draw_attention(draw *d)
{
    int head = one_of(d, 2, 4, 4, 6);
    set(d, "head", "%d", head);
    if (strcmp(d->family, "gpt2"))
        set(d, "kv_heads", "%lld", (long long)d->kv);
    else
        set(d, "positions", "%lld", (long long)d->size[W_SEQ] + below(d, 4));
    if (chance(d, 15))
        set(d, "qk_norm", "%s", chance(d, 60) ? "head" : "full");
    flag(d, "qkv_bias", 20);
    flag(d, "o_bias", 20);
    bool neox = !strcmp(d->family, "neox");
    if (neox || (head == 4 && strcmp(d->family, "gpt2") && chance(d, 20)))
        set(d, "rotary", "%s", head == 4 ? "0.5" : "1");
}

static void draw_experts(draw *d)
{
    int experts = one_of(d, 3, 4, 4, 5, 6), top = between(d, 1, 3);
    d->moe = true;
    d->size[W_EXPERTS] = experts;
    set(d, "experts", "%d", experts);
    set(d, "top", "%d", top);
    set(d, "expert_ffn", "%d", between(d, 4, 9));
    set(d, "shared_ffn", "%d", chance(d, 40) ? between(d, 4, 9) : 0);
    int dense = d->layers > 1 && chance(d, 30);
    set(d, "dense_layers", "%d", dense);
    bool grouped = experts % 2 == 0 && top <= experts / 2 && chance(d, 30);
    set(d, "groups", "%d", grouped ? 2 : 0);
    set(d, "top_groups", "%d", grouped ? 1 : 0);
    set(d, "score", "%s", chance(d, 40) ? "sigmoid" : "softmax");
    set(d, "router_bias", "%s", chance(d, 40) ? "true" : "false");
    flag(d, "router_linear_bias", 15);
    if (chance(d, 25))
        set(d, "normalise", "false");
    if (chance(d, 25))
        set(d, "capacity", "%s", chance(d, 50) ? "1" : "1.5");
    set(d, "aux", "%s", chance(d, 50) ? "0.5" : "0");
}

static void draw_latent(draw *d)
{
    static const char *const ranks[] = {"0", "5", "8"};
    d->mla = true;
    set(d, "q_rank", "%s", ranks[below(d, 3)]);
    set(d, "kv_rank", "%d", between(d, 4, 9));
    set(d, "nope", "%d", between(d, 2, 5));
    set(d, "rope", "%d", one_of(d, 2, 4));
    set(d, "v_head", "%d", between(d, 2, 5));
}

static void draw_blocks(draw *d)
{
    static const char *const norms[] = {"rmsnorm", "layernorm", "layernorm without bias"};
    static const char *const acts[] = {"swiglu", "geglu", "gelu", "silu"};
    if (chance(d, 20))
        set(d, "norm", "%s", norms[below(d, 3)]);
    int act = chance(d, 75) ? 0 : below(d, d->moe ? 2 : 4);
    d->gated = d->moe || (act == 0 && strcmp(d->family, "gpt2") && strcmp(d->family, "neox"));
    if (act || d->gated)
        set(d, "act", "%s", acts[act]);
    d->tied = chance(d, 35);
    set(d, "tied", "%s", d->tied ? "true" : "false");
    flag(d, "mlp_bias", 20);
    flag(d, "head_bias", 10);
    flag(d, "post_norm", 10);
    flag(d, "embed_scale", 10);
    if (chance(d, 12))
        set(d, "parallel", "%s", chance(d, 50) ? "one norm" : "two norms");
}

static void draw_model(draw *d)
{
    static const char *const families[] = {"llama", "llama", "llama", "gpt2", "neox", "mixtral", "mixtral", "deepseek", "deepseek"};
    d->bf16 = chance(d, 4); /* dense: a router's near ties are no test of bf16 either */
    d->family = families[d->bf16 ? 0 : below(d, (int)(sizeof families / sizeof families[0]))];
    draw_sizes(d);
    if (!strcmp(d->family, "mixtral") || !strcmp(d->family, "deepseek"))
        draw_experts(d);
    d->size[W_FFN] = between(d, 5, 20);
    set(d, "ffn", "%lld", (long long)d->size[W_FFN]);
    if (!strcmp(d->family, "deepseek"))
        draw_latent(d);
    else
        draw_attention(d);
    draw_blocks(d);
    d->train = (hp_train){.sgd = chance(d, 30), .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-2, .decay = chance(d, 50) ? 0.1 : 0};
    d->train.clip = chance(d, 60) ? 0.05 : chance(d, 50) ? 0 : 100;
    d->train.warmup = chance(d, 20) ? 3 : 0;
}

/* Values that begin as zeros or ones hide mistakes; so does a router bias of zero. */
static void unsettle(draw *d, hp_graph *g)
{
    g->train = d->train;
    for (int t = 0; t < g->n_tensors; t++) {
        hp_tensor *x = &g->tensor[t];
        bool state = x->kind == HP_T_PARAM || x->kind == HP_T_BUFFER;
        if (!state || x->init == HP_INIT_NORMAL)
            continue;
        if (d->bf16 && x->init == HP_INIT_ONES)
            continue; /* a net that is ill-conditioned on purpose is no test of bf16 */
        x->init_std = x->kind == HP_T_BUFFER ? 0.1f : x->init == HP_INIT_ONES ? 0.8f : 0.3f;
        x->init = HP_INIT_NORMAL;
    }
}

/* --- the mesh --------------------------------------------------------------------------------------------------- */

enum { USE_DATA, USE_TENSOR, USE_CONTEXT, USE_ULYSSES, USE_WILD };

static void add_split(draw *d, int word, int axis)
{
    if (!d->size[word] && word != W_BATCH)
        return;
    for (int i = 0; i < d->n_split[word]; i++)
        if (d->split[word][i] == axis)
            return;
    int n = d->n_split[word]++, at = chance(d, 30) ? below(d, n + 1) : n;
    memmove(d->split[word] + at + 1, d->split[word] + at, (size_t)(n - at) * sizeof(int));
    d->split[word][at] = axis;
}

static void use_axis(draw *d, int axis, int use)
{
    switch (use) {
    case USE_DATA:
        add_split(d, W_BATCH, axis);
        break;
    case USE_TENSOR:
        if (chance(d, 85)) {
            add_split(d, W_HEADS, axis);
            add_split(d, W_KV, axis);
        }
        if (chance(d, 85))
            add_split(d, W_FFN, axis);
        if (chance(d, 70))
            add_split(d, W_VOCAB, axis);
        break;
    case USE_CONTEXT:
        add_split(d, W_SEQ, axis);
        break;
    case USE_ULYSSES:
        add_split(d, W_SEQ, axis);
        add_split(d, W_HEADS, axis);
        add_split(d, W_KV, axis);
        break;
    default:
        for (int i = 0, n = between(d, 1, 3); i < n; i++)
            add_split(d, one_of(d, W_BATCH, W_SEQ, W_HEADS, W_FFN, W_VOCAB, W_EXPERTS, W_EMBED), axis);
        if (chance(d, 50) && d->n_split[W_HEADS])
            add_split(d, W_KV, axis);
    }
}

static void draw_mesh(draw *d)
{
    static const char *const names[] = {"dp", "tp", "cp", "ux", "wx"};
    int wanted = one_of(d, 1, 2, 2, 2, 3, 3, 4), seen[5] = {0};
    d->pp = chance(d, 35) ? one_of(d, 2, 2, 2, 3, 4) : 1;
    d->ranks = 1;
    for (int i = 0; i < wanted; i++) {
        int size = one_of(d, 1, 2, 2, 2, 2, 3, 3, 4, 5), use = one_of(d, USE_DATA, USE_DATA, USE_TENSOR, USE_TENSOR, USE_CONTEXT, USE_ULYSSES, USE_WILD);
        if (d->pp * d->ranks * size > DRAW_DEVICES)
            continue;
        draw_axis *a = &d->axis[d->n_axes];
        a->size = size;
        snprintf(a->name, sizeof a->name, seen[use] ? "%s%d" : "%s", names[use], seen[use] + 1);
        seen[use]++;
        d->ranks *= size;
        use_axis(d, d->n_axes++, use);
    }
    if (d->n_axes > 1 && chance(d, 60)) { /* two axes on one dimension */
        int word = one_of(d, W_BATCH, W_SEQ, W_HEADS, W_FFN, W_FFN, W_VOCAB, W_VOCAB, W_EXPERTS);
        for (int i = 0; i < 2; i++)
            add_split(d, word, below(d, d->n_axes));
    }
    if (!d->n_axes)
        d->axis[d->n_axes++] = (draw_axis){"dp", 1};
}

/* --- the strategy's text ------------------------------------------------------------------------------------------ */

static void put_axes(draw *d, const int *axis, int n)
{
    hp_str_add(&d->strategy, "\"");
    for (int i = 0; i < n; i++)
        hp_str_add(&d->strategy, "%s%s", i ? "+" : "", d->axis[axis[i]].name);
    hp_str_add(&d->strategy, "\"");
}

static int split_size(const draw *d, int word)
{
    int n = 1;
    for (int i = 0; i < d->n_split[word]; i++)
        n *= d->axis[d->split[word][i]].size;
    return n;
}

static void put_mesh(draw *d)
{
    hp_str *s = &d->strategy;
    hp_str_add(s, "  mesh = \"");
    if (d->pp > 1)
        hp_str_add(s, "pp=%d, ", d->pp);
    for (int i = 0; i < d->n_axes; i++)
        hp_str_add(s, "%s%s=%d", i ? ", " : "", d->axis[i].name, d->axis[i].size);
    hp_str_add(s, "\",\n");
}

/* The words in the usual order or in a random one. */
static void put_split(draw *d, const char *key, bool parameters)
{
    static const int usual[] = {W_EXPERTS, W_HEADS, W_KV, W_FFN, W_VOCAB, W_EMBED, W_SEQ, W_BATCH};
    int order[N_WORDS], cp = split_size(d, W_SEQ);
    hp_str *s = &d->strategy;
    memcpy(order, usual, sizeof order);
    if (chance(d, 25))
        shuffle(d, order, N_WORDS);
    bool zigzag = !parameters && cp > 1 && d->size[W_SEQ] % (2 * cp) == 0 && chance(d, 60);
    hp_str_add(s, "  %s = {", key);
    for (int i = 0; i < N_WORDS; i++) {
        int w = order[i];
        if (!d->n_split[w] || (parameters && (w == W_BATCH || w == W_SEQ || chance(d, 40))))
            continue;
        hp_str_add(s, " { \"%s\", ", draw_word[w]);
        put_axes(d, d->split[w], d->n_split[w]);
        hp_str_add(s, "%s },", zigzag && w == W_SEQ ? ", order = \"zigzag\"" : "");
    }
    hp_str_add(s, " },\n");
}

/* A second factorisation of a stage's ranks: their prime factors in order, cut into up to three axes. */
static bool put_views(draw *d, bool *etp)
{
    int atom[16], n = 0, size[3] = {1, 1, 1};
    for (int i = 0; i < d->n_axes; i++)
        for (int left = d->axis[i].size, p = 2; left > 1; p++)
            for (; left % p == 0; left /= p)
                atom[n++] = p;
    if (n < 1)
        return false;
    int a = below(d, n + 1), b = between(d, a, n);
    for (int i = 0; i < n; i++)
        size[i < a ? 0 : i < b ? 1 : 2] *= atom[i];
    static const char *const names[][3] = {{"edp", "ep", "etp"}, {"ep", "edp", "etp"}, {"edp", "etp", "ep"}, {"etp", "ep", "edp"}};
    const char *const *name = names[chance(d, 60) ? 0 : below(d, 4)];
    hp_str_add(&d->strategy, "  views = { moe = \"");
    if (d->pp > 1)
        hp_str_add(&d->strategy, "pp=%d, ", d->pp);
    for (int i = 0; i < 3; i++)
        hp_str_add(&d->strategy, "%s%s=%d", i ? ", " : "", name[i], size[i]);
    hp_str_add(&d->strategy, "\" },\n");
    *etp = chance(d, 50);
    return true;
}

static void put_layout(draw *d, bool views, bool etp)
{
    static const char *const globs[] = {"layers.*.resid", "layers.*.norm*", "norm", "embed.out", "layers.0", "**.core",
                                        "head"};
    int seq[2 * DRAW_AXES], n = 0;
    hp_str *s = &d->strategy;
    hp_str_add(s, "  layout = {");
    if (chance(d, 40)) { /* sequence parallel between the regions */
        for (int k = 0; k < 2; k++)
            for (int i = 0, w = k ? W_FFN : W_SEQ; i < d->n_split[w]; i++) {
                bool there = false;
                for (int j = 0; j < n; j++)
                    there = there || seq[j] == d->split[w][i];
                if (!there)
                    seq[n++] = d->split[w][i];
            }
        for (int i = 0; i < 4 && n; i++) {
            hp_str_add(s, " { \"%s\", { seq = ", globs[i]);
            put_axes(d, seq, n);
            hp_str_add(s, " } },");
        }
    }
    for (int i = 0, k = chance(d, 25) ? between(d, 1, 2) : 0; i < k; i++) {
        int word = one_of(d, W_SEQ, W_BATCH, W_SEQ, W_FFN, W_EMBED, W_VOCAB), axis = below(d, d->n_axes);
        hp_str_add(s, " { \"%s\", { %s = ", globs[i ? below(d, 4) : below(d, 7)], draw_word[word]);
        if (chance(d, 30))
            hp_str_add(s, "whole");
        else
            put_axes(d, &axis, 1);
        hp_str_add(s, " } },");
    }
    if (views)
        hp_str_add(s, " { \"**.moe.experts\", { experts = \"moe.ep\", ffn = %s } },", etp ? "\"moe.etp\"" : "whole");
    hp_str_add(s, " },\n");
}

static int some_axes(draw *d, int *axis)
{
    int n = 0, order[DRAW_AXES];
    for (int i = 0; i < d->n_axes; i++)
        order[i] = i;
    if (chance(d, 30))
        shuffle(d, order, d->n_axes);
    for (int i = 0; i < d->n_axes; i++)
        if (chance(d, 60))
            axis[n++] = order[i];
    if (!n)
        axis[n++] = below(d, d->n_axes);
    return n;
}

static void put_states(draw *d, bool views)
{
    static const char *const part[] = {"optimizer", "grads", "params"};
    int axis[DRAW_AXES], n = some_axes(d, axis), zero = one_of(d, 0, 0, 1, 2, 3, 3);
    hp_str *s = &d->strategy;
    hp_str_add(s, "  states = { like = \"megatron\"");
    for (int i = 0; i < zero; i++) {
        hp_str_add(s, ", %s = ", part[i]);
        put_axes(d, axis, i == 0 || chance(d, 85) ? n : 1);
    }
    if (views && zero && chance(d, 60)) {
        hp_str_add(s, ", { \"**.moe.experts\"");
        for (int i = 0; i < zero; i++)
            hp_str_add(s, ", %s = \"moe.edp\"", part[i]);
        hp_str_add(s, " }");
    }
    if (zero == 3 && chance(d, 50))
        hp_str_add(s, ", unit = { %s \"embed\", \"head\" }", chance(d, 50) ? "\"layers.*\"," : "");
    if (zero == 3 && chance(d, 20))
        hp_str_add(s, ", after_forward = \"keep\"");
    hp_str_add(s, " },\n");
}

static void put_batch(draw *d)
{
    d->batch = one_of(d, 1, 1, 1, 2, 2, 3);
    while (d->batch > 1 && d->batch * split_size(d, W_BATCH) > 8)
        d->batch--;
    d->accum = d->pp > 1 ? one_of(d, 1, 2, 3, 4) : one_of(d, 1, 1, 2, 3);
    if (d->vpp > 1)
        d->accum = d->pp * one_of(d, 1, 1, 2);
    int64_t room = d->batch * split_size(d, W_BATCH);
    d->size[W_BATCH] = d->uneven && room > 1 && chance(d, 25) ? between(d, 1, (int)room - 1) : room; /* fewer sequences than room, or ranks */
    hp_str_add(&d->strategy, "  batch = { micro = %lld, accum = %lld, global = %lld },\n", (long long)d->batch, (long long)d->accum,
               (long long)(d->size[W_BATCH] * d->accum));
}

/* Layers a stage in one of the three ways to say it; some stages may have none. */
static void put_stages(draw *d)
{
    hp_str *s = &d->strategy;
    int v = d->pp * d->vpp, count[16] = {0}, at = 0;
    bool spread = d->layers >= v && chance(d, 50);
    for (int i = 0; i < d->layers; i++)
        count[spread && i < v ? i : below(d, v)]++;
    if (d->layers % v == 0 && chance(d, 40)) {
        hp_str_add(s, ", stages = \"even\"");
    } else if (chance(d, 60)) {
        for (int i = 0; i < v; i++)
            hp_str_add(s, "%s%d", i ? "+" : ", stages = \"", count[i]);
        hp_str_add(s, "\"");
    } else {
        hp_str_add(s, ", stages = { ");
        for (int i = 0; i < v; i++) {
            bool first = i == 0, last = i + 1 == v;
            hp_str_add(s, "\"%s%s", first ? "embed" : "", first && !strcmp(d->family, "gpt2") ? " pos_embed" : "");
            if (count[i])
                hp_str_add(s, " layers[%d:%d]", at, at + count[i]);
            hp_str_add(s, "%s\", ", last ? " norm head loss" : "");
            at += count[i];
        }
        hp_str_add(s, "}");
    }
}

static void put_pipeline(draw *d)
{
    if (d->pp == 1)
        return;
    bool gpipe = d->vpp == 1 && chance(d, 30);
    hp_str_add(&d->strategy, "  pipeline = { over = \"pp\", schedule = \"%s\"", d->vpp > 1 ? "interleaved" : gpipe ? "gpipe" : "1f1b");
    if (d->vpp > 1)
        hp_str_add(&d->strategy, ", vpp = %d", d->vpp);
    put_stages(d);
    hp_str_add(&d->strategy, " },\n");
}

static void put_recompute(draw *d)
{
    static const char *const globs[] = {"layers.*", "layers.*.mlp", "layers.*.norm*", "**.core", "layers[0::2]", "**.moe", "**.mla.up", "layers.0", "**.act"};
    static const char *const what[] = {"inside", "discard", "inside", "per-child", "none", "linear+attention", "attention", "linear", "uniform:2"};
    if (!chance(d, 45))
        return;
    hp_str_add(&d->strategy, "  recompute = {");
    for (int i = 0, n = between(d, 1, 3); i < n; i++) {
        const char *glob = globs[i ? below(d, 9) : below(d, 5)];
        if ((!d->moe && strstr(glob, "moe")) || (!d->mla && strstr(glob, "mla")) || (d->moe && strstr(glob, ".mlp")) || (!d->gated && strstr(glob, ".act")))
            continue;
        hp_str_add(&d->strategy, " { \"%s\", \"%s\" },", glob, what[i ? below(d, strcmp(glob, "layers.*") ? 8 : 9) : below(d, 4)]);
    }
    hp_str_add(&d->strategy, " },\n");
}

static void put_overlap(draw *d)
{
    hp_str *s = &d->strategy;
    if (chance(d, 40))
        return;
    hp_str_add(s, "  overlap = {");
    if (chance(d, 60))
        hp_str_add(s, chance(d, 50) ? " grads = true," : " grads = { bucket = %d },", one_of(d, 1, 200, 1000, 5000));
    if (chance(d, 60))
        hp_str_add(s, " params = { ahead = %d },", below(d, 4));
    hp_str_add(s, "%s%s%s },\n", chance(d, 50) ? " cp = true," : "", chance(d, 50) ? " ep = true," : "", chance(d, 30) ? " pp = true," : "");
}

/* Sizes that add up to `size`, some of them 0. */
static void put_sizes(draw *d, int64_t size, int parts)
{
    for (int i = 0; i < parts; i++) {
        int64_t part = i + 1 == parts ? size : below(d, (int)size / (parts - i) * 2 + 1);
        part = part < size ? part : size;
        hp_str_add(&d->strategy, "%s%lld", i ? "+" : "", (long long)part);
        size -= part;
    }
}

static void put_cuts(draw *d)
{
    static const int words[] = {W_BATCH, W_SEQ, W_KV, W_VOCAB, W_EXPERTS, W_EMBED, W_FFN};
    hp_str *s = &d->strategy;
    hp_str_add(s, "  cut = {");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        int w = words[i], parts = split_size(d, w);
        if (parts < 2 || !d->size[w] || !chance(d, 25) || (w == W_FFN && d->moe))
            continue;
        hp_str_add(s, " %s = \"", draw_word[w]);
        if (chance(d, 40))
            put_sizes(d, d->size[w], chance(d, 50) && d->n_split[w] > 1 ? d->axis[d->split[w][0]].size : parts);
        else
            hp_str_add(s, "%s", chance(d, 70) ? "balanced" : "chunk");
        hp_str_add(s, "\",");
    }
    hp_str_add(s, " },\n");
}

static void draw_strategy(draw *d)
{
    bool etp = false, views = false;
    hp_str *s = &d->strategy;
    d->vpp = d->pp > 1 && d->layers >= 2 && chance(d, 35) ? 2 : 1;
    d->uneven = chance(d, 85);
    hp_str_add(s, "return strategy {\n");
    put_mesh(d);
    views = d->moe && chance(d, 55) && put_views(d, &etp);
    put_split(d, "split", false);
    if (chance(d, d->n_split[W_SEQ] ? 40 : 10))
        put_split(d, "param_split", true);
    put_layout(d, views, etp);
    put_states(d, views);
    put_batch(d);
    put_pipeline(d);
    put_recompute(d);
    put_overlap(d);
    if (d->n_split[W_SEQ])
        hp_str_add(s, "  cp = { outer = \"%s\" },\n", chance(d, 60) ? "ring" : "gather");
    if (d->moe) /* room for every row that can come */
        hp_str_add(s, "  moe = { headroom = 100 },\n");
    put_cuts(d);
    if (d->bf16)
        hp_str_add(s, "  dtype = \"bf16\",\n");
    if (d->uneven)
        hp_str_add(s, "  uneven = true,\n");
    hp_str_add(s, "}\n");
}

static void draw_check(draw *d)
{
    static const char *const clusters[] = {"ideal", "ideal", "host", "h100-sxm", "tpu-v4", "a100-pcie"};
    snprintf(d->cluster, sizeof d->cluster, "%s:%d", clusters[below(d, 6)], d->pp * d->ranks);
    hp_check_options *o = &d->check;
    o->seed = hp_rng_key(d->seed, (uint64_t)d->number) % 100000;
    o->documents = (int)d->packed;
    o->ignore = chance(d, 50) ? 0 : (double[]){0.3, 0.8, 0.95}[below(d, 3)];
    o->steps = chance(d, 80) && !d->bf16 ? 2 : 1;
    o->workers = between(d, 0, 3);
    o->poison = chance(d, 50);
    o->reference_kernels = chance(d, 20);
    o->bf16 = d->bf16;
}

/* draw_calm starts the program anew where its OpenMP teams would spin between the kernels of tiny models; what main does first. */
static __attribute__((unused)) void draw_calm(char **argv)
{
    if (getenv("OMP_WAIT_POLICY"))
        return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
}

/* draw_new chooses everything; nothing is built. */
static __attribute__((unused)) draw *draw_new(uint64_t seed, int64_t number)
{
    draw *d = hp_xcalloc(1, sizeof *d);
    d->seed = seed;
    d->number = number;
    d->rng = (hp_rng){hp_rng_key(seed, (uint64_t)number), 0};
    draw_model(d);
    draw_mesh(d);
    draw_strategy(d);
    draw_check(d);
    return d;
}

static hp_err load_strategy(draw *d, const char *text, hp_errmsg *e)
{
    char path[] = "/tmp/hp-draw-XXXXXX.lua";
    int fd = mkstemps(path, 4);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        bail("no file can be made in /tmp");
    fputs(text, f);
    fclose(f);
    hp_err err = hp_script_strategy(path, d->graph, d->made_cluster, 0, NULL, &d->made_strategy, e);
    unlink(path);
    return err;
}

/* Whether every step of the check has a target that counts. */
static bool has_targets(const draw *d)
{
    const hp_plan *p = d->built.plan;
    hp_data_options o = {.seed = d->check.seed, .vocab = p->vocab, .zigzag = p->zigzag, .documents = d->check.documents, .ignore = d->check.ignore};
    int64_t n = p->micro * p->batch * p->seq, valid = 0;
    hp_operand box = {.dtype = HP_I32, .nd = 3, .len = {p->micro, p->batch, p->seq}, .full = {p->micro, p->batch, p->seq}};
    int32_t *t = hp_xmalloc((size_t)n * sizeof *t);
    hp_corpus c;
    hp_errmsg e;
    bool all = hp_corpus_open(&c, NULL, &o, &e) == HP_OK;
    box.data = t;
    for (int64_t step = 0; step < d->check.steps && all; step++) {
        all = hp_corpus_fill(&c, "targets.all", step, -1, &box, &e) == HP_OK;
        valid = 0;
        for (int64_t i = 0; i < n; i++)
            valid += t[i] >= 0;
        all = all && valid;
    }
    hp_corpus_fini(&c);
    free(t);
    return all;
}

/* draw_build makes cluster, graph, strategy and plan. HP_EINFEASIBLE is a refusal, anything else but HP_OK a mistake. */
static __attribute__((unused)) hp_err draw_build(draw *d, hp_errmsg *e)
{
    hp_err err = hp_script_cluster(d->cluster, 0, NULL, &d->made_cluster, e);
    if (!err)
        err = hp_script_model(d->family, d->n_over, d->over, &d->graph, e);
    if (err)
        return err;
    unsettle(d, d->graph);
    err = load_strategy(d, hp_str_text(&d->strategy), e);
    if (!err)
        err = hp_build(d->graph, d->made_cluster, d->made_strategy, &d->built, e);
    for (int i = 0; !err && i < 1000 && !has_targets(d); i++)
        d->check.seed++;
    return err;
}

/* draw_alone replaces the plan by that of one device with the same data. */
static __attribute__((unused)) hp_err draw_alone(draw *d, hp_errmsg *e)
{
    char text[160];
    hp_built_fini(&d->built);
    hp_strategy_free(d->made_strategy);
    hp_cluster_free(d->made_cluster);
    d->made_strategy = NULL;
    d->made_cluster = NULL;
    snprintf(text, sizeof text, "return strategy { mesh = \"dp=1\", batch = { micro = %lld, accum = %lld }, dtype = \"%s\" }", (long long)d->size[W_BATCH],
             (long long)d->accum, d->bf16 ? "bf16" : "f32");
    hp_err err = hp_script_cluster("host:1", 0, NULL, &d->made_cluster, e);
    if (!err)
        err = load_strategy(d, text, e);
    return err ? err : hp_build(d->graph, d->made_cluster, d->made_strategy, &d->built, e);
}

static __attribute__((unused)) void draw_free(draw *d)
{
    hp_built_fini(&d->built);
    hp_strategy_free(d->made_strategy);
    hp_graph_free(d->graph);
    hp_cluster_free(d->made_cluster);
    hp_str_fini(&d->strategy);
    free(d);
}

/* draw_print says the draw as options of the program and the strategy's file. */
static __attribute__((unused)) void draw_print(const draw *d)
{
    hp_str s = {0};
    hp_str_add(&s, "HP_SEED=%llu HP_DRAW=%lld: -m %s -c %s", (unsigned long long)d->seed, (long long)d->number, d->family, d->cluster);
    for (int i = 0; i < d->n_over; i++)
        hp_str_add(&s, " -o '%s=%s'", d->over[i].key, d->over[i].value);
    hp_str_add(&s, "\ntrain: %s clip %g decay %g warmup %d; data: %d documents, %g ignored; %d workers%s%s, seed %llu, %d steps\n%s",
               d->train.sgd ? "sgd" : "adamw", d->train.clip, d->train.decay, d->train.warmup, d->check.documents, d->check.ignore,
               d->check.workers, d->check.poison ? ", poison" : "", d->check.reference_kernels ? ", reference kernels" : "",
               (unsigned long long)d->check.seed, (int)d->check.steps, hp_str_text(&d->strategy));
    for (char *line = s.s, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        diag("%s", line);
    }
    hp_str_fini(&s);
}

/* --- what a draw holds --------------------------------------------------------------------------------------------- */

/* How many axes (runs of atoms that fold as one) split dimension k. */
static int runs_of(const hp_mesh *m, const hp_layout *l, int k)
{
    int n = 0;
    for (int i = 0; i < l->n[k]; i += hp_layout_run(m, l, k, i))
        n++;
    return n;
}

/* draw_is_odd says whether some buffer of the plan is cut unevenly (so also where a part is empty) or split twice in one dimension. */
static __attribute__((unused)) bool draw_is_odd(const hp_plan *p)
{
    for (int i = 0; i < p->n_programs; i++)
        for (int b = 0; b < p->program[i].n_buffers; b++) {
            const hp_program *g = &p->program[i];
            const hp_buffer *x = &g->buffer[b];
            int dim;
            if (!hp_layout_even(&g->mesh, &x->layout, &x->shape, &dim))
                return true;
            for (int k = 0; k < x->layout.nd; k++)
                if (runs_of(&g->mesh, &x->layout, k) > 1)
                    return true;
        }
    return false;
}

#endif

/* cases.h -- small graphs in which every operation occurs, with a loss over all that they compute.
 *
 * A differentiable input is `var`: a parameter times an input of ones, so that the whole chain can be checked by finite
 * differences of parameters. Every real output is multiplied by random numbers and summed into the loss. */
#ifndef HP_TESTS_OP_CASES_H
#define HP_TESTS_OP_CASES_H

#include "base/rng.h"
#include "op/interp.h"
#include "op/rows.h"

#include "tap.h"

typedef struct tg {
    hp_graph *g;
    int n_losses, loss[32];
} tg;

#define IN(...) (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int)
#define AT(...)                                                                                    \
    (const hp_attr[]){__VA_ARGS__}, sizeof((const hp_attr[]){__VA_ARGS__}) / sizeof(hp_attr)
#define NONE NULL, 0

static __attribute__((unused)) tg start(const char *name)
{
    return (tg){.g = hp_graph_new(name, hp_graph_ops())};
}

/* dim returns the id of a dimension, new with the given size. */
static __attribute__((unused)) int dim(tg *t, const char *name, int64_t size)
{
    hp_errmsg e;
    int id;
    if (hp_graph_dim(t->g, name, size, &id, &e))
        bail("%s", e.text);
    return id;
}

/* tensor makes a tensor over dimensions named in `dims` ("b s h"), which must exist. */
static __attribute__((unused)) int tensor(tg *t, const char *name, hp_tkind kind, hp_dtype type,
                                          const char *dims)
{
    int ids[HP_MAX_DIMS], nd = 0, id;
    char copy[128], *save = NULL;
    hp_errmsg e;
    snprintf(copy, sizeof copy, "%s", dims);
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        ids[nd] = hp_map_get(&t->g->dim_id, w, -1);
        if (ids[nd++] < 0)
            bail("no dimension %s", w);
    }
    if (hp_graph_tensor(t->g, name, kind, type, nd, ids, &id, &e))
        bail("%s", e.text);
    return id;
}

static __attribute__((unused)) int param(tg *t, const char *name, const char *dims)
{
    int id = tensor(t, name, HP_T_PARAM, HP_F32, dims);
    t->g->tensor[id].init = HP_INIT_NORMAL;
    t->g->tensor[id].init_std = 0.7f;
    return id;
}

static __attribute__((unused)) int input(tg *t, const char *name, hp_dtype type, const char *dims)
{
    return tensor(t, name, HP_T_INPUT, type, dims);
}

/* node adds an operation and returns its first output. */
static __attribute__((unused)) int node(tg *t, const char *op, const char *name, const int *in,
                                        size_t n_in, const hp_attr *attr, size_t n_attr)
{
    hp_errmsg e;
    int id;
    if (hp_graph_add(t->g, op, name, (int)n_in, in, (int)n_attr, attr, &id, &e))
        bail("%s", e.text);
    return t->g->node[id].arg[n_in];
}

static __attribute__((unused)) int named(tg *t, const char *name)
{
    int id = hp_map_get(&t->g->tensor_id, name, -1);
    if (id < 0)
        bail("no tensor %s", name);
    return id;
}

static __attribute__((unused)) int var(tg *t, const char *name, const char *dims)
{
    char one[64], p[64];
    snprintf(one, sizeof one, "%s.one", name);
    snprintf(p, sizeof p, "%s.p", name);
    return node(t, "mul", name, IN(input(t, one, HP_F32, dims), param(t, p, dims)), NONE);
}

/* probe adds the sum of random numbers times `x` to the loss. */
static __attribute__((unused)) void probe(tg *t, int x)
{
    hp_tensor y = t->g->tensor[x];
    char name[128], r[128];
    hp_errmsg e;
    int id;
    snprintf(name, sizeof name, "%s.probe", y.name);
    snprintf(r, sizeof r, "%s.r", y.name);
    if (hp_graph_tensor(t->g, r, HP_T_INPUT, HP_F32, y.nd, y.dim, &id, &e))
        bail("%s", e.text);
    t->loss[t->n_losses++] = node(t, "mulsum", name, IN(x, id), NONE);
}

/* finish sums the probes and differentiates. */
static __attribute__((unused)) hp_graph *finish(tg *t)
{
    hp_errmsg e;
    int loss = t->loss[0];
    for (int i = 1; i < t->n_losses; i += 7) {
        int n = 1, in[8] = {loss};
        char name[32];
        snprintf(name, sizeof name, "loss.%d", i);
        for (int j = i; j < t->n_losses && n < 8; j++)
            in[n++] = t->loss[j];
        loss = node(t, "add", name, in, (size_t)n, NONE);
    }
    if (hp_graph_autodiff(t->g, loss, &e))
        bail("%s", e.text);
    return t->g;
}

/* --- the graphs ------------------------------------------------------------------------------------------- */

static __attribute__((unused)) hp_graph *case_linear(void)
{
    tg t = start("linear");
    dim(&t, "b", 2), dim(&t, "s", 3), dim(&t, "h", 4), dim(&t, "k", 3), dim(&t, "d", 2),
        dim(&t, "v", 5);
    int ids = input(&t, "ids", HP_I32, "b s"), table = param(&t, "table", "v h");
    int x = node(&t, "embedding", "embed", IN(ids, table), NONE);
    int q = node(&t, "linear", "q", IN(x, param(&t, "wq", "h k d")), NONE);
    q = node(&t, "bias", "qb", IN(q, param(&t, "bq", "k d")), NONE);
    int o = node(&t, "linear", "o", IN(q, param(&t, "wo", "k d h")), AT({"contract", 2}));
    o = node(&t, "bias", "ob", IN(o, param(&t, "bo", "h")), NONE);
    int y = node(&t, "add", "resid",
                 IN(x, o, q = node(&t, "scale", "half", IN(o), AT({"by", 0.5}))), NONE);
    probe(&t, node(&t, "linear", "head", IN(y, table), AT({"transpose", 1})));
    probe(&t, y);
    return finish(&t);
}

static __attribute__((unused)) hp_graph *case_pointwise(void)
{
    tg t = start("pointwise");
    dim(&t, "b", 2), dim(&t, "s", 3), dim(&t, "h", 4);
    int x = var(&t, "x", "b s h"), y = var(&t, "y", "b s h");
    probe(&t, node(&t, "gelu", "gelu", IN(x), NONE));
    probe(&t, node(&t, "silu", "silu", IN(x), NONE));
    probe(&t, node(&t, "swiglu", "swiglu", IN(x, y), NONE));
    probe(&t, node(&t, "softmax", "softmax", IN(x), NONE));
    probe(&t, node(&t, "mul", "mul", IN(x, y), NONE));
    probe(&t, node(&t, "mul", "mul.bh", IN(x, var(&t, "bh", "b h")), NONE));
    probe(&t, node(&t, "mul", "mul.scalar", IN(var(&t, "c", ""), y), NONE));
    probe(&t, node(&t, "mul", "mul.param", IN(y, param(&t, "gain", "h")), NONE));
    probe(&t, node(&t, "mulsum", "mulsum", IN(x, y), AT({"keep", 2})));
    probe(&t, node(&t, "dropout", "dropout", IN(x), AT({"p", 0.4})));
    return finish(&t);
}

static __attribute__((unused)) hp_graph *case_norm(void)
{
    tg t = start("norm");
    dim(&t, "b", 2), dim(&t, "s", 3), dim(&t, "h", 6);
    int x = var(&t, "x", "b s h");
    probe(&t, node(&t, "rmsnorm", "rms", IN(x, param(&t, "rms.w", "h")), AT({"eps", 1e-5})));
    probe(&t, node(&t, "layernorm", "ln", IN(x, param(&t, "ln.w", "h"), param(&t, "ln.b", "h")),
                   AT({"eps", 1e-5})));
    probe(&t, node(&t, "layernorm", "plain", IN(x, param(&t, "plain.w", "h")), NONE));
    return finish(&t);
}

static __attribute__((unused)) hp_graph *case_shape(void)
{
    tg t = start("shape");
    int b = dim(&t, "b", 2), s = dim(&t, "s", 3), k = dim(&t, "k", 3), d = dim(&t, "d", 4);
    int kd = dim(&t, "kd", 12), d1 = dim(&t, "d1", 1), d3 = dim(&t, "d3", 3), d7 = dim(&t, "d7", 7);
    int x = var(&t, "x", "b s k d"), y = var(&t, "y", "b s d3");
    int merged = node(&t, "reshape", "merge", IN(x), AT({"d0", b}, {"d1", s}, {"d2", kd}));
    probe(&t, merged);
    probe(&t, node(&t, "reshape", "cut", IN(merged),
                   AT({"d0", b}, {"d1", s}, {"d2", d}, {"d3", d3}, {"d4", d1})));
    probe(&t, node(&t, "transpose", "turn", IN(x), AT({"p0", 1}, {"p1", 3}, {"p2", 0}, {"p3", 2})));
    int part = node(&t, "split", "split", IN(x), AT({"d0", d1}, {"d1", d3}));
    probe(&t, part);
    probe(&t, named(&t, "split.1"));
    node(&t, "split", "unused", IN(x), AT({"d0", d3}, {"d1", d1}));
    probe(&t, named(&t, "unused.1"));
    probe(&t, node(&t, "concat", "concat", IN(x, y), AT({"d", d7})));
    probe(&t, node(&t, "slice", "slice", IN(x), AT({"d", d3}, {"at", 1})));
    (void)k;
    return finish(&t);
}

static __attribute__((unused)) hp_graph *case_attention(bool causal, bool docs)
{
    tg t = start("attention");
    dim(&t, "b", 2), dim(&t, "s", 5), dim(&t, "k", 2), dim(&t, "g", 3), dim(&t, "d", 4),
        dim(&t, "u", 3);
    int pos = input(&t, "pos", HP_I32, "b s"), doc = docs ? input(&t, "docs", HP_I32, "b s") : -1;
    int q = var(&t, "q", docs ? "b s k d" : "b s k g d"), k = var(&t, "k", "b s k d"),
        v = var(&t, "v", "b s k u");
    int qr = node(&t, "rope", "qr", IN(q, pos), AT({"theta", 100}));
    int kr = node(&t, "rope", "kr", IN(k, pos), AT({"theta", 100}));
    if (docs)
        probe(&t, node(&t, "attention", "core", IN(qr, kr, v, pos, pos, doc, doc),
                       AT({"causal", causal}, {"scale", 0.7})));
    else
        probe(&t, node(&t, "attention", "core", IN(qr, kr, v, pos, pos), AT({"causal", causal})));
    return finish(&t);
}

/* Two halves of the keys merged: forward only, because a merge stands in expansions alone. */
static __attribute__((unused)) hp_graph *case_merge(void)
{
    tg t = start("merge");
    dim(&t, "b", 2), dim(&t, "s", 3), dim(&t, "k", 2), dim(&t, "u", 4);
    int o1 = var(&t, "o1", "b s k u"), o2 = var(&t, "o2", "b s k u");
    int l1 = var(&t, "l1", "b s k"), l2 = var(&t, "l2", "b s k");
    node(&t, "attention_merge", "merge", IN(o1, l1, o2, l2), NONE);
    return t.g;
}

static __attribute__((unused)) hp_graph *case_loss(void)
{
    tg t = start("loss");
    dim(&t, "b", 2), dim(&t, "s", 3), dim(&t, "v", 7), dim(&t, "micro", 2);
    int x = var(&t, "logits", "b s v"), targets = input(&t, "targets", HP_I32, "b s");
    int all = input(&t, "targets.all", HP_I32, "micro b s");
    int seed = node(&t, "recip", "seed", IN(node(&t, "count", "count", IN(all), NONE)), NONE);
    int stats = node(&t, "ce_stats", "stats", IN(x, targets), AT({"valid", 6}));
    int loss = node(&t, "ce_loss", "ce", IN(stats, targets, seed), NONE);
    node(&t, "sequences", "share", IN(all), NONE);
    t.loss[t.n_losses++] = loss;
    t.loss[t.n_losses++] =
        node(&t, "scale", "twice", IN(node(&t, "ce_loss", "ce2", IN(stats, targets, seed), NONE)),
             AT({"by", 2}));
    return finish(&t);
}

typedef struct moe_options {
    bool sigmoid, normalise, bias, groups;
    double capacity;
} moe_options;

static __attribute__((unused)) hp_graph *case_moe(moe_options o)
{
    tg t = start("moe");
    dim(&t, "b", 2), dim(&t, "s", 4), dim(&t, "h", 3), dim(&t, "f", 5), dim(&t, "micro", 1);
    int e = dim(&t, "e", 6), k = dim(&t, "top", 2);
    int x = var(&t, "x", "b s h"), all = input(&t, "targets.all", HP_I32, "micro b s");
    int logits = node(&t, "linear", "logits", IN(x, param(&t, "gate", "h e")), NONE);
    int bias = o.bias ? tensor(&t, "bias", HP_T_BUFFER, HP_F32, "e") : -1;
    int idx = node(&t, "router", "router", IN(logits, bias),
                   AT({"d", k}, {"sigmoid", o.sigmoid}, {"normalise", o.normalise}, {"scale", 1.5},
                      {"groups", o.groups ? 3 : 1}, {"top_groups", o.groups ? 2 : 1},
                      {"capacity", o.capacity}));
    int weights = named(&t, "router.weights"),
        share = node(&t, "sequences", "share", IN(all), NONE);
    int aux = node(&t, "aux_loss", "aux", IN(named(&t, "router.f"), named(&t, "router.p"), share),
                   AT({"coef", 0.8}));
    int xe = node(&t, "dispatch", "dispatch", IN(x, idx), AT({"d", e}));
    int up = node(&t, "grouped", "up", IN(xe, param(&t, "up.w", "e h f"), idx), NONE);
    int gate = node(&t, "grouped", "g", IN(xe, param(&t, "g.w", "e h f"), idx), NONE);
    int act = node(&t, "swiglu", "act", IN(gate, up), NONE);
    act = node(&t, "add", "sum", IN(act, node(&t, "silu", "act2", IN(up), NONE)), NONE);
    int ye = node(&t, "grouped", "down", IN(act, param(&t, "down.w", "e f h"), idx), NONE);
    probe(&t, node(&t, "combine", "combine", IN(ye, idx, weights), NONE));
    t.loss[t.n_losses++] = aux;
    t.loss[t.n_losses++] = node(&t, "scale", "aux2",
                                IN(node(&t, "aux_loss", "aux.half",
                                        IN(named(&t, "router.f"), named(&t, "router.p")), NONE)),
                                AT({"by", 0.5}));
    return finish(&t);
}

enum { N_CASES = 14 };

static __attribute__((unused)) hp_graph *build_case(int i)
{
    switch (i) {
    case 0:
        return case_linear();
    case 1:
        return case_pointwise();
    case 2:
        return case_norm();
    case 3:
        return case_shape();
    case 4:
        return case_attention(true, false);
    case 5:
        return case_attention(false, false);
    case 6:
        return case_attention(true, true);
    case 7:
        return case_merge();
    case 8:
        return case_loss();
    case 9:
        return case_moe((moe_options){.normalise = true});
    case 10:
        return case_moe(
            (moe_options){.sigmoid = true, .normalise = true, .bias = true, .groups = true});
    case 11:
        return case_moe((moe_options){.bias = true});
    case 12:
        return case_moe((moe_options){.normalise = true, .capacity = 0.6});
    default:
        return case_moe(
            (moe_options){.sigmoid = true, .normalise = true, .bias = true, .capacity = 0.6});
    }
}

/* fill is the data of all cases: ones, positions, documents of 2, ids below 5, targets of which some are ignored, normal numbers. */
static __attribute__((unused)) hp_err fill(void *ctx, const char *name, int64_t step, int64_t micro,
                                           const hp_operand *box, hp_errmsg *e)
{
    (void)ctx, (void)e;
    uint64_t stream = hp_rng_key(hp_hash_str(name[0] == 't' ? "targets" : name), (uint64_t)step);
    int64_t n = 1, s = box->nd ? box->len[box->nd - 1] : 1;
    for (int d = 0; d < box->nd; d++)
        n *= box->len[d];
    bool all = strcmp(name, "targets.all") == 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t u = hp_rng_u64(stream, (uint64_t)(all ? i : i + (micro > 0 ? micro : 0) * n));
        if (box->dtype == HP_F32)
            ((float *)box->data)[i] = strstr(name, ".one") ? 1 : hp_rng_normal(stream, (uint64_t)i);
        else if (name[0] == 't')
            ((int32_t *)box->data)[i] = u % 4 == 0 ? -100 : (int32_t)(u / 4 % 6);
        else
            ((int32_t *)box->data)[i] = name[0] == 'p'   ? (int32_t)(i % s)
                                        : name[0] == 'd' ? (int32_t)(i % s / 2)
                                                         : (int32_t)(u % 5);
    }
    return HP_OK;
}

#endif

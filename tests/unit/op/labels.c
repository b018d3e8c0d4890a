/* Every operation on boxes, driven by its labels alone: each node of the small graphs (forward and gradients) is run with every label that
 * may be split cut in two (also unevenly, also empty), and what the parts give must be the whole: side by side where an output has the label,
 * reduced as the output says where it has not. Linear groups must be linear, and accumulation, sharing of bytes and bf16 storage
 * must not change a result. With both sets of kernels. */
#include "cases.h"

#include "kern/num.h"
#include "kern/xent.h"

typedef struct store {
    hp_graph *g;
    hp_operand *value; /* of every tensor, whole; data owned */
    const char *bad;   /* the first thing that is wrong with a node, NULL */
    char text[256];
} store;

static void complain(store *s, const char *what, double by)
{
    if (s->bad)
        return;
    snprintf(s->text, sizeof s->text, "%s (off by %g)", what, by);
    s->bad = s->text;
}

static int64_t product(const hp_operand *o)
{
    int64_t n = 1;
    for (int d = 0; d < o->nd; d++)
        n *= o->len[d];
    return n;
}

static bool is_routed(const store *s, int t)
{
    return s->g->tensor[t].route >= 0;
}

static int64_t count(const store *s, int t, const hp_operand *o)
{
    return is_routed(s, t) ? o->rows * o->len[o->nd - 1] : product(o);
}

static void keep(void *ctx, int t, int64_t step, int64_t micro, const hp_operand *o)
{
    store *s = ctx;
    (void)step;
    if (micro > 0)
        return;
    size_t bytes = (size_t)count(s, t, o) * (size_t)hp_dtype_bytes(o->dtype);
    s->value[t] = *o;
    s->value[t].data = malloc(bytes + 1);
    memcpy(s->value[t].data, o->data, bytes);
}

/* --- boxes ------------------------------------------------------------------------------------------------ */

/* Whether row (b, s, e) of a routed tensor exists. */
static bool has_row(const hp_operand *idx, int64_t b, int64_t s, int64_t e)
{
    for (int64_t j = 0; j < idx->len[2]; j++)
        if (((const int32_t *)idx->data)[(b * idx->len[1] + s) * idx->len[2] + j] == e)
            return true;
    return false;
}

static bool inside(const hp_operand *box, int d, int64_t i)
{
    return i >= box->lo[d] && i < box->lo[d] + box->len[d];
}

/* Copies the rows of a routed tensor that lie in `box`; with a NULL target it counts them. */
static int64_t cut_rows(const store *s, int t, const hp_operand *box, void *to)
{
    const hp_operand *x = &s->value[t], *idx = &s->value[s->g->tensor[t].route];
    int64_t rows = 0, at = 0, width = hp_dtype_bytes(x->dtype);
    for (int64_t e = 0; e < x->len[2]; e++)
        for (int64_t b = 0; b < x->len[0]; b++)
            for (int64_t q = 0; q < x->len[1]; q++) {
                if (!has_row(idx, b, q, e))
                    continue;
                bool in = inside(box, 0, b) && inside(box, 1, q) && inside(box, 2, e);
                if (in && to && box->len[3])
                    memcpy((char *)to + rows * box->len[3] * width,
                           (char *)x->data + (at * x->len[3] + box->lo[3]) * width,
                           (size_t)(box->len[3] * width));
                rows += in;
                at++;
            }
    return rows;
}

static void cut_dense(const hp_operand *x, const hp_operand *box, void *to)
{
    int64_t width = hp_dtype_bytes(x->dtype), n = product(box), at[HP_MAX_DIMS] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t from = 0;
        for (int d = 0; d < x->nd; d++)
            from = from * x->len[d] + box->lo[d] + at[d];
        memcpy((char *)to + i * width, (char *)x->data + from * width, (size_t)width);
        for (int d = x->nd - 1; d >= 0 && ++at[d] == box->len[d]; d--)
            at[d] = 0;
    }
}

/* The part of operand i of a node where label l is lo .. lo+len-1 (l = -1: whole); the data is new, for outputs stale. */
static hp_operand part(const store *s, const hp_node *n, int i, int l, int64_t lo, int64_t len)
{
    int t = n->arg[i];
    hp_operand box = s->value[t];
    for (int d = 0; d < box.nd; d++)
        if (n->label[i][d] == l) {
            box.lo[d] = lo;
            box.len[d] = len;
        }
    if (is_routed(s, t))
        box.rows = cut_rows(s, t, &box, NULL);
    int64_t bytes = count(s, t, &box) * hp_dtype_bytes(box.dtype);
    box.data = bytes ? malloc((size_t)bytes) : NULL;
    if (bytes && is_routed(s, t))
        cut_rows(s, t, &box, box.data);
    else if (bytes)
        cut_dense(&s->value[t], &box, box.data);
    return box;
}

static bool carries(const store *s, const hp_node *n, int i, int l)
{
    for (int d = 0; d < s->g->tensor[n->arg[i]].nd; d++)
        if (n->label[i][d] == l)
            return true;
    return false;
}

/* --- calls ------------------------------------------------------------------------------------------------ */

static hp_call make_call(const store *s, const hp_node *n, int l, int64_t lo, int64_t len,
                         hp_kernels kernels)
{
    hp_call c = {.name = n->name,
                 .n_in = n->n_in,
                 .n_out = n->n_out,
                 .n_attrs = n->n_attrs,
                 .attr = n->attr,
                 .kernels = kernels,
                 .threads = 2,
                 .seed = 7,
                 .micro = n->phase == HP_P_INIT ? -1 : 0};
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        c.arg[i] = n->arg[i] < 0 ? (hp_operand){.nd = -1} : part(s, n, i, l, lo, len);
        if (i >= n->n_in && c.arg[i].data)
            memset(c.arg[i].data, 0x7f,
                   (size_t)(count(s, n->arg[i], &c.arg[i]) * hp_dtype_bytes(c.arg[i].dtype)));
    }
    return c;
}

/* Runs and returns the matrix flops counted. */
static double run(store *s, const hp_node *n, hp_call *c)
{
    const hp_op *op = hp_op_find(s->g->ops[n->kind]->name);
    hp_op_work w = {0};
    hp_errmsg e;
    op->work(c, &w);
    c->scratch = aligned_alloc(64, ((size_t)w.scratch_bytes + 127) / 64 * 64);
    if (op->run(c, &e))
        complain(s, e.text, 0);
    free(c->scratch);
    if (!(w.bytes >= 0 && w.bytes < 1e6 && w.other_flops >= 0) ||
        (op->matmul && !(w.matmul_flops >= 0)))
        complain(s, "work is not a count", w.bytes);
    return w.matmul_flops;
}

static void drop(hp_call *c)
{
    for (int i = 0; i < c->n_in + c->n_out; i++)
        if (c->arg[i].nd >= 0)
            free(c->arg[i].data);
}

/* Largest distance of a from b, relative to the largest |b|. */
static double distance(const store *s, int t, const hp_operand *a, const hp_operand *b)
{
    double worst = 0, largest = 1e-2;
    hp_num x = {a->data, (int)a->dtype}, y = {b->data, (int)b->dtype};
    for (int64_t i = 0; i < count(s, t, b); i++) {
        double u = (double)hp_num_get(x, i), v = (double)hp_num_get(y, i);
        if (u == v)
            continue;
        worst = isfinite(u) && isfinite(v) ? fmax(worst, fabs(u - v)) : INFINITY;
        largest = fmax(largest, fabs(v));
    }
    return worst / largest;
}

static void compare(store *s, int t, const hp_operand *a, const hp_operand *b, double within,
                    const char *what)
{
    double by = distance(s, t, a, b);
    if (a->rows != b->rows || !(by <= (b->dtype == HP_I32 ? 0 : within)))
        complain(s, what, by);
}

/* a := a reduced with b. */
static void reduce(store *s, int t, hp_reduce how, hp_operand *a, const hp_operand *b)
{
    float *x = a->data;
    const float *y = b->data;
    if (how == HP_RED_LSE)
        hp_xent_merge(product(a) / 3, x, y, x);
    else if (how == HP_RED_SUM)
        for (int64_t i = 0; i < count(s, t, a); i++)
            x[i] += y[i];
    else
        complain(s, "a label is contracted, but the output says no reduction", 0);
}

/* --- properties ------------------------------------------------------------------------------------------- */

static int64_t label_size(const store *s, const hp_node *n, int l)
{
    for (int i = 0; i < n->n_in + n->n_out; i++)
        for (int d = 0; n->arg[i] >= 0 && d < s->g->tensor[n->arg[i]].nd; d++)
            if (n->label[i][d] == l)
                return s->value[n->arg[i]].len[d];
    return -1;
}

static void check_cut(store *s, const hp_node *n, int l, int64_t at, int64_t size,
                      hp_kernels kernels)
{
    char what[128];
    snprintf(what, sizeof what, "label %d of %lld cut at %lld", l, (long long)size, (long long)at);
    hp_call a = make_call(s, n, l, 0, at, kernels), b = make_call(s, n, l, at, size - at, kernels);
    hp_call whole = make_call(s, n, -1, 0, 0, kernels);
    double flops = run(s, n, &a) + run(s, n, &b);
    if (flops != run(s, n, &whole))
        complain(s, "the parts have not the matrix flops of the whole", flops);
    for (int i = n->n_in; i < n->n_in + n->n_out && !s->bad; i++) {
        if (carries(s, n, i, l)) {
            hp_operand wa = part(s, n, i, l, 0, at), wb = part(s, n, i, l, at, size - at);
            compare(s, n->arg[i], &a.arg[i], &wa, 1e-4, what);
            compare(s, n->arg[i], &b.arg[i], &wb, 1e-4, what);
            free(wa.data), free(wb.data);
        } else {
            reduce(s, n->arg[i], n->reduce[i - n->n_in], &a.arg[i], &b.arg[i]);
            compare(s, n->arg[i], &a.arg[i], &s->value[n->arg[i]], 1e-4, what);
        }
    }
    drop(&a), drop(&b), drop(&whole);
}

static void check_labels(store *s, const hp_node *n, hp_kernels kernels)
{
    for (int l = 0; l < n->n_labels; l++) {
        int64_t size = label_size(s, n, l);
        if (n->blocked[l] || size < 0)
            continue;
        check_cut(s, n, l, 0, size, kernels);
        check_cut(s, n, l, (size + 2) / 3, size, kernels);
        check_cut(s, n, l, size, size, kernels);
    }
}

/* The inputs of the group as a sum of two random parts give two outputs whose sum is the whole. */
static void check_group(store *s, const hp_node *n, uint32_t group, hp_rng *rng)
{
    hp_call a = make_call(s, n, -1, 0, 0, HP_KERN_REFERENCE),
            b = make_call(s, n, -1, 0, 0, HP_KERN_REFERENCE);
    for (int i = 0; i < n->n_in; i++)
        for (int64_t j = 0; group >> i & 1 && j < count(s, n->arg[i], &a.arg[i]); j++) {
            float x = ((float *)a.arg[i].data)[j], y = (float)(hp_rng_below(rng, 200) - 100) / 50;
            ((float *)a.arg[i].data)[j] = y;
            ((float *)b.arg[i].data)[j] = x - y;
        }
    run(s, n, &a), run(s, n, &b);
    for (int i = n->n_in; i < n->n_in + n->n_out && !s->bad; i++) {
        reduce(s, n->arg[i], HP_RED_SUM, &a.arg[i], &b.arg[i]);
        compare(s, n->arg[i], &a.arg[i], &s->value[n->arg[i]], 1e-4,
                "a linear group is not linear");
    }
    drop(&a), drop(&b);
}

static void check_accumulate(store *s, const hp_node *n, hp_kernels kernels)
{
    hp_call c = make_call(s, n, -1, 0, 0, kernels);
    int t = n->arg[n->n_in];
    float *y = c.arg[n->n_in].data;
    for (int64_t i = 0; i < product(&c.arg[n->n_in]); i++)
        y[i] = 0.5f * (float)(i % 5);
    c.accumulate = true;
    run(s, n, &c);
    for (int64_t i = 0; i < product(&c.arg[n->n_in]); i++)
        y[i] -= 0.5f * (float)(i % 5);
    compare(s, t, &c.arg[n->n_in], &s->value[t], 1e-4, "accumulating does not add");
    drop(&c);
}

static void check_in_place(store *s, const hp_node *n, hp_kernels kernels)
{
    hp_call c = make_call(s, n, -1, 0, 0, kernels);
    free(c.arg[n->n_in].data);
    c.arg[n->n_in].data = c.arg[0].data;
    run(s, n, &c);
    compare(s, n->arg[n->n_in], &c.arg[n->n_in], &s->value[n->arg[n->n_in]], 1e-4,
            "in place differs");
    c.arg[n->n_in].data = NULL;
    drop(&c);
}

/* bf16 wherever a strategy may store bf16. */
static void check_bf16(store *s, const hp_node *n, hp_kernels kernels)
{
    hp_call c = make_call(s, n, -1, 0, 0, kernels);
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const hp_tensor *t = n->arg[i] < 0 ? NULL : &s->g->tensor[n->arg[i]];
        if (!t || t->dtype != HP_F32 || t->wide ||
            !(t->kind == HP_T_ACT || t->kind == HP_T_GRAD || t->kind == HP_T_PARAM))
            continue;
        uint16_t *to = malloc((size_t)count(s, n->arg[i], &c.arg[i]) * sizeof *to + 1);
        for (int64_t j = 0; j < count(s, n->arg[i], &c.arg[i]); j++)
            to[j] = hp_f32_bf16(((float *)c.arg[i].data)[j]);
        free(c.arg[i].data);
        c.arg[i].data = to;
        c.arg[i].dtype = HP_BF16;
    }
    run(s, n, &c);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++)
        compare(s, n->arg[i], &c.arg[i], &s->value[n->arg[i]], c.arg[i].nd ? 0.05 : 0.2,
                "bf16 is far from f32"); /* scalars cancel */
    drop(&c);
}

static void check_node(store *s, const hp_node *n, hp_rng *rng)
{
    const hp_op *op = hp_op_find(s->g->ops[n->kind]->name);
    s->bad = NULL;
    for (hp_kernels k = HP_KERN_REFERENCE; k <= HP_KERN_BEST; k++) {
        check_labels(s, n, k);
        if (op->accumulates && n->phase == HP_P_WGRAD)
            check_accumulate(s, n, k);
        if (op->in_place)
            check_in_place(s, n, k);
        if (strcmp(op->graph.name, "router")) /* near ties it may choose otherwise */
            check_bf16(s, n, k);
    }
    for (int i = 0; i < n->n_groups; i++)
        check_group(s, n, n->group[i], rng);
    ok(!s->bad, "%s: %s (%s) on boxes%s%s", s->g->name, n->name, op->graph.name, s->bad ? ": " : "",
       s->bad ? s->bad : "");
}

static void check_case(int i, bool *seen)
{
    store s = {.g = build_case(i)};
    s.value = calloc((size_t)s.g->n_tensors, sizeof *s.value);
    hp_interp *it = hp_interp_new(
        &(hp_interp_in){.g = s.g, .seed = 7, .fill = fill, .tap = keep, .tap_ctx = &s});
    hp_errmsg e;
    if (hp_interp_gradients(it, 0, &e))
        bail("%s", e.text);
    for (int t = 0; t < s.g->n_tensors; t++)
        if (hp_interp_param(it, t)) {
            const hp_tensor *x = &s.g->tensor[t];
            hp_operand o = {.data = hp_interp_param(it, t), .nd = x->nd};
            for (int d = 0; d < x->nd; d++)
                o.len[d] = o.full[d] = s.g->dim[x->dim[d]].size;
            keep(&s, t, 0, 0, &o);
        }
    hp_rng rng = {hp_rng_key(11, (uint64_t)i), 0};
    for (int k = 0; k < s.g->n_nodes; k++) {
        check_node(&s, &s.g->node[k], &rng);
        seen[s.g->node[k].kind] = true;
    }
    hp_interp_free(it);
    for (int t = 0; t < s.g->n_tensors; t++)
        free(s.value[t].data);
    free(s.value);
    hp_graph_free(s.g);
}

int main(void)
{
    bool seen[256] = {false};
    for (int i = 0; i < N_CASES; i++)
        check_case(i, seen);
    for (int k = 0; hp_ops[k]; k++)
        if (hp_ops[k]->graph.infer)
            ok(seen[k], "the operation %s occurs", hp_ops[k]->graph.name);
    return done_testing();
}

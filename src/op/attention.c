/* attention.c -- grouped attention over positions: q's sequence may be split, keys and values are whole (or circulate).
 *
 * q [b s k g d] may come without g. Operand order: q, k, v, pos_q, pos_k, doc_q?, doc_k?. */
#include "kern/attention.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <math.h>

enum { Q, K, V, POS_Q, POS_K, DOC_Q, DOC_K, N_FWD, O = N_FWD, LSE, DY, N_BWD };

static hp_err check_inputs(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_nd(g, n, Q, 4, 5, "batch seq heads (group) head", e);
    for (int i = K; i <= V && !err; i++)
        err = hp_infer_nd(g, n, i, 4, 4, "batch seq heads head", e);
    for (int i = Q; i <= V && !err; i++)
        err = hp_infer_dtype(g, n, i, false, e);
    for (int i = POS_Q; i <= DOC_K && !err; i++)
        if (hp_infer_has(n, i)) {
            err = hp_infer_nd(g, n, i, 2, 2, "batch seq", e);
            if (!err)
                err = hp_infer_dtype(g, n, i, true, e);
        }
    if (!err && hp_infer_has(n, DOC_Q) != hp_infer_has(n, DOC_K))
        err =
            hp_fail(e, HP_EINPUT,
                    "%s: attention takes documents for queries and keys, or for neither", n->name);
    return err;
}

/* Labels of the forward operands: b s k g d for q, b t k d and b t k u for keys and values. */
static void label_inputs(hp_graph *g, hp_node *n)
{
    int q_nd = hp_infer_in(g, n, Q).nd;
    hp_label_fresh(g, n, Q);
    int t = hp_label_new(n), u = hp_label_new(n);
    for (int i = K; i <= V; i++) {
        hp_label_copy(n, i, 0, Q, 0, 1);
        n->label[i][1] = (int8_t)t;
        hp_label_copy(n, i, 2, Q, 2, 1);
        n->label[i][3] = (int8_t)(i == K ? n->label[Q][q_nd - 1] : u);
        hp_label_block(n, i, 1);
        hp_label_block(n, i, 3);
    }
    for (int i = POS_Q; i <= DOC_K; i++)
        if (hp_infer_has(n, i))
            hp_label_copy(n, i, 0, i == POS_Q || i == DOC_Q ? Q : K, 0, 2);
}

static hp_err attention_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, POS_K + 1, N_FWD, e);
    if (!err)
        err = check_inputs(g, n, e);
    if (err)
        return err;
    label_inputs(g, n);
    hp_tensor q = hp_infer_in(g, n, Q), v = hp_infer_in(g, n, V);
    int out;
    q.dim[q.nd - 1] = v.dim[3];
    err = hp_node_output(g, n, NULL, q.dtype, q.nd, q.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, Q, 0, q.nd - 1);
    hp_label_copy(n, out, q.nd - 1, V, 3, 1);
    err = hp_node_output(g, n, "lse", HP_F32, q.nd - 1, q.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, Q, 0, q.nd - 1);
    hp_infer_wide(g, n, out);
    return HP_OK;
}

static hp_err attention_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int in[N_BWD], of[] = {Q, K, V}, node;
    for (int i = 0; i < N_FWD; i++)
        in[i] = hp_infer_has(n, i) ? n->arg[i] : -1;
    in[O] = n->arg[n->n_in];
    in[LSE] = n->arg[n->n_in + 1];
    in[DY] = hp_grad_of(ctx, 0);
    hp_attr attr[HP_MAX_ATTRS];
    for (int i = 0; i < n->n_attrs; i++)
        attr[i] = n->attr[i];
    hp_err err =
        hp_grad_node(ctx, "attention_dx", "dx", false, N_BWD, in, n->n_attrs, attr, of, &node, e);
    for (int i = Q; i <= V && !err; i++)
        hp_grad_give(ctx, i, g->node[node].arg[N_BWD + i]);
    return err;
}

static hp_attention_shape call_shape(const hp_call *c)
{
    const hp_operand *q = hp_call_in(c, Q), *k = hp_call_in(c, K), *v = hp_call_in(c, V);
    hp_attention_shape a = {.b = q->len[0],
                            .s = q->len[1],
                            .t = k->len[1],
                            .k = q->len[2],
                            .g = q->nd == 5 ? q->len[3] : 1,
                            .d = k->len[3],
                            .dv = v->len[3]};
    a.scale = (float)hp_call_attr(c, "scale", a.d ? 1 / sqrt((double)a.d) : 1);
    a.causal = hp_call_attr(c, "causal", 0) != 0;
    a.pos_q = hp_call_in(c, POS_Q)->data;
    a.pos_k = hp_call_in(c, POS_K)->data;
    a.doc_q = hp_call_has(c, DOC_Q) ? hp_call_in(c, DOC_Q)->data : NULL;
    a.doc_k = hp_call_has(c, DOC_K) ? hp_call_in(c, DOC_K)->data : NULL;
    return a;
}

static hp_err attention_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_attention_shape a = call_shape(c);
    HP_KERNEL(c, hp_attention, &a, hp_in_num(c, Q), hp_in_num(c, K), hp_in_num(c, V),
              hp_out_num(c, 0), hp_call_out(c, 1)->data);
    return HP_OK;
}

/* Matrix flops 2 per query, key and contracted or produced element; half of them where causal. */
static void add_flops(const hp_attention_shape *a, double per_pair, hp_op_work *w)
{
    double pairs = (double)a->b * (double)a->s * (double)a->t * (double)a->k * (double)a->g *
                   (a->causal ? 0.5 : 1);
    w->matmul_flops += 2 * pairs * per_pair;
    w->other_flops += 5 * pairs; /* scale, max, exp, sum, rescale */
}

static void attention_work(const hp_call *c, hp_op_work *w)
{
    hp_attention_shape a = call_shape(c);
    hp_work_bytes(c, 0, w);
    add_flops(&a, (double)(a.d + a.dv), w);
}

static hp_err attention_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, POS_K + 1, N_BWD, e);
    if (!err)
        err = check_inputs(g, n, e);
    if (err)
        return err;
    label_inputs(g, n);
    int nd = hp_infer_in(g, n, Q).nd, out;
    for (int i = O; i <= DY; i++)
        hp_label_copy(n, i, 0, Q, 0, nd - 1);
    hp_label_copy(n, O, nd - 1, V, 3, 1);
    hp_label_copy(n, DY, nd - 1, V, 3, 1);
    for (int i = Q; i <= V && !err; i++) {
        err = hp_infer_like(g, n, i, i == Q ? NULL : i == K ? "k" : "v", &out, e);
        n->reduce[i] = i == Q ? HP_RED_NONE : HP_RED_SUM;
    }
    hp_infer_group(n, 1u << DY);
    return err;
}

static hp_err attention_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_attention_shape a = call_shape(c);
    hp_num q = hp_in_num(c, Q), k = hp_in_num(c, K), v = hp_in_num(c, V), o = hp_in_num(c, O),
           dy = hp_in_num(c, DY);
    const float *lse = hp_call_in(c, LSE)->data;
    if (c->kernels == HP_KERN_REFERENCE)
        hp_attention_dx_ref(&a, q, k, v, o, lse, dy, hp_out_num(c, 0), hp_out_num(c, 1),
                            hp_out_num(c, 2));
    else
        hp_attention_dx(&a, q, k, v, o, lse, dy, hp_out_num(c, 0), hp_out_num(c, 1),
                        hp_out_num(c, 2), c->scratch, c->threads);
    return HP_OK;
}

static void attention_dx_work(const hp_call *c, hp_op_work *w)
{
    hp_attention_shape a = call_shape(c);
    hp_work_bytes(c, 0, w);
    add_flops(&a, (double)(3 * a.d + 2 * a.dv), w);
    w->scratch_bytes = (int64_t)hp_attention_dx_scratch(&a);
}

static hp_err merge_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 4, 4, e);
    if (err)
        return err;
    int nd = hp_infer_in(g, n, 0).nd, out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 2, 0, 0, 0, nd);
    hp_label_block(n, 0, nd - 1); /* lse is the same for all of them: neither split nor partial */
    for (int i = 1; i < 4; i += 2) {
        hp_label_copy(n, i, 0, 0, 0, nd - 1);
        hp_infer_wide(g, n, i);
    }
    err = hp_infer_like(g, n, 0, NULL, &out, e);
    if (!err)
        err = hp_infer_like(g, n, 1, "lse", &out, e);
    return err;
}

static hp_err merge_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *o = hp_call_in(c, 0);
    HP_KERNEL(c, hp_attention_merge, hp_box_product(o, 0, o->nd - 1), o->len[o->nd - 1],
              hp_in_num(c, 0), hp_call_in(c, 1)->data, hp_in_num(c, 2), hp_call_in(c, 3)->data,
              hp_out_num(c, 0), hp_call_out(c, 1)->data);
    return HP_OK;
}

const hp_op hp_op_attention = {{"attention", attention_infer, attention_grad},
                               .matmul = true,
                               .work = attention_work,
                               .run = attention_run};
const hp_op hp_op_attention_dx = {{"attention_dx", attention_dx_infer, NULL},
                                  .matmul = true,
                                  .work = attention_dx_work,
                                  .run = attention_dx_run};
const hp_op hp_op_attention_merge = {
    {"attention_merge", merge_infer, NULL}, .work = hp_work_pointwise, .run = merge_run};

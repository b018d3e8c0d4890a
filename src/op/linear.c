/* linear.c -- contraction of trailing dimensions with a weight; all lead dimensions are the rows of one GEMM. */
#include "kern/gemm.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

/* How the dimensions fall: x = [lead, contracted], weight = contracted and outputs in one order or the other. */
typedef struct split {
    int lead, contract, outs;
    bool transpose;
    int w_contract, w_outs; /* where they start in the weight */
} split;

static bool split_dims(int x_nd, int w_nd, int contract, bool transpose, split *s)
{
    *s = (split){x_nd - contract,
                 contract,
                 w_nd - contract,
                 transpose,
                 transpose ? w_nd - contract : 0,
                 transpose ? 0 : contract};
    return contract >= 1 && s->lead >= 0 && s->outs >= 1 && s->lead + s->outs <= HP_MAX_DIMS;
}

static bool node_split(const hp_node *n, int x_nd, int w_nd, split *s)
{
    return split_dims(x_nd, w_nd, (int)hp_infer_attr(n, "contract", 1),
                      hp_infer_attr(n, "transpose", 0) != 0, s);
}

static hp_err linear_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    for (int i = 0; i < 2 && !err; i++)
        err = hp_infer_dtype(g, n, i, false, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0), w = hp_infer_in(g, n, 1);
    split s;
    if (!node_split(n, x.nd, w.nd, &s))
        return hp_infer_refuse(g, n, 1,
                               "its dimensions do not divide into contracted ones and outputs", e);
    hp_label_fresh(g, n, 0);
    hp_label_fresh(g, n, 1);
    hp_label_copy(n, 1, s.w_contract, 0, s.lead, s.contract);
    int dim[HP_MAX_DIMS], out;
    for (int d = 0; d < s.lead; d++)
        dim[d] = x.dim[d];
    for (int d = 0; d < s.outs; d++)
        dim[s.lead + d] = w.dim[s.w_outs + d];
    err = hp_node_output(g, n, NULL, x.dtype, s.lead + s.outs, dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, s.lead);
    hp_label_copy(n, out, s.lead, 1, s.w_outs, s.outs);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err linear_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int dy = hp_grad_of(ctx, 0);
    split s;
    node_split(n, g->tensor[n->arg[0]].nd, g->tensor[n->arg[1]].nd, &s);
    hp_attr dx[] = {{"contract", s.outs}, {"transpose", !s.transpose}};
    hp_attr dw[] = {{"contract", s.contract}, {"transpose", s.transpose}};
    hp_err err =
        hp_infer_emit(g, ctx, "linear", "dx", false, 2, (int[]){dy, n->arg[1]}, 2, dx, 0, e);
    if (!err)
        err =
            hp_infer_emit(g, ctx, "linear_dw", "dw", true, 2, (int[]){n->arg[0], dy}, 2, dw, 1, e);
    return err;
}

/* The GEMM of a call: m rows, k contracted, n outputs. */
typedef struct shape {
    int64_t m, n, k;
    bool transpose;
} shape;

static shape call_shape(const hp_call *c, const hp_operand *x, const hp_operand *w)
{
    split s;
    split_dims(x->nd, w->nd, (int)hp_call_attr(c, "contract", 1),
               hp_call_attr(c, "transpose", 0) != 0, &s);
    return (shape){hp_box_product(x, 0, s.lead), hp_box_product(w, s.w_outs, s.w_outs + s.outs),
                   hp_box_product(x, s.lead, x->nd), s.transpose};
}

static hp_err linear_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    shape s = call_shape(c, hp_call_in(c, 0), hp_call_in(c, 1));
    HP_KERNEL(c, hp_gemm, false, s.transpose, s.m, s.n, s.k, hp_in_num(c, 0), hp_in_num(c, 1),
              hp_out_num(c, 0), false);
    return HP_OK;
}

static void linear_work(const hp_call *c, hp_op_work *w)
{
    shape s = call_shape(c, hp_call_in(c, 0), hp_call_in(c, 1));
    hp_work_bytes(c, 0, w);
    hp_work_gemm(w, 1, s.m, s.n, s.k);
}

static hp_err linear_dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0), dy = hp_infer_in(g, n, 1);
    int contract = (int)hp_infer_attr(n, "contract", 1), outs = dy.nd - (x.nd - contract);
    split s;
    if (!node_split(n, x.nd, contract + outs, &s))
        return hp_infer_refuse(g, n, 1, "its dimensions do not divide into lead ones and outputs",
                               e);
    hp_label_fresh(g, n, 0);
    hp_label_fresh(g, n, 1);
    hp_label_copy(n, 1, 0, 0, 0, s.lead);
    int dim[HP_MAX_DIMS], out;
    for (int d = 0; d < contract; d++)
        dim[s.w_contract + d] = x.dim[s.lead + d];
    for (int d = 0; d < outs; d++)
        dim[s.w_outs + d] = dy.dim[s.lead + d];
    err = hp_node_output(g, n, NULL, HP_F32, contract + outs, dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, s.w_contract, 0, s.lead, contract);
    hp_label_copy(n, out, s.w_outs, 1, s.lead, outs);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err linear_dw_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    shape s = call_shape(c, hp_call_in(c, 0), hp_call_out(c, 0));
    hp_num x = hp_in_num(c, 0), dy = hp_in_num(c, 1), dw = hp_out_num(c, 0);
    if (s.transpose)
        HP_KERNEL(c, hp_gemm, true, false, s.n, s.k, s.m, dy, x, dw, c->accumulate);
    else
        HP_KERNEL(c, hp_gemm, true, false, s.k, s.n, s.m, x, dy, dw, c->accumulate);
    return HP_OK;
}

static void linear_dw_work(const hp_call *c, hp_op_work *w)
{
    shape s = call_shape(c, hp_call_in(c, 0), hp_call_out(c, 0));
    hp_work_bytes(c, 0, w);
    if (s.transpose)
        hp_work_gemm(w, 1, s.n, s.k, s.m);
    else
        hp_work_gemm(w, 1, s.k, s.n, s.m);
}

const hp_op hp_op_linear = {
    {"linear", linear_infer, linear_grad}, .matmul = true, .work = linear_work, .run = linear_run};
const hp_op hp_op_linear_dw = {{"linear_dw", linear_dw_infer, NULL},
                               .accumulates = true,
                               .matmul = true,
                               .work = linear_dw_work,
                               .run = linear_dw_run};

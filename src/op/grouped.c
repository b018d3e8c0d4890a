/* grouped.c -- one matrix an expert: rows of routed tensors by the weight of their expert. */
#include "kern/gemm.h"
#include "op/routed.h"
#include "op/rows.h"

/* Operands of the three: (rows, w, idx), (drows, w, idx), (rows, drows, idx). */
static hp_err check_rows(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_routed(g, n, 3, 3, e);
    return err ? err : hp_routed_check(g, n, 0, 4, 2, e);
}

/* Forward and gradient for the input: `in` and `out` are the weight's dimensions that are contracted and produced. */
static hp_err rows_infer(hp_graph *g, hp_node *n, int in, int out_dim, hp_errmsg *e)
{
    int out;
    hp_err err = check_rows(g, n, e);
    if (!err)
        err = hp_infer_nd(g, n, 1, 3, 3, "experts in out", e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0), w = hp_infer_in(g, n, 1);
    hp_label_fresh(g, n, 0);
    n->label[1][0] = n->label[0][2];
    n->label[1][in] = n->label[0][3];
    n->label[1][out_dim] = (int8_t)hp_label_new(n);
    err = hp_routed_idx(g, n, 2, 0, e);
    x.dim[3] = w.dim[out_dim];
    if (!err)
        err = hp_routed_output(g, n, &x, 2, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, 3);
    hp_label_copy(n, out, 3, 1, out_dim, 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err grouped_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    return rows_infer(g, n, 1, 2, e);
}

static hp_err grouped_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    return rows_infer(g, n, 2, 1, e);
}

static hp_err grouped_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int dy = hp_grad_of(ctx, 0);
    hp_err err = hp_infer_emit(g, ctx, "grouped_dx", "dx", false, 3,
                               (int[]){dy, n->arg[1], n->arg[2]}, 0, NULL, 0, e);
    if (!err)
        err = hp_infer_emit(g, ctx, "grouped_dw", "dw", true, 3, (int[]){n->arg[0], dy, n->arg[2]},
                            0, NULL, 1, e);
    return err;
}

static hp_err run_rows(const hp_call *c, bool transpose, hp_errmsg *e)
{
    const hp_operand *x = hp_call_in(c, 0), *y = hp_call_out(c, 0);
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 2), x, &r, e);
    if (!err)
        HP_KERNEL(c, hp_gemm_rows, transpose, r.e_len, r.off, y->len[3], x->len[3], hp_in_num(c, 0),
                  hp_in_num(c, 1), hp_out_num(c, 0), false);
    return err;
}

static hp_err grouped_run(const hp_call *c, hp_errmsg *e)
{
    return run_rows(c, false, e);
}

static hp_err grouped_dx_run(const hp_call *c, hp_errmsg *e)
{
    return run_rows(c, true, e);
}

static void rows_work(const hp_call *c, hp_op_work *w)
{
    const hp_operand *x = hp_call_in(c, 0);
    hp_work_bytes(c, 1u << 0 | 1u << 3, w);
    hp_work_gemm(w, x->len[2], x->rows, hp_call_out(c, 0)->len[3], x->len[3]);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 2), x);
}

static hp_err dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    hp_err err = check_rows(g, n, e);
    if (!err)
        err = hp_routed_check(g, n, 1, 4, 2, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0), dy = hp_infer_in(g, n, 1);
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, 0, 3);
    n->label[1][3] = (int8_t)hp_label_new(n);
    err = hp_routed_idx(g, n, 2, 0, e);
    if (!err)
        err =
            hp_node_output(g, n, NULL, HP_F32, 3, (int[]){x.dim[2], x.dim[3], dy.dim[3]}, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 2, 2);
    hp_label_copy(n, out, 2, 1, 3, 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err dw_run(const hp_call *c, hp_errmsg *e)
{
    const hp_operand *x = hp_call_in(c, 0), *dy = hp_call_in(c, 1);
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 2), x, &r, e);
    if (!err)
        HP_KERNEL(c, hp_gemm_weights, r.e_len, r.off, x->len[3], dy->len[3], hp_in_num(c, 0),
                  hp_in_num(c, 1), hp_out_num(c, 0), c->accumulate);
    return err;
}

static void dw_work(const hp_call *c, hp_op_work *w)
{
    const hp_operand *x = hp_call_in(c, 0);
    hp_work_bytes(c, 1u << 0 | 1u << 1, w);
    hp_work_gemm(w, x->len[2], x->len[3], hp_call_in(c, 1)->len[3], x->rows);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 2), x);
}

const hp_op hp_op_grouped = {{"grouped", grouped_infer, grouped_grad},
                             .matmul = true,
                             .work = rows_work,
                             .run = grouped_run};
const hp_op hp_op_grouped_dx = {{"grouped_dx", grouped_dx_infer, NULL},
                                .matmul = true,
                                .work = rows_work,
                                .run = grouped_dx_run};
const hp_op hp_op_grouped_dw = {{"grouped_dw", dw_infer, NULL},
                                .accumulates = true,
                                .matmul = true,
                                .work = dw_work,
                                .run = dw_run};

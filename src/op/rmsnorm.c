/* rmsnorm.c -- root mean square normalisation of the last dimension; rstd is an output, so that the gradients are one pass. */
#include "kern/rmsnorm.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err rmsnorm_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, false, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 1, HP_MAX_DIMS, ".. width", e);
    if (!err)
        err = hp_infer_nd(g, n, 1, 1, 1, "width", e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, x.nd - 1, 1);
    hp_label_block(n, 0, x.nd - 1);
    int out;
    err = hp_infer_like(g, n, 0, NULL, &out, e);
    if (!err)
        err = hp_node_output(g, n, "rstd", HP_F32, x.nd - 1, x.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, x.nd - 1);
    hp_infer_wide(g, n, out);
    return HP_OK;
}

static hp_err rmsnorm_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int dy = hp_grad_of(ctx, 0), x = n->arg[0], w = n->arg[1], rstd = n->arg[3];
    hp_err err =
        hp_infer_emit(g, ctx, "rmsnorm_dx", "dx", false, 4, (int[]){x, w, rstd, dy}, 0, NULL, 0, e);
    if (!err)
        err =
            hp_infer_emit(g, ctx, "rmsnorm_dw", "dw", true, 3, (int[]){x, rstd, dy}, 0, NULL, 1, e);
    return err;
}

static int64_t rows(const hp_call *c)
{
    return hp_box_product(hp_call_in(c, 0), 0, hp_call_in(c, 0)->nd - 1);
}

static int64_t width(const hp_call *c)
{
    return hp_call_in(c, 0)->len[hp_call_in(c, 0)->nd - 1];
}

static hp_err rmsnorm_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_rmsnorm, rows(c), width(c), (float)hp_call_attr(c, "eps", 1e-5),
              hp_in_num(c, 0), hp_in_num(c, 1), hp_out_num(c, 0), hp_call_out(c, 1)->data);
    return HP_OK;
}

static hp_err rmsnorm_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 4, 4, e);
    if (err)
        return err;
    int nd = hp_infer_in(g, n, 0).nd, out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, nd - 1, 1);
    hp_label_copy(n, 2, 0, 0, 0, nd - 1);
    hp_label_copy(n, 3, 0, 0, 0, nd);
    hp_label_block(n, 0, nd - 1);
    hp_infer_group(n, 1u << 3);
    return hp_infer_like(g, n, 3, NULL, &out, e);
}

static hp_err rmsnorm_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_rmsnorm_dx, rows(c), width(c), hp_in_num(c, 0), hp_in_num(c, 1),
              hp_call_in(c, 2)->data, hp_in_num(c, 3), hp_out_num(c, 0));
    return HP_OK;
}

static hp_err rmsnorm_dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 3, 3, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    int out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, 0, x.nd - 1);
    hp_label_copy(n, 2, 0, 0, 0, x.nd);
    err = hp_node_output(g, n, NULL, HP_F32, 1, &x.dim[x.nd - 1], &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, x.nd - 1, 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 2);
    return HP_OK;
}

static hp_err rmsnorm_dw_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_rmsnorm_dw, rows(c), width(c), hp_in_num(c, 0), hp_call_in(c, 1)->data,
              hp_in_num(c, 2), hp_out_num(c, 0), c->accumulate);
    return HP_OK;
}

const hp_op hp_op_rmsnorm = {{"rmsnorm", rmsnorm_infer, rmsnorm_grad},
                             .in_place = true,
                             .work = hp_work_pointwise,
                             .run = rmsnorm_run};
const hp_op hp_op_rmsnorm_dx = {
    {"rmsnorm_dx", rmsnorm_dx_infer, NULL}, .work = hp_work_pointwise, .run = rmsnorm_dx_run};
const hp_op hp_op_rmsnorm_dw = {{"rmsnorm_dw", rmsnorm_dw_infer, NULL},
                                .accumulates = true,
                                .work = hp_work_pointwise,
                                .run = rmsnorm_dw_run};

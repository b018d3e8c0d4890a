/* layernorm.c -- layer normalisation of the last dimension; mean and rstd are outputs for the gradients. */
#include "kern/layernorm.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err layernorm_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 3, e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, false, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 1, HP_MAX_DIMS, ".. width", e);
    for (int i = 1; i < n->n_in && !err; i++)
        if (hp_infer_has(n, i))
            err = hp_infer_nd(g, n, i, 1, 1, "width", e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    int out;
    hp_label_fresh(g, n, 0);
    for (int i = 1; i < n->n_in; i++)
        hp_label_copy(n, i, 0, 0, x.nd - 1, 1);
    hp_label_block(n, 0, x.nd - 1);
    err = hp_infer_like(g, n, 0, NULL, &out, e);
    for (int i = 0; i < 2 && !err; i++) {
        err = hp_node_output(g, n, i ? "rstd" : "mean", HP_F32, x.nd - 1, x.dim, &out, e);
        if (err)
            break;
        hp_label_copy(n, out, 0, 0, 0, x.nd - 1);
        hp_infer_wide(g, n, out);
    }
    return err;
}

static hp_err layernorm_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int dy = hp_grad_of(ctx, 0), x = n->arg[0], w = n->arg[1], mean = n->arg[n->n_in + 1],
        rstd = n->arg[n->n_in + 2];
    hp_err err = hp_infer_emit(g, ctx, "layernorm_dx", "dx", false, 5,
                               (int[]){x, w, mean, rstd, dy}, 0, NULL, 0, e);
    if (!err)
        err = hp_infer_emit(g, ctx, "layernorm_dw", "dw", true, 4, (int[]){x, mean, rstd, dy}, 0,
                            NULL, 1, e);
    if (!err && n->n_in > 2 && hp_grad_wants(ctx, 2))
        err = hp_infer_emit_bias(g, ctx, 2, e);
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

static hp_err layernorm_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_layernorm, rows(c), width(c), (float)hp_call_attr(c, "eps", 1e-5),
              hp_in_num(c, 0), hp_in_num(c, 1), hp_in_num(c, 2), hp_out_num(c, 0),
              hp_call_out(c, 1)->data, hp_call_out(c, 2)->data);
    return HP_OK;
}

static hp_err layernorm_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 5, 5, e);
    if (err)
        return err;
    int nd = hp_infer_in(g, n, 0).nd, out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, nd - 1, 1);
    hp_label_copy(n, 2, 0, 0, 0, nd - 1);
    hp_label_copy(n, 3, 0, 0, 0, nd - 1);
    hp_label_copy(n, 4, 0, 0, 0, nd);
    hp_label_block(n, 0, nd - 1);
    hp_infer_group(n, 1u << 4);
    return hp_infer_like(g, n, 4, NULL, &out, e);
}

static hp_err layernorm_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_layernorm_dx, rows(c), width(c), hp_in_num(c, 0), hp_in_num(c, 1),
              hp_call_in(c, 2)->data, hp_call_in(c, 3)->data, hp_in_num(c, 4), hp_out_num(c, 0));
    return HP_OK;
}

static hp_err layernorm_dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 4, 4, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    int out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, 0, x.nd - 1);
    hp_label_copy(n, 2, 0, 0, 0, x.nd - 1);
    hp_label_copy(n, 3, 0, 0, 0, x.nd);
    err = hp_node_output(g, n, NULL, HP_F32, 1, &x.dim[x.nd - 1], &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, x.nd - 1, 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 3);
    return HP_OK;
}

static hp_err layernorm_dw_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_layernorm_dw, rows(c), width(c), hp_in_num(c, 0), hp_call_in(c, 1)->data,
              hp_call_in(c, 2)->data, hp_in_num(c, 3), hp_out_num(c, 0), hp_num_none(),
              c->accumulate);
    return HP_OK;
}

const hp_op hp_op_layernorm = {{"layernorm", layernorm_infer, layernorm_grad},
                               .in_place = true,
                               .work = hp_work_pointwise,
                               .run = layernorm_run};
const hp_op hp_op_layernorm_dx = {
    {"layernorm_dx", layernorm_dx_infer, NULL}, .work = hp_work_pointwise, .run = layernorm_dx_run};
const hp_op hp_op_layernorm_dw = {{"layernorm_dw", layernorm_dw_infer, NULL},
                                  .accumulates = true,
                                  .work = hp_work_pointwise,
                                  .run = layernorm_dw_run};

/* bias.c -- a vector over trailing dimensions added to every row. Not linear: a partial x would count the bias often. */
#include "kern/bias.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err bias_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    for (int i = 0; i < 2 && !err; i++)
        err = hp_infer_dtype(g, n, i, false, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0), b = hp_infer_in(g, n, 1);
    if (b.nd < 1 || b.nd > x.nd)
        return hp_infer_refuse(g, n, 1, "must have the last dimensions of input 0", e);
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, x.nd - b.nd, b.nd);
    int out;
    return hp_infer_like(g, n, 0, NULL, &out, e);
}

static hp_err bias_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    (void)n;
    hp_infer_pass(ctx, 0);
    return hp_infer_emit_bias(g, ctx, 1, e);
}

static hp_err bias_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0), *b = hp_call_in(c, 1);
    HP_KERNEL(c, hp_bias, hp_box_product(x, 0, x->nd - b->nd), hp_box_count(b, false),
              hp_in_num(c, 0), hp_in_num(c, 1), hp_out_num(c, 0));
    return HP_OK;
}

static hp_err bias_dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (err)
        return err;
    hp_tensor dy = hp_infer_in(g, n, 0),
              b = hp_infer_weight(g, n, (int)hp_infer_attr(n, "input", 1));
    hp_label_fresh(g, n, 0);
    int out;
    err = hp_node_output(g, n, NULL, HP_F32, b.nd, b.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, dy.nd - b.nd, b.nd);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err bias_dw_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *dy = hp_call_in(c, 0), *db = hp_call_out(c, 0);
    HP_KERNEL(c, hp_bias_dw, hp_box_product(dy, 0, dy->nd - db->nd), hp_box_count(db, false),
              hp_in_num(c, 0), hp_out_num(c, 0), c->accumulate);
    return HP_OK;
}

const hp_op hp_op_bias = {
    {"bias", bias_infer, bias_grad}, .in_place = true, .work = hp_work_pointwise, .run = bias_run};
const hp_op hp_op_bias_dw = {{"bias_dw", bias_dw_infer, NULL},
                             .accumulates = true,
                             .work = hp_work_pointwise,
                             .run = bias_dw_run};

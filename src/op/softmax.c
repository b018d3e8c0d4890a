/* softmax.c -- softmax over the last dimension; the gradient reads the output. */
#include "kern/softmax.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err last_blocked(hp_graph *g, hp_node *n, int n_in, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, n_in, n_in, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 1, HP_MAX_DIMS, ".. width", e);
    if (!err)
        err = hp_infer_pointwise(g, n, n_in, n_in, 1, e);
    if (!err)
        hp_label_block(n, 0, hp_infer_in(g, n, 0).nd - 1);
    return err;
}

static hp_err softmax_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    return last_blocked(g, n, 1, e);
}

static hp_err softmax_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    return hp_infer_emit(g, ctx, "softmax_dx", "dx", false, 2,
                         (int[]){n->arg[1], hp_grad_of(ctx, 0)}, 0, NULL, 0, e);
}

static hp_err softmax_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    HP_KERNEL(c, hp_softmax, hp_box_product(x, 0, x->nd - 1), x->len[x->nd - 1], hp_in_num(c, 0),
              hp_out_num(c, 0));
    return HP_OK;
}

static hp_err softmax_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_infer_group(n, 1u << 1);
    return last_blocked(g, n, 2, e);
}

static hp_err softmax_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *y = hp_call_in(c, 0);
    HP_KERNEL(c, hp_softmax_dx, hp_box_product(y, 0, y->nd - 1), y->len[y->nd - 1], hp_in_num(c, 0),
              hp_in_num(c, 1), hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_softmax = {{"softmax", softmax_infer, softmax_grad},
                             .in_place = true,
                             .work = hp_work_pointwise,
                             .run = softmax_run};
const hp_op hp_op_softmax_dx = {
    {"softmax_dx", softmax_dx_infer, NULL}, .work = hp_work_pointwise, .run = softmax_dx_run};

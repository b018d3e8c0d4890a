/* gelu.c -- the activation gelu and its gradient. */
#include "kern/act.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err gelu_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    return hp_infer_pointwise(g, n, 1, 1, 1, e);
}

static hp_err gelu_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    return hp_infer_emit(g, ctx, "gelu_dx", "dx", false, 2, (int[]){n->arg[0], hp_grad_of(ctx, 0)},
                         0, NULL, 0, e);
}

static hp_err gelu_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_gelu, hp_pointwise_count(c), hp_in_num(c, 0), hp_out_num(c, 0));
    return HP_OK;
}

static hp_err gelu_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_infer_group(n, 1u << 1);
    return hp_infer_pointwise(g, n, 2, 2, 1, e);
}

static hp_err gelu_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_gelu_dx, hp_pointwise_count(c), hp_in_num(c, 0), hp_in_num(c, 1),
              hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_gelu = {
    {"gelu", gelu_infer, gelu_grad}, .in_place = true, .work = hp_work_pointwise, .run = gelu_run};
const hp_op hp_op_gelu_dx = {{"gelu_dx", gelu_dx_infer, NULL},
                             .in_place = true,
                             .work = hp_work_pointwise,
                             .run = gelu_dx_run};

/* swiglu.c -- silu(gate) up, linear in up, and both its gradients in one pass. */
#include "kern/act.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err swiglu_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_infer_group(n, 1u << 1);
    return hp_infer_pointwise(g, n, 2, 2, 1, e);
}

static hp_err swiglu_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int node, in[] = {n->arg[0], n->arg[1], hp_grad_of(ctx, 0)}, of[] = {0, 1};
    hp_err err = hp_grad_node(ctx, "swiglu_dx", "dx", false, 3, in, 0, NULL, of, &node, e);
    for (int i = 0; i < 2 && !err; i++)
        hp_grad_give(ctx, i, g->node[node].arg[3 + i]);
    return err;
}

static hp_err swiglu_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_swiglu, hp_pointwise_count(c), hp_in_num(c, 0), hp_in_num(c, 1),
              hp_out_num(c, 0));
    return HP_OK;
}

static hp_err swiglu_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_infer_group(n, 1u << 2);
    return hp_infer_pointwise(g, n, 3, 3, 2, e);
}

static hp_err swiglu_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_swiglu_dx, hp_pointwise_count(c), hp_in_num(c, 0), hp_in_num(c, 1),
              hp_in_num(c, 2), hp_out_num(c, 0), hp_out_num(c, 1));
    return HP_OK;
}

const hp_op hp_op_swiglu = {{"swiglu", swiglu_infer, swiglu_grad},
                            .in_place = true,
                            .work = hp_work_pointwise,
                            .run = swiglu_run};
const hp_op hp_op_swiglu_dx = {
    {"swiglu_dx", swiglu_dx_infer, NULL}, .work = hp_work_pointwise, .run = swiglu_dx_run};

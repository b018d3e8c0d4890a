/* rope.c -- rotary position embedding; its gradient is the rotation back. */
#include "kern/rope.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err rope_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, false, e);
    if (!err)
        err = hp_infer_dtype(g, n, 1, true, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 3, HP_MAX_DIMS, "batch seq .. head", e);
    if (!err)
        err = hp_infer_nd(g, n, 1, 2, 2, "batch seq", e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    if (g->dim[x.dim[x.nd - 1]].size % 2)
        return hp_infer_refuse(g, n, 0, "its last dimension must be even", e);
    int out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, 0, 2);
    hp_label_block(n, 0, x.nd - 1);
    hp_infer_group(n, 1u << 0);
    return hp_infer_like(g, n, 0, NULL, &out, e);
}

static hp_err rope_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    hp_attr attr[] = {{"theta", hp_infer_attr(n, "theta", 1e4)},
                      {"inverse", !hp_infer_attr(n, "inverse", 0)}};
    return hp_infer_emit(g, ctx, "rope", "dx", false, 2, (int[]){hp_grad_of(ctx, 0), n->arg[1]}, 2,
                         attr, 0, e);
}

static hp_err rope_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    HP_KERNEL(c, hp_rope, hp_box_product(x, 0, 2), hp_box_product(x, 2, x->nd - 1),
              x->len[x->nd - 1], hp_call_in(c, 1)->data, hp_call_attr(c, "theta", 1e4),
              hp_call_attr(c, "inverse", 0) != 0, hp_in_num(c, 0), hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_rope = {
    {"rope", rope_infer, rope_grad}, .in_place = true, .work = hp_work_pointwise, .run = rope_run};

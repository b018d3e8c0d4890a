/* scale.c -- a tensor times a constant. */
#include "kern/pointwise.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err scale_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_pointwise(g, n, 1, 1, 1, e);
    if (!err)
        hp_infer_group(n, 1u << 0);
    return err;
}

static hp_err scale_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    hp_attr by = {"by", hp_infer_attr(n, "by", 1)};
    return hp_infer_emit(g, ctx, "scale", "dx", false, 1, (int[]){hp_grad_of(ctx, 0)}, 1, &by, 0,
                         e);
}

static hp_err scale_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_scale, hp_pointwise_count(c), (float)hp_call_attr(c, "by", 1), hp_in_num(c, 0),
              hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_scale = {{"scale", scale_infer, scale_grad},
                           .in_place = true,
                           .work = hp_work_pointwise,
                           .run = scale_run};

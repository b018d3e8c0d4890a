/* dispatch.c -- tokens to the rows of their experts, and the sum of the rows back. */
#include "op/routed.h"
#include "op/rows.h"

static hp_err dispatch_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int experts, out;
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (!err)
        err = hp_infer_dim(g, n, "d", &experts, e);
    if (!err)
        err = hp_routed_check(g, n, 0, 3, 1, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    hp_label_fresh(g, n, 0);
    err = hp_routed_idx(g, n, 1, 0, e);
    x.dim[3] = x.dim[2];
    x.dim[2] = experts;
    x.nd = 4;
    if (!err)
        err = hp_routed_output(g, n, &x, 1, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, 2);
    n->label[out][2] = (int8_t)hp_label_new(n);
    hp_label_copy(n, out, 3, 0, 2, 1);
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err dispatch_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    return hp_infer_emit(g, ctx, "dispatch_dx", "dx", false, 2,
                         (int[]){hp_grad_of(ctx, 0), n->arg[1]}, 0, NULL, 0, e);
}

static hp_err dispatch_run(const hp_call *c, hp_errmsg *e)
{
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 1), hp_call_out(c, 0), &r, e);
    if (!err)
        HP_KERNEL(c, hp_dispatch, &r, hp_call_in(c, 0)->len[2], hp_in_num(c, 0), hp_out_num(c, 0));
    return err;
}

static void dispatch_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 1u << 2, w);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 1), hp_call_out(c, 0));
}

static hp_err dispatch_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    hp_err err = hp_infer_routed(g, n, 2, 2, e);
    if (!err)
        err = hp_routed_check(g, n, 0, 4, 1, e);
    if (err)
        return err;
    hp_tensor dxe = hp_infer_in(g, n, 0);
    hp_label_fresh(g, n, 0);
    err = hp_routed_idx(g, n, 1, 0, e);
    dxe.dim[2] = dxe.dim[3];
    if (!err)
        err = hp_node_output(g, n, NULL, dxe.dtype, 3, dxe.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, 2);
    hp_label_copy(n, out, 2, 0, 3, 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err dispatch_dx_run(const hp_call *c, hp_errmsg *e)
{
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 1), hp_call_in(c, 0), &r, e);
    if (!err)
        HP_KERNEL(c, hp_dispatch_dx, &r, hp_call_out(c, 0)->len[2], hp_in_num(c, 0),
                  hp_out_num(c, 0));
    return err;
}

static void dispatch_dx_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 1u << 0, w);
    w->other_flops += (double)hp_box_count(hp_call_in(c, 0), true);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 1), hp_call_in(c, 0));
}

const hp_op hp_op_dispatch = {
    {"dispatch", dispatch_infer, dispatch_grad}, .work = dispatch_work, .run = dispatch_run};
const hp_op hp_op_dispatch_dx = {
    {"dispatch_dx", dispatch_dx_infer, NULL}, .work = dispatch_dx_work, .run = dispatch_dx_run};

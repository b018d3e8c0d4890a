/* combine.c -- the weighted sum of a token's expert rows, and its gradients. */
#include "op/routed.h"
#include "op/rows.h"

static hp_err combine_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    hp_err err = hp_infer_routed(g, n, 3, 3, e);
    if (!err)
        err = hp_routed_check(g, n, 0, 4, 1, e);
    if (!err)
        err = hp_routed_check(g, n, 2, 3, 1, e);
    if (err)
        return err;
    hp_tensor ye = hp_infer_in(g, n, 0);
    hp_label_fresh(g, n, 0);
    err = hp_routed_idx(g, n, 1, 0, e);
    hp_label_copy(n, 2, 0, 1, 0, 3);
    ye.dim[2] = ye.dim[3];
    if (!err)
        err = hp_node_output(g, n, NULL, ye.dtype, 3, ye.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, 2);
    hp_label_copy(n, out, 2, 0, 3, 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 2);
    return HP_OK;
}

static hp_err combine_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int dy = hp_grad_of(ctx, 0), ye = n->arg[0], idx = n->arg[1], weights = n->arg[2];
    hp_attr experts = {"d", hp_infer_in(g, n, 0).dim[2]};
    hp_err err = hp_infer_emit(g, ctx, "combine_dx", "dx", false, 3, (int[]){dy, idx, weights}, 1,
                               &experts, 0, e);
    if (!err)
        err = hp_infer_emit(g, ctx, "combine_dw", "dweights", false, 3, (int[]){dy, ye, idx}, 0,
                            NULL, 2, e);
    return err;
}

static hp_err combine_run(const hp_call *c, hp_errmsg *e)
{
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 1), hp_call_in(c, 0), &r, e);
    if (!err)
        HP_KERNEL(c, hp_combine, &r, hp_call_out(c, 0)->len[2], hp_in_num(c, 0), hp_in_num(c, 2),
                  hp_out_num(c, 0));
    return err;
}

static void combine_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 1u << 0, w);
    w->other_flops += 2 * (double)hp_box_count(hp_call_in(c, 0), true);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 1), hp_call_in(c, 0));
}

static hp_err combine_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int experts, out;
    hp_err err = hp_infer_inputs(g, n, 3, 3, e);
    if (!err)
        err = hp_infer_dim(g, n, "d", &experts, e);
    if (!err)
        err = hp_routed_check(g, n, 0, 3, 1, e);
    if (err)
        return err;
    hp_tensor dy = hp_infer_in(g, n, 0);
    hp_label_fresh(g, n, 0);
    err = hp_routed_idx(g, n, 1, 0, e);
    hp_label_copy(n, 2, 0, 1, 0, 3);
    dy.dim[3] = dy.dim[2];
    dy.dim[2] = experts;
    dy.nd = 4;
    if (!err)
        err = hp_routed_output(g, n, &dy, 1, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, 2);
    n->label[out][2] = (int8_t)hp_label_new(n);
    hp_label_copy(n, out, 3, 0, 2, 1);
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 2);
    return HP_OK;
}

static hp_err combine_dx_run(const hp_call *c, hp_errmsg *e)
{
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 1), hp_call_out(c, 0), &r, e);
    if (!err)
        HP_KERNEL(c, hp_combine_dx, &r, hp_call_in(c, 0)->len[2], hp_num_none(), hp_in_num(c, 2),
                  hp_in_num(c, 0), hp_out_num(c, 0), hp_num_none());
    return err;
}

static void combine_dx_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 1u << 3, w);
    w->other_flops += (double)hp_box_count(hp_call_out(c, 0), true);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 1), hp_call_out(c, 0));
}

static hp_err combine_dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    hp_err err = hp_infer_routed(g, n, 3, 3, e);
    if (!err)
        err = hp_routed_check(g, n, 0, 3, 2, e);
    if (!err)
        err = hp_routed_check(g, n, 1, 4, 2, e);
    if (err)
        return err;
    hp_label_fresh(g, n, 1);
    hp_label_copy(n, 0, 0, 1, 0, 2);
    hp_label_copy(n, 0, 2, 1, 3, 1);
    err = hp_routed_idx(g, n, 2, 1, e);
    if (err)
        return err;
    hp_tensor idx = hp_infer_in(g, n, 2);
    err = hp_node_output(g, n, NULL, HP_F32, 3, idx.dim, &out, e);
    if (err)
        return err;
    hp_infer_wide(g, n, out);
    hp_label_copy(n, out, 0, 2, 0, 3);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err combine_dw_run(const hp_call *c, hp_errmsg *e)
{
    hp_route r;
    hp_err err = hp_routed_list(c, hp_call_in(c, 2), hp_call_in(c, 1), &r, e);
    if (!err)
        HP_KERNEL(c, hp_combine_dx, &r, hp_call_in(c, 0)->len[2], hp_in_num(c, 1), hp_num_none(),
                  hp_in_num(c, 0), hp_num_none(), hp_out_num(c, 0));
    return err;
}

static void combine_dw_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 1u << 1, w);
    w->other_flops += 2 * (double)hp_box_count(hp_call_in(c, 1), true);
    w->scratch_bytes = hp_routed_scratch(hp_call_in(c, 2), hp_call_in(c, 1));
}

const hp_op hp_op_combine = {
    {"combine", combine_infer, combine_grad}, .work = combine_work, .run = combine_run};
const hp_op hp_op_combine_dx = {
    {"combine_dx", combine_dx_infer, NULL}, .work = combine_dx_work, .run = combine_dx_run};
const hp_op hp_op_combine_dw = {
    {"combine_dw", combine_dw_infer, NULL}, .work = combine_dw_work, .run = combine_dw_run};

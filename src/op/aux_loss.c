/* aux_loss.c -- the balance loss of a router, per sequence: coef times the mean over sequences of the sum of f p
 * (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). The choices f are constants; only p has a gradient. */
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

enum { F, P, SHARE };

static hp_err aux_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    hp_err err = hp_infer_inputs(g, n, 2, 3, e);
    for (int i = F; i <= P && !err; i++)
        err = hp_infer_nd(g, n, i, 2, 2, "batch experts", e);
    if (!err && hp_infer_has(n, SHARE))
        err = hp_infer_nd(g, n, SHARE, 0, 0, "of a scalar", e);
    if (err)
        return err;
    hp_label_fresh(g, n, F);
    hp_label_copy(n, P, 0, F, 0, 2);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << F);
    hp_infer_group(n, 1u << P);
    return hp_node_output(g, n, NULL, HP_F32, 0, NULL, &out, e);
}

static hp_err aux_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int share = hp_infer_has(n, SHARE) ? n->arg[SHARE] : -1, node, of[] = {P};
    hp_attr coef = {"coef", hp_infer_attr(n, "coef", 1)};
    if (!hp_grad_wants(ctx, P))
        return HP_OK;
    hp_err err = hp_grad_node(ctx, "aux_dx", "dx", false, 2, (int[]){n->arg[F], share}, 1, &coef,
                              of, &node, e);
    if (err)
        return err;
    int dp = g->node[node].arg[2];
    if (!hp_grad_is_one(ctx, 0))
        return hp_infer_emit(g, ctx, "mul", "dp", false, 2, (int[]){dp, hp_grad_of(ctx, 0)}, 0,
                             NULL, P, e);
    hp_grad_give(ctx, P, dp);
    return HP_OK;
}

static double factor(const hp_call *c, int share)
{
    return hp_call_attr(c, "coef", 1) *
           (hp_call_has(c, share) ? hp_num_get(hp_in_num(c, share), 0) : 1);
}

static hp_err aux_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    double sum = 0;
    for (int64_t i = 0; i < hp_pointwise_count(c); i++)
        sum += (double)hp_num_get(hp_in_num(c, F), i) * (double)hp_num_get(hp_in_num(c, P), i);
    hp_num_put(hp_out_num(c, 0), 0, (float)(factor(c, SHARE) * sum));
    return HP_OK;
}

static hp_err aux_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    hp_err err = hp_infer_inputs(g, n, 1, 2, e);
    if (err)
        return err;
    hp_label_fresh(g, n, F);
    hp_infer_group(n, 1u << F);
    return hp_infer_like(g, n, F, NULL, &out, e);
}

static hp_err aux_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    for (int64_t i = 0; i < hp_pointwise_count(c); i++)
        hp_num_put(hp_out_num(c, 0), i, (float)(factor(c, 1) * hp_num_get(hp_in_num(c, F), i)));
    return HP_OK;
}

const hp_op hp_op_aux_loss = {
    {"aux_loss", aux_infer, aux_grad}, .work = hp_work_pointwise, .run = aux_run};
const hp_op hp_op_aux_dx = {
    {"aux_dx", aux_dx_infer, NULL}, .work = hp_work_pointwise, .run = aux_dx_run};

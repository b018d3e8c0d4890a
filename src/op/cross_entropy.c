/* cross_entropy.c -- the loss in three pieces, so that a split vocabulary reduces three numbers a token.
 *
 * The gradient of the statistics is represented by one scalar: what a token's loss is multiplied with. It is the seed where the
 * loss itself is differentiated, else seed times the gradient of the loss. */
#include "kern/xent.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err check_tokens(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_nd(g, n, 0, 1, HP_MAX_DIMS, ".. vocabulary", e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, false, e);
    return err;
}

/* Operand i is [lead dimensions of operand 0], integers. */
static hp_err label_targets(hp_graph *g, hp_node *n, int i, hp_errmsg *e)
{
    int lead = hp_infer_in(g, n, 0).nd - 1;
    hp_err err = hp_infer_nd(g, n, i, lead, lead, "of the logits but the last", e);
    if (!err)
        err = hp_infer_dtype(g, n, i, true, e);
    if (!err)
        hp_label_copy(n, i, 0, 0, 0, lead);
    return err;
}

static hp_err stats_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (!err)
        err = check_tokens(g, n, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    int three, out;
    hp_label_fresh(g, n, 0);
    err = label_targets(g, n, 1, e);
    if (!err)
        err = hp_graph_dim(g, "ce_stats", 3, &three, e);
    x.dim[x.nd - 1] = three;
    if (!err)
        err = hp_node_output(g, n, NULL, HP_F32, x.nd, x.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, x.nd - 1);
    n->label[out][x.nd - 1] = (int8_t)hp_label_new(n);
    hp_label_block(n, out, x.nd - 1);
    n->reduce[0] = HP_RED_LSE;
    hp_infer_wide(g, n, out);
    return HP_OK;
}

static hp_err stats_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int in[] = {n->arg[0], n->arg[2], n->arg[1], hp_grad_of(ctx, 0)};
    return hp_infer_emit(g, ctx, "ce_dx", "dx", false, 4, in, n->n_attrs, n->attr, 0, e);
}

static int64_t rows(const hp_call *c)
{
    return hp_box_product(hp_call_in(c, 0), 0, hp_call_in(c, 0)->nd - 1);
}

static hp_err stats_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    int v = x->nd - 1;
    HP_KERNEL(c, hp_xent_stats, rows(c), x->lo[v], x->len[v],
              (int64_t)hp_call_attr(c, "valid", (double)x->full[v]), hp_call_in(c, 1)->data,
              hp_in_num(c, 0), hp_call_out(c, 0)->data);
    return HP_OK;
}

static hp_err loss_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 3, 3, e);
    if (!err)
        err = hp_infer_nd(g, n, 2, 0, 0, "of a scalar", e);
    if (err)
        return err;
    int out;
    hp_label_fresh(g, n, 0);
    hp_label_block(n, 0, hp_infer_in(g, n, 0).nd - 1);
    err = label_targets(g, n, 1, e);
    n->reduce[0] = HP_RED_SUM;
    return err ? err : hp_node_output(g, n, NULL, HP_F32, 0, NULL, &out, e);
}

static hp_err loss_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int seed = n->arg[2], node, of[] = {-1};
    if (!hp_grad_is_one(ctx, 0)) {
        hp_err err = hp_grad_node(ctx, "mul", "seed", false, 2, (int[]){seed, hp_grad_of(ctx, 0)},
                                  0, NULL, of, &node, e);
        if (err)
            return err;
        seed = g->node[node].arg[2];
    }
    hp_grad_give(ctx, 0, seed);
    return HP_OK;
}

static hp_err loss_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    float *loss = hp_call_out(c, 0)->data;
    *loss = (float)hp_xent_loss(rows(c), hp_call_in(c, 1)->data, hp_call_in(c, 0)->data,
                                hp_num_get(hp_in_num(c, 2), 0));
    return HP_OK;
}

static hp_err dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 4, 4, e);
    if (!err)
        err = check_tokens(g, n, e);
    if (err)
        return err;
    int nd = hp_infer_in(g, n, 0).nd, out;
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, 0, nd - 1);
    n->label[1][nd - 1] = (int8_t)hp_label_new(n);
    hp_label_block(n, 1, nd - 1);
    err = label_targets(g, n, 2, e);
    return err ? err : hp_infer_like(g, n, 0, NULL, &out, e);
}

static hp_err dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    int v = x->nd - 1;
    HP_KERNEL(c, hp_xent_dx, rows(c), x->lo[v], x->len[v],
              (int64_t)hp_call_attr(c, "valid", (double)x->full[v]), hp_call_in(c, 2)->data,
              hp_in_num(c, 0), hp_call_in(c, 1)->data, hp_num_get(hp_in_num(c, 3), 0),
              hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_ce_stats = {
    {"ce_stats", stats_infer, stats_grad}, .work = hp_work_pointwise, .run = stats_run};
const hp_op hp_op_ce_loss = {
    {"ce_loss", loss_infer, loss_grad}, .work = hp_work_pointwise, .run = loss_run};
const hp_op hp_op_ce_dx = {
    {"ce_dx", dx_infer, NULL}, .in_place = true, .work = hp_work_pointwise, .run = dx_run};

/* add.c -- the sum of two to eight tensors of one shape. */
#include "kern/pointwise.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

enum { MOST = 8 };

static hp_err add_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_pointwise(g, n, 2, MOST, 1, e);
    if (!err)
        hp_infer_group(n, (1u << n->n_in) - 1);
    return err;
}

static hp_err add_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    (void)g, (void)e;
    for (int i = 0; i < n->n_in; i++)
        hp_infer_pass(ctx, i);
    return HP_OK;
}

static hp_err add_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_num in[MOST];
    for (int i = 0; i < c->n_in; i++)
        in[i] = hp_in_num(c, i);
    HP_KERNEL(c, hp_add, c->n_in, in, hp_pointwise_count(c), hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_add = {
    {"add", add_infer, add_grad}, .in_place = true, .work = hp_work_pointwise, .run = add_run};

/* count.c -- what is computed once a step: how many tokens count, and the seed of the backward. */
#include "kern/xent.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <math.h>

static hp_err scalar_once(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int out;
    n->phase = HP_P_INIT;
    return hp_node_output(g, n, NULL, HP_F32, 0, NULL, &out, e);
}

static hp_err count_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, true, e);
    if (err)
        return err;
    hp_label_fresh(g, n, 0);
    n->reduce[0] = HP_RED_SUM;
    return scalar_once(g, n, e);
}

static hp_err count_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    float *y = hp_call_out(c, 0)->data;
    *y = (float)hp_xent_count(hp_box_count(hp_call_in(c, 0), false), hp_call_in(c, 0)->data);
    return HP_OK;
}

static hp_err recip_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    int out;
    if (!err)
        err = hp_infer_nd(g, n, 0, 0, 0, "of a scalar", e);
    return err ? err : hp_infer_like(g, n, 0, NULL, &out, e);
}

static hp_err recip_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_num_put(hp_out_num(c, 0), 0, 1 / fmaxf(hp_num_get(hp_in_num(c, 0), 0), 1));
    return HP_OK;
}

static hp_err sequences_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 3, 3, "micro batch seq", e);
    if (err)
        return err;
    hp_label_fresh(g, n, 0);
    for (int d = 0; d < 3; d++)
        hp_label_block(n, 0, d);
    return scalar_once(g, n, e);
}

static hp_err sequences_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *all = hp_call_in(c, 0);
    hp_num_put(hp_out_num(c, 0), 0, 1 / (float)(all->full[0] * all->full[1]));
    return HP_OK;
}

static hp_err fill_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 0, 0, e);
    return err ? err : scalar_once(g, n, e);
}

static hp_err fill_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_num_put(hp_out_num(c, 0), 0, (float)hp_call_attr(c, "value", 0));
    return HP_OK;
}

static void fill_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
}

const hp_op hp_op_count = {
    {"count", count_infer, NULL}, .work = hp_work_pointwise, .run = count_run};
const hp_op hp_op_recip = {
    {"recip", recip_infer, NULL}, .work = hp_work_pointwise, .run = recip_run};
const hp_op hp_op_sequences = {
    {"sequences", sequences_infer, NULL}, .work = fill_work, .run = sequences_run};
const hp_op hp_op_fill = {{"fill", fill_infer, NULL}, .work = fill_work, .run = fill_run};

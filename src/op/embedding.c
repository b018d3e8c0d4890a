/* embedding.c -- rows of a table by id. */
#include "kern/embed.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static hp_err embedding_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, true, e);
    if (!err)
        err = hp_infer_nd(g, n, 1, 2, HP_MAX_DIMS, "vocabulary width..", e);
    if (err)
        return err;
    hp_tensor ids = hp_infer_in(g, n, 0), table = hp_infer_in(g, n, 1);
    if (ids.nd + table.nd - 1 > HP_MAX_DIMS)
        return hp_infer_refuse(g, n, 1, "the result would have too many dimensions", e);
    hp_label_fresh(g, n, 0);
    hp_label_fresh(g, n, 1);
    int dim[HP_MAX_DIMS], out;
    for (int d = 0; d < ids.nd; d++)
        dim[d] = ids.dim[d];
    for (int d = 1; d < table.nd; d++)
        dim[ids.nd + d - 1] = table.dim[d];
    err = hp_node_output(g, n, NULL, table.dtype, ids.nd + table.nd - 1, dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, 0, 0, ids.nd);
    hp_label_copy(n, out, ids.nd, 1, 1, table.nd - 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err embedding_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int in[] = {n->arg[0], hp_grad_of(ctx, 0)};
    return hp_infer_emit(g, ctx, "embedding_dw", "dw", true, 2, in, 0, NULL, 1, e);
}

static hp_err embedding_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *ids = hp_call_in(c, 0), *table = hp_call_in(c, 1);
    HP_KERNEL(c, hp_embed, hp_box_count(ids, false), hp_box_product(table, 1, table->nd),
              table->lo[0], table->len[0], ids->data, hp_in_num(c, 1), hp_out_num(c, 0));
    return HP_OK;
}

static void embedding_work(const hp_call *c, hp_op_work *w)
{
    const hp_operand *ids = hp_call_in(c, 0), *y = hp_call_out(c, 0);
    w->bytes += (double)hp_box_count(ids, false) * 4 +
                2 * (double)hp_box_count(y, false) *
                    hp_dtype_bytes(y->dtype); /* the rows looked up, not the table */
}

static hp_err embedding_dw_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 2, 2, e);
    if (err)
        return err;
    hp_tensor ids = hp_infer_in(g, n, 0), dy = hp_infer_in(g, n, 1),
              table = hp_infer_weight(g, n, 1);
    hp_label_fresh(g, n, 1);
    hp_label_copy(n, 0, 0, 1, 0, ids.nd);
    int out;
    err = hp_node_output(g, n, NULL, HP_F32, table.nd, table.dim, &out, e);
    if (err)
        return err;
    n->label[out][0] = (int8_t)hp_label_new(n);
    hp_label_copy(n, out, 1, 1, ids.nd, dy.nd - ids.nd);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err embedding_dw_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *ids = hp_call_in(c, 0), *dw = hp_call_out(c, 0);
    HP_KERNEL(c, hp_embed_dw, hp_box_count(ids, false), hp_box_product(dw, 1, dw->nd), dw->lo[0],
              dw->len[0], ids->data, hp_in_num(c, 1), hp_out_num(c, 0), c->accumulate);
    return HP_OK;
}

static void embedding_dw_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
    w->other_flops += (double)hp_box_count(hp_call_in(c, 1), false);
}

const hp_op hp_op_embedding = {
    {"embedding", embedding_infer, embedding_grad}, .work = embedding_work, .run = embedding_run};
const hp_op hp_op_embedding_dw = {{"embedding_dw", embedding_dw_infer, NULL},
                                  .accumulates = true,
                                  .work = embedding_dw_work,
                                  .run = embedding_dw_run};

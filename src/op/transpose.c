/* transpose.c -- reorders dimensions; every label stays splittable. */
#include "kern/box.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

static const char *const key[] = {"p0", "p1", "p2", "p3", "p4", "p5"};

static bool read_perm(const hp_attr *attr, int n, int nd, int *perm)
{
    int seen = 0;
    for (int d = 0; d < nd; d++) {
        double p = hp_attr_get(attr, n, key[d], -1);
        if (!(p >= 0 && p < nd))
            return false;
        perm[d] = (int)p;
        seen |= 1 << perm[d];
    }
    return seen == (1 << nd) - 1;
}

static hp_err transpose_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    int perm[HP_MAX_DIMS], dim[HP_MAX_DIMS], out;
    if (!read_perm(n->attr, n->n_attrs, x.nd, perm))
        return hp_infer_refuse(g, n, 0, "p0, p1, ... must be an order of all its dimensions", e);
    for (int d = 0; d < x.nd; d++)
        dim[d] = x.dim[perm[d]];
    hp_label_fresh(g, n, 0);
    err = hp_node_output(g, n, NULL, x.dtype, x.nd, dim, &out, e);
    if (err)
        return err;
    for (int d = 0; d < x.nd; d++)
        n->label[out][d] = n->label[0][perm[d]];
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err transpose_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int nd = hp_infer_in(g, n, 0).nd, perm[HP_MAX_DIMS];
    hp_attr attr[HP_MAX_DIMS];
    read_perm(n->attr, n->n_attrs, nd, perm);
    for (int d = 0; d < nd; d++)
        attr[perm[d]] = (hp_attr){key[perm[d]], d};
    return hp_infer_emit(g, ctx, "transpose", "dx", false, 1, (int[]){hp_grad_of(ctx, 0)}, nd, attr,
                         0, e);
}

static hp_err transpose_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    int perm[HP_MAX_DIMS];
    read_perm(c->attr, c->n_attrs, x->nd, perm);
    hp_permute(x->nd, x->len, perm, x->data, hp_call_out(c, 0)->data, hp_dtype_bytes(x->dtype),
               c->threads);
    return HP_OK;
}

static void transpose_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
}

const hp_op hp_op_transpose = {
    {"transpose", transpose_infer, transpose_grad}, .work = transpose_work, .run = transpose_run};

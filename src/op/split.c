/* split.c -- parts along the last dimension. */
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 8 };

static const char *const at_key[MOST] = {"at0", "at1", "at2", "at3", "at4", "at5", "at6", "at7"};

static hp_err split_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 1, HP_MAX_DIMS, ".. width", e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    hp_label_fresh(g, n, 0);
    hp_label_block(n, 0, x.nd - 1);
    int64_t sum = 0;
    for (int i = 0; i < MOST; i++) {
        char key[8], suffix[8];
        int dim[HP_MAX_DIMS], out;
        snprintf(key, sizeof key, "d%d", i);
        if (hp_infer_attr(n, key, -1) < 0)
            break;
        memcpy(dim, x.dim, sizeof dim);
        err = hp_infer_dim(g, n, key, &dim[x.nd - 1], e);
        snprintf(suffix, sizeof suffix, "%d", i);
        if (!err)
            err = hp_node_output(g, n, i ? suffix : NULL, x.dtype, x.nd, dim, &out, e);
        if (err)
            return err;
        hp_label_copy(n, out, 0, 0, 0, x.nd - 1);
        n->label[out][x.nd - 1] = (int8_t)hp_label_new(n);
        hp_label_block(n, out, x.nd - 1);
        sum += g->dim[dim[x.nd - 1]].size;
    }
    if (sum != g->dim[x.dim[x.nd - 1]].size)
        return hp_infer_refuse(g, n, 0, "the parts do not add up to its last dimension", e);
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

/* The parts that have a gradient, each at its place; the others are zero. */
static hp_err split_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    hp_tensor x = hp_infer_in(g, n, 0);
    hp_attr attr[MOST + 1] = {{"d", x.dim[x.nd - 1]}};
    int in[MOST], n_in = 0;
    int64_t at = 0;
    for (int i = 0; i < n->n_out; i++) {
        int dy = hp_grad_of(ctx, i);
        if (dy >= 0) {
            in[n_in++] = dy;
            attr[n_in] = (hp_attr){at_key[n_in - 1], (double)at};
        }
        at += g->dim[g->tensor[n->arg[1 + i]].dim[x.nd - 1]].size;
    }
    return hp_infer_emit(g, ctx, "concat", "dx", false, n_in, in, n_in + 1, attr, 0, e);
}

static hp_err split_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    int64_t rows = hp_box_product(x, 0, x->nd - 1), bytes = hp_dtype_bytes(x->dtype), at = 0;
    int64_t row_bytes = x->len[x->nd - 1] * bytes;
    for (int i = 0; i < c->n_out; i++) {
        const hp_operand *y = hp_call_out(c, i);
        int64_t part = y->len[y->nd - 1] * bytes;
        for (int64_t r = 0; r < rows && part; r++)
            memcpy((char *)y->data + r * part, (const char *)x->data + r * row_bytes + at,
                   (size_t)part);
        at += part;
    }
    return HP_OK;
}

static void split_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
}

const hp_op hp_op_split = {
    {"split", split_infer, split_grad}, .work = split_work, .run = split_run};

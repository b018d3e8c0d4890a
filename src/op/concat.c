/* concat.c -- tensors side by side along the last dimension, and the slice that is its gradient.
 *
 * The output has the lead dimensions of the input with most of them. `masks` (set by infer) has MASK_BITS bits an input,
 * one for each of those lead dimensions that the input has; over the others it is repeated. A slice sums over the lead dimensions in `sum`. */
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 8, MASK_BITS = HP_MAX_DIMS - 1 }; /* 40 bits: exact in a double */

/* Bits of the lead dimensions of `full` that `t` has, in order; -1 when it has others. */
static int lead_mask(const hp_tensor *full, const hp_tensor *t)
{
    int mask = 0, d = 0;
    for (int i = 0; i < full->nd - 1 && d < t->nd - 1; i++)
        if (full->dim[i] == t->dim[d]) {
            mask |= 1 << i;
            d++;
        }
    return d == t->nd - 1 ? mask : -1;
}

static int largest(const hp_graph *g, const hp_node *n)
{
    int best = 0;
    for (int i = 1; i < n->n_in; i++)
        if (g->tensor[n->arg[i]].nd > g->tensor[n->arg[best]].nd)
            best = i;
    return best;
}

static void label_input(hp_node *n, int i, int from, const hp_tensor *full, const hp_tensor *t,
                        int mask)
{
    for (int k = 0, d = 0; k < full->nd - 1; k++)
        if (mask >> k & 1)
            n->label[i][d++] = n->label[from][k];
    if (i != from)
        n->label[i][t->nd - 1] = (int8_t)hp_label_new(n);
    hp_label_block(n, i, t->nd - 1);
}

/* Where input i starts: its attribute, or the end of the input before it. */
static int64_t start_of(const hp_attr *attr, int n_attrs, int i, int64_t after)
{
    char key[8];
    snprintf(key, sizeof key, "at%d", i);
    return (int64_t)hp_attr_get(attr, n_attrs, key, (double)after);
}

static int mask_of(const hp_attr *attr, int n_attrs, int i)
{
    uint64_t masks = (uint64_t)hp_attr_get(attr, n_attrs, "masks", 0);
    return (int)(masks >> (i * MASK_BITS) & ((1u << MASK_BITS) - 1));
}

static hp_err concat_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, MOST, e);
    int last, out;
    if (!err)
        err = hp_infer_dim(g, n, "d", &last, e);
    for (int i = 0; i < n->n_in && !err; i++)
        err = n->arg[i] < 0 ? hp_fail(e, HP_EINPUT, "%s: input %d of concat is missing", n->name, i)
                            : hp_infer_nd(g, n, i, 1, HP_MAX_DIMS, ".. width", e);
    if (err)
        return err;
    int from = largest(g, n);
    hp_tensor full = hp_infer_in(g, n, from);
    hp_label_fresh(g, n, from);
    int64_t end = 0;
    uint64_t masks = 0;
    for (int i = 0; i < n->n_in; i++) {
        hp_tensor t = hp_infer_in(g, n, i);
        int mask = lead_mask(&full, &t);
        if (mask < 0)
            return hp_infer_refuse(g, n, i, "it has a dimension that the largest input lacks", e);
        masks |= (uint64_t)mask << (i * MASK_BITS);
        label_input(n, i, from, &full, &t, mask);
        end = start_of(n->attr, n->n_attrs, i, end) + g->dim[t.dim[t.nd - 1]].size;
        if (end > g->dim[last].size)
            return hp_infer_refuse(g, n, i, "the parts are longer than the result's last dimension",
                                   e);
    }
    hp_node_set(g, n, "masks", (double)masks);
    full.dim[full.nd - 1] = last;
    err = hp_node_output(g, n, NULL, full.dtype, full.nd, full.dim, &out, e);
    if (err)
        return err;
    hp_label_copy(n, out, 0, from, 0, full.nd - 1);
    n->label[out][full.nd - 1] = (int8_t)hp_label_new(n);
    hp_label_block(n, out, full.nd - 1);
    hp_infer_group(n, (1u << n->n_in) - 1);
    return HP_OK;
}

static hp_err concat_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    hp_tensor full = hp_infer_in(g, n, largest(g, n));
    int64_t end = 0;
    hp_err err = HP_OK;
    for (int i = 0; i < n->n_in && !err; i++) {
        hp_tensor t = hp_infer_in(g, n, i);
        int64_t at = start_of(n->attr, n->n_attrs, i, end);
        int sum = ((1 << (full.nd - 1)) - 1) & ~lead_mask(&full, &t);
        char suffix[8];
        snprintf(suffix, sizeof suffix, "dx%d", i);
        hp_attr attr[] = {{"d", t.dim[t.nd - 1]}, {"at", (double)at}, {"sum", sum}};
        err = hp_infer_emit(g, ctx, "slice", suffix, false, 1, (int[]){hp_grad_of(ctx, 0)}, 3, attr,
                            i, e);
        end = at + g->dim[t.dim[t.nd - 1]].size;
    }
    return err;
}

static hp_err concat_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *y = hp_call_out(c, 0);
    int64_t rows = hp_box_product(y, 0, y->nd - 1), bytes = hp_dtype_bytes(y->dtype), end = 0;
    int64_t row_bytes = y->len[y->nd - 1] * bytes;
    if (rows * row_bytes > 0)
        memset(y->data, 0, (size_t)(rows * row_bytes));
    for (int i = 0; i < c->n_in; i++) {
        const hp_operand *x = hp_call_in(c, i);
        int64_t at = start_of(c->attr, c->n_attrs, i, end), part = x->len[x->nd - 1] * bytes;
        hp_walk w = hp_walk_start(y, y->nd - 1, mask_of(c->attr, c->n_attrs, i));
        for (int64_t r = 0; r < rows && part; r++, hp_walk_next(&w))
            memcpy((char *)y->data + r * row_bytes + at * bytes,
                   (const char *)x->data + w.small * part, (size_t)part);
        end = at + x->len[x->nd - 1];
    }
    return HP_OK;
}

static void move_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
}

static hp_err slice_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int last, dim[HP_MAX_DIMS], nd = 0, out, sum = (int)hp_infer_attr(n, "sum", 0);
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (!err)
        err = hp_infer_nd(g, n, 0, 1, HP_MAX_DIMS, ".. width", e);
    if (!err)
        err = hp_infer_dtype(g, n, 0, false, e);
    if (!err)
        err = hp_infer_dim(g, n, "d", &last, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    double at = hp_infer_attr(n, "at", 0);
    if (!(at >= 0 && at + (double)g->dim[last].size <= (double)g->dim[x.dim[x.nd - 1]].size))
        return hp_infer_refuse(g, n, 0, "the slice reaches beyond its last dimension", e);
    hp_label_fresh(g, n, 0);
    hp_label_block(n, 0, x.nd - 1);
    for (int d = 0; d < x.nd - 1; d++)
        if (!(sum >> d & 1))
            dim[nd++] = x.dim[d];
    dim[nd++] = last;
    err = hp_node_output(g, n, NULL, x.dtype, nd, dim, &out, e);
    if (err)
        return err;
    for (int d = 0, o = 0; d < x.nd - 1; d++)
        if (!(sum >> d & 1))
            n->label[out][o++] = n->label[0][d];
    n->label[out][nd - 1] = (int8_t)hp_label_new(n);
    hp_label_block(n, out, nd - 1);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err slice_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    hp_tensor x = hp_infer_in(g, n, 0);
    if (hp_infer_attr(n, "sum", 0) != 0)
        return hp_fail(e, HP_EINPUT, "%s: a slice that sums has no gradient", n->name);
    hp_attr attr[] = {{"d", x.dim[x.nd - 1]}, {"at0", hp_infer_attr(n, "at", 0)}};
    return hp_infer_emit(g, ctx, "concat", "dx", false, 1, (int[]){hp_grad_of(ctx, 0)}, 2, attr, 0,
                         e);
}

static hp_err slice_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0), *y = hp_call_out(c, 0);
    int64_t rows = hp_box_product(x, 0, x->nd - 1), width = x->len[x->nd - 1],
            part = y->len[y->nd - 1];
    int64_t at = (int64_t)hp_call_attr(c, "at", 0), count = hp_box_count(y, false);
    hp_num from = hp_in_num(c, 0);
    float *sum = c->scratch;
    for (int64_t j = 0; j < count; j++)
        sum[j] = 0;
    hp_walk w = hp_walk_start(x, x->nd - 1, ~(int)hp_call_attr(c, "sum", 0));
    for (int64_t r = 0; r < rows; r++, hp_walk_next(&w))
        for (int64_t j = 0; j < part; j++)
            sum[w.small * part + j] += hp_num_get(from, r * width + at + j);
    for (int64_t j = 0; j < count; j++)
        hp_num_put(hp_out_num(c, 0), j, sum[j]);
    return HP_OK;
}

static void slice_work(const hp_call *c, hp_op_work *w)
{
    const hp_operand *y = hp_call_out(c, 0);
    hp_work_bytes(c, 0, w);
    w->scratch_bytes = hp_box_count(y, false) * (int64_t)sizeof(float);
}

const hp_op hp_op_concat = {
    {"concat", concat_infer, concat_grad}, .work = move_work, .run = concat_run};
const hp_op hp_op_slice = {
    {"slice", slice_infer, slice_grad}, .work = slice_work, .run = slice_run};

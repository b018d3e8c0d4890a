/* mul.c -- products with broadcasting, and the sum of products that is their gradient.
 *
 * `mask` (set by infer) has a bit for every dimension of the larger operand that the smaller one has. The general
 * case walks the larger operand once with an odometer over the smaller. */
#include "kern/pointwise.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

/* Marks which dimensions of `a` are those of `b`, in order; false when b is no such subset. */
static bool find_mask(const hp_tensor *a, const hp_tensor *b, int *mask)
{
    int d = 0;
    *mask = 0;
    for (int i = 0; i < a->nd && d < b->nd; i++)
        if (a->dim[i] == b->dim[d]) {
            *mask |= 1 << i;
            d++;
        }
    return d == b->nd;
}

static void label_subset(hp_node *n, int to, int from, int nd, int mask)
{
    for (int i = 0, d = 0; i < nd; i++)
        if (mask >> i & 1)
            n->label[to][d++] = n->label[from][i];
}

static hp_err mul_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_routed(g, n, 2, 2, e);
    for (int i = 0; i < 2 && !err; i++)
        err = hp_infer_dtype(g, n, i, false, e);
    if (err)
        return err;
    if (hp_infer_in(g, n, 0).nd < hp_infer_in(g, n, 1).nd) {
        int larger = n->arg[1];
        n->arg[1] = n->arg[0];
        n->arg[0] = larger;
    }
    hp_tensor a = hp_infer_in(g, n, 0), b = hp_infer_in(g, n, 1);
    int mask, out;
    if (a.nd == b.nd)
        mask = (1 << a.nd) - 1;
    else if (!find_mask(&a, &b, &mask))
        return hp_infer_refuse(
            g, n, 1, "its dimensions are not among those of the other operand, in order", e);
    if (a.route >= 0 && b.nd && b.route != a.route)
        return hp_infer_refuse(g, n, 1,
                               "routed rows multiply with rows of the same router or a scalar", e);
    hp_label_fresh(g, n, 0);
    label_subset(n, 1, 0, a.nd, mask);
    hp_node_set(g, n, "mask", mask);
    if (a.route >= 0)
        hp_node_set(g, n, "routed", 1);
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return hp_infer_like(g, n, 0, NULL, &out, e);
}

static hp_err mul_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int dy = hp_grad_of(ctx, 0), mask = (int)hp_infer_attr(n, "mask", 0);
    hp_tensor a = hp_infer_in(g, n, 0), b = hp_infer_in(g, n, 1);
    hp_err err =
        hp_infer_emit(g, ctx, "mul", "da", false, 2, (int[]){dy, n->arg[1]}, 0, NULL, 0, e);
    if (err || !hp_grad_wants(ctx, 1))
        return err;
    int in[] = {n->arg[0], dy};
    if (a.nd == b.nd && b.kind != HP_T_PARAM)
        return hp_infer_emit(g, ctx, "mul", "db", false, 2, in, 0, NULL, 1, e);
    hp_attr keep = {"keep", mask};
    return hp_infer_emit(g, ctx, "mulsum", "db", b.kind == HP_T_PARAM, 2, in, 1, &keep, 1, e);
}

static hp_err mul_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *a = hp_call_in(c, 0), *b = hp_call_in(c, 1);
    hp_num na = hp_in_num(c, 0), nb = hp_in_num(c, 1), y = hp_out_num(c, 0);
    int64_t count = hp_pointwise_count(c);
    if (a->nd == b->nd)
        HP_KERNEL(c, hp_mul, count, na, nb, y);
    else if (b->nd == 0)
        HP_KERNEL(c, hp_scale, count, hp_num_get(nb, 0), na, y);
    else {
        hp_walk w = hp_walk_start(a, a->nd, (int)hp_call_attr(c, "mask", 0));
        for (int64_t i = 0; i < count; i++, hp_walk_next(&w))
            hp_num_put(y, i, hp_num_get(na, i) * hp_num_get(nb, w.small));
    }
    return HP_OK;
}

static hp_err mulsum_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_routed(g, n, 2, 2, e);
    if (err)
        return err;
    hp_tensor a = hp_infer_in(g, n, 0), b = hp_infer_in(g, n, 1);
    int keep = (int)hp_infer_attr(n, "keep", 0), dim[HP_MAX_DIMS], nd = 0, out;
    if (a.nd != b.nd || a.route != b.route)
        return hp_infer_refuse(g, n, 1, "must have the shape of input 0", e);
    if (a.route >= 0 && keep)
        return hp_infer_refuse(g, n, 0, "routed rows can only be summed to a scalar", e);
    hp_label_fresh(g, n, 0);
    hp_label_copy(n, 1, 0, 0, 0, a.nd);
    for (int d = 0; d < a.nd; d++)
        if (keep >> d & 1)
            dim[nd++] = a.dim[d];
    if (a.route >= 0)
        hp_node_set(g, n, "routed", 1);
    err = hp_node_output(g, n, NULL, HP_F32, nd, dim, &out, e);
    if (err)
        return err;
    label_subset(n, out, 0, a.nd, keep);
    hp_infer_wide(g, n, out);
    n->reduce[0] = HP_RED_SUM;
    hp_infer_group(n, 1u << 0);
    hp_infer_group(n, 1u << 1);
    return HP_OK;
}

static hp_err mulsum_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int d = hp_grad_of(ctx, 0);
    hp_err err = hp_infer_emit(g, ctx, "mul", "da", false, 2, (int[]){n->arg[1], d}, 0, NULL, 0, e);
    if (!err)
        err = hp_infer_emit(g, ctx, "mul", "db", false, 2, (int[]){n->arg[0], d}, 0, NULL, 1, e);
    return err;
}

static hp_err mulsum_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *y = hp_call_out(c, 0);
    hp_num a = hp_in_num(c, 0), b = hp_in_num(c, 1);
    double *sum = c->scratch;
    int64_t count = hp_pointwise_count(c), kept = hp_box_count(y, false);
    for (int64_t j = 0; j < kept; j++)
        sum[j] = c->accumulate ? hp_num_get(hp_out_num(c, 0), j) : 0;
    hp_walk w =
        hp_walk_start(hp_call_in(c, 0), hp_call_in(c, 0)->nd, (int)hp_call_attr(c, "keep", 0));
    for (int64_t i = 0; i < count; i++, hp_walk_next(&w))
        sum[w.small] += (double)hp_num_get(a, i) * (double)hp_num_get(b, i);
    for (int64_t j = 0; j < kept; j++)
        hp_num_put(hp_out_num(c, 0), j, (float)sum[j]);
    return HP_OK;
}

static void mulsum_work(const hp_call *c, hp_op_work *w)
{
    hp_work_pointwise(c, w);
    w->scratch_bytes = hp_box_count(hp_call_out(c, 0), false) * (int64_t)sizeof(double);
}

const hp_op hp_op_mul = {
    {"mul", mul_infer, mul_grad}, .in_place = true, .work = hp_work_pointwise, .run = mul_run};
const hp_op hp_op_mulsum = {{"mulsum", mulsum_infer, mulsum_grad},
                            .accumulates = true,
                            .work = mulsum_work,
                            .run = mulsum_run};

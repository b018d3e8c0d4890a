/* infer.c -- labels are handed out in the order in which operands are looked at, so that equal nodes have equal labels. */
#include "op/infer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

hp_err hp_infer_routed(const hp_graph *g, const hp_node *n, int least, int most, hp_errmsg *e)
{
    const char *op = g->ops[n->kind]->name;
    if (n->n_in < least || n->n_in > most)
        return hp_fail(e, HP_EINPUT, "%s: %s takes %d to %d inputs, not %d", n->name, op, least,
                       most, n->n_in);
    for (int i = 0; i < least; i++)
        if (n->arg[i] < 0)
            return hp_fail(e, HP_EINPUT, "%s: %s needs its input %d", n->name, op, i);
    return HP_OK;
}

hp_err hp_infer_inputs(const hp_graph *g, const hp_node *n, int least, int most, hp_errmsg *e)
{
    hp_err err = hp_infer_routed(g, n, least, most, e);
    for (int i = 0; i < n->n_in && !err; i++)
        if (n->arg[i] >= 0 && g->tensor[n->arg[i]].route >= 0)
            err = hp_infer_refuse(
                g, n, i,
                "rows on their way to experts can only pass grouped and elementwise operations", e);
    return err;
}

bool hp_infer_has(const hp_node *n, int i)
{
    return i < n->n_in && n->arg[i] >= 0;
}

hp_tensor hp_infer_in(const hp_graph *g, const hp_node *n, int i)
{
    assert(n->arg[i] >= 0);
    return g->tensor[n->arg[i]];
}

hp_err hp_infer_refuse(const hp_graph *g, const hp_node *n, int i, const char *why, hp_errmsg *e)
{
    char text[256];
    return hp_fail(e, HP_EINPUT, "%s: input %d of %s is %s, but %s", n->name, i,
                   g->ops[n->kind]->name, hp_graph_shape_text(g, n->arg[i], text, sizeof text),
                   why);
}

hp_err hp_infer_nd(const hp_graph *g, const hp_node *n, int i, int lo, int hi, const char *want,
                   hp_errmsg *e)
{
    hp_tensor t = hp_infer_in(g, n, i);
    if (t.nd >= lo && t.nd <= hi)
        return HP_OK;
    char why[128];
    snprintf(why, sizeof why, "must have the dimensions %s", want);
    return hp_infer_refuse(g, n, i, why, e);
}

hp_err hp_infer_dtype(const hp_graph *g, const hp_node *n, int i, bool integer, hp_errmsg *e)
{
    if ((hp_infer_in(g, n, i).dtype == HP_I32) == integer)
        return HP_OK;
    return hp_infer_refuse(
        g, n, i, integer ? "must hold integers (i32)" : "must hold real numbers (f32 or bf16)", e);
}

double hp_infer_attr(const hp_node *n, const char *key, double missing)
{
    return hp_attr_get(n->attr, n->n_attrs, key, missing);
}

hp_err hp_infer_dim(const hp_graph *g, const hp_node *n, const char *key, int *dim, hp_errmsg *e)
{
    double id = hp_infer_attr(n, key, -1);
    if (!(id >= 0 && id < g->n_dims))
        return hp_fail(e, HP_EINPUT,
                       "%s: %s needs the attribute %s, the number of a dimension of this graph",
                       n->name, g->ops[n->kind]->name, key);
    *dim = (int)id;
    return HP_OK;
}

hp_tensor hp_infer_weight(const hp_graph *g, const hp_node *n, int i)
{
    assert(n->fwd >= 0);
    return g->tensor[g->node[n->fwd].arg[i]];
}

int hp_label_new(hp_node *n)
{
    assert(n->n_labels < HP_MAX_LABELS);
    return n->n_labels++;
}

void hp_label_fresh(const hp_graph *g, hp_node *n, int i)
{
    for (int d = 0; d < g->tensor[n->arg[i]].nd; d++)
        n->label[i][d] = (int8_t)hp_label_new(n);
}

void hp_label_copy(hp_node *n, int to, int to_d, int from, int from_d, int count)
{
    for (int d = 0; d < count; d++)
        n->label[to][to_d + d] = n->label[from][from_d + d];
}

void hp_label_block(hp_node *n, int i, int d)
{
    n->blocked[n->label[i][d]] = true;
}

void hp_infer_group(hp_node *n, uint32_t mask)
{
    assert(n->n_groups < HP_MAX_GROUPS);
    n->group[n->n_groups++] = mask;
}

void hp_infer_wide(hp_graph *g, const hp_node *n, int i)
{
    g->tensor[n->arg[i]].wide = true;
}

hp_err hp_infer_like(hp_graph *g, hp_node *n, int i, const char *suffix, int *out, hp_errmsg *e)
{
    hp_tensor t = hp_infer_in(g, n, i);
    hp_err err = hp_node_output(g, n, suffix, t.dtype, t.nd, t.dim, out, e);
    if (err)
        return err;
    hp_label_copy(n, *out, 0, i, 0, t.nd);
    g->tensor[n->arg[*out]].route = t.route;
    g->tensor[n->arg[*out]].wide |= t.wide;
    return HP_OK;
}

static hp_err same_shape(hp_graph *g, hp_node *n, int i, hp_errmsg *e)
{
    hp_tensor a = hp_infer_in(g, n, 0), b = hp_infer_in(g, n, i);
    if (a.nd != b.nd)
        return hp_infer_refuse(g, n, i, "must have the shape of input 0", e);
    if (a.route != b.route)
        return hp_infer_refuse(g, n, i, "must follow the same router as input 0", e);
    hp_label_copy(n, i, 0, 0, 0, a.nd);
    return hp_infer_dtype(g, n, i, false, e);
}

hp_err hp_infer_pointwise(hp_graph *g, hp_node *n, int least, int most, int n_out, hp_errmsg *e)
{
    hp_err err = hp_infer_routed(g, n, least, most, e);
    for (int i = least; i < n->n_in && !err; i++)
        if (n->arg[i] < 0)
            err = hp_fail(e, HP_EINPUT, "%s: input %d of %s is missing", n->name, i,
                          g->ops[n->kind]->name);
    if (err)
        return err;
    hp_label_fresh(g, n, 0);
    for (int i = 0; i < n->n_in && !err; i++)
        err = same_shape(g, n, i, e);
    for (int i = 0; i < n_out && !err; i++) {
        char suffix[16];
        int out;
        snprintf(suffix, sizeof suffix, "out%d", i);
        err = hp_infer_like(g, n, 0, i ? suffix : NULL, &out, e);
    }
    if (!err && hp_infer_in(g, n, 0).route >= 0)
        hp_node_set(g, n, "routed", 1);
    return err;
}

void hp_infer_pass(struct hp_grad *ctx, int i)
{
    hp_grad_give(ctx, i, hp_grad_is_one(ctx, 0) ? HP_GRAD_ONE : hp_grad_of(ctx, 0));
}

hp_err hp_infer_emit(hp_graph *g, struct hp_grad *ctx, const char *op, const char *suffix,
                     bool weight, int n_in, const int *in, int n_attrs, const hp_attr *attr, int to,
                     hp_errmsg *e)
{
    if (!hp_grad_wants(ctx, to))
        return HP_OK;
    int node;
    hp_err err = hp_grad_node(ctx, op, suffix, weight, n_in, in, n_attrs, attr, &to, &node, e);
    if (!err)
        hp_grad_give(ctx, to, g->node[node].arg[n_in]);
    return err;
}

hp_err hp_infer_emit_bias(hp_graph *g, struct hp_grad *ctx, int to, hp_errmsg *e)
{
    int in[] = {hp_grad_of(ctx, 0)};
    hp_attr input = {"input", to};
    return hp_infer_emit(g, ctx, "bias_dw", "db", true, 1, in, 1, &input, to, e);
}

/* autodiff.c -- reverse mode over the forward nodes, last first.
 *
 * A node is visited when all its consumers have been: the contributions to its outputs are summed, then the operation's
 * `grad` row emits its nodes. Only tensors that depend on a trained parameter get a gradient. */
#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ADD = 8 };

typedef struct contribs {
    int n, cap;
    int *t; /* tensor ids or HP_GRAD_ONE */
} contribs;

struct hp_grad {
    hp_graph *g;
    int fwd;    /* the node being visited */
    hp_node at; /* a copy: the graph's array moves while nodes are added */
    int n;      /* forward tensors */
    bool *needs;
    contribs *got;
    int *whole; /* summed gradient of each tensor, -1 none (yet) */
    int one;    /* the tensor with the constant 1, -1 not made */
    hp_err err;
    hp_errmsg *e;
};

static void keep_error(struct hp_grad *c, hp_err err)
{
    if (!c->err)
        c->err = err;
}

/* --- what depends on a trained parameter --------------------------------------------------------------------- */

static void find_needs(struct hp_grad *c, int n_nodes)
{
    for (int t = 0; t < c->n; t++)
        c->needs[t] = c->g->tensor[t].kind == HP_T_PARAM && !c->g->tensor[t].frozen;
    for (int k = 0; k < n_nodes; k++) {
        const hp_node *n = &c->g->node[k];
        bool any = false;
        for (int i = 0; i < n->n_in; i++)
            any |= n->arg[i] >= 0 && c->needs[n->arg[i]];
        for (int i = n->n_in; i < n->n_in + n->n_out; i++)
            c->needs[n->arg[i]] = any && c->g->tensor[n->arg[i]].dtype != HP_I32;
    }
}

/* --- the rows' view ------------------------------------------------------------------------------------------ */

static int output(const struct hp_grad *c, int i)
{
    assert(i >= 0 && i < c->at.n_out);
    return c->at.arg[c->at.n_in + i];
}

bool hp_grad_wants(const struct hp_grad *c, int i)
{
    assert(i >= 0 && i < c->at.n_in);
    return c->at.arg[i] >= 0 && c->needs[c->at.arg[i]];
}

bool hp_grad_is_one(const struct hp_grad *c, int i)
{
    return c->whole[output(c, i)] == HP_GRAD_ONE;
}

static int make_one(struct hp_grad *c)
{
    if (c->one < 0 && !c->err) {
        int node;
        hp_attr value = {"value", 1};
        keep_error(c, hp_graph_add_in(c->g, "fill", "loss/one", HP_P_INIT, -1, 0, NULL, 1, &value,
                                      &node, c->e));
        if (!c->err)
            c->one = c->g->node[node].arg[0];
    }
    return c->one;
}

int hp_grad_of(struct hp_grad *c, int i)
{
    int t = c->whole[output(c, i)];
    return t == HP_GRAD_ONE ? make_one(c) : t;
}

void hp_grad_give(struct hp_grad *c, int i, int t)
{
    if (c->err || t == -1 || !hp_grad_wants(c, i))
        return;
    int to = c->at.arg[i];
    const hp_tensor *x = &c->g->tensor[to];
    if (x->kind == HP_T_PARAM && (t < 0 || c->g->tensor[t].kind != HP_T_WGRAD)) {
        keep_error(c, hp_fail(c->e, HP_EINPUT,
                              "%s (%s): parameter %s cannot be trained as operand %d; use it in an "
                              "operation with a weight gradient, or freeze it",
                              c->at.name, c->g->ops[c->at.kind]->name, x->name, i));
        return;
    }
    contribs *k = &c->got[to];
    k->t = hp_grow(k->t, &k->cap, k->n + 1, sizeof *k->t);
    k->t[k->n++] = t;
}

hp_err hp_grad_node(struct hp_grad *c, const char *op, const char *suffix, bool weight, int n_in,
                    const int *in, int n_attrs, const hp_attr *attr, const int *of, int *node,
                    hp_errmsg *e)
{
    if (c->err)
        return c->err;
    char name[512];
    snprintf(name, sizeof name, "%s/%s", c->at.name, suffix);
    hp_err err = hp_graph_add_in(c->g, op, name, weight ? HP_P_WGRAD : HP_P_BWD, c->fwd, n_in, in,
                                 n_attrs, attr, node, e);
    if (err)
        return err;
    const hp_node *n = &c->g->node[*node];
    for (int i = 0; i < n->n_out; i++)
        if (of[i] >= 0)
            c->g->tensor[n->arg[n->n_in + i]].of = c->at.arg[of[i]];
    return HP_OK;
}

/* --- sums and names ------------------------------------------------------------------------------------------ */

static void rename_tensor(hp_graph *g, int id, const char *name)
{
    g->tensor[id].name = hp_arena_strdup(&g->arena, name);
    hp_map_put(&g->tensor_id, name, id);
}

/* Adds up to eight contributions in one node; more in a chain of them. */
static int sum_up(struct hp_grad *c, int of, const contribs *k)
{
    char name[512];
    int in[MAX_ADD], at = 0, sum = -1;
    for (int part = 0; at < k->n && !c->err; part++) {
        int n = 0, node;
        if (sum >= 0)
            in[n++] = sum;
        while (n < MAX_ADD && at < k->n) {
            int t = k->t[at++];
            in[n++] = t == HP_GRAD_ONE ? make_one(c) : t;
        }
        snprintf(name, sizeof name, part ? "%s/dsum.%d" : "%s/dsum", c->g->tensor[of].name, part);
        if (c->err)
            break;
        keep_error(c, hp_graph_add_in(c->g, "add", name, HP_P_BWD, c->g->tensor[of].producer, n, in,
                                      0, NULL, &node, c->e));
        if (!c->err)
            sum = c->g->node[node].arg[n];
    }
    if (sum >= 0)
        c->g->tensor[sum].of = of;
    return sum;
}

/* The gradient of `t`, now that all its consumers have been visited; called "grad:<t>" where it is t's own. */
static void finish(struct hp_grad *c, int t)
{
    const contribs *k = &c->got[t];
    if (k->n == 0)
        return;
    int whole = k->n == 1 ? k->t[0] : sum_up(c, t, k);
    c->whole[t] = whole;
    if (c->err || whole < 0 || c->g->tensor[whole].of != t)
        return;
    char name[512];
    snprintf(name, sizeof name, "grad:%s", c->g->tensor[t].name);
    rename_tensor(c->g, whole, name);
}

static void visit(struct hp_grad *c, int k)
{
    c->fwd = k;
    c->at = c->g->node[k];
    bool reached = false, wanted = false;
    for (int i = 0; i < c->at.n_out; i++) {
        finish(c, output(c, i));
        reached |= c->whole[output(c, i)] != -1;
    }
    for (int i = 0; i < c->at.n_in; i++)
        wanted |= hp_grad_wants(c, i);
    if (!reached || !wanted || c->err)
        return;
    const hp_graph_op *op = c->g->ops[c->at.kind];
    if (!op->grad)
        keep_error(c, hp_fail(c->e, HP_EINPUT, "%s: %s has no gradient, but the loss depends on it",
                              c->at.name, op->name));
    else
        keep_error(c, op->grad(c->g, &c->at, c, c->e));
}

static void mark_saved(hp_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const hp_node *n = &g->node[k];
        for (int i = 0; i < n->n_in && n->phase >= HP_P_BWD; i++) {
            hp_tensor *t = n->arg[i] < 0 ? NULL : &g->tensor[n->arg[i]];
            if (t && t->kind != HP_T_GRAD && t->kind != HP_T_WGRAD)
                t->saved = true;
        }
    }
}

static void free_state(struct hp_grad *c)
{
    for (int t = 0; t < c->n; t++)
        free(c->got[t].t);
    free(c->got);
    free(c->needs);
    free(c->whole);
}

static hp_err check_loss(const hp_graph *g, int loss, hp_errmsg *e)
{
    if (loss < 0 || loss >= g->n_tensors)
        return hp_fail(e, HP_EINPUT, "the model %s has no loss; it must return a scalar", g->name);
    char text[256];
    if (g->tensor[loss].nd != 0 || g->tensor[loss].dtype != HP_F32)
        return hp_fail(e, HP_EINPUT, "the loss %s is not an f32 scalar",
                       hp_graph_shape_text(g, loss, text, sizeof text));
    for (int k = 0; k < g->n_nodes; k++)
        if (g->node[k].phase >= HP_P_BWD)
            return hp_fail(e, HP_EINPUT, "the model %s has gradients already", g->name);
    return HP_OK;
}

hp_err hp_graph_autodiff(hp_graph *g, int loss, hp_errmsg *e)
{
    hp_err err = check_loss(g, loss, e);
    if (err)
        return err;
    int n_nodes = g->n_nodes;
    struct hp_grad c = {.g = g, .n = g->n_tensors, .one = -1, .e = e};
    c.needs = hp_xcalloc((size_t)c.n, sizeof *c.needs);
    c.got = hp_xcalloc((size_t)c.n, sizeof *c.got);
    c.whole = hp_xmalloc((size_t)c.n * sizeof *c.whole);
    for (int t = 0; t < c.n; t++)
        c.whole[t] = -1;
    find_needs(&c, n_nodes);
    g->loss = loss;
    c.got[loss].t = hp_grow(NULL, &c.got[loss].cap, 1, sizeof(int));
    c.got[loss].t[c.got[loss].n++] = HP_GRAD_ONE;
    for (int k = n_nodes - 1; k >= 0 && !c.err; k--)
        visit(&c, k);
    for (int t = 0; t < c.n && !c.err; t++)
        if (g->tensor[t].kind == HP_T_PARAM && c.got[t].n == 1)
            finish(&c, t);
    if (!c.err)
        mark_saved(g);
    free_state(&c);
    return c.err;
}

/* graph.c -- tensors and nodes live in growing arrays, names in the arena. A node is built on the stack and copied in when
 * its labels are proved; a refused one leaves nothing behind. */
#include "graph/graph.h"

#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtype_names[] = {"f32", "bf16", "i32"};
static const char *const reduce_names[] = {"none", "sum",  "max", "min",
                                           "avg",  "prod", "all", "lse"};
enum { N_DTYPES = 3, N_REDUCES = 8 };

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int hp_dtype_bytes(hp_dtype t)
{
    return t == HP_BF16 ? 2 : 4;
}

const char *hp_dtype_name(hp_dtype t)
{
    return dtype_names[t];
}

int hp_dtype_find(const char *name)
{
    return find_name(dtype_names, N_DTYPES, name);
}

const char *hp_reduce_name(hp_reduce r)
{
    return reduce_names[r];
}

int hp_reduce_find(const char *name)
{
    return find_name(reduce_names, N_REDUCES, name);
}

hp_graph *hp_graph_new(const char *name, const hp_graph_op *const *ops)
{
    hp_graph *g = hp_xcalloc(1, sizeof *g);
    g->name = hp_arena_strdup(&g->arena, name);
    g->ops = ops;
    g->loss = -1;
    g->train = (hp_train){.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip = 1};
    return g;
}

void hp_graph_free(hp_graph *g)
{
    if (!g)
        return;
    hp_map_fini(&g->dim_id);
    hp_map_fini(&g->tensor_id);
    hp_arena_fini(&g->arena);
    free(g->dim);
    free(g->tensor);
    free(g->node);
    free(g);
}

hp_err hp_graph_dim(hp_graph *g, const char *name, int64_t size, int *id, hp_errmsg *e)
{
    if (size < 0)
        return hp_fail(e, HP_EINPUT, "dimension %s: size %lld is negative; 0 means free", name,
                       (long long)size);
    int at = hp_map_get(&g->dim_id, name, -1);
    if (at < 0) {
        g->dim = hp_grow(g->dim, &g->cap_dims, g->n_dims + 1, sizeof *g->dim);
        at = g->n_dims++;
        g->dim[at] = (hp_dim){.name = hp_arena_strdup(&g->arena, name), .size = size};
        hp_map_put(&g->dim_id, name, at);
    } else if (g->dim[at].size != size) {
        return hp_fail(e, HP_EINPUT, "dimension %s has size %lld and cannot become %lld", name,
                       (long long)g->dim[at].size, (long long)size);
    }
    *id = at;
    return HP_OK;
}

hp_err hp_graph_bind(hp_graph *g, const char *dim, int64_t size, hp_errmsg *e)
{
    int id = hp_map_get(&g->dim_id, dim, -1);
    if (id < 0)
        return hp_fail(e, HP_EINPUT, "the model %s has no dimension %s to bind to %lld", g->name,
                       dim, (long long)size);
    if (size < 1)
        return hp_fail(e, HP_EINPUT, "dimension %s cannot have size %lld; it must be at least 1",
                       dim, (long long)size);
    g->dim[id].size = size;
    return HP_OK;
}

hp_err hp_graph_tensor(hp_graph *g, const char *name, hp_tkind kind, hp_dtype t, int nd,
                       const int *dim, int *id, hp_errmsg *e)
{
    assert(nd >= 0 && nd <= HP_MAX_DIMS);
    if (hp_map_get(&g->tensor_id, name, -1) >= 0)
        return hp_fail(e, HP_EINPUT, "two tensors would be called %s; names must be unique", name);
    g->tensor = hp_grow(g->tensor, &g->cap_tensors, g->n_tensors + 1, sizeof *g->tensor);
    hp_tensor *x = &g->tensor[g->n_tensors];
    *x = (hp_tensor){.name = hp_arena_strdup(&g->arena, name),
                     .kind = kind,
                     .dtype = t,
                     .nd = nd,
                     .producer = -1,
                     .of = -1,
                     .route = -1};
    if (nd)
        memcpy(x->dim, dim, (size_t)nd * sizeof *dim);
    g->n_inputs += kind == HP_T_INPUT;
    hp_map_put(&g->tensor_id, name, g->n_tensors);
    *id = g->n_tensors++;
    return HP_OK;
}

double hp_attr_get(const hp_attr *attr, int n, const char *key, double missing)
{
    for (int i = 0; i < n; i++)
        if (strcmp(attr[i].key, key) == 0)
            return attr[i].value;
    return missing;
}

int64_t hp_graph_size(const hp_graph *g, int tensor)
{
    int64_t size = 1;
    for (int d = 0; d < g->tensor[tensor].nd; d++)
        size *= g->dim[g->tensor[tensor].dim[d]].size;
    return size;
}

int64_t hp_graph_params(const hp_graph *g)
{
    int64_t n = 0;
    for (int t = 0; t < g->n_tensors; t++)
        if (g->tensor[t].kind == HP_T_PARAM || g->tensor[t].kind == HP_T_BUFFER)
            n += hp_graph_size(g, t);
    return n;
}

char *hp_graph_shape_text(const hp_graph *g, int tensor, char *buf, size_t n)
{
    const hp_tensor *t = &g->tensor[tensor];
    hp_str s = {0};
    hp_str_add(&s, "%s[", t->name);
    for (int d = 0; d < t->nd; d++) {
        const hp_dim *x = &g->dim[t->dim[d]];
        hp_str_add(&s, x->size ? "%s%s=%lld" : "%s%s", d ? " " : "", x->name, (long long)x->size);
    }
    hp_str_add(&s, "]");
    snprintf(buf, n, "%s", hp_str_text(&s));
    hp_str_fini(&s);
    return buf;
}

/* --- nodes ------------------------------------------------------------------------------------------------ */

static int find_op(const hp_graph *g, const char *op)
{
    for (int i = 0; g->ops[i]; i++)
        if (strcmp(g->ops[i]->name, op) == 0)
            return i;
    return -1;
}

static hp_err unknown_op(const hp_graph *g, const char *op, const char *name, hp_errmsg *e)
{
    const char *names[256];
    int n = 0;
    while (n < 256 && g->ops[n]) {
        names[n] = g->ops[n]->name;
        n++;
    }
    const char *close = hp_near(op, names, n);
    return hp_fail(e, HP_EINPUT, "%s: there is no operation %s; the nearest is %s", name, op,
                   close ? close : "none");
}

/* Two dimensions under one label must have one size: the same dimension, or two of equal known size. */
static bool same_size(const hp_graph *g, int a, int b)
{
    return a == b || (g->dim[a].size == g->dim[b].size && g->dim[a].size > 0);
}

static hp_err check_labels(const hp_graph *g, const hp_node *n, hp_errmsg *e)
{
    int operand[HP_MAX_LABELS], dim[HP_MAX_LABELS];
    for (int l = 0; l < HP_MAX_LABELS; l++)
        operand[l] = -1;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const hp_tensor *t = n->arg[i] < 0 ? NULL : &g->tensor[n->arg[i]];
        for (int d = 0; t && d < t->nd; d++) {
            int l = n->label[i][d];
            assert(l >= 0 && l < n->n_labels);
            if (operand[l] < 0) {
                operand[l] = i;
                dim[l] = t->dim[d];
            } else if (!same_size(g, dim[l], t->dim[d])) {
                char a[256], b[256];
                return hp_fail(e, HP_EINPUT,
                               "%s (%s): dimension %s of %s must be as large as %s of %s", n->name,
                               g->ops[n->kind]->name, g->dim[t->dim[d]].name,
                               hp_graph_shape_text(g, n->arg[i], a, sizeof a), g->dim[dim[l]].name,
                               hp_graph_shape_text(g, n->arg[operand[l]], b, sizeof b));
            }
        }
    }
    return HP_OK;
}

/* Copies inputs and attributes in; a node whose inputs all exist once a step is one of the step itself. */
static hp_err fill_node(hp_graph *g, hp_node *n, int n_in, const int *in, int n_attrs,
                        const hp_attr *attr, hp_errmsg *e)
{
    if (n_in < 0 || n_in >= HP_MAX_OPERANDS || n_attrs > HP_MAX_ATTRS - 1)
        return hp_fail(e, HP_EINPUT,
                       "%s: %d inputs and %d attributes are too many; at most %d and %d", n->name,
                       n_in, n_attrs, HP_MAX_OPERANDS - 1, HP_MAX_ATTRS - 1);
    int once = 0, given = 0;
    for (int i = 0; i < n_in; i++) {
        if (in[i] < -1 || in[i] >= g->n_tensors)
            return hp_fail(e, HP_EINPUT, "%s: input %d is no tensor of this graph", n->name, i);
        n->arg[i] = in[i];
        given += in[i] >= 0;
        once += in[i] >= 0 && g->tensor[in[i]].kind == HP_T_STEP;
    }
    n->n_in = n_in;
    if (given && once == given)
        n->phase = HP_P_INIT;
    for (int i = 0; i < n_attrs; i++)
        hp_node_set(g, n, attr[i].key, attr[i].value);
    return HP_OK;
}

/* Takes back the outputs of a node that was refused. */
static void forget_tensors(hp_graph *g, int n)
{
    while (g->n_tensors > n)
        hp_map_put(&g->tensor_id, g->tensor[--g->n_tensors].name, -1);
}

hp_err hp_graph_add_in(hp_graph *g, const char *op, const char *name, hp_phase phase, int fwd,
                       int n_in, const int *in, int n_attrs, const hp_attr *attr, int *node,
                       hp_errmsg *e)
{
    int kind = find_op(g, op);
    if (kind < 0)
        return unknown_op(g, op, name, e);
    if (!g->ops[kind]->infer)
        return hp_fail(e, HP_EINPUT,
                       "%s: %s is a step of the optimizer and has no place in a model", name, op);
    hp_node n = {
        .name = hp_arena_strdup(&g->arena, name), .kind = kind, .phase = phase, .fwd = fwd};
    int n_tensors = g->n_tensors;
    hp_err err = fill_node(g, &n, n_in, in, n_attrs, attr, e);
    if (!err)
        err = g->ops[kind]->infer(g, &n, e);
    if (!err)
        err = check_labels(g, &n, e);
    if (err) {
        forget_tensors(g, n_tensors);
        return err;
    }
    g->node = hp_grow(g->node, &g->cap_nodes, g->n_nodes + 1, sizeof *g->node);
    g->node[g->n_nodes] = n;
    *node = g->n_nodes++;
    return HP_OK;
}

hp_err hp_graph_add(hp_graph *g, const char *op, const char *name, int n_in, const int *in,
                    int n_attrs, const hp_attr *attr, int *node, hp_errmsg *e)
{
    return hp_graph_add_in(g, op, name, HP_P_FWD, -1, n_in, in, n_attrs, attr, node, e);
}

/* --- for infer rows --------------------------------------------------------------------------------------- */

void hp_node_set(hp_graph *g, hp_node *n, const char *key, double value)
{
    assert(n->n_attrs < HP_MAX_ATTRS);
    n->attr[n->n_attrs++] = (hp_attr){.key = hp_arena_strdup(&g->arena, key), .value = value};
}

hp_err hp_node_output(hp_graph *g, hp_node *n, const char *suffix, hp_dtype t, int nd,
                      const int *dim, int *operand, hp_errmsg *e)
{
    static const hp_tkind kind_of[] = {[HP_P_INIT] = HP_T_STEP,
                                       [HP_P_FWD] = HP_T_ACT,
                                       [HP_P_BWD] = HP_T_GRAD,
                                       [HP_P_WGRAD] = HP_T_WGRAD};
    assert(n->n_in + n->n_out < HP_MAX_OPERANDS);
    char name[512];
    snprintf(name, sizeof name, suffix ? "%s.%s" : "%s", n->name, suffix);
    int id;
    hp_err err = hp_graph_tensor(g, name, kind_of[n->phase], t, nd, dim, &id, e);
    if (err)
        return err;
    g->tensor[id].producer = g->n_nodes;
    g->tensor[id].wide = nd == 0 || n->phase == HP_P_INIT || n->phase == HP_P_WGRAD;
    *operand = n->n_in + n->n_out++;
    n->arg[*operand] = id;
    return HP_OK;
}

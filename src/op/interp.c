/* interp.c -- tensors are allocated when first written and freed at the end of their microbatch or step. */
#include "op/interp.h"

#include "base/mem.h"
#include "kern/routed.h"
#include "op/init.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct hp_interp {
    hp_interp_in in;
    int64_t n_micro;
    void **value;           /* [tensors] this microbatch's or step's values, NULL not computed */
    int64_t *rows;          /* [tensors] rows of routed ones */
    float **grad, **m, **v; /* [tensors] of trained parameters */
    hp_interp_out out;
};

static bool is_state(const hp_tensor *t)
{
    return t->kind == HP_T_PARAM || t->kind == HP_T_BUFFER;
}

static bool is_trained(const hp_tensor *t)
{
    return t->kind == HP_T_PARAM && !t->frozen;
}

/* Inputs of the whole step have the microbatch as a dimension. */
static bool whole_step(const hp_graph *g, const hp_tensor *t)
{
    for (int d = 0; d < t->nd; d++)
        if (strcmp(g->dim[t->dim[d]].name, "micro") == 0)
            return true;
    return t->kind == HP_T_STEP;
}

static hp_operand operand(const hp_interp *it, int tensor)
{
    const hp_tensor *t = &it->in.g->tensor[tensor];
    hp_operand o = {
        .data = it->value[tensor], .dtype = t->dtype, .nd = t->nd, .rows = it->rows[tensor]};
    for (int d = 0; d < t->nd; d++)
        o.len[d] = o.full[d] = it->in.g->dim[t->dim[d]].size;
    return o;
}

/* --- life ------------------------------------------------------------------------------------------------- */

static void start_param(hp_interp *it, int tensor)
{
    const hp_tensor *t = &it->in.g->tensor[tensor];
    size_t n = (size_t)hp_graph_size(it->in.g, tensor);
    it->value[tensor] = hp_xcalloc(n, sizeof(float));
    hp_operand o = operand(it, tensor);
    hp_init_fill(&o, t->name, t->init, t->init_std, it->in.seed);
    if (!is_trained(t))
        return;
    it->grad[tensor] = hp_xcalloc(n, sizeof(float));
    it->m[tensor] = hp_xcalloc(n, sizeof(float));
    it->v[tensor] = hp_xcalloc(n, sizeof(float));
}

hp_interp *hp_interp_new(const hp_interp_in *in)
{
    hp_interp *it = hp_xcalloc(1, sizeof *it);
    size_t n = (size_t)in->g->n_tensors;
    it->in = *in;
    int micro = hp_map_get(&in->g->dim_id, "micro", -1);
    it->n_micro = micro < 0 ? 1 : in->g->dim[micro].size;
    it->value = hp_xcalloc(n, sizeof *it->value);
    it->rows = hp_xcalloc(n, sizeof *it->rows);
    it->grad = hp_xcalloc(n, sizeof *it->grad);
    it->m = hp_xcalloc(n, sizeof *it->m);
    it->v = hp_xcalloc(n, sizeof *it->v);
    for (int t = 0; t < in->g->n_tensors; t++)
        if (is_state(&in->g->tensor[t]))
            start_param(it, t);
    return it;
}

void hp_interp_free(hp_interp *it)
{
    if (!it)
        return;
    for (int t = 0; t < it->in.g->n_tensors; t++) {
        free(it->value[t]);
        free(it->grad[t]);
        free(it->m[t]);
        free(it->v[t]);
    }
    free(it->value);
    free(it->rows);
    free(it->grad);
    free(it->m);
    free(it->v);
    free(it);
}

/* Frees what a microbatch (or, `all`, a step) computed. */
static void forget(hp_interp *it, bool all)
{
    for (int t = 0; t < it->in.g->n_tensors; t++) {
        const hp_tensor *x = &it->in.g->tensor[t];
        if (is_state(x) || (whole_step(it->in.g, x) && !all))
            continue;
        free(it->value[t]);
        it->value[t] = NULL;
    }
}

/* --- running nodes ---------------------------------------------------------------------------------------- */

static void show(const hp_interp *it, int tensor, int64_t step, int64_t micro)
{
    hp_operand o = operand(it, tensor);
    if (it->in.tap)
        it->in.tap(it->in.tap_ctx, tensor, step, micro, &o);
}

static void make(hp_interp *it, int tensor)
{
    const hp_tensor *t = &it->in.g->tensor[tensor];
    int64_t n = hp_graph_size(it->in.g, tensor);
    if (t->route >= 0) {
        hp_operand idx = operand(it, t->route), x = operand(it, tensor);
        it->rows[tensor] =
            hp_route_rows(idx.len[0] * idx.len[1], idx.len[2], idx.data, 0, x.len[2]);
        n = it->rows[tensor] * x.len[3];
    }
    it->value[tensor] = hp_xcalloc((size_t)n, (size_t)hp_dtype_bytes(t->dtype));
}

static hp_err load(hp_interp *it, bool once, int64_t step, int64_t micro, hp_errmsg *e)
{
    for (int t = 0; t < it->in.g->n_tensors; t++) {
        const hp_tensor *x = &it->in.g->tensor[t];
        if (x->kind != HP_T_INPUT || whole_step(it->in.g, x) != once)
            continue;
        make(it, t);
        hp_operand o = operand(it, t);
        hp_err err = it->in.fill(it->in.fill_ctx, x->name, step, micro, &o, e);
        if (err)
            return err;
        show(it, t, step, micro);
    }
    return HP_OK;
}

/* Gives a router the choices it has to make, an optional input that graphs leave out; the caller frees them. */
static void *give_choices(hp_interp *it, int node, hp_call *c, int64_t step, int64_t micro)
{
    enum { GIVEN = 2 };
    const hp_node *n = &it->in.g->node[node];
    if (!it->in.choices || strcmp(it->in.g->ops[n->kind]->name, "router"))
        return NULL;
    hp_operand o = operand(it, n->arg[n->n_in]);
    o.data = hp_xcalloc((size_t)hp_graph_size(it->in.g, n->arg[n->n_in]), sizeof(int32_t));
    if (!it->in.choices(it->in.choices_ctx, node, step, micro, &o)) {
        free(o.data);
        return NULL;
    }
    memmove(&c->arg[GIVEN + 1], &c->arg[n->n_in], (size_t)n->n_out * sizeof *c->arg);
    for (int i = n->n_in; i < GIVEN; i++)
        c->arg[i].nd = -1;
    c->arg[GIVEN] = o;
    c->n_in = GIVEN + 1;
    return o.data;
}

static hp_err run_node(hp_interp *it, int node, int64_t step, int64_t micro, hp_errmsg *e)
{
    const hp_node *n = &it->in.g->node[node];
    const hp_op *op = hp_op_find(it->in.g->ops[n->kind]->name);
    hp_call c = {.name = n->name,
                 .n_in = n->n_in,
                 .n_out = n->n_out,
                 .n_attrs = n->n_attrs,
                 .attr = n->attr,
                 .kernels = HP_KERN_REFERENCE,
                 .threads = 1,
                 .seed = it->in.seed,
                 .step = step,
                 .micro = micro};
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        if (i >= n->n_in)
            make(it, n->arg[i]);
        c.arg[i] = n->arg[i] < 0 ? (hp_operand){.nd = -1} : operand(it, n->arg[i]);
    }
    void *given = give_choices(it, node, &c, step, micro);
    hp_op_work work = {0};
    op->work(&c, &work);
    c.scratch = aligned_alloc(64, ((size_t)work.scratch_bytes + 127) / 64 * 64);
    hp_err err = op->run(&c, e);
    free(c.scratch);
    free(given);
    for (int i = n->n_in; i < n->n_in + n->n_out && !err; i++)
        show(it, n->arg[i], step, micro);
    return err;
}

static void add_up(hp_interp *it)
{
    for (int t = 0; t < it->in.g->n_tensors; t++) {
        const hp_tensor *x = &it->in.g->tensor[t];
        if (x->kind != HP_T_WGRAD)
            continue;
        const float *from = it->value[t];
        float *to = it->grad[x->of];
        for (int64_t i = 0; i < hp_graph_size(it->in.g, t); i++)
            to[i] += from[i];
    }
}

static hp_err run_phase(hp_interp *it, bool init, int64_t step, int64_t micro, hp_errmsg *e)
{
    hp_err err = load(it, init, step, micro, e);
    for (int k = 0; k < it->in.g->n_nodes && !err; k++)
        if ((it->in.g->node[k].phase == HP_P_INIT) == init)
            err = run_node(it, k, step, micro, e);
    return err;
}

hp_err hp_interp_gradients(hp_interp *it, int64_t step, hp_errmsg *e)
{
    const hp_graph *g = it->in.g;
    it->out = (hp_interp_out){.clip_scale = 1};
    for (int t = 0; t < g->n_tensors; t++)
        if (it->grad[t])
            memset(it->grad[t], 0, (size_t)hp_graph_size(g, t) * sizeof(float));
    hp_err err = run_phase(it, true, step, -1, e);
    for (int64_t micro = 0; micro < it->n_micro && !err; micro++) {
        err = run_phase(it, false, step, micro, e);
        if (!err && g->loss >= 0)
            it->out.loss += *(const float *)it->value[g->loss];
        if (!err)
            add_up(it);
        forget(it, false);
    }
    forget(it, true);
    double sum = 0;
    for (int t = 0; t < g->n_tensors; t++)
        for (int64_t i = 0; it->grad[t] && i < hp_graph_size(g, t); i++)
            sum += (double)it->grad[t][i] * (double)it->grad[t][i];
    it->out.grad_norm = sqrt(sum);
    return err;
}

/* --- the optimizer ---------------------------------------------------------------------------------------- */

static void update(hp_interp *it, int tensor, int64_t step)
{
    const hp_train *tr = &it->in.g->train;
    const hp_attr attr[] = {{"lr", tr->lr},
                            {"beta1", tr->beta1},
                            {"beta2", tr->beta2},
                            {"eps", tr->eps},
                            {"decay", it->in.g->tensor[tensor].decay ? tr->decay : 0},
                            {"warmup", tr->warmup}};
    hp_operand p = operand(it, tensor), m = p, v = p, g = p, scale = {.data = &it->out.clip_scale};
    m.data = it->m[tensor];
    v.data = it->v[tensor];
    g.data = it->grad[tensor];
    hp_call adamw = {.n_in = 5, .n_out = 3, .arg = {p, m, v, g, scale, p, m, v}};
    hp_call sgd = {.n_in = 3, .n_out = 1, .arg = {p, g, scale, p}};
    hp_call c = tr->sgd ? sgd : adamw;
    c.name = it->in.g->tensor[tensor].name;
    c.attr = attr;
    c.n_attrs = sizeof attr / sizeof *attr;
    c.threads = 1;
    c.step = step;
    hp_errmsg e;
    hp_err err = hp_op_find(tr->sgd ? "sgd" : "adamw")->run(&c, &e);
    assert(!err);
    (void)err;
}

hp_err hp_interp_step(hp_interp *it, int64_t step, hp_errmsg *e)
{
    hp_err err = hp_interp_gradients(it, step, e);
    if (err)
        return err;
    double clip = it->in.g->train.clip;
    if (clip > 0) /* torch.nn.utils.clip_grad_norm_ */
        it->out.clip_scale = (float)fmin(1, clip / (it->out.grad_norm + 1e-6));
    for (int t = 0; t < it->in.g->n_tensors; t++)
        if (it->grad[t])
            update(it, t, step);
    return HP_OK;
}

const hp_interp_out *hp_interp_result(const hp_interp *it)
{
    return &it->out;
}

float *hp_interp_param(const hp_interp *it, int tensor)
{
    return is_state(&it->in.g->tensor[tensor]) ? it->value[tensor] : NULL;
}

float *hp_interp_grad(const hp_interp *it, int tensor)
{
    return it->grad[tensor];
}

float *hp_interp_m(const hp_interp *it, int tensor)
{
    return it->m[tensor];
}

float *hp_interp_v(const hp_interp *it, int tensor)
{
    return it->v[tensor];
}

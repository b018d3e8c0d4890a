/* check.c -- the engine runs first and its router choices are recorded; the reference is given them
 * where its own differ.
 *
 * A router that chooses otherwise changes all that follows, so the comparison goes router by router
 * in the order of the graph: the first that differs is judged by its margin, given the engine's
 * choices, and the reference runs again from there. */
#include "session/check.h"

#include "exec/run.h"
#include "op/interp.h"
#include "session/gather.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a program updates a parameter from a complete gradient. */
typedef struct update {
    int program, tensor;
    int grad, param; /* buffers */
} update;

/* A persistent buffer that holds a parameter after the step: as stored, or a master copy. */
typedef struct holder {
    int program, buffer, tensor;
} holder;

/* A value of the reference, kept: [step][tensor][micro + 1]. */
typedef struct kept {
    float *value;
    int64_t n;
} kept;

typedef struct check {
    const hp_graph *g;
    const hp_plan *p;
    const hp_check_options *o;
    hp_check_report *r;
    hp_corpus corpus;
    hp_interp *ref;
    kept *kept; /* of the reference */
    int n_micros;
    int64_t steps;
    bool *routing; /* by tensor: choices and the logits they were made from */
    int32_t **choices; /* the engine's, by [step][node][micro + 1] of routers */
    int given;     /* routers up to this node take the engine's choices in the reference; -1: all choose */
    bool all;      /* every tensor is watched, not only choices and gradients */
    hp_gather *seen;
    int n_updates;
    update *update;
    int n_holders;
    holder *holder;
    bool *is_grad[64]; /* per program: buffers that hold a complete gradient */
    double loss, grad_norm; /* of the engine's last step */
    pthread_mutex_t lock;
} check;

static int64_t max_size(const check *c)
{
    int64_t most = 1;
    for (int t = 0; t < c->g->n_tensors; t++) {
        int64_t n = c->g->tensor[t].route >= 0 ? 0 : hp_graph_size(c->g, t);
        most = n > most ? n : most;
    }
    return most;
}

/* --- the reference --- */

static kept *kept_at(const check *c, int64_t step, int tensor, int64_t micro)
{
    return &c->kept[(step * c->g->n_tensors + tensor) * c->n_micros + micro + 1];
}

/* Router choices and the logits they were made from are always kept. */
static void find_routing(check *c)
{
    c->routing = hp_xcalloc((size_t)c->g->n_tensors + 1, sizeof *c->routing);
    for (int n = 0; n < c->g->n_nodes; n++) {
        const hp_node *node = &c->g->node[n];
        if (strcmp(c->g->ops[node->kind]->name, "router") == 0)
            c->routing[node->arg[0]] = c->routing[node->arg[node->n_in]] = true;
    }
}

static void keep_value(void *ctx, int tensor, int64_t step, int64_t micro, const hp_operand *v)
{
    check *c = ctx;
    bool last = step + 1 == c->steps;
    if (c->g->tensor[tensor].route >= 0 || v->nd < 0 || !((c->all && last) || c->routing[tensor]))
        return;
    kept *k = kept_at(c, step, tensor, micro);
    k->n = hp_graph_size(c->g, tensor);
    free(k->value);
    k->value = hp_xmalloc(sizeof *k->value * (size_t)(k->n + 1));
    hp_gather_f32(v, k->value);
}

static void drop_kept(check *c)
{
    for (int64_t i = 0; c->kept && i < c->steps * c->g->n_tensors * c->n_micros; i++)
        free(c->kept[i].value);
    free(c->kept);
    c->kept = NULL;
}

static int32_t **choices_at(const check *c, int64_t step, int node, int64_t micro)
{
    return &c->choices[(step * c->g->n_nodes + node) * c->n_micros + micro + 1];
}

static bool give_choices(void *ctx, int node, int64_t step, int64_t micro, const hp_operand *given)
{
    const check *c = ctx;
    const int32_t *own = *choices_at(c, step, node, micro);
    if (node > c->given || !own)
        return false;
    memcpy(given->data, own,
           sizeof *own * (size_t)(given->full[0] * given->full[1] * given->full[2]));
    return true;
}

static hp_err run_reference(check *c, hp_errmsg *e)
{
    drop_kept(c);
    c->kept = hp_xcalloc((size_t)c->steps * (size_t)c->g->n_tensors * (size_t)c->n_micros,
                         sizeof *c->kept);
    hp_interp_free(c->ref);
    c->ref = hp_interp_new(&(hp_interp_in){.g = c->g,
                                           .seed = c->o->seed,
                                           .fill = hp_corpus_fill,
                                           .fill_ctx = &c->corpus,
                                           .tap = keep_value,
                                           .tap_ctx = c,
                                           .choices = give_choices,
                                           .choices_ctx = c});
    hp_err err = HP_OK;
    for (int64_t i = 0; i < c->steps && !err; i++)
        err = hp_interp_step(c->ref, i, e);
    return err;
}

/* --- what is watched in the plan --- */

static int tensor_of(const check *c, int program, int buffer)
{
    const char *name = c->p->program[program].buffer[buffer].tensor;
    return name ? hp_map_get(&c->g->tensor_id, name, -1) : -1;
}

/* Operand places of the updating operations (op/rows.h): adamw p m v g, sgd p g. */
static int gradient_place(const hp_task *t)
{
    if (t->kind != HP_TASK_OP)
        return -1;
    return strcmp(t->op, "adamw") == 0 ? 3 : strcmp(t->op, "sgd") == 0 ? 1 : -1;
}

static void find_updates(check *c)
{
    int cap = 0;
    for (int i = 0; i < c->p->n_programs; i++) {
        const hp_program *p = &c->p->program[i];
        c->is_grad[i] = hp_xcalloc((size_t)p->n_buffers + 1, sizeof **c->is_grad);
        for (int k = 0; k < p->n_templates; k++)
            for (int j = 0; j < p->tmpl[k].n_tasks; j++) {
                const hp_task *t = &p->tmpl[k].task[j];
                int g = gradient_place(t);
                if (g < 0)
                    continue;
                update u = {i, tensor_of(c, i, t->buf[t->n_in]), t->buf[g], t->buf[t->n_in]};
                c->update = hp_grow(c->update, &cap, c->n_updates + 1, sizeof *c->update);
                c->update[c->n_updates++] = u;
                c->is_grad[i][u.grad] = true;
            }
    }
}

static bool is_master(const check *c, int program, int buffer)
{
    for (int i = 0; i < c->n_updates; i++)
        if (c->update[i].program == program && c->update[i].param == buffer)
            return true;
    return false;
}

static void find_holders(check *c)
{
    int cap = 0;
    for (int i = 0; i < c->p->n_programs; i++)
        for (int b = 0; b < c->p->program[i].n_buffers; b++) {
            const hp_buffer *buf = &c->p->program[i].buffer[b];
            int t = tensor_of(c, i, b);
            if (buf->scope != HP_S_PERSIST || t < 0 || c->g->tensor[t].kind != HP_T_PARAM ||
                (buf->kind != HP_B_PARAMS && !is_master(c, i, b)))
                continue;
            c->holder = hp_grow(c->holder, &cap, c->n_holders + 1, sizeof *c->holder);
            c->holder[c->n_holders++] = (holder){i, b, t};
        }
}

/* --- router choices --- */

static bool chosen(const float *row, int64_t k, float e)
{
    for (int64_t i = 0; i < k; i++)
        if (row[i] == e)
            return true;
    return false;
}

/* How far apart, in logits, are the experts that only one of two choices has? 0 for equal
 * choices. */
static double margin(const float *own, const float *ref, int64_t k, const float *logits, int64_t n)
{
    double worst = 0, most = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)logits[i]));
    for (int64_t i = 0; i < k; i++) {
        if (ref[i] >= 0 && (int64_t)ref[i] < n && !chosen(own, k, ref[i]))
            low = fmin(low, (double)logits[(int64_t)ref[i]]);
        if (own[i] >= 0 && (int64_t)own[i] < n && !chosen(ref, k, own[i]))
            high = fmax(high, (double)logits[(int64_t)own[i]]);
    }
    if (isfinite(low) && isfinite(high))
        worst = fabs(low - high) / fmax(most, 1e-30);
    else if (isfinite(low) != isfinite(high))
        worst = INFINITY;
    return worst;
}

/* Puts a rank's box of choices into the engine's record. */
static void record_choices(check *c, int node, int64_t step, int64_t micro, const hp_operand *o)
{
    int32_t **all = choices_at(c, step, node, micro), *own = o->data;
    int64_t k = o->full[2];
    pthread_mutex_lock(&c->lock);
    if (!*all)
        *all = hp_xcalloc((size_t)(o->full[0] * o->full[1] * k), sizeof **all);
    for (int64_t b = 0; b < o->len[0]; b++)
        for (int64_t s = 0; s < o->len[1]; s++, own += k)
            memcpy(*all + ((o->lo[0] + b) * o->full[1] + o->lo[1] + s) * k, own,
                   sizeof *own * (size_t)k);
    pthread_mutex_unlock(&c->lock);
}

/* Counts the tokens of a router for which engine and reference chose otherwise, by margin; returns how many. */
static int count_differences(check *c, int node, int64_t step, int64_t micro)
{
    enum { MAX_K = 64 };
    const hp_node *n = &c->g->node[node];
    const kept *ref = kept_at(c, step, n->arg[n->n_in], micro),
               *logits = kept_at(c, step, n->arg[0], micro);
    const int32_t *own = *choices_at(c, step, node, micro);
    int64_t k = c->g->dim[c->g->tensor[n->arg[n->n_in]].dim[2]].size;
    if (!own || !ref->value || !logits->value || k > MAX_K || ref->n == 0)
        return 0;
    int64_t tokens = ref->n / k, experts = logits->n / tokens;
    int differ = 0;
    for (int64_t t = 0; t < tokens; t++) {
        float row[MAX_K];
        for (int64_t i = 0; i < k; i++)
            row[i] = (float)own[t * k + i];
        if (!memcmp(row, ref->value + t * k, sizeof *row * (size_t)k))
            continue;
        double apart = margin(row, ref->value + t * k, k, logits->value + t * experts, experts);
        bool tie = apart <= (c->o->bf16 ? 2e-2 : 1e-4);
        c->r->routing_ties += tie;
        c->r->routing_misses += !tie;
        differ++;
    }
    return differ;
}

static int differences_of_router(check *c, int node)
{
    int differ = 0;
    for (int64_t step = 0; step < c->steps; step++)
        for (int64_t m = 0; m < c->n_micros - 1; m++)
            differ += count_differences(c, node, step, m);
    return differ;
}

/* Runs the reference until its choices are the engine's. */
static hp_err follow_engine(check *c, hp_errmsg *e)
{
    c->given = -1;
    hp_err err = run_reference(c, e);
    for (int node = 0; node < c->g->n_nodes && !err; node++) {
        if (strcmp(c->g->ops[c->g->node[node].kind]->name, "router") != 0 ||
            !differences_of_router(c, node))
            continue;
        c->given = node;
        err = run_reference(c, e);
    }
    return err;
}

static int router_node(const check *c, const hp_task *t)
{
    if (t->kind != HP_TASK_OP || strcmp(t->op, "router") != 0 || !t->node)
        return -1;
    for (int n = 0; n < c->g->n_nodes; n++)
        if (strcmp(c->g->node[n].name, t->node) == 0)
            return n;
    return -1;
}

/* --- the engine --- */

static void on_tap(void *ctx, const hp_exec_tap *t)
{
    check *c = ctx;
    int node = t->output == 0 ? router_node(c, t->task) : -1;
    if (node >= 0 && t->operand.data)
        record_choices(c, node, t->step, t->entry->micro, &t->operand);
    if (t->step + 1 < c->steps)
        return;
    if (c->is_grad[t->program][t->buffer])
        hp_gather_put(c->seen, t->program, t->buffer, -1, t->rank, &t->operand);
    else if (c->all && tensor_of(c, t->program, t->buffer) >= 0)
        hp_gather_put(c->seen, t->program, t->buffer, t->entry->micro, t->rank, &t->operand);
}

static void on_step(void *ctx, const hp_exec_metrics *m)
{
    check *c = ctx;
    c->loss = m->loss;
    c->grad_norm = m->grad_norm;
}

static void on_final(void *ctx, int program, int rank, int buffer, const hp_operand *o)
{
    check *c = ctx;
    for (int i = 0; i < c->n_holders; i++)
        if (c->holder[i].program == program && c->holder[i].buffer == buffer)
            hp_gather_put(c->seen, program, buffer, -1, rank, o);
}

static hp_err run_engine(check *c, hp_errmsg *e)
{
    hp_exec_options o = hp_exec_options_default();
    hp_exec_hooks hooks = {.ctx = c,
                           .load = hp_corpus_fill,
                           .load_ctx = &c->corpus,
                           .tap = on_tap,
                           .step = on_step,
                           .final = on_final};
    hp_exec_report report = {0};
    o.steps = c->steps;
    o.seed = c->o->seed;
    o.workers = c->o->workers;
    o.poison = c->o->poison;
    o.kernels = c->o->reference_kernels ? HP_KERN_REFERENCE : HP_KERN_BEST;
    hp_gather_free(c->seen);
    c->seen = hp_gather_new(c->p);
    c->loss = NAN;
    hp_err err = hp_exec_run(c->p, &o, &hooks, &report, e);
    hp_exec_report_fini(&report);
    return err;
}

/* --- comparing --- */

typedef struct difference {
    double most_b, most; /* max|b|, max|a-b|; NaN in a is infinitely far */
    int copy;            /* where */
} difference;

static difference compare(const check *c, int program, int buffer, int micro, const float *ref,
                          int64_t n, float *whole)
{
    difference d = {0};
    int copies = hp_gather_copies(c->seen, program, buffer, NULL);
    for (int64_t i = 0; i < n; i++)
        d.most_b = fmax(d.most_b, fabs((double)ref[i]));
    for (int copy = 0; copy < copies; copy++) {
        if (!hp_gather_whole(c->seen, program, buffer, micro, copy, whole)) {
            d.most = INFINITY;
            d.copy = copy;
            return d;
        }
        for (int64_t i = 0; i < n; i++) {
            double x = fabs((double)whole[i] - (double)ref[i]);
            x = isnan(x) ? INFINITY : x;
            d.copy = x > d.most ? copy : d.copy;
            d.most = fmax(d.most, x);
        }
    }
    return d;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    if (n == 0)
        return 0;
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* The error of each of n tensors by the invariant's definition; returns the median of their
 * sizes. */
static double errors(const difference *d, int n, double *err)
{
    double *size = hp_xmalloc(sizeof *size * ((size_t)n + 1));
    for (int i = 0; i < n; i++)
        size[i] = d[i].most_b;
    double middle = median(size, n);
    for (int i = 0; i < n; i++) {
        double scale = fmax(d[i].most_b, 1e-3 * middle);
        err[i] = d[i].most == 0 ? 0 : scale > 0 ? d[i].most / scale : INFINITY;
    }
    free(size);
    return middle;
}

static void compare_gradients(check *c, float *whole)
{
    difference *d = hp_xcalloc((size_t)c->n_updates + 1, sizeof *d);
    double *err = hp_xmalloc(sizeof *err * ((size_t)c->n_updates + 1));
    for (int i = 0; i < c->n_updates; i++) {
        const update *u = &c->update[i];
        const float *ref = u->tensor >= 0 ? hp_interp_grad(c->ref, u->tensor) : NULL;
        if (ref)
            d[i] = compare(c, u->program, u->grad, -1, ref, hp_graph_size(c->g, u->tensor), whole);
        else
            d[i].most = INFINITY;
    }
    double middle = errors(d, c->n_updates, err);
    for (int i = 0; i < c->n_updates; i++) {
        if (err[i] < c->r->err_grads || (err[i] == c->r->err_grads && c->r->worst_tensor[0]))
            continue;
        c->r->err_grads = err[i];
        c->r->worst_size = d[i].most_b / fmax(middle, 1e-30);
        snprintf(c->r->worst_tensor, sizeof c->r->worst_tensor, "%s",
                 c->update[i].tensor >= 0 ? c->g->tensor[c->update[i].tensor].name
                                          : "(a parameter without a name)");
    }
    free(err);
    free(d);
}

/* The norm is the engine's own sum over shards and replicas: it clips by it. NaN: the plan has
 * none. */
static void compare_norm(check *c)
{
    double norm = hp_interp_result(c->ref)->grad_norm;
    double err = fabs(c->grad_norm - norm) / fmax(norm, 1e-30);
    if (isnan(c->grad_norm) || err <= c->r->err_grads)
        return;
    c->r->err_grads = err;
    c->r->worst_size = 1;
    snprintf(c->r->worst_tensor, sizeof c->r->worst_tensor, "(the norm of all gradients)");
}

/* A trained parameter that no program updates would otherwise go unseen. */
static void find_missing(check *c)
{
    for (int t = 0; t < c->g->n_tensors; t++) {
        bool found = c->g->tensor[t].kind != HP_T_PARAM || !hp_interp_grad(c->ref, t);
        for (int i = 0; i < c->n_updates && !found; i++)
            found = c->update[i].tensor == t;
        if (found)
            continue;
        c->r->err_grads = INFINITY;
        snprintf(c->r->worst_tensor, sizeof c->r->worst_tensor, "%s (no device updates it)",
                 c->g->tensor[t].name);
    }
}

/* The largest |a-b| of a parameter in units of its limit; a's gradient is in `grad`, `rounding`
 * is that of a's type. sqrt v is the smaller of the two sides': a gradient that is noise may
 * have either sign, and Adam makes whole steps of both. */
static double param_error(const check *c, int tensor, const float *a, const float *grad,
                          double rounding)
{
    const hp_train *t = &c->g->train;
    const float *b = hp_interp_param(c->ref, tensor), *g = hp_interp_grad(c->ref, tensor),
                *v = hp_interp_v(c->ref, tensor);
    double clip = (double)hp_interp_result(c->ref)->clip_scale, own = clip, most = 0, worst = 0;
    double lr = t->lr * (t->warmup > 0 ? fmin(1, (double)c->steps / t->warmup) : 1);
    int64_t n = hp_graph_size(c->g, tensor);
    if (c->o->bf16 && t->clip > 0 && !isnan(c->grad_norm)) /* compare_norm judges the norm itself */
        own = fmin(1, t->clip / (c->grad_norm + 1e-6));
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)b[i]));
    for (int64_t i = 0; i < n; i++) {
        double dg = fabs((double)grad[i] * own - (double)g[i] * clip);
        double root = v ? fmin(sqrt((double)v[i] / (1 - pow(t->beta2, (double)c->steps))),
                               fabs((double)grad[i]) * clip)
                        : 0;
        double limit = 1e-5 * most + rounding * fmax(fabs((double)a[i]), fabs((double)b[i])) +
                       (t->sgd ? lr * dg : lr * fmin(2, dg / (root + t->eps)));
        double d = fabs((double)a[i] - (double)b[i]);
        double x = d == 0 ? 0 : isnan(d) || limit <= 0 ? INFINITY : d / limit;
        worst = fmax(worst, x);
    }
    return worst;
}

static const update *update_of(const check *c, int tensor)
{
    for (int i = 0; i < c->n_updates; i++)
        if (c->update[i].tensor == tensor)
            return &c->update[i];
    return NULL;
}

static double holder_error(const check *c, const holder *h, float *whole, float *grad)
{
    const update *u = update_of(c, h->tensor);
    double worst = 0,
           rounding = c->p->program[h->program].buffer[h->buffer].dtype == HP_BF16 ? 0x1p-8 : 0;
    int copies = hp_gather_copies(c->seen, h->program, h->buffer, NULL);
    if (!u || !hp_gather_whole(c->seen, u->program, u->grad, -1, 0, grad))
        return INFINITY;
    for (int copy = 0; copy < copies; copy++) {
        if (!hp_gather_whole(c->seen, h->program, h->buffer, -1, copy, whole))
            return INFINITY;
        worst = fmax(worst, param_error(c, h->tensor, whole, grad, rounding));
    }
    return worst;
}

static void compare_params(check *c, float *whole, float *grad)
{
    for (int i = 0; i < c->n_holders; i++) {
        if (!hp_interp_grad(c->ref, c->holder[i].tensor))
            continue; /* frozen */
        double err = holder_error(c, &c->holder[i], whole, grad);
        if (err > c->r->err_params && err > c->r->tol_params)
            snprintf(c->r->worst_param, sizeof c->r->worst_param, "%s",
                     c->g->tensor[c->holder[i].tensor].name);
        c->r->err_params = fmax(c->r->err_params, err);
    }
}

static void judge(check *c)
{
    hp_check_report *r = c->r;
    int64_t most = max_size(c);
    float *whole = hp_xmalloc(sizeof *whole * (size_t)most),
          *grad = hp_xmalloc(sizeof *grad * (size_t)most);
    r->loss = c->loss;
    r->loss_reference = hp_interp_result(c->ref)->loss;
    r->err_loss = fabs(r->loss - r->loss_reference) / fmax(fabs(r->loss_reference), 1e-30);
    if (isnan(r->err_loss))
        r->err_loss = INFINITY;
    compare_gradients(c, whole);
    compare_norm(c);
    find_missing(c);
    compare_params(c, whole, grad);
    r->n_tensors = c->n_updates + c->n_holders;
    r->ok = r->err_loss <= r->tol_loss && r->err_grads <= r->tol_grads &&
            r->err_params <= r->tol_params && r->routing_misses == 0;
    free(grad);
    free(whole);
}

/* --- the first divergence --- */

/* The largest error of a tensor's buffers in any microbatch against the reference; *device is a
 * holder of the worst. */
static double tensor_error(const check *c, int tensor, float *whole, int *device)
{
    double worst = 0;
    int *rank_of = hp_xmalloc(sizeof *rank_of * (size_t)c->p->n_devices);
    for (int i = 0; i < c->p->n_programs; i++)
        for (int b = 0; b < c->p->program[i].n_buffers; b++) {
            if (c->is_grad[i][b] || tensor_of(c, i, b) != tensor)
                continue;
            for (int m = -1; m < c->n_micros - 1; m++) {
                const kept *k = kept_at(c, c->steps - 1, tensor, m);
                if (!k->value || !hp_gather_has(c->seen, i, b, m) ||
                    !hp_gather_whole(c->seen, i, b, m, 0, whole))
                    continue;
                difference d = compare(c, i, b, m, k->value, k->n, whole);
                double err = d.most == 0 ? 0 : d.most / fmax(d.most_b, 1e-30);
                if (err <= worst)
                    continue;
                worst = err;
                hp_gather_copies(c->seen, i, b, rank_of);
                *device = c->p->program[i].mesh.first + rank_of[d.copy];
            }
        }
    free(rank_of);
    return worst;
}

static bool is_watched(const hp_tensor *t)
{
    return t->route < 0 && (t->kind == HP_T_ACT || t->kind == HP_T_GRAD || t->kind == HP_T_STEP);
}

static hp_err find_divergence(check *c, hp_errmsg *e)
{
    c->all = true;
    hp_err err = run_engine(c, e);
    if (!err)
        err = run_reference(c, e);
    if (err)
        return err;
    float *whole = hp_xmalloc(sizeof *whole * (size_t)max_size(c));
    bool found = false;
    for (int n = 0; n < c->g->n_nodes && !found; n++) {
        const hp_node *node = &c->g->node[n];
        for (int k = node->n_in; k < node->n_in + node->n_out && !found; k++) {
            int t = node->arg[k], device = -1;
            if (t < 0 || !is_watched(&c->g->tensor[t]) ||
                tensor_error(c, t, whole, &device) <= c->r->tol_grads)
                continue;
            found = true;
            snprintf(c->r->div_op, sizeof c->r->div_op, "%s", node->name);
            snprintf(c->r->div_tensor, sizeof c->r->div_tensor, "%s", c->g->tensor[t].name);
            c->r->div_rank = device;
        }
    }
    free(whole);
    return HP_OK;
}

/* --- the whole --- */

static void check_fini(check *c)
{
    drop_kept(c);
    hp_interp_free(c->ref);
    hp_gather_free(c->seen);
    for (int i = 0; i < c->p->n_programs; i++)
        free(c->is_grad[i]);
    free(c->update);
    free(c->holder);
    free(c->routing);
    for (int64_t i = 0; i < c->steps * c->g->n_nodes * c->n_micros; i++)
        free(c->choices[i]);
    free(c->choices);
    hp_corpus_fini(&c->corpus);
    pthread_mutex_destroy(&c->lock);
}

hp_err hp_check(const hp_graph *g, const hp_plan *p, const hp_check_options *o, hp_check_report *r,
                hp_errmsg *e)
{
    check c = {.g = g, .p = p, .o = o, .r = r, .n_micros = (int)p->micro + 1};
    c.steps = o->steps > 1 ? o->steps : 1;
    hp_data_options data = {.seed = o->seed,
                            .vocab = p->vocab,
                            .zigzag = p->zigzag,
                            .documents = o->documents,
                            .ignore = o->ignore};
    *r = (hp_check_report){.tol_loss = o->bf16 ? 2e-2 : 1e-5,
                           .tol_grads = o->bf16 ? 2e-2 : 1e-4,
                           .tol_params = 1,
                           .div_rank = -1};
    if (p->n_programs > (int)(sizeof c.is_grad / sizeof *c.is_grad))
        return hp_fail(e, HP_EINFEASIBLE,
                       "check: %d pipeline stages; 64 are the most (--shrink makes them fewer)",
                       p->n_programs);
    pthread_mutex_init(&c.lock, NULL);
    find_updates(&c);
    find_holders(&c);
    find_routing(&c);
    c.choices = hp_xcalloc((size_t)c.steps * (size_t)g->n_nodes * (size_t)c.n_micros,
                           sizeof *c.choices);
    hp_err err = hp_corpus_open(&c.corpus, o->data, &data, e);
    if (!err)
        err = run_engine(&c, e);
    if (!err)
        err = follow_engine(&c, e);
    if (!err)
        judge(&c);
    if (!err && !r->ok && !o->no_search)
        err = find_divergence(&c, e);
    check_fini(&c);
    return err;
}

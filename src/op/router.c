/* router.c -- the choice of experts, its weights, and the parts of the balance loss.
 *
 * Choices may be given (a check replays those of another run): then only weights and f are made for them. A choice of expert e that the
 * capacity drops becomes -1 - e: it names no expert for those who route by it, and the gradient still knows which it was (weights are
 * normalised over all choices before any is dropped). */
#include "kern/router.h"

#include "kern/routed.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <math.h>
#include <string.h>

enum { LOGITS, BIAS, GIVEN, N_FWD }; /* operands of router */
enum { IDX = 1, DW, DP, N_BWD };     /* of router_dx, after the logits */

/* Labels of the logits b s e, with e blocked, and a label for the choices. */
static hp_err label_logits(hp_graph *g, hp_node *n, int *k, hp_errmsg *e)
{
    hp_err err = hp_infer_nd(g, n, LOGITS, 3, 3, "batch seq experts", e);
    if (!err)
        err = hp_infer_dtype(g, n, LOGITS, false, e);
    if (err)
        return err;
    hp_label_fresh(g, n, LOGITS);
    hp_label_block(n, LOGITS, 2);
    *k = hp_label_new(n);
    n->blocked[*k] = true;
    return HP_OK;
}

/* Operand i is [b s k]. */
static void label_choice(hp_node *n, int i, int k)
{
    hp_label_copy(n, i, 0, LOGITS, 0, 2);
    n->label[i][2] = (int8_t)k;
}

/* Operand i is [b e]. */
static void label_balance(hp_node *n, int i)
{
    hp_label_copy(n, i, 0, LOGITS, 0, 1);
    hp_label_copy(n, i, 1, LOGITS, 2, 1);
}

static hp_err label_options(hp_graph *g, hp_node *n, int k, hp_errmsg *e)
{
    hp_err err = HP_OK;
    if (hp_infer_has(n, BIAS)) {
        err = hp_infer_nd(g, n, BIAS, 1, 1, "experts", e);
        hp_label_copy(n, BIAS, 0, LOGITS, 2, 1);
        hp_infer_wide(g, n, BIAS);
    }
    if (!err && hp_infer_has(n, GIVEN)) {
        err = hp_infer_nd(g, n, GIVEN, 3, 3, "batch seq choices", e);
        label_choice(n, GIVEN, k);
    }
    if (hp_infer_attr(n, "capacity", 0) > 0)
        hp_label_block(n, LOGITS, 1);
    return err;
}

static hp_err check_sizes(const hp_graph *g, const hp_node *n, int k, hp_errmsg *e)
{
    int64_t experts = g->dim[hp_infer_in(g, n, LOGITS).dim[2]].size, choices = g->dim[k].size;
    int64_t groups = (int64_t)hp_infer_attr(n, "groups", 1),
            top = (int64_t)hp_infer_attr(n, "top_groups", 1);
    if (choices < 1 || choices > experts || experts > HP_ROUTER_MAX_EXPERTS)
        return hp_fail(
            e, HP_EINPUT,
            "%s: router with %lld choices of %lld experts; between 1 and all of at most %d",
            n->name, (long long)choices, (long long)experts, HP_ROUTER_MAX_EXPERTS);
    if (groups > 1 &&
        (experts % groups || top < 1 || top > groups || choices > top * (experts / groups)))
        return hp_fail(
            e, HP_EINPUT, "%s: router cannot take %lld of %lld experts from %lld of %lld groups",
            n->name, (long long)choices, (long long)experts, (long long)top, (long long)groups);
    return HP_OK;
}

static hp_err router_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    static const char *const name[] = {NULL, "weights", "f", "p"};
    int k, out, dim;
    hp_err err = hp_infer_inputs(g, n, 1, N_FWD, e);
    if (!err)
        err = hp_infer_dim(g, n, "d", &dim, e);
    if (!err)
        err = label_logits(g, n, &k, e);
    if (!err)
        err = label_options(g, n, k, e);
    if (!err)
        err = check_sizes(g, n, dim, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, LOGITS);
    int choice[] = {x.dim[0], x.dim[1], dim}, balance[] = {x.dim[0], x.dim[2]};
    for (int i = 0; i < 4; i++) {
        bool of_token = i < 2;
        err = hp_node_output(g, n, name[i], i ? HP_F32 : HP_I32, of_token ? 3 : 2,
                             of_token ? choice : balance, &out, e);
        if (err)
            return err;
        if (of_token)
            label_choice(n, out, k);
        else
            label_balance(n, out);
        n->reduce[i] = of_token ? HP_RED_NONE : HP_RED_SUM;
        hp_infer_wide(g, n, out);
    }
    return HP_OK;
}

static hp_err router_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    int in[] = {n->arg[LOGITS], n->arg[n->n_in], hp_grad_of(ctx, 1), hp_grad_of(ctx, 3)};
    if (in[DW] < 0 && in[DP] < 0)
        return HP_OK;
    return hp_infer_emit(g, ctx, "router_dx", "dx", false, N_BWD, in, n->n_attrs, n->attr, LOGITS,
                         e);
}

static hp_router_shape call_shape(const hp_call *c, const hp_operand *idx)
{
    const hp_operand *x = hp_call_in(c, LOGITS);
    return (hp_router_shape){.b = x->len[0],
                             .s = x->len[1],
                             .e = x->len[2],
                             .k = idx->len[2],
                             .s_full = x->full[1],
                             .sigmoid = hp_call_attr(c, "sigmoid", 0) != 0,
                             .normalise = hp_call_attr(c, "normalise", 0) != 0,
                             .n_group = (int64_t)hp_call_attr(c, "groups", 1),
                             .topk_group = (int64_t)hp_call_attr(c, "top_groups", 1),
                             .scale = (float)hp_call_attr(c, "scale", 1)};
}

/* The score of one expert as the kernel defines it. */
static float score(const hp_router_shape *r, hp_num logits, int64_t token, int64_t e)
{
    float x = hp_num_get(logits, token * r->e + e);
    if (r->sigmoid)
        return 1 / (1 + expf(-x));
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < r->e; i++)
        max = fmax(max, (double)hp_num_get(logits, token * r->e + i));
    for (int64_t i = 0; i < r->e; i++)
        sum += exp((double)hp_num_get(logits, token * r->e + i) - max);
    return (float)(exp((double)x - max) / sum);
}

/* The expert of a choice, dropped or not. */
static int32_t chosen(int32_t choice)
{
    return choice < 0 ? -1 - choice : choice;
}

/* Replaces choices by given ones, and weights and f accordingly. */
static void replay(const hp_router_shape *r, hp_num logits, const int32_t *given, int32_t *idx,
                   hp_num w, float *f)
{
    memset(f, 0, (size_t)(r->b * r->e) * sizeof *f);
    for (int64_t t = 0; t < r->b * r->s; t++) {
        double sum = 0;
        for (int64_t j = t * r->k; j < (t + 1) * r->k; j++) {
            float s = score(r, logits, t, chosen(given[j]));
            idx[j] = given[j];
            hp_num_put(w, j, s);
            sum += (double)s;
            f[t / r->s * r->e + chosen(given[j])] += (float)r->e / (float)(r->k * r->s_full);
        }
        double by = (double)r->scale / (r->normalise && sum > 0 ? sum : 1);
        for (int64_t j = t * r->k; j < (t + 1) * r->k; j++)
            hp_num_put(w, j, idx[j] < 0 ? 0 : (float)((double)hp_num_get(w, j) * by));
    }
}

/* How many choices an expert takes of a sequence; 0 = all. */
static int64_t capacity(const hp_call *c, const hp_router_shape *r)
{
    double factor = hp_call_attr(c, "capacity", 0);
    return factor > 0 ? (int64_t)ceil(factor * (double)(r->k * r->s_full) / (double)r->e) : 0;
}

/* `scratch`: a number an expert, then a copy of the choices. */
static void drop_beyond(const hp_router_shape *r, int64_t cap, int32_t *idx, hp_num w,
                        void *scratch)
{
    int64_t n = r->b * r->s * r->k, *count = scratch;
    int32_t *all = (int32_t *)(void *)(count + r->e);
    memcpy(all, idx, (size_t)n * sizeof *idx);
    hp_route_capacity(r->b, r->s, r->k, r->e, cap, idx, count);
    for (int64_t i = 0; i < n; i++)
        if (idx[i] < 0) {
            idx[i] = -1 - all[i];
            hp_num_put(w, i, 0);
        }
}

static hp_err router_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_router_shape r = call_shape(c, hp_call_out(c, 0));
    const float *bias = hp_call_has(c, BIAS) ? hp_call_in(c, BIAS)->data : NULL;
    int32_t *idx = hp_call_out(c, 0)->data;
    float *f = hp_call_out(c, 2)->data, *p = hp_call_out(c, 3)->data;
    HP_KERNEL(c, hp_router, &r, hp_in_num(c, LOGITS), bias, idx, hp_out_num(c, 1), f, p);
    if (r.b * r.s == 0)
        return HP_OK;
    if (hp_call_has(c, GIVEN))
        replay(&r, hp_in_num(c, LOGITS), hp_call_in(c, GIVEN)->data, idx, hp_out_num(c, 1), f);
    else if (capacity(c, &r))
        drop_beyond(&r, capacity(c, &r), idx, hp_out_num(c, 1), c->scratch);
    return HP_OK;
}

static void router_work(const hp_call *c, hp_op_work *w)
{
    hp_work_pointwise(c, w);
    w->scratch_bytes = hp_call_in(c, LOGITS)->len[2] * (int64_t)sizeof(int64_t) +
                       hp_box_count(hp_call_out(c, 0), false) * (int64_t)sizeof(int32_t);
}

static hp_err router_dx_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int k, out;
    hp_err err = hp_infer_inputs(g, n, 2, N_BWD, e);
    if (!err)
        err = label_logits(g, n, &k, e);
    if (err)
        return err;
    uint32_t group = 0;
    label_choice(n, IDX, k);
    if (hp_infer_has(n, DW))
        label_choice(n, DW, k);
    if (hp_infer_has(n, DP))
        label_balance(n, DP);
    for (int i = DW; i <= DP; i++)
        group |= hp_infer_has(n, i) ? 1u << i : 0;
    hp_infer_group(n, group);
    return hp_infer_like(g, n, LOGITS, NULL, &out, e);
}

static hp_err router_dx_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *idx = hp_call_in(c, IDX);
    hp_router_shape r = call_shape(c, idx);
    const float *dp = hp_call_has(c, DP) ? hp_call_in(c, DP)->data : NULL;
    int32_t *all = c->scratch;
    for (int64_t i = 0; i < hp_box_count(idx, false); i++)
        all[i] = chosen(((const int32_t *)idx->data)[i]);
    HP_KERNEL(c, hp_router_dx, &r, hp_in_num(c, LOGITS), all, hp_in_num(c, DW), dp,
              hp_out_num(c, 0));
    return HP_OK;
}

static void router_dx_work(const hp_call *c, hp_op_work *w)
{
    hp_work_pointwise(c, w);
    w->scratch_bytes = hp_box_count(hp_call_in(c, IDX), false) * (int64_t)sizeof(int32_t);
}

const hp_op hp_op_router = {
    {"router", router_infer, router_grad}, .work = router_work, .run = router_run};
const hp_op hp_op_router_dx = {
    {"router_dx", router_dx_infer, NULL}, .work = router_dx_work, .run = router_dx_run};

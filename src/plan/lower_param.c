/* lower_param.c -- parameters: persistent buffers, gathers before use, gradients into accumulators.
 *
 * A parameter that is stored otherwise than it computes is gathered in *units* (a layer, or what the strategy names): at the first use of
 * any of them all are gathered, and the next `ahead` units with them, so that transfers run while the unit before computes. A gathered copy lives in one
 * template; its bytes are free after the last use.
 */
#include "plan/lower.h"

#include "op/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hp_dtype compute_dtype(const lowering *w, int tensor)
{
    const hp_tensor *t = &w->r->g->tensor[tensor];
    return w->bf16 && t->dtype == HP_F32 && t->kind == HP_T_PARAM && !t->wide ? HP_BF16 : t->dtype;
}

static void mark_used(lowering *w)
{
    const hp_graph *g = w->r->g;
    for (int i = 0; i < g->n_nodes; i++) {
        const hp_node *n = &g->node[i];
        if (n->phase == HP_P_INIT || w->r->vstage[i] % w->r->pp != w->p->stage)
            continue;
        for (int k = 0; k < n->n_in; k++)
            if (n->arg[k] >= 0 && (g->tensor[n->arg[k]].kind == HP_T_PARAM || g->tensor[n->arg[k]].kind == HP_T_BUFFER))
                w->param[n->arg[k]].used = true;
    }
}

/* The stage that owns a parameter's states: the first that uses it. */
static int home_stage(const lowering *w, int tensor)
{
    const hp_graph *g = w->r->g;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_in; k++)
            if (g->node[i].arg[k] == tensor && g->node[i].phase == HP_P_FWD)
                return w->r->vstage[i] % w->r->pp;
    return 0;
}

static int unit_of(lowering *w, const char *tensor)
{
    const hp_strategy *s = w->r->s;
    char name[256] = "";
    for (int i = 0; i < s->states.n_units && !*name; i++) {
        for (const char *dot = strchr(tensor, '.'); dot && !*name; dot = strchr(dot + 1, '.')) {
            char part[256];
            snprintf(part, sizeof part, "%.*s", (int)(dot - tensor), tensor);
            if (hp_glob_match(s->states.unit[i], part))
                strcpy(name, part);
        }
    }
    if (!*name) { /* the top of the name, with a layer's number */
        size_t n = strcspn(tensor, ".");
        if (tensor[n] && strspn(tensor + n + 1, "0123456789"))
            n += 1 + strcspn(tensor + n + 1, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, tensor);
    }
    for (int i = 0; i < w->n_units; i++)
        if (!strcmp(w->unit[i], name))
            return i;
    w->unit[w->n_units] = hp_arena_strdup(&w->plan->arena, name);
    return w->n_units++;
}

static int state_buffer(lowering *w, int tensor, const char *suffix, const hp_layout *l, hp_init init)
{
    const hp_tensor *t = &w->r->g->tensor[tensor];
    char name[256];
    snprintf(name, sizeof name, "%s:%s", t->name, suffix);
    int b = low_buffer(w, name, tensor, HP_F32, &w->r->shape[tensor], l, HP_B_OPTIMIZER, HP_S_PERSIST);
    w->p->buffer[b].init = init;
    w->p->buffer[b].init_std = init == HP_INIT_NORMAL ? t->init_std : 0;
    return b;
}

static void make_states(lowering *w, int tensor)
{
    const hp_graph *g = w->r->g;
    const hp_tensor *t = &g->tensor[tensor];
    const hp_param_state *s = &w->r->state[tensor];
    low_param *p = &w->param[tensor];
    p->store = low_buffer(w, t->name, tensor, compute_dtype(w, tensor), &w->r->shape[tensor], p->home ? &s->store : &s->compute,
                          HP_B_PARAMS, p->home ? HP_S_PERSIST : HP_S_STEP);
    if (!p->home)
        return;
    w->p->buffer[p->store].init = t->init;
    w->p->buffer[p->store].init_std = t->init_std;
    if (!p->trained)
        return;
    if (w->bf16)
        p->master = state_buffer(w, tensor, "master", &s->optimizer, t->init);
    if (g->train.sgd)
        return;
    p->m = state_buffer(w, tensor, "m", &s->optimizer, HP_INIT_ZEROS);
    p->v = state_buffer(w, tensor, "v", &s->optimizer, HP_INIT_ZEROS);
}

hp_err low_params(lowering *w)
{
    const hp_graph *g = w->r->g;
    w->unit = hp_arena_alloc(&w->plan->arena, (size_t)(g->n_tensors + 1) * sizeof *w->unit);
    w->ready = hp_arena_alloc(&w->plan->arena, (size_t)(g->n_tensors + 1) * sizeof *w->ready);
    w->dead = hp_arena_alloc(&w->plan->arena, (size_t)(g->n_tensors + 1) * sizeof *w->dead);
    for (int i = 0; i < g->n_tensors; i++)
        w->param[i] = (low_param){.store = -1, .kept = -1, .master = -1, .m = -1, .v = -1, .acc = -1, .grad = -1};
    mark_used(w);
    for (int i = 0; i < g->n_tensors; i++) {
        low_param *p = &w->param[i];
        if (!p->used)
            continue;
        p->trained = g->tensor[i].kind == HP_T_PARAM && !g->tensor[i].frozen;
        p->home_stage = home_stage(w, i);
        p->home = p->home_stage == w->p->stage;
        p->gathered = hp_xmalloc(2 * HP_MAX_CHUNKS * sizeof *p->gathered);
        memset(p->gathered, 0xff, 2 * HP_MAX_CHUNKS * sizeof *p->gathered);
        p->unit = unit_of(w, g->tensor[i].name);
        make_states(w, i);
    }
    return HP_OK;
}

/* --- gathers --------------------------------------------------------------------------------------------------------- */

static bool is_sharded(const lowering *w, int tensor)
{
    const hp_param_state *s = &w->r->state[tensor];
    return w->param[tensor].home && !hp_layout_equal(&s->store, &s->compute);
}

static void note_units(lowering *w, const low_chunk *c, int step, bool *seen, int *order, int *n)
{
    const hp_step *s = &c->placed.step[step];
    if (s->node < 0)
        return;
    const hp_node *node = &w->r->g->node[s->node];
    for (int k = 0; k < node->n_in; k++) {
        int t = node->arg[k];
        if (t < 0 || !w->param[t].used || !is_sharded(w, t) || seen[w->param[t].unit])
            continue;
        seen[w->param[t].unit] = true;
        order[(*n)++] = w->param[t].unit;
    }
}

/* Whether B runs a step of F again. */
static bool runs_again(const low_chunk *c, const lowering *w, int step)
{
    const hp_step *s = &c->placed.step[step];
    if (s->node < 0)
        return false;
    const hp_node *n = &w->r->g->node[s->node];
    for (int k = n->n_in; k < n->n_in + n->n_out; k++)
        if (c->again[s->copy[k]])
            return true;
    return false;
}

void low_gather_order(lowering *w, low_chunk *c)
{
    for (int which = 0; which < 2; which++) {
        bool *seen = hp_xcalloc((size_t)w->n_units + 1, sizeof *seen);
        c->unit[which] = hp_xmalloc((size_t)(w->n_units + 1) * sizeof *c->unit[which]);
        for (int i = 0; i < c->placed.n_steps; i++) {
            bool forward = c->placed.step[i].phase == HP_P_FWD;
            if (forward == !which)
                note_units(w, c, i, seen, c->unit[which], &c->n_units[which]);
        }
        for (int i = c->placed.n_steps - 1; i >= 0 && which; i--) /* units that only recomputation needs */
            if (c->placed.step[i].phase == HP_P_FWD && runs_again(c, w, i))
                note_units(w, c, i, seen, c->unit[which], &c->n_units[which]);
        free(seen);
    }
}

typedef struct gather {
    int n;
    int src[256], dst[256];
    hp_coll kind;
    uint32_t atoms;
} gather;

static void flush_gather(lowering *w, low_tmpl *t, gather *b, int unit)
{
    if (!b->n)
        return;
    char name[256];
    snprintf(name, sizeof name, "%s/gather", w->unit[unit]);
    hp_task *k = low_coll(w, t, name, b->kind, b->atoms, b->n, b->src, b->dst,
                          hp_arena_printf(&w->plan->arena, "parameters of %s from storage to compute layout", w->unit[unit]));
    if (!w->r->s->overlap.params)
        k->stream = 0;
    b->n = 0;
}

/* Gathers one parameter, as part of the open bucket where its path is one step of the bucket's kind. */
static hp_err gather_param(lowering *w, low_tmpl *t, int slot, int tensor, gather *open, hp_scope scope)
{
    hp_program *p = w->p;
    low_param *q = &w->param[tensor];
    const hp_layout *to = &w->r->state[tensor].compute;
    hp_path path = {0};
    const hp_buffer from = p->buffer[q->store];
    hp_err err = hp_redist_path(&p->mesh, &from.shape, hp_dtype_bytes(from.dtype), &from.layout, to, &w->price, &path, w->e);
    if (err)
        return err;
    char name[256];
    snprintf(name, sizeof name, "%s:gathered", from.name);
    int dst = low_buffer(w, name, tensor, from.dtype, &from.shape, to, HP_B_PARAMS, scope);
    q->gathered[slot] = dst;
    if (path.n != 1)
        return low_move(w, t, q->store, to, dst, scope, w->r->s->overlap.params, from.name, &dst);
    if (open->n && (open->kind != path.move[0].kind || open->atoms != path.move[0].atoms || open->n == 256))
        flush_gather(w, t, open, q->unit);
    open->kind = path.move[0].kind;
    open->atoms = path.move[0].atoms;
    open->src[open->n] = q->store;
    open->dst[open->n++] = dst;
    return HP_OK;
}

static hp_err gather_unit(lowering *w, low_tmpl *t, int slot, int unit, const bool *wanted)
{
    gather *open = hp_xcalloc(1, sizeof *open);
    hp_err err = HP_OK;
    for (int i = 0; i < w->r->g->n_tensors && !err; i++)
        if (w->param[i].used && w->param[i].unit == unit && is_sharded(w, i) && w->param[i].gathered[slot] < 0 && wanted[i])
            err = gather_param(w, t, slot, i, open, HP_S_RUN);
    if (!err)
        flush_gather(w, t, open, unit);
    free(open);
    return err;
}

/* Which parameters a chunk's template reads. */
static bool *read_by(const lowering *w, const low_chunk *c, int which)
{
    bool *wanted = hp_xcalloc((size_t)w->r->g->n_tensors, sizeof *wanted);
    for (int i = 0; i < c->placed.n_steps; i++) {
        const hp_step *s = &c->placed.step[i];
        bool forward = s->phase == HP_P_FWD;
        if (s->node < 0 || (which ? forward && !runs_again(c, w, i) : !forward))
            continue;
        const hp_node *n = &w->r->g->node[s->node];
        for (int k = 0; k < n->n_in; k++)
            if (n->arg[k] >= 0)
                wanted[n->arg[k]] = true;
    }
    return wanted;
}

hp_err low_param_buffer(lowering *w, low_chunk *c, int which, int tensor, int *buffer)
{
    low_param *p = &w->param[tensor];
    int slot = 2 * c->chunk + which;
    if (!is_sharded(w, tensor) || p->kept >= 0) {
        *buffer = p->kept >= 0 ? p->kept : p->store;
        return HP_OK;
    }
    int at = 0;
    while (at < c->n_units[which] && c->unit[which][at] != p->unit)
        at++;
    int until = at + w->r->s->overlap.ahead + 1;
    bool *wanted = p->gathered[slot] < 0 || c->gathered[which] < until ? read_by(w, c, which) : NULL;
    hp_err err = HP_OK;
    while (!err && c->gathered[which] < until && c->gathered[which] < c->n_units[which]) {
        int unit = c->unit[which][c->gathered[which]++];
        err = gather_unit(w, which ? c->b : c->f, slot, unit, wanted);
    }
    free(wanted);
    *buffer = p->gathered[slot];
    if (!err && *buffer < 0)
        err = hp_fail(w->e, HP_EINTERNAL, "lowering did not gather %s", w->r->g->tensor[tensor].name);
    return err;
}

/* --- gradients ---------------------------------------------------------------------------------------------------------- */

static int weight_of(const lowering *w, int wgrad)
{
    return w->r->g->tensor[wgrad].of;
}

/* A bucket is what was asked for; else a layer's gradients, at most 40 million of them (Megatron's default). */
static int64_t choose_bucket(const lowering *w)
{
    int64_t sum = 0, most = 160000000;
    for (int i = 0; i < w->r->g->n_tensors; i++)
        if (w->param[i].acc >= 0)
            sum += w->p->buffer[w->param[i].acc].bytes;
    int64_t layer = sum / (w->r->g->n_layers > 0 ? w->r->g->n_layers : 1);
    return w->r->s->overlap.bucket_bytes ? w->r->s->overlap.bucket_bytes : layer < most ? layer : most;
}

/* The accumulator is partial over what all contributions are partial over, less what its own splits reduce. */
hp_err low_accumulators(lowering *w)
{
    const hp_graph *g = w->r->g;
    for (int k = 0; k < w->n_chunks; k++) {
        const low_chunk *c = &w->chunk[k];
        for (int i = 0; i < c->placed.n_copies; i++) {
            const hp_copy *copy = &c->placed.copy[i];
            const hp_tensor *t = &g->tensor[copy->tensor];
            if (t->kind != HP_T_WGRAD || copy->step < 0 || c->placed.step[copy->step].node < 0)
                continue;
            low_param *p = &w->param[weight_of(w, copy->tensor)];
            if (!p->n_contributions++)
                p->acc_layout = copy->layout;
            for (int a = 0; a < w->p->mesh.n_atoms; a++)
                if (!copy->layout.partial[a])
                    p->acc_layout.partial[a] = HP_RED_NONE;
        }
    }
    for (int i = 0; i < g->n_tensors; i++) {
        low_param *p = &w->param[i];
        if (!p->used || !p->n_contributions)
            continue;
        hp_layout splits = w->r->state[i].accumulate;
        for (int d = 0; d < splits.nd; d++)
            for (int j = 0; j < splits.n[d]; j++)
                p->acc_layout.partial[splits.split[d][j]] = HP_RED_NONE;
        memcpy(splits.partial, p->acc_layout.partial, sizeof splits.partial);
        p->acc_layout = splits;
        char name[256];
        snprintf(name, sizeof name, "%s:acc", g->tensor[i].name);
        p->acc = low_buffer(w, name, i, HP_F32, &w->r->shape[i], &splits, HP_B_GRADS, HP_S_STEP);
    }
    w->bucket_bytes = choose_bucket(w);
    return HP_OK;
}

/* Emits the operation once storing (first microbatch, first contribution) and once adding, or adding alone. */
static void emit_twice(lowering *w, low_tmpl *t, const char *name, const char *op, const hp_node *node, int n_in, int n_out, const int *buf,
                       bool first)
{
    for (int rest = first ? 0 : 1; rest < 2; rest++) {
        char full[280];
        snprintf(full, sizeof full, "%s%s", name, rest ? "" : "/first");
        hp_task *k = low_op(w, t, full, op, n_in, buf, n_out, buf + n_in);
        k->accumulate = rest;
        k->when = !rest ? HP_W_FIRST : first ? HP_W_REST : HP_W_ALWAYS;
        if (node)
            low_attrs(w, k, node);
    }
}

hp_err low_flush_grads(lowering *w, low_tmpl *t)
{
    hp_err err = low_reduce_grads(w, t, w->ready, w->n_ready, HP_W_LAST, true);
    w->n_ready = 0;
    w->ready_bytes = 0;
    return err;
}

/* Reduces what is complete, in buckets, behind the last contribution. */
static hp_err after_contribution(lowering *w, low_chunk *c, int tensor)
{
    low_param *p = &w->param[tensor];
    if (++p->n_written < p->n_contributions || !w->r->s->overlap.grads || !p->home)
        return HP_OK;
    w->ready[w->n_ready++] = tensor;
    w->ready_bytes += w->p->buffer[p->acc].bytes;
    return w->ready_bytes < w->bucket_bytes ? HP_OK : low_flush_grads(w, c->b);
}

/* Whether the operation can write the accumulators itself. */
static bool writes_directly(const lowering *w, const low_chunk *c, const hp_step *s)
{
    const hp_node *n = &w->r->g->node[s->node];
    const low_param *first = &w->param[weight_of(w, n->arg[n->n_in])];
    bool direct = hp_op_find(w->r->g->ops[n->kind]->name)->accumulates;
    for (int i = n->n_in; i < n->n_in + n->n_out; i++) {
        const low_param *p = &w->param[weight_of(w, n->arg[i])];
        direct = direct && hp_layout_equal(&c->placed.copy[s->copy[i]].layout, &p->acc_layout) && !p->n_written == !first->n_written;
    }
    return direct;
}

/* Takes one output through a temporary: reduced as far as the accumulator is, then added. */
static hp_err add_output(lowering *w, low_chunk *c, int wgrad, int temp)
{
    const low_param *p = &w->param[weight_of(w, wgrad)];
    char name[256];
    int moved;
    hp_err err = low_move(w, c->b, temp, &p->acc_layout, -1, HP_S_RUN, w->r->s->overlap.grads, p->acc >= 0 ? w->p->buffer[p->acc].name : "", &moved);
    snprintf(name, sizeof name, "%s/add", w->p->buffer[temp].name);
    if (!err)
        emit_twice(w, c->b, name, "accum", NULL, 1, 1, (int[]){moved, p->acc}, !p->n_written);
    return err;
}

hp_err low_contribute(lowering *w, low_chunk *c, int step, const int *in)
{
    const hp_step *s = &c->placed.step[step];
    const hp_node *n = &w->r->g->node[s->node];
    const char *op = w->r->g->ops[n->kind]->name;
    bool direct = writes_directly(w, c, s);
    int buf[HP_MAX_OPERANDS];
    memcpy(buf, in, (size_t)n->n_in * sizeof *in);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++) {
        int wgrad = n->arg[i], param = weight_of(w, wgrad);
        buf[i] = direct ? w->param[param].acc
                        : low_buffer(w, w->r->g->tensor[wgrad].name, param, HP_F32, &w->r->shape[param], &c->placed.copy[s->copy[i]].layout,
                                     HP_B_GRADS, HP_S_RUN);
    }
    hp_err err = HP_OK;
    if (direct) {
        emit_twice(w, c->b, n->name, op, n, n->n_in, n->n_out, buf, !w->param[weight_of(w, n->arg[n->n_in])].n_written);
    } else {
        hp_task *k = low_op(w, c->b, n->name, op, n->n_in, buf, n->n_out, buf + n->n_in);
        low_attrs(w, k, n);
        for (int i = n->n_in; i < n->n_in + n->n_out && !err; i++)
            err = add_output(w, c, n->arg[i], buf[i]);
    }
    for (int i = n->n_in; i < n->n_in + n->n_out && !err; i++)
        err = after_contribution(w, c, weight_of(w, n->arg[i]));
    return err;
}

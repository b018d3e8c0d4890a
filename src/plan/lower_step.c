/* lower_step.c -- what happens once a step: template I (token count, gradient seed, parameters kept gathered, copies of tied parameters)
 * and template O (gradients to optimizer layout, global norm, update, parameters back to storage layout).
 *
 * Norm: every element of a gradient counts once. In optimizer layout a gradient is whole, split over some atoms and replicated over the others; squared sums
 * of all gradients with the same set of split atoms add up locally, each set is reduced once over its atoms, stages exchange their sums last.
 */
#include "plan/lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hp_shape scalar_shape = {0};

static int scalar(lowering *w, const char *name, const hp_layout *l, hp_scope scope)
{
    return low_buffer(w, name, -1, HP_F32, &scalar_shape, l, HP_B_WORKSPACE, scope);
}

/* --- I ------------------------------------------------------------------------------------------------------------------ */

static bool in_program(const lowering *w, int node)
{
    return w->r->vstage[node] % w->r->pp == w->p->stage;
}

/* Marks the once-a-step nodes that this program's nodes read, directly or through each other. */
static bool *needed_init(const lowering *w)
{
    const hp_graph *g = w->r->g;
    bool *need = hp_xcalloc((size_t)g->n_nodes, sizeof *need);
    for (int i = g->n_nodes - 1; i >= 0; i--) {
        const hp_node *n = &g->node[i];
        bool init = n->phase == HP_P_INIT;
        if (init ? !need[i] : !in_program(w, i))
            continue;
        for (int k = 0; k < n->n_in; k++) {
            int made = n->arg[k] < 0 ? -1 : g->tensor[n->arg[k]].producer;
            if (made >= 0 && g->node[made].phase == HP_P_INIT)
                need[made] = true;
        }
    }
    return need;
}

static hp_err emit_init_nodes(lowering *w, low_tmpl *t)
{
    const hp_graph *g = w->r->g;
    bool *need = needed_init(w);
    low_chunk c = {.vstage = -1, .f = t, .b = t};
    c.node = hp_xmalloc((size_t)g->n_nodes * sizeof *c.node);
    for (int i = 0; i < g->n_nodes; i++)
        if (need[i])
            c.node[c.n_nodes++] = i;
    hp_err err = low_place(w, &c);
    if (!err)
        err = low_emit_all(w, &c);
    for (int i = 0; i < c.n_nodes && !err; i++) {
        const hp_node *n = &g->node[c.node[i]];
        for (int k = n->n_in; k < n->n_in + n->n_out && !err; k++) {
            int tensor = n->arg[k], src = -1;
            for (int j = 0; j < c.placed.n_copies; j++)
                if (c.placed.copy[j].tensor == tensor)
                    err = low_copy_buffer(w, &c, j, &src);
            hp_layout whole = hp_layout_replicated(g->tensor[tensor].nd);
            if (!err)
                err = low_move(w, t, src, &whole, -1, HP_S_STEP, true, "the step", &w->step_value[tensor]);
            if (!err)
                w->p->buffer[w->step_value[tensor]].scope = HP_S_STEP;
        }
    }
    low_chunk_fini(&c);
    free(need);
    return err;
}

static int tied_edge(const lowering *w, int tensor, int stage, bool gradient)
{
    int stages = w->r->pp * w->r->vpp;
    return (w->r->g->n_tensors + 2 * tensor + gradient) * stages + stage;
}

static bool used_on(const lowering *w, int tensor, int stage)
{
    const hp_graph *g = w->r->g;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_in; k++)
            if (g->node[i].arg[k] == tensor && g->node[i].phase == HP_P_FWD && w->r->vstage[i] % w->r->pp == stage)
                return true;
    return false;
}

static void message(lowering *w, low_tmpl *t, bool is_send, int buffer, int peer, int edge, const char *why)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s%d", w->p->buffer[buffer].name, is_send ? "send" : "recv", peer);
    hp_task *k = low_task(w, t, name, is_send ? HP_TASK_SEND : HP_TASK_RECV, low_stream(w, is_send ? "send.step" : "recv.step", true, HP_ROLE_PP),
                          is_send, !is_send);
    k->buf[0] = buffer;
    k->peer = peer;
    k->edge = edge;
    k->why = why;
}

/* A parameter used on several stages is sent from its home to the others once a step. */
static void share_tied(lowering *w, low_tmpl *t)
{
    const hp_graph *g = w->r->g;
    for (int i = 0; i < g->n_tensors && w->r->pp > 1; i++) {
        const low_param *p = &w->param[i];
        if (!p->used)
            continue;
        for (int stage = 0; stage < w->r->pp; stage++) {
            if (stage == w->p->stage || !used_on(w, i, stage))
                continue;
            if (p->home)
                message(w, t, true, p->store, stage, tied_edge(w, i, stage, false), "tied parameter to another stage");
            else if (w->param[i].home_stage == stage)
                message(w, t, false, p->store, stage, tied_edge(w, i, w->p->stage, false), "tied parameter from its home stage");
        }
    }
}

static hp_err keep_gathered(lowering *w, low_tmpl *t)
{
    for (int i = 0; i < w->r->g->n_tensors; i++) {
        low_param *p = &w->param[i];
        const hp_param_state *s = &w->r->state[i];
        if (!p->used || !p->home || !s->keep || hp_layout_equal(&s->store, &s->compute))
            continue;
        hp_err err = low_move(w, t, p->store, &s->compute, -1, HP_S_STEP, w->r->s->overlap.params, "the step", &p->kept);
        if (err)
            return err;
    }
    return HP_OK;
}

hp_err low_init(lowering *w)
{
    low_tmpl *t = low_template(w, HP_TMPL_I, 0);
    hp_err err = emit_init_nodes(w, t);
    if (!err)
        err = keep_gathered(w, t);
    if (!err)
        share_tied(w, t);
    return err;
}

/* --- gradients ------------------------------------------------------------------------------------------------------------ */

typedef struct reduction {
    int tensor, at; /* parameter, buffer it has reached */
    hp_path path;
} reduction;

/* Takes the smallest dead accumulator with room for `bytes`; -1 when there is none. */
static int take_dead(lowering *w, const low_tmpl *t, int64_t bytes)
{
    const hp_buffer *b = w->p->buffer;
    int best = -1;
    for (int i = 0; i < w->n_dead && w->dead_in == t; i++)
        if (b[w->dead[i]].bytes >= bytes && (best < 0 || b[w->dead[i]].bytes < b[w->dead[best]].bytes))
            best = i;
    if (best < 0)
        return -1;
    int buffer = w->dead[best];
    w->dead[best] = w->dead[--w->n_dead];
    return buffer;
}

/* A reduced gradient lies on a dead accumulator, else on bytes of its own: those of O alone where O makes it. */
static void place_shard(lowering *w, const low_tmpl *t, int buffer)
{
    hp_buffer *b = &w->p->buffer[buffer];
    b->alias = take_dead(w, t, b->bytes);
    if (b->alias < 0 && t->kind == HP_TMPL_O)
        b->scope = HP_S_RUN;
}

/* Accumulators whose reduced gradient lies elsewhere are dead from here on. */
static void note_dead(lowering *w, const low_tmpl *t, const reduction *r, int n)
{
    if (w->dead_in != t)
        w->n_dead = 0;
    w->dead_in = t;
    for (int i = 0; i < n; i++) {
        int at = r[i].at, acc = w->param[r[i].tensor].acc;
        while (at != acc && w->p->buffer[at].alias >= 0)
            at = w->p->buffer[at].alias;
        if (at != acc)
            w->dead[w->n_dead++] = acc;
    }
}

/* Buckets one step of all reductions: runs of equal kind and group become one collective. */
static void reduce_step(lowering *w, low_tmpl *t, reduction *r, int n, int step, hp_when when, bool async)
{
    int *src = hp_xmalloc((size_t)n * sizeof *src), *dst = hp_xmalloc((size_t)n * sizeof *dst);
    for (int i = 0, k; i < n; i = k > i ? k : i + 1) {
        int m = 0;
        hp_coll kind = 0;
        uint32_t atoms = 0;
        for (k = i; k < n; k++) {
            if (step >= r[k].path.n)
                continue;
            const hp_move *mv = &r[k].path.move[step];
            if (m && (mv->kind != kind || mv->atoms != atoms))
                break;
            kind = mv->kind;
            atoms = mv->atoms;
            const hp_buffer from = w->p->buffer[r[k].at];
            bool last = step + 1 == r[k].path.n;
            int to = low_buffer(w, from.name, r[k].tensor, HP_F32, &from.shape, &mv->to, HP_B_GRADS, last ? HP_S_STEP : HP_S_RUN);
            if (kind == HP_COLL_ALL_REDUCE && from.scope == w->p->buffer[to].scope)
                w->p->buffer[to].alias = r[k].at;
            else if (last)
                place_shard(w, t, to);
            src[m] = r[k].at;
            dst[m++] = to;
            r[k].at = to;
        }
        if (!m)
            continue;
        char name[128], axis[64];
        snprintf(name, sizeof name, "grads/%s.%s", hp_coll_name(kind), hp_mesh_name(&w->p->mesh, atoms, axis, sizeof axis));
        const char *why = hp_arena_printf(&w->plan->arena, "gradients of %d parameters to optimizer layout (%s first)", m, w->r->g->tensor[r[i].tensor].name);
        hp_task *task = low_coll(w, t, name, kind, atoms, m, src, dst, why);
        task->when = when;
        if (!async)
            task->stream = 0;
    }
    free(src);
    free(dst);
}

hp_err low_reduce_grads(lowering *w, low_tmpl *t, const int *tensor, int n, hp_when when, bool async)
{
    reduction *r = hp_xcalloc((size_t)n, sizeof *r);
    hp_err err = HP_OK;
    int most = 0;
    for (int i = 0; i < n && !err; i++) {
        const hp_buffer *b = &w->p->buffer[w->param[tensor[i]].acc];
        r[i] = (reduction){.tensor = tensor[i], .at = w->param[tensor[i]].acc};
        err = hp_redist_path(&w->p->mesh, &b->shape, hp_dtype_bytes(b->dtype), &b->layout, &w->r->state[tensor[i]].optimizer, &w->price,
                             &r[i].path, w->e);
        most = r[i].path.n > most ? r[i].path.n : most;
    }
    for (int step = 0; step < most && !err; step++)
        reduce_step(w, t, r, n, step, when, async);
    for (int i = 0; i < n && !err; i++)
        w->param[tensor[i]].grad = r[i].at;
    if (!err)
        note_dead(w, t, r, n);
    free(r);
    return err;
}

/* The gradients of tied parameters go home; there they are added. */
static hp_err collect_tied(lowering *w, low_tmpl *t, int tensor)
{
    low_param *p = &w->param[tensor];
    hp_layout whole = w->r->state[tensor].compute;
    int buffer;
    if (!p->home) {
        hp_err err = low_move(w, t, p->acc, &whole, -1, HP_S_RUN, false, "its home stage", &buffer);
        if (!err)
            message(w, t, true, buffer, p->home_stage, tied_edge(w, tensor, w->p->stage, true), "gradient of a tied parameter to its home stage");
        return err;
    }
    for (int stage = 0; stage < w->r->pp; stage++) {
        if (stage == w->p->stage || !used_on(w, tensor, stage))
            continue;
        char name[256];
        snprintf(name, sizeof name, "%s:from%d", w->r->g->tensor[tensor].name, stage);
        buffer = low_buffer(w, name, tensor, HP_F32, &w->r->shape[tensor], &w->r->state[tensor].optimizer, HP_B_GRADS, HP_S_RUN);
        message(w, t, false, buffer, stage, tied_edge(w, tensor, stage, true), "gradient of a tied parameter from another stage");
        snprintf(name, sizeof name, "%s:tied%d/add", w->r->g->tensor[tensor].name, stage);
        low_op(w, t, name, "accum", 1, &buffer, 1, &p->grad)->accumulate = true;
    }
    return HP_OK;
}

typedef struct pending {
    int tensor;
    int64_t bytes;
} pending;

static int by_bytes(const void *a, const void *b)
{
    const pending *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->tensor - y->tensor;
}

/* Whether the reduced gradient lies where the accumulator does. */
static bool stays_in_place(const lowering *w, int tensor)
{
    hp_layout from = w->p->buffer[w->param[tensor].acc].layout, to = w->r->state[tensor].optimizer;
    memset(from.partial, 0, sizeof from.partial);
    memset(to.partial, 0, sizeof to.partial);
    return hp_layout_equal(&from, &to);
}

/* Reduces smallest first, in buckets that double up to their full size, so that shards find room on accumulators that are dead by then: sharded gradients
 * add next to nothing to the accumulators' bytes. */
static hp_err reduce_away(lowering *w, low_tmpl *t, pending *list, int n)
{
    hp_err err = HP_OK;
    int64_t dead = 0;
    int *bucket = hp_xmalloc((size_t)(n + 1) * sizeof *bucket);
    qsort(list, (size_t)n, sizeof *list, by_bytes);
    for (int i = 0; i < n && !err;) {
        int64_t limit = dead < w->bucket_bytes ? dead : w->bucket_bytes, sum = 0;
        int m = 0;
        do {
            sum += list[i].bytes;
            bucket[m++] = list[i++].tensor;
        } while (i < n && sum + list[i].bytes <= limit);
        err = low_reduce_grads(w, t, bucket, m, HP_W_ALWAYS, false);
        dead += sum;
    }
    free(bucket);
    return err;
}

static hp_err reduce_rest(lowering *w, low_tmpl *t)
{
    int n = 0, n_away = 0, *list = hp_xmalloc((size_t)w->r->g->n_tensors * sizeof *list);
    pending *away = hp_xmalloc((size_t)w->r->g->n_tensors * sizeof *away);
    for (int i = 0; i < w->r->g->n_tensors; i++) {
        if (w->param[i].acc < 0 || !w->param[i].home || w->param[i].grad >= 0)
            continue;
        if (stays_in_place(w, i))
            list[n++] = i;
        else
            away[n_away++] = (pending){i, w->p->buffer[w->param[i].acc].bytes};
    }
    hp_err err = low_reduce_grads(w, t, list, n, HP_W_ALWAYS, false);
    if (!err)
        err = reduce_away(w, t, away, n_away);
    for (int i = 0; i < w->r->g->n_tensors && !err && w->r->pp > 1; i++)
        if (w->param[i].acc >= 0)
            err = collect_tied(w, t, i);
    free(list);
    free(away);
    return err;
}

/* --- norm ------------------------------------------------------------------------------------------------------------------- */

static uint32_t split_mask(const hp_layout *l)
{
    uint32_t mask = 0;
    for (int d = 0; d < l->nd; d++)
        mask |= hp_layout_mask(l, d);
    return mask;
}

/* One squared sum a set of split atoms; returns how many sets. */
static int square_sums(lowering *w, low_tmpl *t, int *sum, int max)
{
    uint32_t mask[16];
    int n = 0;
    for (int i = 0; i < w->r->g->n_tensors; i++) {
        const low_param *p = &w->param[i];
        if (p->grad < 0)
            continue;
        uint32_t m = split_mask(&w->p->buffer[p->grad].layout);
        int k = 0;
        while (k < n && mask[k] != m)
            k++;
        bool first = k == n;
        if (first) {
            hp_layout l = hp_layout_replicated(0);
            for (int a = 0; a < w->p->mesh.n_atoms; a++)
                l.partial[a] = m >> a & 1 ? HP_RED_SUM : HP_RED_NONE;
            if (n == max)
                return -1;
            mask[n] = m;
            sum[n++] = scalar(w, "grad.sq", &l, HP_S_RUN);
        }
        char name[256];
        snprintf(name, sizeof name, "%s/sqnorm", w->r->g->tensor[i].name);
        low_op(w, t, name, "sqnorm", 1, &p->grad, 1, &sum[k])->accumulate = !first;
    }
    return n;
}

/* Adds the stages' sums: all send to stage 0, which sends the total back. */
static int exchange_sums(lowering *w, low_tmpl *t, int local)
{
    int stages = w->r->pp, base = (3 * w->r->g->n_tensors + 1) * stages * w->r->vpp;
    hp_layout whole = hp_layout_replicated(0);
    if (w->p->stage) {
        message(w, t, true, local, 0, base + w->p->stage, "squared gradient norm of a stage");
        int total = scalar(w, "grad.sq.all", &whole, HP_S_RUN);
        message(w, t, false, total, 0, base + stages + w->p->stage, "squared gradient norm of all stages");
        return total;
    }
    int total = scalar(w, "grad.sq.all", &whole, HP_S_RUN);
    low_op(w, t, "grad.sq/own", "accum", 1, &local, 1, &total);
    for (int i = 1; i < stages; i++) {
        int other = scalar(w, "grad.sq.other", &whole, HP_S_RUN);
        message(w, t, false, other, i, base + i, "squared gradient norm of a stage");
        low_op(w, t, "grad.sq/add", "accum", 1, &other, 1, &total)->accumulate = true;
    }
    for (int i = 1; i < stages; i++)
        message(w, t, true, total, i, base + stages + i, "squared gradient norm of all stages");
    return total;
}

static void number_attr(lowering *w, hp_task *t, int n, const hp_attr *attr)
{
    t->n_attrs = n;
    t->attr = hp_arena_alloc(&w->plan->arena, (size_t)n * sizeof *attr);
    memcpy(t->attr, attr, (size_t)n * sizeof *attr);
}

/* The global norm and the factor by which gradients are scaled (`clip`); *factor = -1 where nothing is clipped. */
static hp_err norm(lowering *w, low_tmpl *t, int *factor)
{
    int part[16], n = square_sums(w, t, part, 12);
    hp_layout whole = hp_layout_replicated(0);
    *factor = -1;
    if (n < 0)
        return hp_fail(w->e, HP_EINFEASIBLE, "parameters are split in more than 12 different ways; use fewer layouts");
    for (int i = 0; i < n; i++) {
        hp_err err = low_move(w, t, part[i], &whole, -1, HP_S_RUN, false, "the gradient norm", &part[i]);
        if (err)
            return err;
    }
    int total = scalar(w, "grad.sq.sum", &whole, HP_S_RUN);
    low_op(w, t, "grad.sq.sum", "sum_scalars", n, part, 1, &total);
    if (w->r->pp > 1)
        total = exchange_sums(w, t, total);
    double clip = w->r->g->train.clip;
    int out[2] = {scalar(w, "grad.scale", &whole, HP_S_RUN), scalar(w, "grad_norm", &whole, HP_S_STEP)};
    hp_task *k = low_op(w, t, "clip", "clip_scale", 1, &total, 2, out);
    number_attr(w, k, 1, &(hp_attr){"clip", clip});
    *factor = clip > 0 ? out[0] : -1;
    return HP_OK;
}

/* --- update ------------------------------------------------------------------------------------------------------------------- */

static hp_err update(lowering *w, low_tmpl *t, int tensor, int factor)
{
    const hp_graph *g = w->r->g;
    const hp_train *tr = &g->train;
    const hp_param_state *s = &w->r->state[tensor];
    low_param *p = &w->param[tensor];
    const hp_buffer store = w->p->buffer[p->store];
    bool same = hp_layout_equal(&s->store, &s->optimizer);
    int value = p->master >= 0 ? p->master : p->store, narrow = -1;
    hp_err err = HP_OK;
    if (p->master < 0 && !same)
        err = low_move(w, t, p->store, &s->optimizer, -1, HP_S_RUN, false, "the optimizer", &value);
    if (p->master >= 0)
        narrow = same ? p->store : low_buffer(w, store.name, tensor, store.dtype, &store.shape, &s->optimizer, HP_B_PARAMS, HP_S_RUN);
    if (err)
        return err;
    char name[256];
    snprintf(name, sizeof name, "%s/update", g->tensor[tensor].name);
    int in[5] = {value, p->m, p->v, p->grad, factor}, out[4] = {value, p->m, p->v, narrow};
    int sgd_in[3] = {value, p->grad, factor}, sgd_out[2] = {value, narrow};
    hp_task *k = tr->sgd ? low_op(w, t, name, "sgd", 3, sgd_in, 2, sgd_out) : low_op(w, t, name, "adamw", 5, in, 4, out);
    const hp_attr attr[] = {{"lr", tr->lr}, {"beta1", tr->beta1}, {"beta2", tr->beta2}, {"eps", tr->eps},
                            {"decay", g->tensor[tensor].decay ? tr->decay : 0}, {"warmup", tr->warmup}};
    number_attr(w, k, 6, attr);
    int from = p->master >= 0 ? narrow : value;
    return same ? HP_OK : low_move(w, t, from, &s->store, p->store, HP_S_PERSIST, false, "storage", &from);
}

/* The step's loss, whole on every device of its stage. */
static hp_err finish_loss(lowering *w, low_tmpl *t)
{
    if (w->loss_sum < 0)
        return HP_OK;
    hp_layout whole = hp_layout_replicated(0);
    int loss = low_buffer(w, "loss", w->r->g->loss, HP_F32, &scalar_shape, &whole, HP_B_WORKSPACE, HP_S_STEP);
    return low_move(w, t, w->loss_sum, &whole, loss, HP_S_STEP, false, "the report", &loss);
}

hp_err low_optimizer(lowering *w)
{
    low_tmpl *t = low_template(w, HP_TMPL_O, 0);
    int factor = -1;
    hp_err err = reduce_rest(w, t);
    if (!err)
        err = finish_loss(w, t);
    if (!err)
        err = norm(w, t, &factor);
    for (int i = 0; i < w->r->g->n_tensors && !err; i++)
        if (w->param[i].trained && w->param[i].grad >= 0)
            err = update(w, t, i, factor);
    return err;
}

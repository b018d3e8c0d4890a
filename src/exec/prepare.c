/* prepare.c -- nothing here is timed; everything that a step needs is allocated and touched here. */
#include "exec/prepare.h"

#include "exec/known.h"
#include "exec/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- checks --- */

static int64_t scope_limit(const hp_program *p, const hp_buffer *b)
{
    return b->tier == HP_TIER_HBM ? p->scope_bytes[b->scope] : p->host_bytes;
}

static hp_err check_buffer(const hp_side *s, int i, hp_errmsg *e)
{
    const hp_program *p = s->p;
    const hp_buffer *b = &p->buffer[i];
    if (b->offset < 0 || b->offset % 64 != 0 || b->offset + b->bytes > scope_limit(p, b))
        return hp_fail(e, HP_EINTERNAL,
                       "plan: buffer %s of %s lies at %lld + %lld, outside its scope's %lld bytes "
                       "or not on a multiple of 64",
                       b->name, p->name, (long long)b->offset, (long long)b->bytes,
                       (long long)scope_limit(p, b));
    for (int r = 0; r < s->n_ranks; r++)
        if (hp_buffer_rank_bytes(p, i, r) > b->bytes)
            return hp_fail(
                e, HP_EINTERNAL, "plan: buffer %s of %s has %lld bytes, rank %d needs %lld",
                b->name, p->name, (long long)b->bytes, r, (long long)hp_buffer_rank_bytes(p, i, r));
    return HP_OK;
}

static hp_err check_pair(const hp_program *p, const hp_task *t, int i, hp_errmsg *e)
{
    const hp_buffer *a = &p->buffer[t->buf[i]], *b = &p->buffer[t->buf[t->n_in + i]];
    bool same =
        a->shape.nd == b->shape.nd && a->dtype == b->dtype && (a->route < 0) == (b->route < 0);
    for (int d = 0; same && d < a->shape.nd; d++)
        same = a->shape.size[d] == b->shape.size[d];
    return same ? HP_OK
                : hp_fail(e, HP_EINTERNAL,
                          "plan: task %s moves %s to %s, which differ in shape or type", t->name,
                          a->name, b->name);
}

/* Every frame buffer that a task of an entry touches needs the entry to have a frame. */
static hp_err check_frames(const hp_program *p, hp_errmsg *e)
{
    for (int i = 0; i < p->n_entries; i++) {
        const hp_template *tm = &p->tmpl[p->entry[i].tmpl];
        for (int k = 0; k < tm->n_tasks && p->entry[i].frame < 0; k++)
            for (int b = 0; b < tm->task[k].n_in + tm->task[k].n_out; b++)
                if (tm->task[k].buf[b] >= 0 && p->buffer[tm->task[k].buf[b]].scope == HP_S_FRAME)
                    return hp_fail(
                        e, HP_EINTERNAL,
                        "plan: task %s uses frame buffer %s in entry %d, which has no frame",
                        tm->task[k].name, p->buffer[tm->task[k].buf[b]].name, i);
    }
    return HP_OK;
}

static hp_err check_budget(const hp_engine *g, hp_errmsg *e)
{
    int64_t total = 0, free_bytes = hp_memory_available();
    char a[32], b[32];
    for (int i = 0; i < g->n_sides; i++) {
        const hp_program *p = g->side[i].p;
        int64_t arena = hp_program_arena(p);
        if (g->plan->budget_bytes > 0 && arena > g->plan->budget_bytes)
            return hp_fail(e, HP_EINFEASIBLE, "a device of %s needs %s, its budget is %s", p->name,
                           hp_format_bytes((double)arena, a, sizeof a),
                           hp_format_bytes((double)g->plan->budget_bytes, b, sizeof b));
        total += (arena + p->host_bytes) * g->side[i].n_ranks;
    }
    if (free_bytes >= 0 && total > free_bytes)
        return hp_fail(e, HP_EINFEASIBLE,
                       "the %d virtual devices need %s in all, this machine has %s free: use fewer "
                       "devices or a smaller model",
                       g->n_devices, hp_format_bytes((double)total, a, sizeof a),
                       hp_format_bytes((double)free_bytes, b, sizeof b));
    return HP_OK;
}

/* --- sides --- */

static void place_boxes(hp_engine *g, hp_side *s)
{
    s->box =
        hp_arena_alloc(&g->arena, (size_t)s->n_ranks * (size_t)s->p->n_buffers * sizeof *s->box);
    for (int r = 0; r < s->n_ranks; r++)
        for (int i = 0; i < s->p->n_buffers; i++)
            s->box[(int64_t)r * s->p->n_buffers + i] = hp_buffer_box(s->p, i, r);
}

/* Counts what each instance waits for, and lists who waits for it; what follows a SEND on its stream waits for the posting only. */
static void list_successors(hp_engine *g, hp_side *s)
{
    const hp_expansion *x = s->x;
    size_t n = (size_t)x->n;
    s->succ_first = hp_arena_alloc(&g->arena, (n + 1) * sizeof(int));
    s->succ = hp_arena_alloc(&g->arena, (n + (size_t)x->n_deps + 1) * sizeof(int));
    s->follower = hp_arena_alloc(&g->arena, (n + 1) * sizeof(int));
    s->start = hp_arena_alloc(&g->arena, (n + 1) * sizeof(int));
    int *count = s->succ_first + 1; /* counts of i at succ_first[i + 1], then their sum */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < x->n; i++) {
            const hp_inst *in = &x->inst[i];
            bool send = in->prev >= 0 && hp_info_of(s, in->prev)->task->kind == HP_TASK_SEND;
            for (int k = in->prev >= 0 && !send ? -1 : 0; k < in->n_deps; k++) {
                int from = k < 0 ? in->prev : x->dep[in->first_dep + k];
                if (pass == 0)
                    count[from]++;
                else
                    s->succ[s->succ_first[from]++] = i;
            }
            s->start[i] = (in->prev >= 0) + in->n_deps;
            if (pass == 0)
                s->follower[i] = -1;
            if (send)
                s->follower[in->prev] = i;
        }
        if (pass == 0)
            for (int i = 0; i < x->n; i++)
                count[i] += s->succ_first[i];
    }
    memmove(s->succ_first + 1, s->succ_first,
            n * sizeof(int)); /* the second pass moved every start to its end */
    s->succ_first[0] = 0;
}

/* --- tasks --- */

static int link_of(const hp_engine *g, const hp_side *s, const hp_task *t)
{
    const hp_mesh *m = &s->p->mesh;
    int role = s->p->stream[t->stream].role, least = 0;
    if (t->kind == HP_TASK_SEND || t->kind == HP_TASK_RECV)
        return role >= 0 ? role : HP_ROLE_PP;
    if (t->kind == HP_TASK_COPY)
        return HP_LINK_COPY;
    if (t->kind != HP_TASK_COLL ||
        hp_known_groups(g->known, s, t->coll == HP_COLL_SLICE ? 0 : t->atoms)->size == 1)
        return -1;
    for (int i = 0; i < m->n_axes; i++) { /* the smallest axis that holds the group */
        uint32_t mask = 0;
        for (int k = 0; k < m->axis[i].n; k++)
            mask |= 1u << m->axis[i].atom[k];
        if ((t->atoms & ~mask) == 0 && (least == 0 || m->axis[i].size < least)) {
            least = m->axis[i].size;
            role = m->axis[i].role;
        }
    }
    return role >= 0 ? role : HP_ROLE_OTHER;
}

static bool overlap(const hp_program *p, int a, int b)
{
    const hp_buffer *x = &p->buffer[a], *y = &p->buffer[b];
    bool same_space = (x->tier == HP_TIER_HBM) == (y->tier == HP_TIER_HBM) && x->scope == y->scope;
    return same_space && x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* A collective whose sources and destinations share bytes goes through staging memory, unless its shares keep out of each other's way. */
static bool needs_stage(const hp_side *s, const hp_info *in)
{
    const hp_task *t = in->task;
    for (int i = 0; i < t->n_in; i++)
        for (int k = 0; k < t->n_out; k++) {
            int a = t->buf[i], b = t->buf[t->n_in + k];
            bool same = i == k && s->p->buffer[a].offset == s->p->buffer[b].offset &&
                        in->flow[i]->in_place && s->p->buffer[a].route < 0;
            if (overlap(s->p, a, b) && !same)
                return true;
        }
    return false;
}

static hp_err prepare_coll(hp_engine *g, hp_side *s, hp_info *in, hp_errmsg *e)
{
    const hp_task *t = in->task;
    uint32_t atoms = t->coll == HP_COLL_SLICE ? 0 : t->atoms;
    hp_flow **flow = hp_arena_alloc(&g->arena, (size_t)t->n_in * sizeof *flow);
    in->stage_at = hp_arena_alloc(&g->arena, (size_t)t->n_in * sizeof *in->stage_at);
    in->groups = hp_known_groups(g->known, s, atoms);
    in->flow = flow;
    for (int i = 0; i < t->n_in; i++) {
        hp_err rc = check_pair(s->p, t, i, e);
        if (!rc)
            rc = hp_known_flow(g->known, s, atoms, t->buf[i], t->buf[t->n_in + i], &flow[i], e);
        if (rc)
            return hp_fail_at(e, "task %s of %s (%s)", t->name, s->p->name, hp_coll_name(t->coll));
        in->routed = in->routed || s->p->buffer[t->buf[i]].route >= 0;
        if (i > 0)
            in->stage_at[i] = in->stage_at[i - 1] + s->p->buffer[t->buf[t->n_in + i - 1]].bytes;
    }
    in->staged = needs_stage(s, in);
    for (int r = 0; r < s->n_ranks; r++)
        in->sent[r] = in->routed || in->groups->size == 1 ? 0 : llround(hp_task_bytes(s->p, t, r));
    return HP_OK;
}

static hp_err prepare_tasks(hp_engine *g, hp_side *s, hp_errmsg *e)
{
    const hp_program *p = s->p;
    s->first_task = hp_arena_alloc(&g->arena, (size_t)(p->n_templates + 1) * sizeof(int));
    for (int i = 0; i < p->n_templates; i++)
        s->first_task[i + 1] = s->first_task[i] + p->tmpl[i].n_tasks;
    s->n_tasks = s->first_task[p->n_templates];
    s->info = hp_arena_alloc(&g->arena, (size_t)(s->n_tasks + 1) * sizeof *s->info);
    for (int i = 0; i < s->n_tasks; i++)
        s->info[i].link = -1;
    for (int i = 0; i < p->n_templates; i++)
        for (int k = 0; k < p->tmpl[i].n_tasks; k++) {
            hp_info *in = &s->info[s->first_task[i] + k];
            const hp_task *t = in->task = &p->tmpl[i].task[k];
            in->comm = t->kind == HP_TASK_COLL || t->kind == HP_TASK_SEND ||
                       t->kind == HP_TASK_RECV || t->kind == HP_TASK_COPY;
            in->link = link_of(g, s, t);
            in->sent = hp_arena_alloc(&g->arena, (size_t)s->n_ranks * sizeof *in->sent);
            hp_err rc = HP_OK;
            if (t->kind == HP_TASK_OP && !(in->op = hp_op_find(t->op)))
                rc = hp_fail(e, HP_EINTERNAL,
                             "plan: task %s asks for operation \"%s\", which does not exist",
                             t->name, t->op);
            else if (t->kind == HP_TASK_COLL)
                rc = prepare_coll(g, s, in, e);
            else if (t->kind == HP_TASK_COPY)
                for (int r = 0; r < s->n_ranks; r++)
                    in->sent[r] = hp_buffer_rank_bytes(p, t->buf[0], r);
            if (rc)
                return rc;
        }
    return HP_OK;
}

/* --- what a step changes, and memory --- */

static void place_state(hp_engine *g, hp_side *s)
{
    size_t n = (size_t)s->n_ranks * (size_t)s->n_inst + 1;
    s->meet_first = hp_arena_alloc(&g->arena, (size_t)(s->n_inst + 1) * sizeof(int));
    for (int i = 0; i < s->n_inst; i++) {
        const hp_info *in = hp_info_of(s, i);
        s->meet_first[i] = in->groups ? s->n_meets : -1;
        s->n_meets += in->groups ? in->groups->n : 0;
    }
    s->meet = hp_arena_alloc(&g->arena, (size_t)(s->n_meets + 1) * sizeof *s->meet);
    s->pending = hp_arena_alloc(&g->arena, n * sizeof(int));
    s->posts = hp_arena_alloc(&g->arena, n * sizeof(int));
}

/* The largest storage that any collective of a stream needs on a rank. */
static void place_storage(hp_engine *g, hp_side *s)
{
    int n_streams = s->p->n_streams;
    s->storage =
        hp_arena_alloc(&g->arena, (size_t)s->n_ranks * (size_t)n_streams * sizeof *s->storage);
    for (int k = 0; k < n_streams; k++) {
        size_t lists = 0, stage = 0, tables = 0;
        for (int i = 0; i < s->n_tasks; i++) {
            hp_info *in = &s->info[i];
            if (!in->groups || in->task->stream != k)
                continue;
            int last = in->task->n_in - 1;
            size_t staged = in->staged
                                ? (size_t)(in->stage_at[last] +
                                           s->p->buffer[in->task->buf[in->task->n_in + last]].bytes)
                                : 0;
            size_t n = 2 * (size_t)in->task->n_in;
            for (int b = 0; in->routed && b < 2 * in->task->n_in; b++) {
                const hp_buffer *buf = &s->p->buffer[in->task->buf[b]];
                for (int r = 0; r < s->n_ranks && buf->route >= 0; r++) {
                    size_t bytes = hp_rows_bytes(hp_box_of(s, r, in->task->buf[b]),
                                                 s->p->buffer[buf->route].shape.size[2]);
                    in->list_bytes = bytes > in->list_bytes ? bytes : in->list_bytes;
                }
            }
            tables = in->routed && n > tables ? n : tables;
            lists = in->routed && n * in->list_bytes > lists ? n * in->list_bytes : lists;
            stage = staged > stage ? staged : stage;
        }
        for (int r = 0; r < s->n_ranks && lists + stage > 0; r++) {
            hp_storage *st = &s->storage[r * n_streams + k];
            st->rows = hp_arena_alloc(&g->arena, tables * sizeof *st->rows);
            st->lists = aligned_alloc(64, (lists + stage + 63) / 64 * 64);
            if (!st->lists)
                abort();
            memset(st->lists, 0, lists + stage);
            st->stage = st->lists + lists;
        }
    }
}

static hp_err map_memory(hp_engine *g, hp_errmsg *e)
{
    for (int i = 0; i < g->n_sides; i++) {
        hp_side *s = &g->side[i];
        s->hbm = hp_arena_alloc(&g->arena, (size_t)s->n_ranks * sizeof *s->hbm);
        s->far = hp_arena_alloc(&g->arena, (size_t)s->n_ranks * sizeof *s->far);
        for (int r = 0; r < s->n_ranks; r++) {
            hp_err rc = hp_memory_map(&s->hbm[r], hp_program_arena(s->p), e);
            if (!rc)
                rc = hp_memory_map(&s->far[r], s->p->host_bytes, e);
            if (rc)
                return rc;
        }
    }
    return HP_OK;
}

/* The last instance that writes the metric's buffer: a scalar in memory that every rank sees whole. */
static void find_metric(const hp_engine *g, const char *tensor, const char *name, int *program,
                        int *inst, int *buffer)
{
    *program = -1;
    for (int k = 0; k < g->n_sides; k++) {
        const hp_side *s = &g->side[k];
        for (int i = 0; i < s->n_inst; i++) {
            const hp_task *t = hp_info_of(s, i)->task;
            for (int o = t->n_in; o < t->n_in + t->n_out; o++) {
                const hp_buffer *b = t->buf[o] < 0 ? NULL : &s->p->buffer[t->buf[o]];
                bool right = b && b->dtype == HP_F32 && b->shape.nd == 0 && b->scope == HP_S_STEP &&
                             hp_layout_partial_mask(&b->layout) == 0 &&
                             ((tensor && b->tensor && strcmp(b->tensor, tensor) == 0) ||
                              (name && strcmp(b->name, name) == 0));
                if (right) {
                    *program = k;
                    *inst = i;
                    *buffer = t->buf[o];
                }
            }
        }
    }
}

static hp_err prepare_side(hp_engine *g, hp_side *s, hp_errmsg *e)
{
    for (int i = 0; i < s->p->n_buffers; i++) {
        hp_err rc = check_buffer(s, i, e);
        if (rc)
            return rc;
    }
    place_boxes(g, s);
    hp_err rc = check_frames(s->p, e);
    if (!rc)
        rc = prepare_tasks(g, s, e);
    if (rc)
        return rc;
    list_successors(g, s);
    place_state(g, s);
    place_storage(g, s);
    return HP_OK;
}

hp_err hp_prepare(hp_engine *g, const hp_expansion *x, hp_errmsg *e)
{
    hp_err rc = HP_OK;
    g->known = hp_known_new();
    g->n_sides = g->plan->n_programs;
    g->side = hp_arena_alloc(&g->arena, (size_t)(g->n_sides + 1) * sizeof *g->side);
    for (int i = 0; i < g->n_sides; i++) {
        const hp_program *p = &g->plan->program[i];
        g->side[i] = (hp_side){.p = p,
                               .x = &x[i],
                               .index = i,
                               .n_ranks = p->mesh.n_ranks,
                               .n_inst = x[i].n,
                               .device0 = g->n_devices};
        g->n_devices += p->mesh.n_ranks;
    }
    rc = check_budget(g, e);
    for (int i = 0; i < g->n_sides && !rc; i++)
        rc = prepare_side(g, &g->side[i], e);
    if (!rc)
        rc = hp_wire(g, e);
    if (!rc)
        rc = map_memory(g, e);
    if (rc)
        return rc;
    find_metric(g, "loss", NULL, &g->loss.program, &g->loss.inst, &g->loss.buffer);
    find_metric(g, NULL, "grad_norm", &g->grad_norm.program, &g->grad_norm.inst,
                &g->grad_norm.buffer);
    return HP_OK;
}

void hp_prepare_undo(hp_engine *g)
{
    for (int i = 0; i < g->n_sides; i++) {
        hp_side *s = &g->side[i];
        for (int k = 0; s->storage && k < s->n_ranks * s->p->n_streams; k++)
            free(s->storage[k].lists);
        for (int r = 0; s->hbm && r < s->n_ranks; r++) {
            hp_memory_unmap(&s->hbm[r]);
            hp_memory_unmap(&s->far[r]);
        }
    }
    hp_known_free(g->known);
    hp_arena_fini(&g->arena);
}

/* owners.c -- three passes over one device: intervals of compute, transfers and copies are merged
 * into unions; busy stretches are cut by transfers; each idle stretch is walked backwards along
 * what was missing. Every step of that walk goes to an earlier instance, so it ends. */
#include "trace/owners.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct interval {
    int64_t from, to;
    int inst;
} interval;

typedef struct intervals {
    int n, cap;
    interval *v;
} intervals;

typedef struct walk {
    const hp_program *p;
    const hp_expansion *x;
    const hp_span *spans;
    int64_t step_ns;
    intervals compute, transfer; /* unions; compute keeps the task that begins each stretch */
    intervals segment;           /* of one idle stretch, latest first; `inst` to blame */
    hp_owner *owner;             /* of each segment */
    int cap_owner;
    hp_owner_fn *fn;
    void *ctx;
} walk;

static const char *const owner_name[HP_OWNERS] = {
    "compute",    "overlapped", "bubble",     "wait",       "host",       "free",
    "exposed.dp", "exposed.tp", "exposed.pp", "exposed.cp", "exposed.ep", "exposed.offload"};

const char *hp_owner_name(hp_owner o)
{
    return owner_name[o];
}

double hp_ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

/* --- tasks
 * ----------------------------------------------------------------------------------------------- */

hp_task_class hp_task_class_of(const hp_task *t)
{
    switch (t->kind) {
    case HP_TASK_COLL:
        return t->coll == HP_COLL_SLICE ? HP_TC_COMPUTE : HP_TC_TRANSFER;
    case HP_TASK_SEND:
    case HP_TASK_RECV:
        return HP_TC_TRANSFER;
    case HP_TASK_COPY:
        return HP_TC_COPY;
    default:
        return HP_TC_COMPUTE;
    }
}

/* Roles beyond the five named ones are data-parallel replicas. A collective over several axes has
 * the role of its stream. */
int hp_task_role(const hp_program *p, const hp_task *t)
{
    if (t->kind == HP_TASK_COPY)
        return HP_OWN_OFFLOAD;
    if (t->kind == HP_TASK_SEND || t->kind == HP_TASK_RECV)
        return HP_ROLE_PP;
    const hp_axis *a = hp_coll_axis(p, t);
    int role = a ? a->role : p->stream[t->stream].role;
    return role >= 0 && role < HP_ROLE_OTHER ? role : HP_ROLE_DP;
}

char *hp_task_axis(const hp_program *p, const hp_task *t, char *buf, size_t n)
{
    if (t->kind == HP_TASK_COLL)
        return hp_coll_axis_name(p, t, buf, n);
    snprintf(buf, n, "%s", t->kind == HP_TASK_COPY ? "offload" : "pp");
    return buf;
}

/* --- intervals
 * ------------------------------------------------------------------------------------------- */

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static bool ended(const hp_span *s)
{
    return atomic_load_explicit(&s->state, memory_order_acquire) == HP_SPAN_DONE;
}

static void add_interval(intervals *l, int64_t from, int64_t to, int inst)
{
    l->v = hp_grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (interval){from, to, inst};
}

static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->inst > y->inst) - (x->inst < y->inst);
}

/* Sorts and merges what overlaps or touches; a stretch keeps the instance that begins it. */
static void unite(intervals *l)
{
    if (l->n > 1)
        qsort(l->v, (size_t)l->n, sizeof *l->v, by_start);
    int m = 0;
    for (int i = 0; i < l->n; i++) {
        if (m > 0 && l->v[i].from <= l->v[m - 1].to)
            l->v[m - 1].to = l->v[i].to > l->v[m - 1].to ? l->v[i].to : l->v[m - 1].to;
        else
            l->v[m++] = l->v[i];
    }
    l->n = m;
}

static int64_t length(const intervals *l)
{
    int64_t sum = 0;
    for (int i = 0; i < l->n; i++)
        sum += l->v[i].to - l->v[i].from;
    return sum;
}

/* Length of what two unions have in common. */
static int64_t common(const intervals *a, const intervals *b)
{
    int64_t sum = 0;
    for (int i = 0, k = 0; i < a->n && k < b->n;) {
        int64_t from = a->v[i].from > b->v[k].from ? a->v[i].from : b->v[k].from;
        int64_t to = a->v[i].to < b->v[k].to ? a->v[i].to : b->v[k].to;
        sum += to > from ? to - from : 0;
        if (a->v[i].to < b->v[k].to)
            i++;
        else
            k++;
    }
    return sum;
}

static const hp_task *task_of(const walk *w, int inst)
{
    return hp_inst_task(w->p, &w->x->inst[inst]);
}

/* Adds the part of a span that its class is measured by: transfers from the last arrival on. */
static void add_span(const walk *w, intervals *l, int inst)
{
    const hp_span *s = &w->spans[inst];
    bool moves = hp_task_class_of(task_of(w, inst)) == HP_TC_TRANSFER;
    int64_t from = clamp(moves ? s->xfer_ns : s->start_ns, 0, w->step_ns);
    int64_t to = clamp(s->end_ns, 0, w->step_ns);
    if (ended(s) && to > from)
        add_interval(l, from, to, inst);
}

static void collect(const walk *w, hp_task_class class, intervals *l)
{
    for (int i = 0; i < w->x->n; i++)
        if (hp_task_class_of(task_of(w, i)) == class)
            add_span(w, l, i);
    unite(l);
}

/* --- idle stretches
 * ---------------------------------------------------------------------------------------- */

static void emit(walk *w, int64_t from, int64_t to, hp_owner owner, int inst)
{
    if (to <= from)
        return;
    add_interval(&w->segment, from, to, inst);
    w->owner = hp_grow(w->owner, &w->cap_owner, w->segment.n, sizeof *w->owner);
    w->owner[w->segment.n - 1] = owner;
}

/* When a predecessor lets the next one go: its end, but a send leaves its stream as soon as it is
 * posted. */
static int64_t released(const walk *w, int inst, bool as_previous)
{
    const hp_span *s = &w->spans[inst];
    return as_previous && task_of(w, inst)->kind == HP_TASK_SEND ? s->start_ns : s->end_ns;
}

/* Returns what `inst` got last of all it needs, -1 when it needs nothing; *at is when. */
static int last_lack(const walk *w, int inst, int64_t *at)
{
    const hp_inst *i = &w->x->inst[inst];
    int worst = -1;
    *at = INT64_MIN;
    for (int k = -1; k < i->n_deps; k++) {
        int d = k < 0 ? i->prev : w->x->dep[i->first_dep + k];
        if (d < 0 || !ended(&w->spans[d]))
            continue;
        int64_t t = released(w, d, k < 0);
        if (worst < 0 || t > *at) {
            worst = d;
            *at = t;
        }
    }
    return worst;
}

/* Gives [.., hi) of a missing task its own owners, down to its start; returns where that is. */
static int64_t emit_running(walk *w, int inst, int64_t lo, int64_t hi)
{
    const hp_span *s = &w->spans[inst];
    const hp_task *t = task_of(w, inst);
    int64_t start = clamp(s->start_ns, lo, hi);
    switch (hp_task_class_of(t)) {
    case HP_TC_COPY:
        emit(w, start, hi, HP_OWNER_EXPOSED + HP_OWN_OFFLOAD, inst);
        return start;
    case HP_TC_TRANSFER: {
        int64_t xfer = clamp(s->xfer_ns, start, hi);
        emit(w, xfer, hi, HP_OWNER_EXPOSED + (hp_owner)hp_task_role(w->p, t), inst);
        emit(w, start, xfer, t->kind == HP_TASK_COLL ? HP_OWNER_WAIT : HP_OWNER_BUBBLE, inst);
        return start;
    }
    default:
        emit(w, start, hi, HP_OWNER_HOST, inst);
        return start;
    }
}

/* Finds owners for [lo, hi), during which `inst` had not begun, latest first. */
static void blame(walk *w, int inst, int64_t lo, int64_t hi)
{
    while (hi > lo) {
        int64_t at;
        int d = last_lack(w, inst, &at);
        at = d < 0 ? lo : clamp(at, lo, hi);
        emit(w, at, hi, HP_OWNER_HOST, inst);
        if (d < 0)
            return;
        hi = emit_running(w, d, lo, at);
        inst = d;
    }
}

static void tell_segments(walk *w)
{
    for (int i = w->segment.n - 1; i >= 0; i--)
        w->fn(w->ctx, w->segment.v[i].from, w->segment.v[i].to, w->owner[i], w->segment.v[i].inst);
    w->segment.n = 0;
}

static void tell_idle(walk *w, int64_t lo, int64_t hi, int next)
{
    blame(w, next, lo, hi);
    tell_segments(w);
}

/* After the last compute task: the task that ends last is missing until its end; then
 * nothing is. */
static void tell_tail(walk *w, int64_t lo)
{
    int last = -1;
    for (int i = 0; i < w->x->n; i++)
        if (ended(&w->spans[i]) && (last < 0 || w->spans[i].end_ns > w->spans[last].end_ns))
            last = i;
    int64_t end = last < 0 ? lo : clamp(w->spans[last].end_ns, lo, w->step_ns);
    if (end < w->step_ns)
        emit(w, end, w->step_ns, HP_OWNER_FREE, -1);
    if (end > lo)
        blame(w, last, lo, emit_running(w, last, lo, end));
    tell_segments(w);
}

/* A busy stretch, cut where transfers begin and end; *k is the first transfer that may reach into
 * it. */
static void tell_busy(walk *w, const interval *busy, int *k)
{
    int64_t at = busy->from;
    while (at < busy->to) {
        while (*k < w->transfer.n && w->transfer.v[*k].to <= at)
            ++*k;
        const interval *t = *k < w->transfer.n ? &w->transfer.v[*k] : NULL;
        bool inside = t && t->from <= at;
        int64_t to = !t ? busy->to : inside ? t->to : t->from;
        to = to < busy->to ? to : busy->to;
        w->fn(w->ctx, at, to, inside ? HP_OWNER_OVERLAPPED : HP_OWNER_COMPUTE, busy->inst);
        at = to;
    }
}

void hp_owners_visit(const hp_program *p, const hp_expansion *x, const hp_span *spans,
                     int64_t step_ns, hp_owner_fn *fn, void *ctx)
{
    walk w = {.p = p, .x = x, .spans = spans, .step_ns = step_ns, .fn = fn, .ctx = ctx};
    collect(&w, HP_TC_COMPUTE, &w.compute);
    collect(&w, HP_TC_TRANSFER, &w.transfer);
    int64_t at = 0;
    for (int i = 0, k = 0; i < w.compute.n; i++) {
        const interval *busy = &w.compute.v[i];
        tell_idle(&w, at, busy->from, busy->inst);
        tell_busy(&w, busy, &k);
        at = busy->to;
    }
    tell_tail(&w, at);
    free(w.compute.v);
    free(w.transfer.v);
    free(w.segment.v);
    free(w.owner);
}

/* --- sums
 * -------------------------------------------------------------------------------------------------- */

static void add_owned(void *ctx, int64_t from, int64_t to, hp_owner owner, int inst)
{
    (void)inst;
    ((hp_owned *)ctx)->ns[owner] += to - from;
}

static int axis_index(hp_owned *o, const char *name)
{
    int i = 0;
    while (i < o->n_axes && strcmp(o->axis[i].name, name) != 0)
        i++;
    if (i == o->n_axes && o->n_axes < HP_MAX_AXIS_USES)
        snprintf(o->axis[o->n_axes++].name, sizeof o->axis[0].name, "%s", name);
    return i < HP_MAX_AXIS_USES ? i : HP_MAX_AXIS_USES - 1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hp_axis_use *)a)->name, ((const hp_axis_use *)b)->name);
}

static void sum_axes(const walk *w, hp_owned *o)
{
    intervals of_axis[HP_MAX_AXIS_USES] = {0};
    for (int i = 0; i < w->x->n; i++) {
        const hp_task *t = task_of(w, i);
        if (hp_task_class_of(t) != HP_TC_TRANSFER || !ended(&w->spans[i]))
            continue;
        char name[32];
        int a = axis_index(o, hp_task_axis(w->p, t, name, sizeof name));
        add_span(w, &of_axis[a], i);
        o->axis[a].bytes += w->spans[i].bytes;
    }
    for (int a = 0; a < o->n_axes; a++) {
        unite(&of_axis[a]);
        o->axis[a].comm_ns = length(&of_axis[a]);
        o->axis[a].masked_ns = common(&of_axis[a], &w->compute);
        free(of_axis[a].v);
    }
    qsort(o->axis, (size_t)o->n_axes, sizeof o->axis[0], by_name);
}

hp_owned hp_owners_sum(const hp_program *p, const hp_expansion *x, const hp_span *spans,
                       int64_t step_ns)
{
    hp_owned o = {.step_ns = step_ns};
    walk w = {.p = p, .x = x, .spans = spans, .step_ns = step_ns};
    intervals copy = {0};
    hp_owners_visit(p, x, spans, step_ns, add_owned, &o);
    collect(&w, HP_TC_COMPUTE, &w.compute);
    collect(&w, HP_TC_TRANSFER, &w.transfer);
    collect(&w, HP_TC_COPY, &copy);
    o.comm_ns = length(&w.transfer);
    o.masked_ns = common(&w.transfer, &w.compute);
    o.copy_ns = length(&copy);
    o.copy_masked_ns = common(&copy, &w.compute);
    sum_axes(&w, &o);
    free(w.compute.v);
    free(w.transfer.v);
    free(copy.v);
    return o;
}

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

hp_owned_time hp_owned_seconds(const hp_owned *o)
{
    hp_owned_time t = {.step_s = seconds(o->step_ns),
                       .compute_s = seconds(o->ns[HP_OWNER_COMPUTE]),
                       .overlapped_s = seconds(o->ns[HP_OWNER_OVERLAPPED]),
                       .bubble_s = seconds(o->ns[HP_OWNER_BUBBLE]),
                       .wait_s = seconds(o->ns[HP_OWNER_WAIT]),
                       .host_s = seconds(o->ns[HP_OWNER_HOST]),
                       .free_s = seconds(o->ns[HP_OWNER_FREE])};
    for (int i = 0; i < HP_OWN_ROLES; i++)
        t.exposed_s[i] = seconds(o->ns[HP_OWNER_EXPOSED + i]);
    return t;
}

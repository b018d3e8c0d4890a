/* expand.c -- one walk over the schedule.
 *
 * The bytes of a device are cut at every buffer's first and last address into *segments*, so that an access is a run of whole segments. A segment knows its
 * last writer and, per stream, the last reader since: streams are in-order queues, so the last one stands for all before it. Sends are the exception (they leave
 * their stream before their bytes have been read), so a segment lists each of them. */
#include "plan/expand.h"

#include <stdlib.h>
#include <string.h>

typedef struct sends {
    int n, cap;
    int *inst;
} sends;

/* What a segment's bytes have seen; reader[] of segment i begins at i * n_streams. */
typedef struct space {
    int n;       /* segments */
    int64_t *at; /* n + 1 boundaries, ascending */
    int *writer; /* instance, -1 */
    int *reader; /* per stream, -1 */
    sends *send; /* sends that may still be reading */
} space;

typedef struct walk {
    const hp_program *p;
    hp_expansion *x;
    space space[2]; /* hbm, other tiers */
    int *stream_of; /* of every instance so far */
    int cap_stream;
    int *last; /* per stream: last instance, -1 */
    int *
        seen; /* [own stream][other stream]: latest instance some earlier instance of the own stream has waited for */
    int *need; /* per stream, of the instance being built */
    sends need_send;
} walk;

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int is_off(const hp_buffer *b)
{
    return b->tier != HP_TIER_HBM;
}

static void fill(int *v, int n, int value)
{
    for (int i = 0; i < n; i++)
        v[i] = value;
}

static void space_init(space *s, const hp_program *p, int off)
{
    size_t cap = 0;
    for (int i = 0; i < p->n_buffers; i++)
        cap += 2 * (p->buffer[i].scope == HP_S_FRAME ? (size_t)p->n_frames : 1);
    s->at = hp_xmalloc((cap + 1) * sizeof *s->at);
    int n = 0;
    for (int i = 0; i < p->n_buffers; i++) {
        const hp_buffer *b = &p->buffer[i];
        int frames = b->scope == HP_S_FRAME ? p->n_frames : 1;
        for (int f = 0; f < frames && is_off(b) == off && b->bytes > 0; f++) {
            s->at[n++] = hp_buffer_address(p, i, f);
            s->at[n++] = hp_buffer_address(p, i, f) + b->bytes;
        }
    }
    qsort(s->at, (size_t)n, sizeof *s->at, by_value);
    int m = 0;
    for (int i = 0; i < n; i++)
        if (m == 0 || s->at[i] != s->at[m - 1])
            s->at[m++] = s->at[i];
    s->n = m > 0 ? m - 1 : 0;
    size_t readers = (size_t)s->n * (size_t)p->n_streams;
    s->writer = hp_xmalloc((size_t)(s->n + 1) * sizeof *s->writer);
    s->reader = hp_xmalloc((readers + 1) * sizeof *s->reader);
    s->send = hp_xcalloc((size_t)s->n + 1, sizeof *s->send);
    fill(s->writer, s->n, -1);
    fill(s->reader, (int)readers, -1);
}

static void space_fini(space *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->send[i].inst);
    free(s->at);
    free(s->writer);
    free(s->reader);
    free(s->send);
}

/* The segment that begins at `at`; boundaries of all buffers exist, so it does. */
static int segment(const space *s, int64_t at)
{
    int lo = 0, hi = s->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (s->at[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void add_send(sends *l, int inst)
{
    if (l->n > 0 && l->inst[l->n - 1] == inst)
        return;
    l->inst = hp_grow(l->inst, &l->cap, l->n + 1, sizeof *l->inst);
    l->inst[l->n++] = inst;
}

static void need(walk *w, int inst)
{
    if (inst >= 0 && w->need[w->stream_of[inst]] < inst)
        w->need[w->stream_of[inst]] = inst;
}

/* Visits the segments of a buffer; `write` false gathers what a read must wait for, true what a write must. */
static void gather(walk *w, int buffer, int frame, bool write)
{
    const hp_buffer *b = &w->p->buffer[buffer];
    space *s = &w->space[is_off(b)];
    int64_t at = hp_buffer_address(w->p, buffer, frame);
    for (int i = segment(s, at); i < s->n && s->at[i] < at + b->bytes; i++) {
        need(w, s->writer[i]);
        if (!write)
            continue;
        for (int k = 0; k < w->p->n_streams; k++)
            need(w, s->reader[(size_t)i * (size_t)w->p->n_streams + (size_t)k]);
        for (int k = 0; k < s->send[i].n; k++)
            add_send(&w->need_send, s->send[i].inst[k]);
    }
}

static void record(walk *w, int buffer, int frame, bool write, int inst, const hp_task *t)
{
    const hp_buffer *b = &w->p->buffer[buffer];
    space *s = &w->space[is_off(b)];
    int64_t at = hp_buffer_address(w->p, buffer, frame);
    for (int i = segment(s, at); i < s->n && s->at[i] < at + b->bytes; i++) {
        int *reader = s->reader + (size_t)i * (size_t)w->p->n_streams;
        if (write) {
            s->writer[i] = inst;
            fill(reader, w->p->n_streams, -1);
            s->send[i].n = 0;
        } else if (t->kind == HP_TASK_SEND) {
            add_send(&s->send[i], inst);
        } else {
            reader[t->stream] = inst;
        }
    }
}

typedef void visit_fn(walk *w, int buffer, int frame, bool write, int inst, const hp_task *t);

static void visit_gather(walk *w, int buffer, int frame, bool write, int inst, const hp_task *t)
{
    (void)inst, (void)t;
    gather(w, buffer, frame, write);
}

/* Calls `fn` for all that the task reads (its inputs, and the router's choices behind routed operands), then for all that it writes. */
static void accesses(walk *w, const hp_task *t, int frame, int inst, visit_fn *fn)
{
    for (int i = 0; i < t->n_in + t->n_out; i++) {
        if (t->buf[i] < 0)
            continue;
        if (i < t->n_in)
            fn(w, t->buf[i], frame, false, inst, t);
        if (w->p->buffer[t->buf[i]].route >= 0)
            fn(w, w->p->buffer[t->buf[i]].route, frame, false, inst, t);
    }
    for (int i = t->n_in; i < t->n_in + t->n_out; i++)
        if (t->buf[i] >= 0)
            fn(w, t->buf[i], frame, true, inst, t);
}

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Turns what was gathered into the instance's dependencies, leaving out what its own stream has waited for already. */
static void keep_needed(walk *w, hp_inst *inst, int stream)
{
    hp_expansion *x = w->x;
    int n_streams = w->p->n_streams, *seen = w->seen + (size_t)stream * (size_t)n_streams;
    x->dep = hp_grow(x->dep, &x->cap_deps, x->n_deps + n_streams + w->need_send.n, sizeof *x->dep);
    inst->first_dep = x->n_deps;
    for (int k = 0; k < n_streams; k++) {
        if (k == stream || w->need[k] <= seen[k])
            continue;
        seen[k] = w->need[k];
        x->dep[x->n_deps++] = w->need[k];
    }
    for (int k = 0; k < w->need_send.n; k++)
        x->dep[x->n_deps++] = w->need_send.inst[k];
    int *dep = x->dep + inst->first_dep;
    int n = x->n_deps - inst->first_dep, m = 0;
    qsort(dep, (size_t)n, sizeof *dep, ascending);
    for (int k = 0; k < n; k++)
        if (m == 0 || dep[k] != dep[m - 1])
            dep[m++] = dep[k];
    inst->n_deps = m;
    x->n_deps = inst->first_dep + m;
}

static void add_instance(walk *w, int entry, int task)
{
    const hp_entry *e = &w->p->entry[entry];
    const hp_task *t = &w->p->tmpl[e->tmpl].task[task];
    hp_expansion *x = w->x;
    int id = x->n;
    x->inst = hp_grow(x->inst, &x->cap, id + 1, sizeof *x->inst);
    w->stream_of = hp_grow(w->stream_of, &w->cap_stream, id + 1, sizeof *w->stream_of);
    x->n++;
    hp_inst *inst = &x->inst[id];
    *inst = (hp_inst){.entry = entry, .task = task, .prev = w->last[t->stream]};
    w->stream_of[id] = t->stream;
    w->last[t->stream] = id;
    fill(w->need, w->p->n_streams, -1);
    w->need_send.n = 0;
    accesses(w, t, e->frame, id, visit_gather);
    keep_needed(w, inst, t->stream);
    accesses(w, t, e->frame, id, record);
}

void hp_expand(const hp_program *p, hp_expansion *x)
{
    size_t n = (size_t)p->n_streams;
    walk w = {.p = p,
              .x = x,
              .last = hp_xmalloc((n + 1) * sizeof(int)),
              .need = hp_xmalloc((n + 1) * sizeof(int)),
              .seen = hp_xmalloc((n * n + 1) * sizeof(int))};
    fill(w.last, p->n_streams, -1);
    fill(w.seen, p->n_streams * p->n_streams, -1);
    for (int off = 0; off < 2; off++)
        space_init(&w.space[off], p, off);
    for (int i = 0; i < p->n_entries; i++) {
        const hp_template *tm = &p->tmpl[p->entry[i].tmpl];
        for (int k = 0; k < tm->n_tasks; k++)
            if (hp_task_due(&tm->task[k], &p->entry[i]))
                add_instance(&w, i, k);
    }
    for (int off = 0; off < 2; off++)
        space_fini(&w.space[off]);
    free(w.stream_of);
    free(w.last);
    free(w.seen);
    free(w.need);
    free(w.need_send.inst);
}

void hp_expansion_fini(hp_expansion *x)
{
    free(x->inst);
    free(x->dep);
    *x = (hp_expansion){0};
}

const hp_task *hp_inst_task(const hp_program *p, const hp_inst *i)
{
    return &p->tmpl[p->entry[i->entry].tmpl].task[i->task];
}

const hp_entry *hp_inst_entry(const hp_program *p, const hp_inst *i)
{
    return &p->entry[i->entry];
}

/* memory.c -- one walk over the instances gives each life its birth and death, one sort puts them
 * on the time axis.
 *
 * A life is a buffer within its scope: one for the step, one a microbatch for frame buffers, one a
 * schedule entry for run buffers. `open` holds the current life of every (buffer, microbatch). */
#include "trace/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct life {
    int buffer;
    int64_t birth, death;
} life;

typedef struct walk {
    const hp_program *p;
    const hp_expansion *x;
    const hp_span *spans;
    int micros;
    int *open;      /* [buffer * micros + micro] -> life, -1 */
    int *run_entry; /* per buffer: the schedule entry its run life belongs to */
    int n, cap;
    life *life;
} walk;

typedef struct change {
    int64_t t, bytes; /* bytes < 0: a death */
    int kind;
} change;

static int64_t start_of(const walk *w, int inst)
{
    return w->spans[inst].start_ns;
}

static int count_micros(const hp_program *p)
{
    int n = 1;
    for (int i = 0; i < p->n_entries; i++)
        n = p->entry[i].micro >= n ? p->entry[i].micro + 1 : n;
    return n;
}

static bool counts(const hp_buffer *b)
{
    return b->tier == HP_TIER_HBM && b->scope != HP_S_PERSIST && b->bytes > 0;
}

/* The slot of a buffer's current life; a run buffer in a new entry starts afresh. */
static int *slot(walk *w, int buffer, const hp_inst *i)
{
    const hp_buffer *b = &w->p->buffer[buffer];
    int micro = b->scope == HP_S_FRAME ? hp_inst_entry(w->p, i)->micro : 0;
    int *s = &w->open[(size_t)buffer * (size_t)w->micros + (size_t)(micro < 0 ? 0 : micro)];
    if (b->scope == HP_S_RUN && w->run_entry[buffer] != i->entry) {
        *s = -1;
        w->run_entry[buffer] = i->entry;
    }
    return s;
}

static void touch(walk *w, int buffer, int inst, bool write)
{
    if (buffer < 0 || !counts(&w->p->buffer[buffer]))
        return;
    int *s = slot(w, buffer, &w->x->inst[inst]);
    const hp_span *span = &w->spans[inst];
    if (*s < 0) {
        w->life = hp_grow(w->life, &w->cap, w->n + 1, sizeof *w->life);
        *s = w->n++;
        w->life[*s] = (life){buffer, write ? span->start_ns : 0, span->end_ns};
    }
    life *l = &w->life[*s];
    l->death = span->end_ns > l->death ? span->end_ns : l->death;
    l->birth = write && span->start_ns < l->birth ? span->start_ns : l->birth;
}

static bool overlap(const hp_program *p, int a, int b, int frame)
{
    const hp_buffer *x = &p->buffer[a], *y = &p->buffer[b];
    int64_t i = hp_buffer_address(p, a, frame), k = hp_buffer_address(p, b, frame);
    return x->tier == y->tier && i < k + y->bytes && k < i + x->bytes;
}

/* Ends the lives of inputs whose bytes this task writes over. */
static void end_overwritten(walk *w, const hp_task *t, int inst)
{
    int frame = hp_inst_entry(w->p, &w->x->inst[inst])->frame;
    for (int i = 0; i < t->n_in; i++)
        for (int o = t->n_in; o < t->n_in + t->n_out; o++) {
            int in = t->buf[i], out = t->buf[o];
            if (in < 0 || out < 0 || in == out || !counts(&w->p->buffer[in]) ||
                !overlap(w->p, in, out, frame))
                continue;
            life *l = &w->life[*slot(w, in, &w->x->inst[inst])];
            l->death = l->birth > start_of(w, inst) ? l->birth : start_of(w, inst);
        }
}

static void visit(walk *w, int inst)
{
    const hp_task *t = hp_inst_task(w->p, &w->x->inst[inst]);
    for (int i = 0; i < t->n_in + t->n_out; i++) {
        if (t->buf[i] < 0)
            continue;
        touch(w, t->buf[i], inst, i >= t->n_in);
        touch(w, w->p->buffer[t->buf[i]].route, inst, false);
    }
    end_overwritten(w, t, inst);
}

static int in_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* deaths first */
}

static change *changes_of(const walk *w, int *n)
{
    change *c = hp_xmalloc((size_t)w->n * 2 * sizeof *c);
    *n = 0;
    for (int i = 0; i < w->n; i++) {
        const hp_buffer *b = &w->p->buffer[w->life[i].buffer];
        if (w->life[i].death <= w->life[i].birth)
            continue;
        c[(*n)++] = (change){w->life[i].birth, b->bytes, (int)b->kind};
        c[(*n)++] = (change){w->life[i].death, -b->bytes, (int)b->kind};
    }
    qsort(c, (size_t)*n, sizeof *c, in_time);
    return c;
}

/* Aliases of persistent buffers lie on bytes that are counted already. */
static hp_memory_point persistent(const hp_program *p)
{
    hp_memory_point m = {0};
    for (int i = 0; i < p->n_buffers; i++) {
        const hp_buffer *b = &p->buffer[i];
        if (b->scope != HP_S_PERSIST || b->tier != HP_TIER_HBM || b->alias >= 0)
            continue;
        m.kind[b->kind] += b->bytes;
        m.total += b->bytes;
    }
    return m;
}

static void add_point(hp_memory_line *l, const hp_memory_point *m)
{
    if (l->n > 0 && l->point[l->n - 1].t_ns == m->t_ns)
        l->n--;
    l->point = hp_grow(l->point, &l->cap, l->n + 1, sizeof *l->point);
    l->point[l->n++] = *m;
}

/* The instance at work at t: of those that run then the one that began last. */
static int running_at(const walk *w, int64_t t)
{
    int best = -1;
    for (int i = 0; i < w->x->n; i++) {
        bool runs = start_of(w, i) <= t && w->spans[i].end_ns > t;
        if (runs && (best < 0 || start_of(w, i) > start_of(w, best)))
            best = i;
    }
    return best;
}

static void sweep(const walk *w, hp_memory_line *l)
{
    int n;
    change *c = changes_of(w, &n);
    hp_memory_point now = persistent(w->p);
    add_point(l, &now);
    for (int i = 0; i < n; i++) {
        now.t_ns = c[i].t > 0 ? c[i].t : 0;
        now.kind[c[i].kind] += c[i].bytes;
        now.total += c[i].bytes;
        if (i + 1 == n || c[i + 1].t != c[i].t)
            add_point(l, &now);
    }
    free(c);
    l->peak = 0;
    for (int i = 1; i < l->n; i++)
        if (l->point[i].total > l->point[l->peak].total)
            l->peak = i;
    l->peak_inst = running_at(w, l->point[l->peak].t_ns);
}

void hp_memory_over_time(const hp_program *p, const hp_expansion *x, const hp_span *spans,
                         hp_memory_line *l)
{
    walk w = {.p = p, .x = x, .spans = spans, .micros = count_micros(p)};
    size_t slots = (size_t)p->n_buffers * (size_t)w.micros;
    w.open = hp_xmalloc(slots * sizeof *w.open);
    w.run_entry = hp_xmalloc((size_t)p->n_buffers * sizeof *w.run_entry);
    for (size_t i = 0; i < slots; i++)
        w.open[i] = -1;
    for (int i = 0; i < p->n_buffers; i++)
        w.run_entry[i] = -1;
    for (int i = 0; i < x->n; i++)
        visit(&w, i);
    sweep(&w, l);
    free(w.open);
    free(w.run_entry);
    free(w.life);
}

void hp_memory_line_fini(hp_memory_line *l)
{
    free(l->point);
    *l = (hp_memory_line){0};
}

int64_t hp_memory_tier_bytes(const hp_program *p, hp_tier tier)
{
    if (tier == HP_TIER_HBM)
        return hp_program_arena(p);
    int64_t top = 0;
    for (int i = 0; i < p->n_buffers; i++) {
        const hp_buffer *b = &p->buffer[i];
        if (b->tier == tier && b->offset + b->bytes > top)
            top = b->offset + b->bytes;
    }
    return top;
}

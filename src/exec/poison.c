/* poison.c -- bytes of 0xff are a NaN in f32 and bf16 and -1 in i32. */
#include "exec/poison.h"

#include <stdlib.h>
#include <string.h>

/* What is known of a life besides hp_life. */
typedef struct span {
    int first, last; /* instances */
    int place;       /* where it lies: -1 run memory of its entry, else the frame of a microbatch in a chunk */
} span;

typedef struct lives {
    hp_side *s;
    int cap, cap_of, n_of, cap_span;
    span *when;
    int *current; /* per buffer: its life in this entry, -1 */
    int n_micros;  /* microbatches and one: entries of none have number -1 */
    int *in_frame; /* [place][buffer]: its life there, -1 */
} lives;

static bool overlap(const hp_side *s, int a, int b)
{
    const hp_buffer *x = &s->p->buffer[a], *y = &s->p->buffer[b];
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* Of lives that share bytes at the same time only the one that is born last and ends last is poisoned. Lives are listed by birth. */
static void drop_shared(lives *l)
{
    hp_side *s = l->s;
    for (int i = 0; i < s->n_lives; i++)
        for (int k = i + 1; k < s->n_lives && l->when[k].first <= l->when[i].last; k++) {
            span x = l->when[i], y = l->when[k];
            if (x.place != y.place || !overlap(s, s->life[i].buffer, s->life[k].buffer))
                continue;
            s->life[i].uses = -1;
            if (y.first == x.first || y.last < x.last)
                s->life[k].uses = -1;
        }
}

/* The frame of a microbatch in a chunk, which F and B share. */
static int place_of(const lives *l, int entry)
{
    const hp_entry *e = &l->s->p->entry[entry];
    return l->s->p->tmpl[e->tmpl].chunk * l->n_micros + e->micro + 1;
}

static void use(lives *l, int buffer, int entry, int inst)
{
    hp_side *s = l->s;
    const hp_buffer *b = &s->p->buffer[buffer];
    if ((b->scope != HP_S_RUN && b->scope != HP_S_FRAME) || b->tier != HP_TIER_HBM)
        return;
    int place = b->scope == HP_S_RUN ? -1 : place_of(l, entry);
    int *life = place < 0 ? &l->current[buffer] : &l->in_frame[(int64_t)place * s->p->n_buffers + buffer];
    if (*life < 0) {
        s->life = hp_grow(s->life, &l->cap, s->n_lives + 1, sizeof *s->life);
        l->when = hp_grow(l->when, &l->cap_span, s->n_lives + 1, sizeof *l->when);
        l->when[s->n_lives] = (span){inst, inst, place};
        s->life[s->n_lives] = (hp_life){buffer, entry, 0};
        *life = s->n_lives++;
    }
    for (int i = s->life_first[inst]; i < l->n_of; i++)
        if (s->life_of[i] == *life)
            return;
    l->when[*life].last = inst;
    s->life[*life].uses++;
    s->life_of = hp_grow(s->life_of, &l->cap_of, l->n_of + 1, sizeof *s->life_of);
    s->life_of[l->n_of++] = *life;
}

static int n_chunks(const hp_program *p)
{
    int n = 1;
    for (int i = 0; i < p->n_templates; i++)
        n = p->tmpl[i].chunk >= n ? p->tmpl[i].chunk + 1 : n;
    return n;
}

static int n_micros(const hp_program *p)
{
    int n = 1;
    for (int i = 0; i < p->n_entries; i++)
        n = p->entry[i].micro + 2 > n ? p->entry[i].micro + 2 : n;
    return n;
}

static void prepare_side(hp_engine *g, hp_side *s)
{
    lives l = {.s = s, .n_micros = n_micros(s->p)};
    size_t buffers = (size_t)s->p->n_buffers * sizeof(int),
           places = (size_t)n_chunks(s->p) * (size_t)l.n_micros;
    l.current = hp_xmalloc(buffers + 1);
    l.in_frame = hp_xmalloc(places * buffers + 1);
    memset(l.in_frame, 0xff, places * buffers);
    s->life_first = hp_arena_alloc(&g->arena, (size_t)(s->n_inst + 1) * sizeof(int));
    int entry = -1;
    for (int i = 0; i < s->n_inst; i++) {
        const hp_task *t = hp_info_of(s, i)->task;
        if (s->x->inst[i].entry != entry) {
            entry = s->x->inst[i].entry;
            memset(l.current, 0xff, buffers);
        }
        s->life_first[i] = l.n_of;
        for (int k = 0; k < t->n_in + t->n_out; k++) {
            if (t->buf[k] < 0)
                continue;
            use(&l, t->buf[k], entry, i);
            if (s->p->buffer[t->buf[k]].route >= 0)
                use(&l, s->p->buffer[t->buf[k]].route, entry, i);
        }
    }
    drop_shared(&l);
    s->life_first[s->n_inst] = l.n_of;
    s->life_left =
        hp_arena_alloc(&g->arena, ((size_t)s->n_ranks * (size_t)s->n_lives + 1) * sizeof(int));
    free(l.when);
    free(l.current);
    free(l.in_frame);
}

void hp_poison_prepare(hp_engine *g)
{
    for (int i = 0; i < g->n_sides; i++)
        prepare_side(g, &g->side[i]);
}

void hp_poison_step(hp_engine *g)
{
    for (int i = 0; i < g->n_sides; i++) {
        hp_side *s = &g->side[i];
        int64_t from = s->p->scope_bytes[HP_S_PERSIST], to = hp_program_arena(s->p);
        for (int r = 0; r < s->n_ranks; r++) {
            if (to > from)
                memset(s->hbm[r].base + from, 0xff, (size_t)(to - from));
            for (int k = 0; k < s->n_lives; k++)
                s->life_left[(int64_t)r * s->n_lives + k] = s->life[k].uses;
        }
    }
}

void hp_poison_done(hp_side *s, int rank, int inst)
{
    for (int i = s->life_first[inst]; i < s->life_first[inst + 1]; i++) {
        int *left = &s->life_left[(int64_t)rank * s->n_lives + s->life_of[i]];
        const hp_life *life = &s->life[s->life_of[i]];
        if (*left > 0 && --*left == 0)
            memset(hp_data(s, rank, life->buffer, s->p->entry[life->entry].frame), 0xff,
                   (size_t)s->p->buffer[life->buffer].bytes);
    }
}

/* poison.c -- bytes of 0xff are a NaN in f32 and bf16 and -1 in i32. */
#include "exec/poison.h"

#include <stdlib.h>
#include <string.h>

/* A life while the entry is being walked. */
typedef struct span {
    int first, last; /* instances */
} span;

typedef struct lives {
    hp_side *s;
    int cap, cap_of, n_of, cap_span;
    span *when;
    int *current; /* per buffer: its life in this entry, -1 */
} lives;

static bool overlap(const hp_side *s, int a, int b)
{
    const hp_buffer *x = &s->p->buffer[a], *y = &s->p->buffer[b];
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* Lives from `first` on belong to one entry; those that another shares bytes with at the same time, and outlasts, are never poisoned. */
static void drop_shared(lives *l, int first)
{
    hp_side *s = l->s;
    for (int i = first; i < s->n_lives; i++)
        for (int k = first; k < s->n_lives; k++) {
            span x = l->when[i], y = l->when[k];
            bool together = x.first <= y.last && y.first <= x.last;
            bool outlasts = x.first > y.first && x.last >= y.last;
            if (i != k && together && !outlasts && overlap(s, s->life[i].buffer, s->life[k].buffer))
                s->life[i].uses = -1;
        }
}

static void use(lives *l, int buffer, int entry, int inst)
{
    hp_side *s = l->s;
    const hp_buffer *b = &s->p->buffer[buffer];
    if (b->scope != HP_S_RUN || b->tier != HP_TIER_HBM)
        return;
    if (l->current[buffer] < 0) {
        s->life = hp_grow(s->life, &l->cap, s->n_lives + 1, sizeof *s->life);
        l->when = hp_grow(l->when, &l->cap_span, s->n_lives + 1, sizeof *l->when);
        l->when[s->n_lives] = (span){inst, inst};
        s->life[s->n_lives] = (hp_life){buffer, entry, 0};
        l->current[buffer] = s->n_lives++;
    }
    int life = l->current[buffer];
    for (int i = s->life_first[inst]; i < l->n_of; i++)
        if (s->life_of[i] == life)
            return;
    l->when[life].last = inst;
    s->life[life].uses++;
    s->life_of = hp_grow(s->life_of, &l->cap_of, l->n_of + 1, sizeof *s->life_of);
    s->life_of[l->n_of++] = life;
}

static void prepare_side(hp_engine *g, hp_side *s)
{
    lives l = {.s = s, .current = hp_xmalloc((size_t)(s->p->n_buffers + 1) * sizeof(int))};
    s->life_first = hp_arena_alloc(&g->arena, (size_t)(s->n_inst + 1) * sizeof(int));
    int entry = -1, first = 0;
    for (int i = 0; i < s->n_inst; i++) {
        const hp_task *t = hp_info_of(s, i)->task;
        if (s->x->inst[i].entry != entry) {
            drop_shared(&l, first);
            first = s->n_lives;
            entry = s->x->inst[i].entry;
            memset(l.current, 0xff, (size_t)s->p->n_buffers * sizeof(int));
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
    drop_shared(&l, first);
    s->life_first[s->n_inst] = l.n_of;
    s->life_left =
        hp_arena_alloc(&g->arena, ((size_t)s->n_ranks * (size_t)s->n_lives + 1) * sizeof(int));
    free(l.when);
    free(l.current);
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
        int buffer = s->life[s->life_of[i]].buffer;
        if (*left > 0 && --*left == 0)
            memset(hp_data(s, rank, buffer, -1), 0xff, (size_t)s->p->buffer[buffer].bytes);
    }
}

/* gather.c -- slots lie in one table per program, [buffer][micro + 1], pieces in a slot by rank. */
#include "session/gather.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct piece {
    float *value; /* NULL: not given */
    int nd;
    int64_t lo[HP_MAX_DIMS], len[HP_MAX_DIMS];
} piece;

typedef struct slots {
    int n_micros;  /* microbatches + 1 */
    piece **piece; /* [buffer * n_micros + micro + 1] -> [rank], NULL: nobody gave any */
} slots;

struct hp_gather {
    const hp_plan *p;
    slots *of; /* per program */
    pthread_mutex_t lock;
};

static int64_t operand_size(const hp_operand *o)
{
    int64_t n = 1;
    for (int d = 0; d < o->nd; d++)
        n *= o->len[d];
    return n;
}

hp_gather *hp_gather_new(const hp_plan *p)
{
    hp_gather *g = hp_xcalloc(1, sizeof *g);
    g->p = p;
    g->of = hp_xcalloc((size_t)p->n_programs + 1, sizeof *g->of);
    for (int i = 0; i < p->n_programs; i++) {
        g->of[i].n_micros = (int)p->micro + 1;
        g->of[i].piece = hp_xcalloc((size_t)p->program[i].n_buffers * (size_t)g->of[i].n_micros + 1,
                                    sizeof *g->of[i].piece);
    }
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void hp_gather_free(hp_gather *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->p->n_programs; i++) {
        int n = g->p->program[i].n_buffers * g->of[i].n_micros;
        for (int s = 0; s < n; s++) {
            for (int r = 0; g->of[i].piece[s] && r < g->p->program[i].mesh.n_ranks; r++)
                free(g->of[i].piece[s][r].value);
            free(g->of[i].piece[s]);
        }
        free(g->of[i].piece);
    }
    free(g->of);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static piece **slot_at(const hp_gather *g, int program, int buffer, int micro)
{
    return &g->of[program]
                .piece[(size_t)buffer * (size_t)g->of[program].n_micros + (size_t)(micro + 1)];
}

void hp_gather_f32(const hp_operand *o, float *out)
{
    int64_t n = operand_size(o);
    const uint16_t *half = o->data;
    const int32_t *whole = o->data;
    if (o->dtype == HP_F32 && n > 0) {
        memcpy(out, o->data, sizeof *out * (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (o->dtype == HP_BF16) {
            uint32_t bits = (uint32_t)half[i] << 16;
            memcpy(&out[i], &bits, sizeof bits);
        } else {
            out[i] = (float)whole[i];
        }
    }
}

void hp_gather_put(hp_gather *g, int program, int buffer, int micro, int rank, const hp_operand *o)
{
    piece p = {.nd = o->nd};
    if (o->nd < 0 || g->p->program[program].buffer[buffer].route >= 0)
        return;
    p.value = hp_xmalloc(sizeof *p.value * (size_t)(operand_size(o) + 1));
    memcpy(p.lo, o->lo, sizeof p.lo);
    memcpy(p.len, o->len, sizeof p.len);
    hp_gather_f32(o, p.value);
    piece **slot = slot_at(g, program, buffer, micro);
    pthread_mutex_lock(&g->lock);
    if (!*slot)
        *slot = hp_xcalloc((size_t)g->p->program[program].mesh.n_ranks, sizeof **slot);
    free((*slot)[rank].value);
    (*slot)[rank] = p;
    pthread_mutex_unlock(&g->lock);
}

bool hp_gather_has(const hp_gather *g, int program, int buffer, int micro)
{
    return *slot_at(g, program, buffer, micro) != NULL;
}

/* The copy that a rank belongs to: the mixed-radix number of its coordinates in the atoms that
 * neither split the buffer nor are partial. */
static int copy_of(const hp_mesh *m, const hp_layout *l, int rank)
{
    int coord[HP_MAX_ATOMS], copy = 0;
    uint32_t used = hp_layout_partial_mask(l);
    for (int d = 0; d < l->nd; d++)
        used |= hp_layout_mask(l, d);
    hp_mesh_coord(m, rank, coord);
    for (int a = 0; a < m->n_atoms; a++)
        if (!(used & 1u << a))
            copy = copy * m->size[a] + coord[a];
    return copy;
}

int hp_gather_copies(const hp_gather *g, int program, int buffer, int *rank_of)
{
    const hp_program *p = &g->p->program[program];
    int n = 0;
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        int copy = copy_of(&p->mesh, &p->buffer[buffer].layout, r);
        if (copy >= n) { /* ranks ascend, and so does the first rank of each copy */
            if (rank_of)
                rank_of[copy] = r;
            n = copy + 1;
        }
    }
    return n;
}

/* The one reduction of the layout's partial atoms: SUM where there is none, -1 where they differ
 * or cannot be combined here. */
static int reduction_of(const hp_layout *l)
{
    int red = HP_RED_NONE;
    for (int a = 0; a < HP_MAX_ATOMS; a++) {
        if (l->partial[a] == HP_RED_NONE)
            continue;
        if (red != HP_RED_NONE && red != l->partial[a])
            return -1;
        red = l->partial[a];
    }
    return red == HP_RED_NONE                                            ? HP_RED_SUM
           : red == HP_RED_SUM || red == HP_RED_MAX || red == HP_RED_MIN ? red
                                                                         : -1;
}

static void combine(float *out, const float *in, int64_t n, int red)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = red == HP_RED_SUM   ? out[i] + in[i]
                 : red == HP_RED_MAX ? fmaxf(out[i], in[i])
                                     : fminf(out[i], in[i]);
}

/* Combines a box into the whole, row by row of the last dimension. */
static void place(const piece *p, const hp_shape *s, int red, float *out)
{
    int64_t rows = 1, row = p->nd > 0 ? p->len[p->nd - 1] : 1;
    for (int d = 0; d < p->nd - 1; d++)
        rows *= p->len[d];
    for (int64_t i = 0; row > 0 && i < rows; i++) {
        int64_t rest = i, at = 0, stride = p->nd > 0 ? s->size[p->nd - 1] : 1;
        for (int d = p->nd - 2; d >= 0; d--) {
            at += (p->lo[d] + rest % p->len[d]) * stride;
            rest /= p->len[d];
            stride *= s->size[d];
        }
        at += p->nd > 0 ? p->lo[p->nd - 1] : 0;
        combine(out + at, p->value + i * row, row, red);
    }
}

bool hp_gather_whole(const hp_gather *g, int program, int buffer, int micro, int copy, float *out)
{
    const hp_program *p = &g->p->program[program];
    const hp_buffer *b = &p->buffer[buffer];
    const piece *pieces = *slot_at(g, program, buffer, micro);
    int red = reduction_of(&b->layout);
    if (red < 0 || b->route >= 0)
        return false;
    int64_t n = 1;
    for (int d = 0; d < b->shape.nd; d++)
        n *= b->shape.size[d];
    for (int64_t i = 0; i < n; i++)
        out[i] = red == HP_RED_SUM ? 0 : red == HP_RED_MAX ? -INFINITY : INFINITY;
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        if (copy_of(&p->mesh, &b->layout, r) != copy)
            continue;
        hp_box box = hp_layout_box(&p->mesh, &b->layout, &b->shape, r);
        if (hp_box_size(&box) == 0)
            continue; /* a collective that moves nothing shows nothing */
        if (!pieces || !pieces[r].value)
            return false;
        place(&pieces[r], &b->shape, red, out);
    }
    return true;
}

/* redist_cross.c -- messages between two meshes.
 *
 * The ranks of the source that hold the same box are replicas of one piece. Every destination takes its part of each piece from the
 * replica that has the fewest elements to send so far (ties: the lowest rank), destinations in rank order.
 */
#include "shard/redist.h"

#include <stdlib.h>
#include <string.h>

typedef struct messages {
    hp_xmove *m;
    int n, cap;
} messages;

/* A piece of the source: its box and, at first .. first + n - 1 of the rank list, who holds it. */
typedef struct piece {
    hp_box box;
    int first, n;
} piece;

typedef struct source {
    int n_pieces;
    piece *piece;
    int *rank;
    int64_t *load; /* elements sent so far, by rank */
} source;

/* Cuts the source mesh into pieces: one for each coordinate of the atoms that split, held by all ranks that differ in the others. */
static source pieces_of(const hp_mesh *m, const hp_layout *l, const hp_shape *shape)
{
    uint32_t all = (1u << m->n_atoms) - 1, split = hp_layout_split_mask(l);
    source s = {.n_pieces = hp_mesh_group_size(m, split)};
    int n = hp_mesh_group_size(m, all & ~split);
    s.piece = hp_xmalloc((size_t)s.n_pieces * sizeof *s.piece);
    s.rank = hp_xmalloc((size_t)m->n_ranks * sizeof *s.rank);
    s.load = hp_xcalloc((size_t)m->n_ranks, sizeof *s.load);
    int *first = hp_xmalloc((size_t)s.n_pieces * sizeof *first);
    hp_mesh_group(m, 0, split, first);
    for (int i = 0; i < s.n_pieces; i++) {
        s.piece[i] = (piece){hp_layout_box(m, l, shape, first[i]), i * n, n};
        hp_mesh_group(m, first[i], all & ~split, s.rank + i * n);
    }
    free(first);
    return s;
}

static int least_loaded(const source *s, const piece *p)
{
    int best = s->rank[p->first];
    for (int i = 1; i < p->n; i++)
        if (s->load[s->rank[p->first + i]] < s->load[best])
            best = s->rank[p->first + i];
    return best;
}

static void receive(source *s, int dst, const hp_box *want, messages *out)
{
    for (int i = 0; i < s->n_pieces; i++) {
        hp_box part = hp_box_meet(&s->piece[i].box, want);
        int64_t size = hp_box_size(&part);
        if (size == 0)
            continue;
        int src = least_loaded(s, &s->piece[i]);
        s->load[src] += size;
        out->m = hp_grow(out->m, &out->cap, out->n + 1, sizeof *out->m);
        out->m[out->n++] = (hp_xmove){src, dst, part};
    }
}

static int by_source(const void *a, const void *b)
{
    const hp_xmove *x = a, *y = b;
    return x->src != y->src ? (x->src > y->src) - (x->src < y->src)
                            : (x->dst > y->dst) - (x->dst < y->dst);
}

hp_err hp_redist_cross(const hp_mesh *ma, const hp_layout *a, const hp_mesh *mb, const hp_layout *b,
                       const hp_shape *shape, hp_xmove **out, int *n, hp_errmsg *e)
{
    if (hp_layout_partial_mask(a) || hp_layout_partial_mask(b))
        return hp_fail(e, HP_EINFEASIBLE,
                       "a partial value cannot go to another mesh: reduce it at the source first");
    hp_err err = hp_layout_check(ma, a, e);
    if (!err)
        err = hp_layout_check(mb, b, e);
    if (err)
        return err;
    source s = pieces_of(ma, a, shape);
    messages got = {0};
    for (int dst = 0; dst < mb->n_ranks; dst++) {
        hp_box want = hp_layout_box(mb, b, shape, dst);
        if (hp_box_size(&want))
            receive(&s, dst, &want, &got);
    }
    if (got.n)
        qsort(got.m, (size_t)got.n, sizeof *got.m, by_source);
    free(s.piece);
    free(s.rank);
    free(s.load);
    *out = got.m;
    *n = got.n;
    return HP_OK;
}

/* flow.c -- a rank takes its box from those members of its group that agree with it on every atom that neither splits the source nor is reduced; what is left
 * differs in the atoms that split the source (other boxes) and in those that are reduced (parts of the same box). */
#include "exec/flow.h"

#include <stdlib.h>
#include <string.h>

enum { PART_ELEMENTS = 4096 }; /* a smaller part of an all-reduce is not worth another share */

typedef struct build {
    const hp_mesh *m;
    uint32_t atoms, match, split,
        reduced;             /* within atoms: must agree, split the source, are reduced */
    int *coord;              /* [rank][atom] */
    const hp_box *from, *to; /* per rank */
    hp_flow *f;
    int *group, n_group; /* of the rank at work */
    int *n_own;          /* per rank: its pieces before parts are shared out */
    hp_piece **own;
} build;

static bool agree(const build *b, int r, int s, uint32_t mask)
{
    const int *x = b->coord + r * HP_MAX_ATOMS, *y = b->coord + s * HP_MAX_ATOMS;
    for (int a = 0; a < b->m->n_atoms; a++)
        if ((mask >> a & 1) && x[a] != y[a])
            return false;
    return true;
}

/* The one kind of reduction over the mask's atoms. */
static hp_err find_reduction(build *b, const hp_layout *from, const hp_layout *to, hp_errmsg *e)
{
    for (int a = 0; a < b->m->n_atoms; a++) {
        char name[64];
        if (to->partial[a] && to->partial[a] != from->partial[a])
            return hp_fail(e, HP_EINFEASIBLE,
                           "a move would make a value partial over %s; only what is partial "
                           "already can stay so",
                           hp_mesh_name(b->m, 1u << a, name, sizeof name));
        if (!from->partial[a] || to->partial[a])
            continue;
        if (!(b->atoms >> a & 1))
            return hp_fail(e, HP_EINFEASIBLE, "a move reduces over %s, which its group lacks",
                           hp_mesh_name(b->m, 1u << a, name, sizeof name));
        if (b->f->red != HP_RED_NONE && b->f->red != (hp_reduce)from->partial[a])
            return hp_fail(e, HP_EINFEASIBLE,
                           "a move reduces by %s and by %s at once; legal are two moves",
                           hp_reduce_name(b->f->red), hp_reduce_name((hp_reduce)from->partial[a]));
        b->f->red = (hp_reduce)from->partial[a];
        b->reduced |= 1u << a;
    }
    return HP_OK;
}

/* The ranks of the group that hold the same box as s and agree with r: parts of one value. */
static void collect_sources(const build *b, int r, int s, hp_piece *p)
{
    int n = 0, *src = hp_arena_alloc(&b->f->arena, (size_t)b->n_group * sizeof *src);
    for (int i = 0; i < b->n_group; i++)
        if (agree(b, r, b->group[i], b->match) && agree(b, s, b->group[i], b->split))
            src[n++] = b->group[i];
    p->src = src;
    p->n_src = n;
}

/* Lists the pieces of rank r's new box. False when they do not cover it. */
static bool list_pieces(build *b, int r)
{
    int64_t covered = 0;
    hp_piece *own = hp_arena_alloc(&b->f->arena, (size_t)b->n_group * sizeof *own);
    int n = 0, *self = hp_arena_alloc(&b->f->arena, sizeof *self);
    *self = r;
    for (int i = 0; i < b->n_group; i++) {
        int s = b->group[i];
        hp_box box = hp_box_meet(&b->from[s], &b->to[r]);
        if (!agree(b, r, s, b->match) || hp_box_size(&box) == 0)
            continue;
        bool known = false;
        for (int k = 0; k < i && !known; k++)
            known = agree(b, r, b->group[k], b->match) && agree(b, s, b->group[k], b->split);
        if (known)
            continue;
        own[n] = (hp_piece){.box = box, .dst = self, .n_dst = 1};
        collect_sources(b, r, s, &own[n++]);
        covered += hp_box_size(&box);
    }
    b->own[r] = own;
    b->n_own[r] = n;
    return covered == hp_box_size(&b->to[r]);
}

static bool same_box(const hp_box *a, const hp_box *b)
{
    for (int d = 0; d < a->nd; d++)
        if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d])
            return false;
    return true;
}

static bool same_pieces(const build *b, int r, int s)
{
    if (b->n_own[r] != b->n_own[s] || !same_box(&b->to[r], &b->to[s]))
        return false;
    for (int i = 0; i < b->n_own[r]; i++) {
        const hp_piece *x = &b->own[r][i], *y = &b->own[s][i];
        if (x->n_src != y->n_src ||
            memcmp(x->src, y->src, (size_t)x->n_src * sizeof *x->src) != 0 ||
            !same_box(&x->box, &y->box))
            return false;
    }
    return true;
}

static bool reduces(const build *b, int r)
{
    for (int i = 0; i < b->n_own[r]; i++)
        if (b->own[r][i].n_src > 1)
            return true;
    return false;
}

/* Part i of n of a box, cut along one dimension (never the last of log-sum-exp triples); may be empty. */
static hp_box part_of(const hp_box *box, int i, int n, bool triples)
{
    int nd = box->nd - (triples ? 1 : 0), d = 0;
    hp_box part = *box;
    if (nd < 1) {
        part.nd = i == 0 ? box->nd : -1;
        return part;
    }
    for (int k = nd - 1; k >= 0; k--)
        if (box->hi[k] - box->lo[k] > box->hi[d] - box->lo[d] || box->hi[k] - box->lo[k] >= 4 * n)
            d = k;
    int64_t len = box->hi[d] - box->lo[d];
    part.lo[d] = box->lo[d] + len * i / n;
    part.hi[d] = box->lo[d] + len * (i + 1) / n;
    return part;
}

/* Rank r's share: all its pieces, or its part of the reduced pieces that others receive as well. */
static void take_share(build *b, int r, hp_piece *out, int *n)
{
    int *same = hp_arena_alloc(&b->f->arena, (size_t)b->n_group * sizeof *same), n_same = 0,
        index = 0;
    for (int i = 0; i < b->n_group; i++)
        if (reduces(b, r) && same_pieces(b, r, b->group[i])) {
            if (b->group[i] == r)
                index = n_same;
            same[n_same++] = b->group[i];
        }
    for (int i = 0; i < b->n_own[r]; i++) {
        hp_piece p = b->own[r][i];
        if (n_same > 1) {
            int64_t worth = hp_box_size(&p.box) / PART_ELEMENTS;
            int parts = worth < 1 ? 1 : worth < n_same ? (int)worth : n_same;
            if (index >= parts)
                continue;
            p.box = part_of(&p.box, index, parts, b->f->red == HP_RED_LSE);
            p.dst = same;
            p.n_dst = n_same;
        }
        if (p.box.nd >= 0 && hp_box_size(&p.box) > 0)
            out[(*n)++] = p;
    }
}

/* Shares do not disturb each other in place where every rank keeps its box and all sources of a piece also receive it. */
static bool works_in_place(const build *b, int r)
{
    if (!same_box(&b->from[r], &b->to[r]))
        return false;
    for (int i = 0; i < b->n_own[r]; i++) {
        const hp_piece *p = &b->own[r][i];
        for (int k = 0; k < p->n_src; k++)
            if (!same_pieces(b, r, p->src[k]))
                return false;
    }
    return true;
}

static hp_err build_all(build *b, hp_errmsg *e)
{
    hp_flow *f = b->f;
    int total = 0, n = 0;
    for (int r = 0; r < f->n_ranks; r++) {
        b->n_group = hp_mesh_group(b->m, r, b->atoms, b->group);
        if (!list_pieces(b, r))
            return hp_fail(e, HP_EINFEASIBLE,
                           "the group of rank %d does not hold all of the rank's new box", r);
        total += b->n_own[r];
    }
    f->first = hp_arena_alloc(&f->arena, (size_t)(f->n_ranks + 1) * sizeof *f->first);
    f->piece = hp_arena_alloc(&f->arena, (size_t)(total + 1) * sizeof *f->piece);
    f->in_place = true;
    for (int r = 0; r < f->n_ranks; r++) {
        b->n_group = hp_mesh_group(b->m, r, b->atoms, b->group);
        f->first[r] = n;
        take_share(b, r, f->piece, &n);
        f->in_place = f->in_place && works_in_place(b, r);
    }
    f->first[f->n_ranks] = n;
    return HP_OK;
}

hp_err hp_flow_new(const hp_mesh *m, uint32_t atoms, const hp_layout *from, const hp_layout *to,
                   const hp_box *from_box, const hp_box *to_box, hp_flow **out, hp_errmsg *e)
{
    size_t n = (size_t)m->n_ranks;
    build b = {.m = m,
               .atoms = atoms,
               .from = from_box,
               .to = to_box,
               .f = hp_xcalloc(1, sizeof(hp_flow))};
    b.f->n_ranks = m->n_ranks;
    b.coord = hp_xcalloc(n * HP_MAX_ATOMS, sizeof *b.coord);
    b.group = hp_xmalloc(n * sizeof *b.group);
    b.n_own = hp_xcalloc(n, sizeof *b.n_own);
    b.own = hp_xcalloc(n, sizeof *b.own);
    for (int r = 0; r < m->n_ranks; r++)
        hp_mesh_coord(m, r, b.coord + r * HP_MAX_ATOMS);
    for (int d = 0; d < from->nd; d++)
        b.split |= hp_layout_mask(from, d) & atoms;
    hp_err rc = find_reduction(&b, from, to, e);
    b.match = atoms & ~b.split & ~b.reduced;
    if (!rc)
        rc = build_all(&b, e);
    free(b.coord);
    free(b.group);
    free(b.n_own);
    free(b.own);
    if (rc)
        hp_flow_free(b.f);
    else
        *out = b.f;
    return rc;
}

void hp_flow_free(hp_flow *f)
{
    if (!f)
        return;
    hp_arena_fini(&f->arena);
    free(f);
}

void hp_groups_init(hp_groups *g, const hp_mesh *m, uint32_t atoms)
{
    int *member = hp_xmalloc((size_t)m->n_ranks * sizeof *member);
    *g = (hp_groups){.atoms = atoms};
    g->of = hp_xmalloc((size_t)m->n_ranks * sizeof *g->of);
    g->member = hp_xmalloc((size_t)m->n_ranks * sizeof *g->member);
    for (int r = 0; r < m->n_ranks; r++) {
        g->size = hp_mesh_group(m, r, atoms, member);
        if (member[0] == r) {
            memcpy(g->member + g->n * g->size, member, (size_t)g->size * sizeof *member);
            g->of[r] = g->n++;
        } else {
            g->of[r] = g->of[member[0]];
        }
    }
    free(member);
}

void hp_groups_fini(hp_groups *g)
{
    free(g->of);
    free(g->member);
    *g = (hp_groups){0};
}

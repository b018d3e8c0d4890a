/* path.c -- the cheapest path between two layouts: Dijkstra over layouts.
 *
 * Atoms that both layouts have in the same place (the common prefix of a dimension, the same partial) never move. The search runs twice: first
 * an atom may go to replicated or to its final place only, which has few layouts; its cost bounds the second search, which may take any place.
 */
#include "shard/redist.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EXPANDED = 1000 }; /* layouts expanded by the full search before it gives up */
static const double PER_STEP =
    1e-9; /* seconds added to a step, so that of equal paths the shorter wins */

typedef struct state {
    hp_layout l;
    double cost;
    int prev, depth;
    bool done;
    hp_move move; /* the step from `prev` */
} state;

typedef struct entry {
    double cost;
    int state;
} entry;

typedef struct search {
    const hp_mesh *m;
    const hp_shape *shape;
    double elem_bytes;
    const hp_price *price;
    hp_layout to;
    int keep[HP_MAX_DIMS]; /* atoms of each dimension that stay */
    uint32_t active;       /* atoms that may move */
    bool direct;           /* only to replicated or to the final place */
    double bound, latency; /* the best known cost; the least that any collective costs */
    state *st;
    int n, cap;
    int *slot; /* open addressing over the states' layouts; -1 free */
    int n_slots;
    entry *heap;
    int n_heap, cap_heap;
} search;

/* --- states and heap ----------------------------------------------------------------------------- */

static uint64_t layout_hash(const hp_layout *l)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a over what is used */
    for (int d = 0; d < l->nd; d++) {
        for (int i = 0; i < l->n[d]; i++)
            h = (h ^ l->split[d][i]) * 1099511628211u;
        h = (h ^ 255) * 1099511628211u;
    }
    for (int i = 0; i < HP_MAX_ATOMS; i++)
        h = (h ^ l->partial[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static int *find_slot(search *s, const hp_layout *l)
{
    uint64_t at = layout_hash(l);
    for (;; at++) {
        int *slot = &s->slot[at & (uint64_t)(s->n_slots - 1)];
        if (*slot < 0 || hp_layout_equal(&s->st[*slot].l, l))
            return slot;
    }
}

static void grow_slots(search *s)
{
    s->n_slots = s->n_slots ? 2 * s->n_slots : 128;
    s->slot = hp_xrealloc(s->slot, (size_t)s->n_slots * sizeof *s->slot);
    memset(s->slot, -1, (size_t)s->n_slots * sizeof *s->slot);
    for (int i = 0; i < s->n; i++)
        *find_slot(s, &s->st[i].l) = i;
}

static bool before(entry a, entry b)
{
    return a.cost < b.cost || (a.cost == b.cost && a.state < b.state);
}

static void heap_push(search *s, entry x)
{
    s->heap = hp_grow(s->heap, &s->cap_heap, s->n_heap + 1, sizeof *s->heap);
    int i = s->n_heap++;
    for (; i > 0 && before(x, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = x;
}

static entry heap_pop(search *s)
{
    entry top = s->heap[0], x = s->heap[--s->n_heap];
    int i = 0;
    for (int c; (c = 2 * i + 1) < s->n_heap; i = c) {
        if (c + 1 < s->n_heap && before(s->heap[c + 1], s->heap[c]))
            c++;
        if (!before(s->heap[c], x))
            break;
        s->heap[i] = s->heap[c];
    }
    s->heap[i] = x;
    return top;
}

/* Whether dimension d holds the beginning of its final split, so that final[n ..] may follow. */
static bool on_the_way(const search *s, const hp_layout *l, int d)
{
    return l->n[d] <= s->to.n[d] && memcmp(l->split[d], s->to.split[d], l->n[d]) == 0;
}

/* The least that is still to pay from a layout: nothing where slices lead to the end, else a collective. */
static double to_go(const search *s, const hp_layout *l)
{
    bool slices = memcmp(l->partial, s->to.partial, sizeof l->partial) == 0;
    for (int d = 0; d < l->nd && slices; d++)
        slices = on_the_way(s, l, d);
    return slices ? 0 : s->latency;
}

/* Reaches layout `to` from state `from` by one step; keeps it when it is the cheapest way there so far. */
static void reach(search *s, int from, hp_coll kind, uint32_t atoms, const hp_layout *to)
{
    hp_move mv = {kind, atoms, s->st[from].l, *to};
    double cost =
        s->st[from].cost + PER_STEP + hp_redist_price(s->m, s->shape, s->elem_bytes, &mv, s->price);
    if (!(cost + to_go(s, to) < s->bound) || s->st[from].depth == HP_MAX_MOVES)
        return;
    if (2 * (s->n + 1) > s->n_slots)
        grow_slots(s);
    int *slot = find_slot(s, to);
    if (*slot >= 0 && s->st[*slot].cost <= cost)
        return;
    if (*slot < 0) {
        *slot = s->n;
        s->st = hp_grow(s->st, &s->cap, s->n + 1, sizeof *s->st);
        s->n++;
    }
    s->st[*slot] = (state){*to, cost, from, s->st[from].depth + 1, false, mv};
    heap_push(s, (entry){cost, *slot});
}

/* --- steps --------------------------------------------------------------------------------------- */

static uint32_t atom_mask(const uint8_t *atom, int n)
{
    uint32_t mask = 0;
    for (int i = 0; i < n; i++)
        mask |= 1u << atom[i];
    return mask;
}

/* Appends atoms that were replicated, split elsewhere or partial before. */
static void try_append(search *s, int from, hp_coll kind, const hp_layout *base, int d,
                       const uint8_t *atom, int n)
{
    hp_layout l = *base;
    if (l.n[d] + n > HP_MAX_ATOMS)
        return;
    hp_layout_append(&l, d, atom, n);
    for (int i = 0; i < n; i++)
        l.partial[atom[i]] = HP_RED_NONE;
    if (hp_layout_seam(s->m, &l, s->shape, d, base->n[d]))
        reach(s, from, kind, atom_mask(atom, n), &l);
}

/* Appends atoms of `avail` to dimension d: as many of the final ones as follow, or any one atom with those joined to it. */
static void append_some(search *s, int from, hp_coll kind, int d, uint32_t avail)
{
    hp_layout l = s->st[from].l;
    if (on_the_way(s, &l, d))
        for (int k = 1; l.n[d] + k <= s->to.n[d] && avail >> s->to.split[d][l.n[d] + k - 1] & 1;
             k++)
            try_append(s, from, kind, &l, d, s->to.split[d] + l.n[d], k);
    for (int a = 0; a < s->m->n_atoms && !s->direct; a++) {
        uint8_t run[HP_MAX_ATOMS];
        for (int k = 0; avail >> (a + k) & 1 && (k == 0 || s->m->joined[a + k]); k++) {
            run[k] = (uint8_t)(a + k);
            try_append(s, from, kind, &l, d, run, k + 1);
        }
    }
}

/* Slices at once whatever of `avail` comes next in the final layout, in all dimensions. */
static void slice_all(search *s, int from, uint32_t avail)
{
    hp_layout l = s->st[from].l;
    uint32_t taken = 0;
    for (int d = 0; d < l.nd; d++) {
        int n = l.n[d];
        if (!on_the_way(s, &l, d))
            continue;
        while (l.n[d] < s->to.n[d] && avail >> s->to.split[d][l.n[d]] & 1) {
            taken |= 1u << s->to.split[d][l.n[d]];
            hp_layout_append(&l, d, &s->to.split[d][l.n[d]], 1);
        }
        if (!hp_layout_seam(s->m, &l, s->shape, d, n))
            return;
    }
    if (taken & (taken - 1))
        reach(s, from, HP_COLL_SLICE, taken, &l);
}

static void slices(search *s, int from)
{
    const hp_layout *l = &s->st[from].l;
    uint32_t avail = s->active & ~hp_layout_split_mask(l) & ~hp_layout_partial_mask(l);
    if (avail)
        slice_all(s, from, avail);
    for (int d = 0; d < s->to.nd && avail; d++)
        append_some(s, from, HP_COLL_SLICE, d, avail);
}

static void gathers(search *s, int from)
{
    hp_layout old = s->st[from].l;
    for (int d = 0; d < old.nd; d++)
        for (int k = 1; k <= old.n[d] - s->keep[d]; k++) {
            if (!hp_layout_seam(s->m, &old, s->shape, d, old.n[d] - k))
                continue;
            hp_layout l = old;
            hp_layout_remove(&l, d, k);
            reach(s, from, HP_COLL_ALL_GATHER, atom_mask(old.split[d] + old.n[d] - k, k), &l);
        }
}

/* Moves the last k atoms of dimension i to the end of j: in their final order where they come next there, else as they stand. */
static void exchange(search *s, int from, const hp_layout *old, int i, int k, int j)
{
    const uint8_t *atom = old->split[i] + old->n[i] - k, *next = s->to.split[j] + old->n[j];
    bool arrives = on_the_way(s, old, j) && old->n[j] + k <= s->to.n[j] &&
                   atom_mask(atom, k) == atom_mask(next, k);
    hp_layout l = *old;
    hp_layout_remove(&l, i, k);
    if (arrives)
        try_append(s, from, HP_COLL_ALL_TO_ALL, &l, j, next, k);
    if (!s->direct)
        try_append(s, from, HP_COLL_ALL_TO_ALL, &l, j, atom, k);
}

static void exchanges(search *s, int from)
{
    hp_layout old = s->st[from].l;
    for (int i = 0; i < old.nd; i++)
        for (int k = 1; k <= old.n[i] - s->keep[i]; k++)
            for (int j = 0; j < old.nd; j++)
                if (j != i && hp_layout_seam(s->m, &old, s->shape, i, old.n[i] - k))
                    exchange(s, from, &old, i, k, j);
}

static void all_reduce(search *s, int from, uint32_t mask)
{
    hp_layout l = s->st[from].l;
    for (int a = 0; a < s->m->n_atoms; a++)
        if (mask >> a & 1)
            l.partial[a] = HP_RED_NONE;
    if (mask)
        reach(s, from, HP_COLL_ALL_REDUCE, mask, &l);
}

/* Scatters at once what comes next in the final split of dimension d and, behind it, what ends replicated and is gathered later. */
static void scatter_all(search *s, int from, int d, uint32_t mask)
{
    hp_layout l = s->st[from].l;
    uint8_t atom[HP_MAX_ATOMS];
    int n = 0;
    if (!on_the_way(s, &l, d))
        return;
    for (int i = l.n[d]; i < s->to.n[d] && mask >> s->to.split[d][i] & 1; i++)
        atom[n++] = s->to.split[d][i];
    for (int a = 0; a < s->m->n_atoms; a++)
        if (mask & ~hp_layout_split_mask(&s->to) & 1u << a)
            atom[n++] = (uint8_t)a;
    if (n > 1)
        try_append(s, from, HP_COLL_REDUCE_SCATTER, &l, d, atom, n);
}

/* Reduces what is partial by `red`: all at once, those that end replicated, or one atom; or scatters it on the way. */
static void reductions_by(search *s, int from, int red)
{
    uint32_t mask = 0;
    for (int a = 0; a < s->m->n_atoms; a++)
        if (s->active >> a & 1 && s->st[from].l.partial[a] == red)
            mask |= 1u << a;
    if (!mask)
        return;
    all_reduce(s, from, mask);
    all_reduce(s, from, mask & ~hp_layout_split_mask(&s->to));
    for (int a = 0; a < s->m->n_atoms && (mask & (mask - 1)); a++)
        all_reduce(s, from, mask & 1u << a);
    int nd = s->to.nd - (red == HP_RED_LSE); /* the last dimension of an LSE value is its triple */
    for (int d = 0; d < nd; d++) {
        scatter_all(s, from, d, mask);
        append_some(s, from, HP_COLL_REDUCE_SCATTER, d, mask);
    }
}

/* How many first atoms of dimension d two layouts share such that the boxes they make are the same. */
static int common_prefix(const search *s, const hp_layout *a, const hp_layout *b, int d)
{
    int k = 0;
    while (k < a->n[d] && k < b->n[d] && a->split[d][k] == b->split[d][k])
        k++;
    while (k > 0 &&
           !(hp_layout_seam(s->m, a, s->shape, d, k) && hp_layout_seam(s->m, b, s->shape, d, k)))
        k--;
    return k;
}

/* Atoms that stand elsewhere in `b` than in `a`; keep[d] gets the common prefixes. */
static uint32_t moving(const search *s, const hp_layout *a, const hp_layout *b, int *keep)
{
    uint32_t mask = 0;
    for (int d = 0; d < a->nd; d++) {
        keep[d] = common_prefix(s, a, b, d);
        mask |= atom_mask(a->split[d] + keep[d], a->n[d] - keep[d]) |
                atom_mask(b->split[d] + keep[d], b->n[d] - keep[d]);
    }
    for (int i = 0; i < s->m->n_atoms; i++)
        if (a->partial[i] != b->partial[i])
            mask |= 1u << i;
    return mask;
}

/* Goes straight to the end by box intersection, once nothing is left to reduce. */
static void permute(search *s, int from)
{
    int keep[HP_MAX_DIMS];
    hp_layout l = s->st[from].l;
    if (memcmp(l.partial, s->to.partial, sizeof l.partial) == 0)
        reach(s, from, HP_COLL_PERMUTE, moving(s, &l, &s->to, keep), &s->to);
}

static void expand(search *s, int from)
{
    for (int red = HP_RED_SUM; red <= HP_RED_LSE; red++)
        reductions_by(s, from, red);
    slices(s, from);
    gathers(s, from);
    exchanges(s, from);
    permute(s, from);
}

/* --- the search ---------------------------------------------------------------------------------- */

/* Returns the state of the end, -1 when no path is below the bound; *capped when it gave up early. */
static int run(search *s, const hp_layout *from, bool direct, double bound, int max, bool *capped)
{
    s->n = s->n_heap = 0;
    s->direct = direct;
    s->bound = bound;
    s->st = hp_grow(s->st, &s->cap, 1, sizeof *s->st);
    s->st[s->n++] = (state){.l = *from, .prev = -1};
    if (s->n_slots == 0)
        grow_slots(s);
    memset(s->slot, -1, (size_t)s->n_slots * sizeof *s->slot);
    *find_slot(s, from) = 0;
    heap_push(s, (entry){0, 0});
    *capped = false;
    for (int expanded = 0; s->n_heap;) {
        int at = heap_pop(s).state;
        if (s->st[at].done)
            continue;
        if (hp_layout_equal(&s->st[at].l, &s->to))
            return at;
        if (expanded++ == max) {
            *capped = true;
            break;
        }
        s->st[at].done = true;
        expand(s, at);
    }
    return *find_slot(s, &s->to);
}

static double least_latency(const search *s)
{
    static const hp_shape nothing = {.nd = 1};
    double least = INFINITY;
    for (int a = 0; a < s->m->n_atoms; a++) {
        hp_move mv = {.kind = HP_COLL_ALL_GATHER,
                      .atoms = s->active & 1u << a,
                      .from = {.nd = 1},
                      .to = {.nd = 1}};
        if (mv.atoms)
            least = fmin(least, hp_redist_price(s->m, &nothing, 0, &mv, s->price));
    }
    return least;
}

static void take_path(const search *s, int end, hp_path *path)
{
    path->n = s->st[end].depth;
    for (int i = path->n - 1; i >= 0; i--, end = s->st[end].prev)
        path->move[i] = s->st[end].move;
    path->cost = 0;
    for (int i = 0; i < path->n; i++)
        path->cost += hp_redist_price(s->m, s->shape, s->elem_bytes, &path->move[i], s->price);
}

static hp_err check_ends(const hp_mesh *m, const hp_shape *shape, const hp_layout *from,
                         const hp_layout *to, hp_errmsg *e)
{
    if (from->nd != shape->nd || to->nd != shape->nd)
        return hp_fail(e, HP_EINTERNAL, "layouts of %d and %d dimensions for a tensor of %d",
                       from->nd, to->nd, shape->nd);
    hp_err err = hp_layout_check(m, from, e);
    if (!err)
        err = hp_layout_check(m, to, e);
    for (int a = 0; a < m->n_atoms && !err; a++) {
        char name[64];
        if (to->partial[a] == HP_RED_NONE || to->partial[a] == from->partial[a])
            continue;
        err = hp_fail(
            e, HP_EINFEASIBLE, "a value that is %s over \"%s\" cannot become partial by %s",
            from->partial[a] ? "partial by another reduction" : "not partial",
            hp_mesh_name(m, 1u << a, name, sizeof name), hp_reduce_name((hp_reduce)to->partial[a]));
    }
    return err;
}

hp_err hp_redist_search(const hp_mesh *m, const hp_shape *shape, double elem_bytes,
                        const hp_layout *from, const hp_layout *to, const hp_price *price,
                        hp_path *path, hp_errmsg *e)
{
    hp_err err = check_ends(m, shape, from, to, e);
    if (err)
        return err;
    *path = (hp_path){0};
    if (hp_layout_equal(from, to))
        return HP_OK;
    hp_layout begin = hp_layout_clean(from);
    search s = {.m = m,
                .shape = shape,
                .elem_bytes = elem_bytes,
                .price = price,
                .to = hp_layout_clean(to)};
    s.active = moving(&s, &begin, &s.to, s.keep);
    s.latency = least_latency(&s);
    bool capped;
    int end = run(&s, &begin, true, INFINITY, MAX_EXPANDED, &capped);
    assert(end >= 0); /* reducing everything and permuting is always a way */
    take_path(&s, end, path);
    end = run(&s, &begin, false, s.st[end].cost, MAX_EXPANDED, &path->capped);
    if (end >= 0) {
        capped = path->capped;
        take_path(&s, end, path);
        path->capped = capped;
    }
    free(s.st);
    free(s.slot);
    free(s.heap);
    return HP_OK;
}

hp_err hp_redist_path(const hp_mesh *m, const hp_shape *shape, int elem_bytes,
                      const hp_layout *from, const hp_layout *to, const hp_price *price,
                      hp_path *path, hp_errmsg *e)
{
    return hp_redist_search(m, shape, elem_bytes, from, to, price, path, e);
}

/* Flows of random redistributions, executed element by element. */
#include "exec/flow.h"
#include "base/rng.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 400, MAX_ELEMENTS = 16384 };

typedef struct draw {
    hp_mesh m;
    hp_shape shape;
    hp_layout from, to;
    uint32_t atoms;
    hp_box from_box[64], to_box[64];
} draw;

static hp_layout random_layout(hp_rng *r, const hp_mesh *m, int nd, const hp_layout *from)
{
    hp_layout l = hp_layout_replicated(nd);
    int order[HP_MAX_ATOMS];
    for (int i = 0; i < m->n_atoms; i++)
        order[i] = i;
    for (int i = m->n_atoms - 1; i > 0; i--) {
        int k = (int)hp_rng_below(r, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < m->n_atoms; i++) {
        int a = order[i];
        int64_t pick = hp_rng_below(r, nd + 2);
        if (pick < nd)
            l.split[pick][l.n[pick]++] = (uint8_t)a;
        else if (pick == nd && (!from || from->partial[a]))
            l.partial[a] = HP_RED_SUM;
    }
    return l;
}

static uint32_t place_of(const hp_layout *l, int atom)
{
    for (int d = 0; d < l->nd; d++)
        for (int i = 0; i < l->n[d]; i++)
            if (l->split[d][i] == atom)
                return (uint32_t)(1 + d * 16 + i);
    return l->partial[atom] ? 1000 : 0;
}

static draw random_draw(hp_rng *r)
{
    draw d = {0};
    char spec[64];
    hp_errmsg e;
    const char *view = "", *axes = spec;
    snprintf(spec, sizeof spec, "a=%d,b=%d,c=%d", (int)hp_rng_below(r, 2) + 2,
             (int)hp_rng_below(r, 3) + 1, (int)hp_rng_below(r, 2) + 2);
    if (hp_mesh_build(&d.m, 1, &view, &axes, 0, NULL, NULL, &e))
        bail("%s", e.text);
    d.shape.nd = (int)hp_rng_below(r, 3) + 1;
    for (int k = 0; k < d.shape.nd; k++)
        d.shape.size[k] = hp_rng_below(r, 8) + 1;
    d.from = random_layout(r, &d.m, d.shape.nd, NULL);
    d.to = random_layout(r, &d.m, d.shape.nd, &d.from);
    for (int a = 0; a < d.m.n_atoms; a++)
        if (place_of(&d.from, a) != place_of(&d.to, a) || hp_rng_below(r, 4) == 0)
            d.atoms |= 1u << a;
    for (int a = 0; a < d.m.n_atoms;
         a++) /* what stays split may move with its neighbours: take all that are split */
        if (place_of(&d.from, a) % 1000 || place_of(&d.to, a) % 1000)
            d.atoms |= 1u << a;
    for (int k = 0; k < d.m.n_ranks; k++) {
        d.from_box[k] = hp_layout_box(&d.m, &d.from, &d.shape, k);
        d.to_box[k] = hp_layout_box(&d.m, &d.to, &d.shape, k);
    }
    return d;
}

/* Steps through the elements of a box; false behind the last. `at` starts at lo. */
static bool step(const hp_box *b, int64_t *at)
{
    for (int d = b->nd - 1; d >= 0; d--) {
        if (++at[d] < b->hi[d])
            return true;
        at[d] = b->lo[d];
    }
    return false;
}

static int64_t index_of(const hp_shape *s, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < s->nd; d++)
        i = i * s->size[d] + at[d];
    return i;
}

/* What rank holds of an element under a layout: whole values, or the part of its coordinates on the partial atoms of `from`. */
static double part(const draw *d, int rank, const hp_layout *l, int64_t element)
{
    double sum = 0;
    int mine[HP_MAX_ATOMS], other[HP_MAX_ATOMS];
    hp_mesh_coord(&d->m, rank, mine);
    for (int r = 0; r < d->m.n_ranks; r++) { /* one rank for every choice of partial coordinates */
        bool counts = true;
        hp_mesh_coord(&d->m, r, other);
        double key = 1;
        for (int a = 0; a < d->m.n_atoms; a++) {
            if (!d->from.partial[a] || l->partial[a])
                counts = counts && other[a] == mine[a];
            if (d->from.partial[a])
                key = key * 7 + other[a];
        }
        if (counts)
            sum += key * 100 + (double)element;
    }
    return sum;
}

static bool holds(const hp_box *b, const int64_t *at)
{
    for (int d = 0; d < b->nd; d++)
        if (at[d] < b->lo[d] || at[d] >= b->hi[d])
            return false;
    return true;
}

typedef struct outcome {
    int wrong, twice, missing, foreign;
    int64_t sent[64]; /* elements */
} outcome;

static void execute(const draw *d, const hp_flow *f, outcome *o)
{
    static double out[64][MAX_ELEMENTS];
    static int written[64][MAX_ELEMENTS];
    memset(written, 0, sizeof written);
    for (int own = 0; own < d->m.n_ranks; own++)
        for (int i = f->first[own]; i < f->first[own + 1]; i++) {
            const hp_piece *p = &f->piece[i];
            int64_t at[HP_MAX_DIMS];
            memcpy(at, p->box.lo, sizeof at);
            do {
                int64_t e = index_of(&d->shape, at);
                double v = 0;
                for (int k = 0; k < p->n_src; k++) {
                    o->foreign += !holds(&d->from_box[p->src[k]], at);
                    v += part(d, p->src[k], &d->from, e);
                    o->sent[p->src[k]] += p->src[k] != own;
                }
                for (int k = 0; k < p->n_dst; k++) {
                    out[p->dst[k]][e] = v;
                    o->twice += written[p->dst[k]][e]++ > 0;
                    o->sent[own] += p->dst[k] != own;
                }
            } while (step(&p->box, at));
        }
    for (int r = 0; r < d->m.n_ranks; r++) {
        int64_t at[HP_MAX_DIMS];
        memcpy(at, d->to_box[r].lo, sizeof at);
        if (hp_box_size(&d->to_box[r]) > 0)
            do {
                int64_t e = index_of(&d->shape, at);
                o->missing += !written[r][e];
                o->wrong += written[r][e] && out[r][e] != part(d, r, &d->to, e);
            } while (step(&d->to_box[r], at));
    }
}

static void test_random(void)
{
    hp_rng r = {.stream = hp_rng_key(20260101, 1)};
    outcome o = {0};
    int made = 0, refused = 0;
    for (int i = 0; i < DRAWS; i++) {
        draw d = random_draw(&r);
        hp_flow *f = NULL;
        hp_errmsg e;
        outcome one = {0};
        if (hp_flow_new(&d.m, d.atoms, &d.from, &d.to, d.from_box, d.to_box, &f, &e)) {
            refused++;
            diag("draw %d: %s", i, e.text);
            continue;
        }
        made++;
        execute(&d, f, &one);
        if (one.wrong + one.twice + one.missing + one.foreign)
            diag("draw %d: %d wrong, %d twice, %d missing, %d not held", i, one.wrong, one.twice,
                 one.missing, one.foreign);
        o.wrong += one.wrong;
        o.twice += one.twice;
        o.missing += one.missing;
        o.foreign += one.foreign;
        hp_flow_free(f);
    }
    is_int(refused, 0, "every redistribution of %d has a flow", made + refused);
    is_int(o.wrong, 0, "every element arrives with its value, reduced over the right ranks");
    is_int(o.missing, 0, "none is missing");
    is_int(o.twice, 0, "none is written twice");
    is_int(o.foreign, 0, "none is taken from a rank that lacks it");
}

/* Elements sent by the standard algorithms are what the shares really move between ranks. */
static void sends(const char *what, hp_coll kind, const char *from, const char *to, int64_t size)
{
    draw d = {0};
    hp_errmsg e;
    hp_flow *f;
    const char *view = "", *axes = "t=4", *dims[] = {"x", "y"};
    outcome o = {0};
    if (hp_mesh_build(&d.m, 1, &view, &axes, 0, NULL, NULL, &e))
        bail("%s", e.text);
    d.shape = (hp_shape){.nd = 2, .size = {size, 4}};
    d.atoms = d.m.n_atoms == 1 ? 1 : 3;
    if (hp_layout_parse(&d.m, 2, dims, from, &d.from, &e) ||
        hp_layout_parse(&d.m, 2, dims, to, &d.to, &e))
        bail("%s", e.text);
    for (int k = 0; k < 4; k++) {
        d.from_box[k] = hp_layout_box(&d.m, &d.from, &d.shape, k);
        d.to_box[k] = hp_layout_box(&d.m, &d.to, &d.shape, k);
    }
    if (hp_flow_new(&d.m, d.atoms, &d.from, &d.to, d.from_box, d.to_box, &f, &e))
        bail("%s", e.text);
    execute(&d, f, &o);
    hp_move mv = {kind, d.atoms, d.from, d.to};
    int differ = 0;
    for (int k = 0; k < 4; k++)
        differ += o.sent[k] * 4 != llround(hp_move_bytes(&d.m, &mv, &d.shape, 4, k));
    is_int(differ, 0, "%s: every rank moves the bytes that the plan counts", what);
    hp_flow_free(f);
}

static void test_refusals(void)
{
    hp_mesh m;
    hp_errmsg e;
    hp_flow *f;
    const char *view = "", *axes = "t=2,u=2";
    if (hp_mesh_build(&m, 1, &view, &axes, 0, NULL, NULL, &e))
        bail("%s", e.text);
    hp_shape s = {.nd = 1, .size = {4}};
    hp_layout a = hp_layout_replicated(1), b = a;
    hp_box box[4];
    for (int k = 0; k < 4; k++)
        box[k] = hp_layout_box(&m, &a, &s, k);
    b.partial[0] = HP_RED_SUM;
    is_int(hp_flow_new(&m, 1, &a, &b, box, box, &f, &e), HP_EINFEASIBLE,
           "a whole value is never made partial");
    is_int(hp_flow_new(&m, 2, &b, &a, box, box, &f, &e), HP_EINFEASIBLE,
           "a reduction needs its axis in the group");
    b.partial[1] = HP_RED_MAX;
    is_int(hp_flow_new(&m, 3, &b, &a, box, box, &f, &e), HP_EINFEASIBLE,
           "two kinds of reduction are two moves");
    ok(strstr(e.text, "sum") && strstr(e.text, "max"), "and both are named: %s", e.text);
}

int main(void)
{
    test_random();
    sends("all-reduce", HP_COLL_ALL_REDUCE, "partial:sum(t)", "-", 4096);
    sends("all-gather", HP_COLL_ALL_GATHER, "x:t", "-", 64);
    sends("reduce-scatter", HP_COLL_REDUCE_SCATTER, "partial:sum(t)", "y:t", 64);
    sends("all-to-all", HP_COLL_ALL_TO_ALL, "x:t", "y:t", 64);
    test_refusals();
    return done_testing();
}

/* redist.c -- random redistributions carried out on real numbers.
 *
 * Every rank holds an array with the values of its box. A move is executed literally by what it says: for every element of the new box, one rank of the
 * group that holds it (one for each part, where the move reduces) gives the value. What comes out must be the layout asked for with the
 * values of the whole tensor. Sizes are drawn small, so that uneven, empty and doubly split dimensions are common.
 * HP_SEED=n starts elsewhere; HP_TEST_LONG=1 draws ten times as much.
 */
#include "shard/redist.h"
#include "base/rng.h"

#include "tap.h"

enum { MAX_RANKS = 48, MAX_CELLS = 1000 };

typedef struct draw {
    hp_mesh mesh;
    hp_shape shape;
    hp_cut cut[HP_MAX_DIMS];
    hp_layout from, to;
    int red; /* the reduction of what is partial */
} draw;

/* values[rank][cell]: every rank has room for the whole tensor; cells outside its box hold NaN. */
typedef struct world {
    double value[MAX_RANKS][MAX_CELLS];
} world;

static hp_rng rng;

static int below(int n)
{
    return (int)hp_rng_below(&rng, n);
}

/* --- draws --------------------------------------------------------------------------------------- */

static void draw_mesh(hp_mesh *m)
{
    static const char *const shape[] = {
        "a=2,b=2",     "a=3,b=2", "a=2,b=3", "a=4", "a=2,b=2,c=2",     "a=3,b=3", "a=2,b=1,c=3",
        "a=2,b=3,c=2", "a=6",     "a=5,b=2", "a=8", "a=2,b=2,c=2,d=2", "a=4,b=4", "a=2,b=4,c=2,d=2",
        "a=3,b=4,c=2", "a=9",     "a=12"};
    static const char *const other[] = {
        "x=2,y=2",     "x=6",      NULL,      "x=2,y=2", "x=4,y=2",    NULL,
        NULL,          "x=6,y=2",  "x=2,y=3", NULL,      "x=2,y=4",    "x=8,y=2",
        "x=2,y=2,z=4", "x=2,y=16", "x=6,y=4", "x=3,y=3", "x=2,y=3,z=2"};
    int i = below((int)(sizeof shape / sizeof shape[0]));
    const char *view[] = {"", "v"}, *spec[] = {shape[i], other[i]};
    hp_errmsg e;
    if (hp_mesh_build(m, other[i] && below(2) ? 2 : 1, view, spec, 0, NULL, NULL, &e))
        bail("mesh %s: %s", shape[i], e.text);
}

static void draw_cut(draw *d, int dim)
{
    hp_cut *c = &d->cut[dim];
    *c = (hp_cut){.kind = below(3) ? HP_CUT_BALANCED : HP_CUT_SIZES};
    if (c->kind == HP_CUT_SIZES) {
        c->n = 2 + below(5);
        int64_t left = d->shape.size[dim];
        for (int i = 0; i < c->n - 1; i++)
            left -= c->size[i] = below((int)left + 1);
        c->size[c->n - 1] = left;
    }
    d->shape.cut[dim] = c;
}

static void draw_shape(draw *d)
{
    d->shape = (hp_shape){.nd = 1 + below(3)};
    for (int i = 0; i < d->shape.nd; i++) {
        d->shape.size[i] = below(12) ? 1 + below(9) : below(2) * 7;
        if (below(5) == 0)
            draw_cut(d, i);
    }
}

/* Puts every atom somewhere, in random order; few dimensions and many atoms, so that two often share one. */
static hp_layout draw_layout(const draw *d, uint32_t may_be_partial)
{
    hp_layout l = hp_layout_replicated(d->shape.nd);
    uint8_t order[HP_MAX_ATOMS];
    int n = d->mesh.n_atoms, sorted = below(3);
    for (int i = 0; i < n; i++)
        order[i] = (uint8_t)i;
    for (int i = n - 1; i > 0 && !sorted; i--) {
        int j = below(i + 1);
        uint8_t t = order[i];
        order[i] = order[j], order[j] = t;
    }
    int favourite = below(l.nd);
    for (int i = 0; i < n; i++) {
        int where = below(7);
        if (where == 0 && may_be_partial >> order[i] & 1)
            l.partial[order[i]] = (uint8_t)d->red;
        else if (where < 5)
            hp_layout_append(&l, below(2) ? favourite : below(l.nd), &order[i], 1);
    }
    return l;
}

static void draw_case(draw *d)
{
    static const int red[] = {HP_RED_SUM, HP_RED_SUM, HP_RED_MAX};
    draw_mesh(&d->mesh);
    draw_shape(d);
    d->red = red[below(3)];
    d->from = draw_layout(d, ~0u);
    d->to = draw_layout(d, hp_layout_partial_mask(&d->from));
}

/* --- the simulator ------------------------------------------------------------------------------- */

static int n_cells(const hp_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->nd; d++)
        n *= s->size[d];
    return (int)n;
}

static bool holds(const hp_shape *s, const hp_box *b, int cell)
{
    for (int d = s->nd - 1; d >= 0; d--) {
        int64_t at = cell % s->size[d];
        cell = (int)(cell / s->size[d]);
        if (at < b->lo[d] || at >= b->hi[d])
            return false;
    }
    return true;
}

static double truth(int cell)
{
    return (double)(hp_rng_u64(99, (uint64_t)cell) % 1000) - 500;
}

static double reduce(int red, double a, double b)
{
    return red == HP_RED_MAX ? fmax(a, b) : a + b;
}

/* The part of a cell that a rank with the given number among `n` parts holds: they reduce to the truth. */
static double part_of(int red, int cell, int n, int i)
{
    if (red == HP_RED_MAX)
        return i == cell % n ? truth(cell) : truth(cell) - 1 - i;
    return i == n - 1 ? truth(cell) - 17 * (n - 1) - cell * (n - 1) : 17 + cell;
}

static int number_in_group(const hp_mesh *m, int rank, uint32_t mask)
{
    int group[MAX_RANKS], n = hp_mesh_group(m, rank, mask, group);
    for (int i = 0; i < n; i++)
        if (group[i] == rank)
            return i;
    return -1;
}

static void fill(const draw *d, world *w)
{
    uint32_t partial = hp_layout_partial_mask(&d->from);
    int n = hp_mesh_group_size(&d->mesh, partial);
    for (int r = 0; r < d->mesh.n_ranks; r++) {
        hp_box b = hp_layout_box(&d->mesh, &d->from, &d->shape, r);
        int i = number_in_group(&d->mesh, r, partial);
        for (int c = 0; c < n_cells(&d->shape); c++)
            w->value[r][c] = holds(&d->shape, &b, c) ? part_of(d->red, c, n, i) : NAN;
    }
}

/* The value of a cell as the group has it: one holder for each coordinate of the reduced atoms. NaN when somebody is missing. */
static double fetch(const draw *d, const world *w, const hp_box *box, const int *group, int n,
                    uint32_t reduced, int cell)
{
    int parts = hp_mesh_group_size(&d->mesh, reduced);
    double sum = NAN;
    for (int p = 0; p < parts; p++) {
        double value = NAN;
        for (int i = 0; i < n; i++)
            if (holds(&d->shape, &box[group[i]], cell) &&
                number_in_group(&d->mesh, group[i], reduced) == p)
                value = w->value[group[i]][cell];
        sum = p == 0 ? value : reduce(d->red, sum, value);
    }
    return sum;
}

static bool execute(const draw *d, const hp_move *mv, const world *old, world *new)
{
    hp_box box[MAX_RANKS];
    uint32_t reduced = hp_layout_partial_mask(&mv->from) & ~hp_layout_partial_mask(&mv->to);
    for (int r = 0; r < d->mesh.n_ranks; r++)
        box[r] = hp_layout_box(&d->mesh, &mv->from, &d->shape, r);
    for (int r = 0; r < d->mesh.n_ranks; r++) {
        int group[MAX_RANKS],
            n = mv->kind == HP_COLL_SLICE ? 1 : hp_mesh_group(&d->mesh, r, mv->atoms, group);
        if (mv->kind == HP_COLL_SLICE)
            group[0] = r;
        hp_box to = hp_layout_box(&d->mesh, &mv->to, &d->shape, r);
        for (int c = 0; c < n_cells(&d->shape); c++) {
            new->value[r][c] =
                holds(&d->shape, &to, c) ? fetch(d, old, box, group, n, reduced, c) : NAN;
            if (holds(&d->shape, &to, c) && isnan(new->value[r][c]))
                return false;
        }
    }
    return true;
}

static bool right_at_end(const draw *d, const world *w)
{
    uint32_t partial = hp_layout_partial_mask(&d->to);
    for (int r = 0; r < d->mesh.n_ranks; r++) {
        hp_box b = hp_layout_box(&d->mesh, &d->to, &d->shape, r);
        int group[MAX_RANKS], n = hp_mesh_group(&d->mesh, r, partial, group);
        for (int c = 0; c < n_cells(&d->shape); c++) {
            double v = w->value[r][c];
            if (!holds(&d->shape, &b, c))
                continue;
            v = w->value[group[0]][c];
            for (int i = 1; i < n; i++)
                v = reduce(d->red, v, w->value[group[i]][c]);
            if (v != truth(c))
                return false;
        }
    }
    return true;
}

/* The boxes of the ranks that differ in the split atoms tile the tensor. */
static bool tiles(const draw *d, const hp_layout *l)
{
    int group[MAX_RANKS], n = hp_mesh_group(&d->mesh, 0, hp_layout_split_mask(l), group);
    for (int c = 0; c < n_cells(&d->shape); c++) {
        int owners = 0;
        for (int i = 0; i < n; i++) {
            hp_box b = hp_layout_box(&d->mesh, l, &d->shape, group[i]);
            owners += holds(&d->shape, &b, c);
        }
        if (owners != 1)
            return false;
    }
    return true;
}

/* Elements that a group receives in all, counted from the boxes by what each kind of move must bring. */
static double received(const draw *d, const hp_move *mv, const int *group, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        hp_box from = hp_layout_box(&d->mesh, &mv->from, &d->shape, group[i]);
        hp_box to = hp_layout_box(&d->mesh, &mv->to, &d->shape, group[i]);
        hp_box kept = hp_box_meet(&from, &to);
        if (mv->kind == HP_COLL_REDUCE_SCATTER)
            sum += (n - 1) * (double)hp_box_size(&to);
        else if (mv->kind == HP_COLL_ALL_REDUCE)
            sum += 2 * (double)hp_box_size(&to) * (n - 1) / n;
        else if (mv->kind != HP_COLL_SLICE)
            sum += (double)(hp_box_size(&to) - hp_box_size(&kept));
    }
    return sum;
}

static bool conserves(const draw *d, const hp_move *mv)
{
    for (int r = 0; r < d->mesh.n_ranks; r++) {
        int group[MAX_RANKS], n = hp_mesh_group(&d->mesh, r, mv->atoms, group);
        if (group[0] != r)
            continue;
        double sent = 0;
        for (int i = 0; i < n; i++)
            sent += hp_move_bytes(&d->mesh, mv, &d->shape, 1, group[i]);
        if (fabs(sent - received(d, mv, group, n)) > 1e-6)
            return false;
    }
    return true;
}

static void show(const draw *d, const hp_path *p)
{
    static const char *const dims[] = {"x", "y", "z"};
    hp_str t = {0};
    hp_str_add(&t, "mesh");
    for (int i = 0; i < d->mesh.n_atoms; i++)
        hp_str_add(&t, " %d%s", d->mesh.size[i], d->mesh.joined[i] ? "j" : "");
    for (int i = 0; i < d->shape.nd; i++) {
        hp_str_add(&t, ", %s=%lld", dims[i], (long long)d->shape.size[i]);
        if (d->shape.cut[i])
            hp_str_add(&t, " cut %d:%d", (int)d->shape.cut[i]->kind, d->shape.cut[i]->n);
    }
    hp_str_add(&t, "; ");
    hp_layout_print(&d->mesh, &d->from, dims, &t);
    for (int i = 0; i < p->n; i++) {
        hp_str_add(&t, " =%s/%x=> ", hp_coll_name(p->move[i].kind), p->move[i].atoms);
        hp_layout_print(&d->mesh, &p->move[i].to, dims, &t);
    }
    hp_str_add(&t, "; wanted ");
    hp_layout_print(&d->mesh, &d->to, dims, &t);
    diag("%s", hp_str_text(&t));
    hp_str_fini(&t);
}

/* Runs one draw; returns what is wrong with it, NULL when nothing. */
static const char *try_draw(const draw *d, hp_path *p)
{
    static world a, b;
    hp_errmsg e;
    if (hp_redist_path(&d->mesh, &d->shape, 4, &d->from, &d->to, NULL, p, &e))
        return "no path";
    if (!tiles(d, &d->to))
        return "boxes do not tile";
    fill(d, &a);
    for (int i = 0; i < p->n; i++) {
        if (!hp_layout_equal(i ? &p->move[i - 1].to : &d->from, &p->move[i].from))
            return "broken chain";
        if (!execute(d, &p->move[i], &a, &b))
            return "a move lacks data";
        if (!conserves(d, &p->move[i]))
            return "bytes sent are not bytes received";
        a = b;
    }
    if (p->n && !hp_layout_equal(&p->move[p->n - 1].to, &d->to))
        return "another end";
    return right_at_end(d, &a) ? NULL : "wrong values";
}

/* --- cross-mesh ---------------------------------------------------------------------------------- */

static const char *try_cross(void)
{
    draw a, b;
    draw_mesh(&a.mesh);
    draw_shape(&a);
    a.red = HP_RED_SUM;
    a.from = draw_layout(&a, 0);
    b = a;
    draw_mesh(&b.mesh);
    b.to = draw_layout(&b, 0);
    for (int i = 0; i < a.shape.nd; i++)
        b.shape.cut[i] = a.shape.cut[i] ? &b.cut[i] : NULL;
    hp_xmove *msg;
    hp_errmsg e;
    int n, counted[MAX_RANKS][MAX_CELLS] = {{0}};
    if (hp_redist_cross(&a.mesh, &a.from, &b.mesh, &b.to, &a.shape, &msg, &n, &e))
        return "no messages";
    const char *wrong = NULL;
    for (int i = 0; i < n; i++) {
        hp_box src = hp_layout_box(&a.mesh, &a.from, &a.shape, msg[i].src);
        if (i && (msg[i].src < msg[i - 1].src ||
                  (msg[i].src == msg[i - 1].src && msg[i].dst <= msg[i - 1].dst)))
            wrong = "messages out of order";
        for (int c = 0; c < n_cells(&a.shape); c++) {
            if (!holds(&a.shape, &msg[i].box, c))
                continue;
            counted[msg[i].dst][c]++;
            if (!holds(&a.shape, &src, c))
                wrong = "the source lacks what it sends";
        }
    }
    for (int r = 0; r < b.mesh.n_ranks; r++) {
        hp_box dst = hp_layout_box(&b.mesh, &b.to, &a.shape, r);
        for (int c = 0; c < n_cells(&a.shape); c++)
            if (counted[r][c] != holds(&a.shape, &dst, c))
                wrong = "an element arrives not once";
    }
    free(msg);
    return wrong;
}

int main(void)
{
    const char *seed = getenv("HP_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    int draws = getenv("HP_TEST_LONG") ? 30000 : 3000, failed = 0, uneven = 0, doubled = 0,
        capped = 0;
    note("seeds from %llu", (unsigned long long)first);
    for (int i = 0; i < draws && failed < 5; i++) {
        draw d;
        hp_path p = {0};
        int dim;
        rng = (hp_rng){first + (uint64_t)i, 0};
        draw_case(&d);
        const char *wrong = try_draw(&d, &p);
        uneven += !hp_layout_even(&d.mesh, &d.to, &d.shape, &dim) ||
                  !hp_layout_even(&d.mesh, &d.from, &d.shape, &dim);
        for (int k = 0; k < d.shape.nd; k++)
            doubled += d.from.n[k] > 1 || d.to.n[k] > 1;
        capped += p.capped;
        if (wrong) {
            failed++;
            diag("seed %llu: %s", (unsigned long long)first + (unsigned long long)i, wrong);
            show(&d, &p);
        }
    }
    is_int(failed, 0, "%d random redistributions arrive with the right values", draws);
    ok(uneven > draws / 3 && doubled > draws / 3,
       "a third is uneven (%d), a third splits a dimension twice (%d)", uneven, doubled);
    ok(capped < draws / 50, "the full search ends by itself in all but a few (%d)", capped);
    int crossed = 0;
    for (int i = 0; i < draws / 3 && crossed < 5; i++) {
        rng = (hp_rng){first + 1000000 + (uint64_t)i, 0};
        const char *wrong = try_cross();
        if (wrong)
            crossed++, diag("cross, seed %llu: %s",
                            (unsigned long long)first + (unsigned long long)i, wrong);
    }
    is_int(crossed, 0, "%d random moves between meshes bring every element once", draws / 3);
    return done_testing();
}

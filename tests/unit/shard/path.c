/* path.c -- the paths that a person would take, and on small meshes no cheaper one than an exhaustive search finds. */
#include "base/rng.h"
#include "shard/redist.h"

#include "tap.h"

static const char *const dims[] = {"x", "y", "z"};

static hp_mesh mesh_of(const char *spec, const char *other)
{
    const char *view[] = {"", "v"}, *both[] = {spec, other};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, other ? 2 : 1, view, both, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static hp_layout parsed(const hp_mesh *m, int nd, const char *text)
{
    hp_layout l;
    hp_errmsg e;
    if (hp_layout_parse(m, nd, dims, text, &l, &e))
        bail("%s: %s", text, e.text);
    return l;
}

/* "all-reduce(tp); slice(dp)" */
static const char *path_text(const hp_mesh *m, const hp_path *p)
{
    static char buf[512];
    char name[64];
    int n = 0;
    buf[0] = '\0';
    for (int i = 0; i < p->n; i++)
        n += snprintf(buf + n, sizeof buf - (size_t)n, "%s%s(%s)", i ? "; " : "",
                      hp_coll_name(p->move[i].kind),
                      hp_mesh_name(m, p->move[i].atoms, name, sizeof name));
    return buf;
}

static void goes(const hp_mesh *m, const hp_shape *s, const char *from, const char *to,
                 const char *want)
{
    hp_layout a = parsed(m, s->nd, from), b = parsed(m, s->nd, to);
    hp_path p;
    hp_errmsg e;
    if (hp_redist_path(m, s, 4, &a, &b, NULL, &p, &e))
        bail("%s -> %s: %s", from, to, e.text);
    is_str(path_text(m, &p), want, "%s -> %s", from, to);
}

static void test_single_steps(void)
{
    hp_mesh m = mesh_of("dp=2,cp=2,tp=4", NULL);
    hp_shape s = {.nd = 3, .size = {64, 128, 256}};
    goes(&m, &s, "x:dp", "x:dp", "");
    goes(&m, &s, "-", "x:dp y:tp", "slice(dp+tp)");
    goes(&m, &s, "x:dp", "-", "all-gather(dp)");
    goes(&m, &s, "x:dp+cp", "-", "all-gather(dp+cp)");
    goes(&m, &s, "partial:sum(tp)", "-", "all-reduce(tp)");
    goes(&m, &s, "partial:sum(dp+cp)", "-", "all-reduce(dp+cp)");
    goes(&m, &s, "x:dp partial:sum(tp)", "x:dp y:tp", "reduce-scatter(tp)");
    goes(&m, &s, "partial:sum(dp+cp)", "x:dp+cp", "reduce-scatter(dp+cp)");
    goes(&m, &s, "y:cp", "z:cp", "all-to-all(cp)");
    goes(&m, &s, "x:dp+cp", "z:dp+cp", "all-to-all(dp+cp)");
    goes(&m, &s, "x:dp y:tp", "x:dp", "all-gather(tp)");
    goes(&m, &s, "x:dp+tp", "x:dp y:tp", "all-to-all(tp)");
}

static void test_nasty(void)
{
    hp_mesh two = mesh_of("a=2,b=2", NULL), three = mesh_of("a=2,b=2,c=2", NULL),
            dp = mesh_of("dp=2,cp=2", NULL);
    hp_shape five = {.nd = 2, .size = {5, 3}}, big = {.nd = 2, .size = {4096, 4096}};
    goes(&two, &five, "x:a+b", "-", "all-gather(a+b)");
    goes(&two, &five, "x:a+b", "x:a", "all-gather(b)");
    goes(&two, &big, "x:a+b", "x:b+a", "permute(a+b)");
    goes(&three, &five, "partial:sum(c)", "x:c+a+b", "reduce-scatter(c); slice(a+b)");
    goes(&three, &big, "x:a partial:sum(c)", "x:c+a", "reduce-scatter(c); permute(a+c)");
    hp_shape grad = {.nd = 2, .size = {512, 128}};
    goes(&dp, &grad, "partial:sum(cp)", "y:dp partial:sum(cp)", "slice(dp)");
    goes(&dp, &grad, "x:dp partial:sum(cp)", "x:dp", "all-reduce(cp)");
    goes(&dp, &grad, "partial:sum(cp)", "x:dp", "slice(dp); all-reduce(cp)");
    hp_mesh joined = mesh_of("dp=4,tp=2", "edp=2,ep=4");
    hp_shape six = {.nd = 2, .size = {6, 4}}, eight = {.nd = 2, .size = {8, 4}};
    goes(&joined, &eight, "x:dp", "x:dp.0", "all-gather(dp.1)");
    goes(&joined, &six, "x:dp", "x:dp.0", "permute(dp)");
    goes(&joined, &eight, "x:dp", "x:dp.0 y:dp.1", "all-to-all(dp.1)");
}

static void test_refused(void)
{
    hp_mesh m = mesh_of("dp=2,cp=2", NULL);
    hp_shape s = {.nd = 2, .size = {8, 8}};
    hp_layout whole = parsed(&m, 2, "-"), split = parsed(&m, 2, "x:cp"),
              part = parsed(&m, 2, "partial:sum(cp)"), most = parsed(&m, 2, "partial:max(cp)");
    hp_path p;
    hp_errmsg e = {0};
    is_int(hp_redist_path(&m, &s, 4, &whole, &part, NULL, &p, &e), HP_EINFEASIBLE,
           "a replicated value is never made partial");
    ok(strstr(e.text, "not partial over \"cp\"") != NULL, "the refusal names the axis") ||
        (diag("%s", e.text), 0);
    is_int(hp_redist_path(&m, &s, 4, &split, &part, NULL, &p, &e), HP_EINFEASIBLE,
           "nor a split one");
    is_int(hp_redist_path(&m, &s, 4, &most, &part, NULL, &p, &e), HP_EINFEASIBLE,
           "nor one partial by another reduction");
}

static void test_lse(void)
{
    hp_mesh m = mesh_of("dp=2,tp=3", NULL);
    hp_shape s = {.nd = 2, .size = {64, 3}};
    goes(&m, &s, "x:dp partial:lse(tp)", "x:dp", "all-reduce(tp)");
    goes(&m, &s, "partial:lse(tp)", "x:tp", "reduce-scatter(tp)");
    goes(&m, &s, "partial:lse(tp)", "y:tp", "all-reduce(tp); slice(tp)");
}

/* --- exhaustive search --------------------------------------------------------------------------- */

enum { MAX_LAYOUTS = 2000 };

static struct {
    hp_layout l[MAX_LAYOUTS];
    double cost[MAX_LAYOUTS];
    int prev[MAX_LAYOUTS], n;
} all;

/* Lists every layout of atoms a.. of the mesh: each replicated, partial, or at the end of some dimension, in any order. */
static void list_layouts(const hp_mesh *m, hp_layout l, uint32_t left)
{
    for (int i = 0; i < all.n; i++)
        if (hp_layout_equal(&all.l[i], &l))
            return;
    if (all.n == MAX_LAYOUTS)
        bail("too many layouts");
    all.l[all.n++] = l;
    for (int a = 0; a < m->n_atoms; a++) {
        if (!(left >> a & 1))
            continue;
        hp_layout next = l;
        next.partial[a] = HP_RED_SUM;
        list_layouts(m, next, left & ~(1u << a));
        for (int d = 0; d < l.nd; d++) {
            next = l;
            uint8_t atom = (uint8_t)a;
            hp_layout_append(&next, d, &atom, 1);
            list_layouts(m, next, left & ~(1u << a));
        }
    }
}

static bool inside(const hp_box *a, const hp_box *b)
{
    hp_box c = hp_box_meet(a, b);
    return hp_box_size(&c) == hp_box_size(a);
}

/* Whether the old boxes of the group hold every new box (`own`: the rank's own box alone does). */
static bool covered(const hp_mesh *m, const hp_shape *s, const hp_layout *a, const hp_layout *b,
                    uint32_t mask, bool own)
{
    for (int r = 0; r < m->n_ranks; r++) {
        int group[64], n = own ? 1 : hp_mesh_group(m, r, mask, group);
        hp_box to = hp_layout_box(m, b, s, r), from = hp_layout_box(m, a, s, r);
        int64_t got = 0;
        for (int i = 0; i < n && !own; i++) {
            hp_box old = hp_layout_box(m, a, s, group[i]), part = hp_box_meet(&old, &to);
            got += hp_box_size(&part);
        }
        if (own ? !inside(&to, &from) : got < hp_box_size(&to))
            return false;
    }
    return true;
}

/* The atoms that b adds at the end of dimension d of a; 0 when it does anything else. */
static uint32_t appended(const hp_layout *a, const hp_layout *b, int d)
{
    if (b->n[d] <= a->n[d] || memcmp(a->split[d], b->split[d], a->n[d]) != 0)
        return 0;
    return hp_layout_mask(b, d) & ~hp_layout_mask(a, d);
}

/* Whether one collective leads from a to b, and which: judged by boxes, for any pair of layouts. */
static bool one_step(const hp_mesh *m, const hp_shape *s, const hp_layout *a, const hp_layout *b,
                     hp_move *mv)
{
    uint32_t add = 0, del = 0, pa = hp_layout_partial_mask(a), pb = hp_layout_partial_mask(b);
    int changed = 0;
    for (int d = 0; d < a->nd; d++) {
        if (a->n[d] == b->n[d] && memcmp(a->split[d], b->split[d], a->n[d]) == 0)
            continue;
        uint32_t plus = appended(a, b, d), minus = appended(b, a, d);
        if (!plus && !minus)
            return false;
        add |= plus, del |= minus, changed++;
    }
    if (pb & ~pa)
        return false;
    uint32_t reduced = pa & ~pb;
    *mv = (hp_move){HP_COLL_SLICE, add | del | reduced, *a, *b};
    if (reduced && changed == 0)
        mv->kind = HP_COLL_ALL_REDUCE;
    else if (reduced && changed == 1 && add == reduced)
        mv->kind = HP_COLL_REDUCE_SCATTER;
    else if (!reduced && changed == 1 && del)
        mv->kind = HP_COLL_ALL_GATHER;
    else if (!reduced && changed == 2 && add && add == del)
        mv->kind = HP_COLL_ALL_TO_ALL;
    else if (reduced || changed != 1 || !add)
        return false;
    bool local = mv->kind == HP_COLL_SLICE || mv->kind == HP_COLL_REDUCE_SCATTER;
    return covered(m, s, a, b, mv->atoms, local);
}

/* The cheapest cost from layout `from` to each, by Bellman-Ford; a permute may end the path. */
static double exhaustive(const hp_mesh *m, const hp_shape *s, int from, int to)
{
    static hp_move mv;
    for (int i = 0; i < all.n; i++)
        all.cost[i] = i == from ? 0 : INFINITY;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < all.n; i++)
            for (int j = 0; j < all.n && all.cost[i] < INFINITY; j++) {
                if (i == j || !one_step(m, s, &all.l[i], &all.l[j], &mv))
                    continue;
                double cost = all.cost[i] + hp_redist_price(m, s, 4, &mv, NULL);
                if (cost < all.cost[j] * (1 - 1e-12))
                    all.cost[j] = cost, all.prev[j] = i, more = true;
            }
    }
    double best = all.cost[to];
    for (int i = 0; i < all.n; i++) {
        uint32_t every = (1u << m->n_atoms) - 1;
        mv = (hp_move){HP_COLL_PERMUTE, every & ~hp_layout_partial_mask(&all.l[to]), all.l[i],
                       all.l[to]};
        if (i != to && hp_layout_partial_mask(&all.l[i]) == hp_layout_partial_mask(&all.l[to]))
            best = fmin(best, all.cost[i] + hp_redist_price(m, s, 4, &mv, NULL));
    }
    return best;
}

/* Whether every atom has to move: atoms that stay are left alone by the search, here they would be free to help. */
static bool all_move(const hp_mesh *m, const hp_layout *a, const hp_layout *b)
{
    uint32_t pa = hp_layout_partial_mask(a), pb = hp_layout_partial_mask(b),
             every = (1u << m->n_atoms) - 1;
    for (int d = 0; d < a->nd; d++)
        if (a->n[d] && b->n[d] && a->split[d][0] == b->split[d][0])
            return false;
    return pb == 0 && (hp_layout_split_mask(a) | hp_layout_split_mask(b) | pa) == every;
}

static void test_exhaustive(void)
{
    static const char *const spec[] = {"a=2,b=3", "a=4", "a=2,b=2,c=2", "a=8"};
    static const char *const other[] = {NULL, "x=2,y=2", NULL, "x=4,y=2"};
    static const int64_t sizes[][2] = {{12, 24}, {5, 3}, {1000, 1000}, {7, 4096}};
    hp_rng rng = {11, 0};
    int worse = 0, compared = 0;
    for (int i = 0; i < 4; i++) {
        hp_mesh m = mesh_of(spec[i], other[i]);
        all.n = 0;
        list_layouts(&m, hp_layout_replicated(2), (1u << m.n_atoms) - 1);
        for (int k = 0; k < (m.n_atoms > 2 ? 12 : 80);) {
            hp_shape s = {.nd = 2, .size = {sizes[k % 4][0], sizes[k % 4][1]}};
            int from = (int)hp_rng_below(&rng, all.n), to = (int)hp_rng_below(&rng, all.n);
            if (!all_move(&m, &all.l[from], &all.l[to]))
                continue;
            hp_path p;
            hp_errmsg e;
            if (hp_redist_path(&m, &s, 4, &all.l[from], &all.l[to], NULL, &p, &e))
                bail("%s", e.text);
            double best = exhaustive(&m, &s, from, to);
            compared++, k++;
            if (p.cost > best + 12e-9) {
                hp_str t = {0};
                hp_layout_print(&m, &all.l[from], dims, &t);
                hp_str_add(&t, " -> ");
                hp_layout_print(&m, &all.l[to], dims, &t);
                for (int q = to; q != from; q = all.prev[q]) {
                    hp_str_add(&t, " <= ");
                    hp_layout_print(&m, &all.l[all.prev[q]], dims, &t);
                }
                diag("%s, %s on %lldx%lld: %s costs %g, the cheapest %g", spec[i], t.s,
                     (long long)s.size[0], (long long)s.size[1], path_text(&m, &p), p.cost, best);
                hp_str_fini(&t);
                worse++;
            }
        }
    }
    is_int(worse, 0, "none of %d paths is dearer than the exhaustive search's", compared);
}

int main(void)
{
    test_single_steps();
    test_nasty();
    test_refused();
    test_lse();
    test_exhaustive();
    return done_testing();
}

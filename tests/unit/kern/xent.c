#include "kern/xent.h"

#include "unit/kern/kern_test.h"

static void parts(void)
{
    static const int64_t shapes[][4] = {/* rows, lo, len, valid */
                                        {0, 0, 9, 9},     {4, 0, 0, 9},       {4, 20, 9, 15},
                                        {9, 0, 9, 9},     {30, 100, 70, 150}, {20, 0, 3000, 2990},
                                        {3, 5, 1024, 1e6}};
    for (int i = 0; i < 7; i++)
        for (int t = 0; t < 2; t++) {
            int64_t rows = shapes[i][0], lo = shapes[i][1], len = shapes[i][2],
                    valid = shapes[i][3];
            int32_t *target = draw_ints(rows, -2, lo + len + 3);
            tensor x = draw(t, rows * len, 8);
            tensor ref = blank(0, rows * 3), one = same(ref), two = same(ref);
            hp_xent_stats_ref(rows, lo, len, valid, target, x.x, ref.x.p);
            hp_xent_stats(rows, lo, len, valid, target, x.x, one.x.p, 1);
            hp_xent_stats(rows, lo, len, valid, target, x.x, two.x.p, 2);
            judge(one, two, ref);
            tensor d_ref = blank(t, rows * len), d_one = same(d_ref), d_two = same(d_ref);
            hp_xent_dx_ref(rows, lo, len, valid, target, x.x, ref.x.p, 0.25f, d_ref.x);
            hp_xent_dx(rows, lo, len, valid, target, x.x, ref.x.p, 0.25f, d_one.x, 1);
            hp_xent_dx(rows, lo, len, valid, target, x.x, ref.x.p, 0.25f, d_two.x, 2);
            judge(d_one, d_two, d_ref);
        }
    verdict("cross-entropy", "xent");
}

enum { ROWS = 7, V = 23, VALID = 21 };

static int32_t targets[ROWS] = {0, 20, -1, 5, 5, -1, 13};

static double loss(void *arg)
{
    tensor *x = arg;
    float stats[3 * ROWS];
    hp_xent_stats_ref(ROWS, 0, V, VALID, targets, x->x, stats);
    return hp_xent_loss(ROWS, targets, stats, 0.2f);
}

static void slopes(void)
{
    tensor x = draw(0, ROWS * V, 2), dx = blank(0, ROWS * V);
    float stats[3 * ROWS];
    hp_xent_stats_ref(ROWS, 0, V, VALID, targets, x.x, stats);
    hp_xent_dx_ref(ROWS, 0, V, VALID, targets, x.x, stats, 0.2f, dx.x);
    slope("cross-entropy's gradient", loss, &x, x, dx, 1e-2f, 2e-3);
    is_int(hp_xent_count(ROWS, targets), 5, "ignored targets are not counted");
    double sum = 0;
    for (int c = 0; c < V; c++)
        sum += (double)hp_num_get(dx.x, c);
    near(sum, 0, 1e-7, "a row's gradient sums to 0");
    ok(hp_num_get(dx.x, V - 1) == 0 && hp_num_get(dx.x, 2 * V) == 0,
       "padding and ignored rows have none");
    drop();
}

/* Copies columns c0 .. c1-1 of a [ROWS, V] tensor. */
static tensor columns(tensor x, int c0, int c1)
{
    tensor y = blank(0, ROWS * (c1 - c0));
    for (int r = 0; r < ROWS; r++)
        for (int c = c0; c < c1; c++)
            hp_num_put(y.x, r * (c1 - c0) + c - c0, hp_num_get(x.x, r * V + c));
    return y;
}

static void merged(void)
{
    tensor x = draw(0, ROWS * V, 5), left = columns(x, 0, 9), right = columns(x, 9, 9),
           rest = columns(x, 9, V);
    tensor whole = blank(0, 3 * ROWS), a = blank(0, 3 * ROWS), b = blank(0, 3 * ROWS);
    hp_xent_stats(ROWS, 0, V, VALID, targets, x.x, whole.x.p, 1);
    hp_xent_stats(ROWS, 0, 9, VALID, targets, left.x, a.x.p, 1);
    hp_xent_stats(ROWS, 9, 0, VALID, targets, right.x, b.x.p, 1);
    hp_xent_merge(ROWS, b.x.p, a.x.p, a.x.p);
    hp_xent_stats(ROWS, 9, V - 9, VALID, targets, rest.x, b.x.p, 1);
    hp_xent_merge(ROWS, a.x.p, b.x.p, b.x.p);
    ok(error_of(b, whole) < 1e-6, "stats of three parts, one empty, merge to those of the whole");
    hp_xent_stats(ROWS, 9, 0, VALID, targets, right.x, a.x.p, 1);
    hp_xent_merge(ROWS, a.x.p, a.x.p, a.x.p);
    ok(isinf(hp_num_get(a.x, 0)) && hp_num_get(a.x, 1) == 0, "nothing and nothing stay nothing");
    drop();
}

int main(void)
{
    each_level(parts);
    slopes();
    each_level(merged);
    return done_testing();
}

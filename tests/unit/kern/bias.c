#include "kern/bias.h"
#include "kern/sumsq.h"

#include "unit/kern/kern_test.h"

static const int64_t shapes[][2] = {{0, 5},    {5, 0},     {1, 1},   {3, 17},
                                    {200, 64}, {129, 300}, {70, 515}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void biases(void)
{
    for (int i = 0; i < SHAPES; i++)
        for (int t = 0; t < 4; t++) {
            int64_t rows = shapes[i][0], width = shapes[i][1], n = rows * width;
            tensor x = draw(t & 1, n, 1), b = draw(t >> 1, width, 1);
            tensor ref = blank(t & 1, n), one = same(ref), two = same(ref);
            hp_bias_ref(rows, width, x.x, b.x, ref.x);
            hp_bias(rows, width, x.x, b.x, one.x, 1);
            hp_bias(rows, width, x.x, b.x, two.x, 2);
            judge(one, two, ref);
            tensor d_one = same(b), d_two = same(b);
            hp_bias_dw_ref(rows, width, x.x, b.x, t & 1);
            hp_bias_dw(rows, width, x.x, d_one.x, t & 1, 1);
            hp_bias_dw(rows, width, x.x, d_two.x, t & 1, 2);
            judge(d_one, d_two, b);
        }
    verdict("a bias or its gradient", "bias");
}

static void squares(void)
{
    static const int64_t sizes[] = {0, 1, 100, 4097, 70001, 600003};
    for (int i = 0; i < 6; i++)
        for (int t = 0; t < 2; t++) {
            tensor x = draw(t, sizes[i], 1);
            double want = hp_sumsq_ref(sizes[i], x.x), got = hp_sumsq(sizes[i], x.x, 1);
            near(got, want, 1e-6 * want, "the sum of %lld squares in type %d", (long long)sizes[i],
                 t);
            ok(got == hp_sumsq(sizes[i], x.x, 2), "and the same with two threads");
        }
    drop();
}

int main(void)
{
    each_level(biases);
    each_level(squares);
    return done_testing();
}

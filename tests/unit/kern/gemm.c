#include "kern/gemm.h"

#include "unit/kern/kern_test.h"

static const int64_t shapes[][3] = {{1, 1, 1},     {0, 5, 3},     {5, 0, 3},      {5, 3, 0},
                                    {3, 5, 7},     {64, 64, 64},  {13, 33, 129},  {100, 300, 17},
                                    {301, 70, 40}, {600, 20, 33}, {37, 1100, 260}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const int types[][3] = {{HP_NUM_F32, HP_NUM_F32, HP_NUM_F32},
                               {HP_NUM_BF16, HP_NUM_BF16, HP_NUM_F32},
                               {HP_NUM_BF16, HP_NUM_BF16, HP_NUM_BF16},
                               {HP_NUM_BF16, HP_NUM_F32, HP_NUM_BF16}};

static void product(const int64_t *s, const int *t, bool ta, bool tb, bool accumulate)
{
    int64_t m = s[0], n = s[1], k = s[2];
    tensor a = draw(t[0], m * k, 1), b = draw(t[1], n * k, 1), ref = draw(t[2], m * n, 1);
    tensor one = same(ref), two = same(ref);
    hp_gemm_ref(ta, tb, m, n, k, a.x, b.x, ref.x, accumulate);
    hp_gemm(ta, tb, m, n, k, a.x, b.x, one.x, accumulate, 1);
    hp_gemm(ta, tb, m, n, k, a.x, b.x, two.x, accumulate, 2);
    judge(one, two, ref);
}

static void products(void)
{
    for (int i = 0; i < SHAPES; i++)
        for (int flags = 0; flags < 8; flags++) {
            product(shapes[i], types[0], flags & 1, flags & 2, flags & 4);
            product(shapes[i], types[1 + (i + flags) % 3], flags & 1, flags & 2, flags & 4);
        }
    verdict("a matrix product", "gemm");
}

static void groups(void)
{
    static const int64_t off[] = {0, 5, 5, 305, 320};
    enum { G = 4, ROWS = 320 };
    for (int i = 0; i < 8; i++) {
        int64_t n = 37 + 230 * (i & 1), k = 29, t = i & 4 ? HP_NUM_BF16 : HP_NUM_F32;
        bool acc = i & 2;
        tensor a = draw((int)t, ROWS * k, 1), b = draw((int)t, G * n * k, 1);
        tensor ref = draw((int)t, ROWS * n, 1), one = same(ref), two = same(ref);
        hp_gemm_rows_ref(i & 1, G, off, n, k, a.x, b.x, ref.x, acc);
        hp_gemm_rows(i & 1, G, off, n, k, a.x, b.x, one.x, acc, 1);
        hp_gemm_rows(i & 1, G, off, n, k, a.x, b.x, two.x, acc, 2);
        judge(one, two, ref);
        tensor w_ref = draw(HP_NUM_F32, G * n * k, 1), w_one = same(w_ref), w_two = same(w_ref);
        hp_gemm_weights_ref(G, off, n, k, ref.x, a.x, w_ref.x, acc);
        hp_gemm_weights(G, off, n, k, ref.x, a.x, w_one.x, acc, 1);
        hp_gemm_weights(G, off, n, k, ref.x, a.x, w_two.x, acc, 2);
        judge(w_one, w_two, w_ref);
    }
    verdict("a grouped matrix product", "gemm_grouped");
}

static void many_groups(void)
{
    enum { G = 150, N = 3, K = 4 };
    int64_t off[G + 1];
    for (int g = 0; g <= G; g++)
        off[g] = g / 3;
    tensor a = draw(HP_NUM_F32, off[G] * K, 1), b = draw(HP_NUM_F32, G * N * K, 1);
    tensor ref = blank(HP_NUM_F32, off[G] * N), one = same(ref), two = same(ref);
    hp_gemm_rows_ref(false, G, off, N, K, a.x, b.x, ref.x, false);
    hp_gemm_rows(false, G, off, N, K, a.x, b.x, one.x, false, 1);
    hp_gemm_rows(false, G, off, N, K, a.x, b.x, two.x, false, 2);
    judge(one, two, ref);
    verdict("a product of 150 groups, most of them empty,", "gemm_grouped");
}

int main(void)
{
    each_level(products);
    each_level(groups);
    each_level(many_groups);
    return done_testing();
}

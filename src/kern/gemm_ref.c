#include "kern/gemm.h"

static double dot(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, hp_num b, int64_t i,
                  int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += (double)hp_num_get(a, ta ? l * m + i : i * k + l) *
               (double)hp_num_get(b, tb ? j * k + l : l * n + j);
    return sum;
}

void hp_gemm_ref(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, hp_num b, hp_num c,
                 bool accumulate)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double v = dot(ta, tb, m, n, k, a, b, i, j);
            if (accumulate)
                v += (double)hp_num_get(c, i * n + j);
            hp_num_put(c, i * n + j, (float)v);
        }
}

void hp_gemm_rows_ref(bool tb, int64_t groups, const int64_t *off, int64_t n, int64_t k, hp_num a,
                      hp_num b, hp_num c, bool accumulate)
{
    for (int64_t g = 0; g < groups; g++)
        hp_gemm_ref(false, tb, off[g + 1] - off[g], n, k, hp_num_at(a, off[g] * k),
                    hp_num_at(b, g * n * k), hp_num_at(c, off[g] * n), accumulate);
}

void hp_gemm_weights_ref(int64_t groups, const int64_t *off, int64_t m, int64_t n, hp_num a,
                         hp_num b, hp_num c, bool accumulate)
{
    for (int64_t g = 0; g < groups; g++)
        hp_gemm_ref(true, false, m, n, off[g + 1] - off[g], hp_num_at(a, off[g] * m),
                    hp_num_at(b, off[g] * n), hp_num_at(c, g * m * n), accumulate);
}

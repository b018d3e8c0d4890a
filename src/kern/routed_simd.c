#include "kern/routed_simd.h"
#include "kern/vec.h"

void HP_SIMD(hp_gather_sum)(int64_t k, const int32_t *row, int64_t width, hp_num x, hp_num w,
                            hp_num y)
{
    for (int64_t i = 0; i < width; i += HP_VL) {
        vf sum = vset(0);
        for (int64_t j = 0; j < k; j++)
            if (row[j] >= 0)
                sum += (w.p ? hp_num_get(w, j) : 1.0f) * vld(x, row[j] * width + i, width - i);
        vst(y, i, width - i, sum);
    }
}

float HP_SIMD(hp_dot)(int64_t n, hp_num x, hp_num y)
{
    vf sum = vset(0);
    for (int64_t i = 0; i < n; i += HP_VL)
        sum += vld(x, i, n - i) * vld(y, i, n - i);
    return vsum(sum);
}

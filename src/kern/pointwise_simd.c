#include "kern/pointwise_simd.h"
#include "kern/vec.h"

void HP_SIMD(hp_add_block)(int n_in, const hp_num *in, int64_t at, int64_t n, hp_num y)
{
    for (int64_t i = at; i < at + n; i += HP_VL) {
        int64_t left = at + n - i;
        vf sum = vset(0);
        for (int j = 0; j < n_in; j++)
            sum += vld(in[j], i, left);
        vst(y, i, left, sum);
    }
}

void HP_SIMD(hp_mul_block)(int64_t n, hp_num a, hp_num b, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL)
        vst(y, i, n - i, vld(a, i, n - i) * vld(b, i, n - i));
}

void HP_SIMD(hp_scale_block)(int64_t n, float alpha, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL)
        vst(y, i, n - i, alpha * vld(x, i, n - i));
}

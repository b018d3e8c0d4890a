#include "kern/pointwise.h"

void hp_add_ref(int n_in, const hp_num *in, int64_t n, hp_num y)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int j = 0; j < n_in; j++)
            sum += hp_num_get(in[j], i);
        hp_num_put(y, i, sum);
    }
}

void hp_mul_ref(int64_t n, hp_num a, hp_num b, hp_num y)
{
    for (int64_t i = 0; i < n; i++)
        hp_num_put(y, i, hp_num_get(a, i) * hp_num_get(b, i));
}

void hp_scale_ref(int64_t n, float alpha, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i++)
        hp_num_put(y, i, alpha * hp_num_get(x, i));
}

void hp_copy_ref(int64_t n, hp_num x, hp_num y)
{
    if (x.t == HP_NUM_I32 && y.t == HP_NUM_I32) {
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)y.p)[i] = ((const int32_t *)x.p)[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        hp_num_put(y, i, hp_num_get(x, i));
}

void hp_fill_ref(int64_t n, float v, hp_num y)
{
    for (int64_t i = 0; i < n; i++)
        hp_num_put(y, i, v);
}

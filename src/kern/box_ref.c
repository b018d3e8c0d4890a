#include "kern/box.h"

#include <math.h>

static float combine(hp_rop op, float a, float b)
{
    switch (op) {
    case HP_ROP_MAX:
        return a > b ? a : b;
    case HP_ROP_MIN:
        return a < b ? a : b;
    case HP_ROP_PROD:
        return a * b;
    case HP_ROP_ALL:
        return a != 0 && b != 0 ? 1 : 0;
    default:
        return a + b;
    }
}

static void integers(hp_rop op, int n_in, const hp_num *in, int64_t n, int32_t *y)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t v = ((const int32_t *)in[0].p)[i];
        if (op == HP_ROP_ALL)
            v = v != 0;
        for (int j = 1; j < n_in; j++) {
            int64_t u = ((const int32_t *)in[j].p)[i];
            switch (op) {
            case HP_ROP_MAX:
                v = u > v ? u : v;
                break;
            case HP_ROP_MIN:
                v = u < v ? u : v;
                break;
            case HP_ROP_PROD:
                v = (int32_t)(v * u);
                break;
            case HP_ROP_ALL:
                v = v && u;
                break;
            default:
                v += u;
            }
        }
        y[i] = (int32_t)v;
    }
}

/* One triple merged with another, as hp_xent_merge does. */
static void merge(float *a, const float *b)
{
    float max = fmaxf(a[0], b[0]);
    a[1] = max > -INFINITY ? a[1] * expf(a[0] - max) + b[1] * expf(b[0] - max) : 0;
    a[0] = max;
    a[2] += b[2];
}

static void triples(int n_in, const hp_num *in, int64_t n, hp_num y)
{
    for (int64_t i = 0; i + 2 < n; i += 3) {
        float a[3], b[3];
        for (int c = 0; c < 3; c++)
            a[c] = hp_num_get(in[0], i + c);
        for (int j = 1; j < n_in; j++) {
            for (int c = 0; c < 3; c++)
                b[c] = hp_num_get(in[j], i + c);
            merge(a, b);
        }
        for (int c = 0; c < 3; c++)
            hp_num_put(y, i + c, a[c]);
    }
}

void hp_reduce_flat_ref(hp_rop op, int n_in, const hp_num *in, int64_t n, hp_num y)
{
    if (y.t == HP_NUM_I32) {
        integers(op, n_in, in, n, y.p);
        return;
    }
    if (op == HP_ROP_LSE) {
        triples(n_in, in, n, y);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float v = hp_num_get(in[0], i);
        if (op == HP_ROP_ALL)
            v = v != 0;
        for (int j = 1; j < n_in; j++)
            v = combine(op, v, hp_num_get(in[j], i));
        hp_num_put(y, i, v);
    }
}

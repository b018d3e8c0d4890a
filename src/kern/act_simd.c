/* gelu(x) = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form without its cancellation
 * for negative x. */
#include "kern/act_simd.h"
#include "kern/vec.h"

static const float two_c = 1.5957691216f, cube = 0.044715f;

static inline vf silu_slope(vf x)
{
    vf s = vsigmoid(x);
    return s + x * s * (1.0f - s);
}

static inline vf gelu_slope(vf x)
{
    vf s = vsigmoid(two_c * (x + cube * x * x * x));
    return s + x * s * (1.0f - s) * two_c * (1.0f + 3 * cube * x * x);
}

void HP_SIMD(hp_silu_block)(int64_t n, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL) {
        vf v = vld(x, i, n - i);
        vst(y, i, n - i, v * vsigmoid(v));
    }
}

void HP_SIMD(hp_silu_dx_block)(int64_t n, hp_num x, hp_num dy, hp_num dx)
{
    for (int64_t i = 0; i < n; i += HP_VL)
        vst(dx, i, n - i, vld(dy, i, n - i) * silu_slope(vld(x, i, n - i)));
}

void HP_SIMD(hp_gelu_block)(int64_t n, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL) {
        vf v = vld(x, i, n - i);
        vst(y, i, n - i, v * vsigmoid(two_c * (v + cube * v * v * v)));
    }
}

void HP_SIMD(hp_gelu_dx_block)(int64_t n, hp_num x, hp_num dy, hp_num dx)
{
    for (int64_t i = 0; i < n; i += HP_VL)
        vst(dx, i, n - i, vld(dy, i, n - i) * gelu_slope(vld(x, i, n - i)));
}

void HP_SIMD(hp_swiglu_block)(int64_t n, hp_num gate, hp_num up, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL) {
        vf g = vld(gate, i, n - i);
        vst(y, i, n - i, g * vsigmoid(g) * vld(up, i, n - i));
    }
}

void HP_SIMD(hp_swiglu_dx_block)(int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate,
                                 hp_num dup)
{
    for (int64_t i = 0; i < n; i += HP_VL) {
        int64_t left = n - i;
        vf g = vld(gate, i, left), u = vld(up, i, left), d = vld(dy, i, left), s = vsigmoid(g);
        if (dgate.p)
            vst(dgate, i, left, d * u * (s + g * s * (1.0f - s)));
        if (dup.p)
            vst(dup, i, left, d * g * s);
    }
}

#include "kern/optim_simd.h"
#include "kern/vec.h"

void HP_SIMD(hp_adamw_block)(int64_t n, const hp_adamw_now *o, hp_num p, hp_num g, hp_num m,
                             hp_num v, hp_num p16)
{
    hp_adamw_now c = *o;
    for (int64_t i = 0; i < n; i += HP_VL) {
        int64_t left = n - i;
        vf gi = vld(g, i, left) * c.grad_scale;
        vf mi = c.beta1 * vld(m, i, left) + c.rest1 * gi;
        vf vi2 = c.beta2 * vld(v, i, left) + c.rest2 * gi * gi;
        vf pi = c.keep * vld(p, i, left) - c.c1 * mi / (vsqrt(vi2 * c.c2) + c.eps);
        vst(m, i, left, mi);
        vst(v, i, left, vi2);
        vst(p, i, left, pi);
        if (p16.p)
            vst(p16, i, left, pi);
    }
}

void HP_SIMD(hp_sgd_block)(int64_t n, float lr, float keep, hp_num p, hp_num g, hp_num p16)
{
    for (int64_t i = 0; i < n; i += HP_VL) {
        vf pi = keep * vld(p, i, n - i) - lr * vld(g, i, n - i);
        vst(p, i, n - i, pi);
        if (p16.p)
            vst(p16, i, n - i, pi);
    }
}

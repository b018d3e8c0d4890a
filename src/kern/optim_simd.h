/* optim_simd.h -- one block of optim.h for every level. */
#ifndef HP_KERN_OPTIM_SIMD_H
#define HP_KERN_OPTIM_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* What an AdamW step computes once: c1 = lr / (1 - beta1^step), c2 = 1 / (1 - beta2^step), keep =
 * 1 - lr decay, and the two complements in full precision. */
typedef struct hp_adamw_now {
    float beta1, beta2, rest1, rest2, c1, c2, eps, keep, grad_scale;
} hp_adamw_now;

HP_SIMD_DECLARE(void, hp_adamw_block,
                (int64_t n, const hp_adamw_now *o, hp_num p, hp_num g, hp_num m, hp_num v,
                 hp_num p16));
HP_SIMD_DECLARE(void, hp_sgd_block,
                (int64_t n, float lr, float keep, hp_num p, hp_num g, hp_num p16));

#endif

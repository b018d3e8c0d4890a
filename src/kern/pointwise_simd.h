/* pointwise_simd.h -- one block of pointwise.h, elements `at` .. `at` + n - 1, for every level. */
#ifndef HP_KERN_POINTWISE_SIMD_H
#define HP_KERN_POINTWISE_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

HP_SIMD_DECLARE(void, hp_add_block, (int n_in, const hp_num *in, int64_t at, int64_t n, hp_num y));
HP_SIMD_DECLARE(void, hp_mul_block, (int64_t n, hp_num a, hp_num b, hp_num y));
HP_SIMD_DECLARE(void, hp_scale_block, (int64_t n, float alpha, hp_num x, hp_num y));

#endif

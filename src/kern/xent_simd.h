/* xent_simd.h -- one row of xent.h for every level. */
#ifndef HP_KERN_XENT_SIMD_H
#define HP_KERN_XENT_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* max and sum of exp(x - max) of n columns. */
HP_SIMD_DECLARE(void, hp_xent_row, (int64_t n, hp_num x, float *max, float *sum));
/* y = exp(x - max) scale. */
HP_SIMD_DECLARE(void, hp_xent_dx_row, (int64_t n, float max, float scale, hp_num x, hp_num y));

#endif

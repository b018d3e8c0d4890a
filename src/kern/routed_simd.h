/* routed_simd.h -- rows weighted and summed, for every level. */
#ifndef HP_KERN_ROUTED_SIMD_H
#define HP_KERN_ROUTED_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* y [width] = sum over j < k with row[j] >= 0 of w[j] x[row[j]]; w.p NULL: all 1. */
HP_SIMD_DECLARE(void, hp_gather_sum,
                (int64_t k, const int32_t *row, int64_t width, hp_num x, hp_num w, hp_num y));
HP_SIMD_DECLARE(float, hp_dot, (int64_t n, hp_num x, hp_num y));

#endif

/* sumsq_simd.h -- one block of sumsq.h for every level. */
#ifndef HP_KERN_SUMSQ_SIMD_H
#define HP_KERN_SUMSQ_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

HP_SIMD_DECLARE(double, hp_sumsq_block, (int64_t n, hp_num x));

#endif

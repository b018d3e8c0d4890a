/* dropout_simd.h -- one row of dropout.h for every level. */
#ifndef HP_KERN_DROPOUT_SIMD_H
#define HP_KERN_DROPOUT_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* n elements whose indices in the whole tensor begin at `first`. */
HP_SIMD_DECLARE(void, hp_dropout_row,
                (int64_t n, uint64_t stream, uint64_t first, float rate, hp_num x, hp_num y));

#endif

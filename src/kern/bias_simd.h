/* bias_simd.h -- parts of bias.h for every level. */
#ifndef HP_KERN_BIAS_SIMD_H
#define HP_KERN_BIAS_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* Rows of x plus b. */
HP_SIMD_DECLARE(void, hp_bias_rows, (int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y));
/* Column sums of columns c0 .. c1-1; rows are added in order, 64 at a time. */
HP_SIMD_DECLARE(void, hp_bias_columns,
                (int64_t rows, int64_t width, int64_t c0, int64_t c1, hp_num dy, hp_num db,
                 bool accumulate));

#endif

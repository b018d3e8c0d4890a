/* softmax_simd.h -- some rows of softmax.h for every level. */
#ifndef HP_KERN_SOFTMAX_SIMD_H
#define HP_KERN_SOFTMAX_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

HP_SIMD_DECLARE(void, hp_softmax_rows, (int64_t rows, int64_t width, hp_num x, hp_num y));
HP_SIMD_DECLARE(void, hp_softmax_dx_rows,
                (int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx));

#endif

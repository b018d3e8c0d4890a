/* box_simd.h -- one block of hp_reduce_flat on floats and bf16, for every level. */
#ifndef HP_KERN_BOX_SIMD_H
#define HP_KERN_BOX_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* op as in box.h, without LSE. */
HP_SIMD_DECLARE(void, hp_reduce_block,
                (int op, int n_in, const hp_num *in, int64_t at, int64_t n, hp_num y));

#endif

/* act_simd.h -- one block of act.h for every level. */
#ifndef HP_KERN_ACT_SIMD_H
#define HP_KERN_ACT_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

HP_SIMD_DECLARE(void, hp_silu_block, (int64_t n, hp_num x, hp_num y));
HP_SIMD_DECLARE(void, hp_silu_dx_block, (int64_t n, hp_num x, hp_num dy, hp_num dx));
HP_SIMD_DECLARE(void, hp_gelu_block, (int64_t n, hp_num x, hp_num y));
HP_SIMD_DECLARE(void, hp_gelu_dx_block, (int64_t n, hp_num x, hp_num dy, hp_num dx));
HP_SIMD_DECLARE(void, hp_swiglu_block, (int64_t n, hp_num gate, hp_num up, hp_num y));
HP_SIMD_DECLARE(void, hp_swiglu_dx_block,
                (int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate, hp_num dup));

#endif

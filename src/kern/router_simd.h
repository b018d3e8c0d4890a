/* router_simd.h -- the scores of one token, for every level. */
#ifndef HP_KERN_ROUTER_SIMD_H
#define HP_KERN_ROUTER_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* score [e] = softmax or sigmoid of x [e]; returns their sum. */
HP_SIMD_DECLARE(float, hp_router_scores, (int64_t e, bool sigmoid, hp_num x, float *score));

#endif

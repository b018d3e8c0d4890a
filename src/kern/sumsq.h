/* sumsq.h -- the sum of squares of a tensor: what clipping a gradient's norm needs. */
#ifndef HP_KERN_SUMSQ_H
#define HP_KERN_SUMSQ_H

#include "kern/num.h"

/* hp_sumsq returns the sum of x[i]^2 over n elements: blocks of a size fixed by n, combined in index
 * order in double. */
double hp_sumsq(int64_t n, hp_num x, int threads);
double hp_sumsq_ref(int64_t n, hp_num x);

#endif

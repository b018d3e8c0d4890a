/* gemm_simd.h -- one tile of a matrix product with our own packed kernel, for every level. */
#ifndef HP_KERN_GEMM_SIMD_H
#define HP_KERN_GEMM_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* C [m, n] with row stride ldc (+)= op(A) op(B), row strides lda and ldb as stored. About 1 MB of stack. */
HP_SIMD_DECLARE(void, hp_gemm_packed,
                (bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, int64_t lda, hp_num b,
                 int64_t ldb, hp_num c, int64_t ldc, bool accumulate));

#endif

/* rmsnorm_simd.h -- parts of rmsnorm.h for every level: some rows, or some columns of dw. */
#ifndef HP_KERN_RMSNORM_SIMD_H
#define HP_KERN_RMSNORM_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

HP_SIMD_DECLARE(void, hp_rmsnorm_rows,
                (int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num y,
                 float *rstd));
HP_SIMD_DECLARE(void, hp_rmsnorm_dx_rows,
                (int64_t rows, int64_t width, hp_num x, hp_num w, const float *rstd, hp_num dy,
                 hp_num dx));
HP_SIMD_DECLARE(void, hp_rmsnorm_columns,
                (int64_t rows, int64_t width, int64_t c0, int64_t c1, hp_num x, const float *rstd,
                 hp_num dy, hp_num dw, bool accumulate));

#endif

/* layernorm.h -- layer normalisation of rows (Ba, Kiros, Hinton, arXiv 1607.06450).
 *
 * rstd = 1 / sqrt(var(x) + eps) with the biased variance, xh = (x - mean) rstd, y = xh w + b. x, y, dy,
 * dx: [rows, width]; w, b, dw, db: [width]; w.p and b.p may be NULL (ones, zeros); mean, rstd: [rows].
 */
#ifndef HP_KERN_LAYERNORM_H
#define HP_KERN_LAYERNORM_H

#include "kern/num.h"

/* hp_layernorm writes y, mean and rstd (mean and rstd may be NULL); y may be x. */
void hp_layernorm(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num b, hp_num y,
                  float *mean, float *rstd, int threads);
void hp_layernorm_ref(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num b,
                      hp_num y, float *mean, float *rstd);

/* hp_layernorm_dx writes dx = rstd (w dy - mean(w dy) - xh mean(w dy xh)); dx may be dy. */
void hp_layernorm_dx(int64_t rows, int64_t width, hp_num x, hp_num w, const float *mean,
                     const float *rstd, hp_num dy, hp_num dx, int threads);
void hp_layernorm_dx_ref(int64_t rows, int64_t width, hp_num x, hp_num w, const float *mean,
                         const float *rstd, hp_num dy, hp_num dx);

/* hp_layernorm_dw writes (or adds to) dw the sum over rows of dy xh and db that of dy; either may be
 * NULL. */
void hp_layernorm_dw(int64_t rows, int64_t width, hp_num x, const float *mean, const float *rstd,
                     hp_num dy, hp_num dw, hp_num db, bool accumulate, int threads);
void hp_layernorm_dw_ref(int64_t rows, int64_t width, hp_num x, const float *mean,
                         const float *rstd, hp_num dy, hp_num dw, hp_num db, bool accumulate);

#endif

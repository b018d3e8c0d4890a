/* rmsnorm.h -- root mean square normalisation of rows (Zhang and Sennrich, arXiv 1910.07467).
 *
 * rstd = 1 / sqrt(mean(x^2) + eps), y = x rstd w. x, y, dy, dx: [rows, width]; w, dw: [width], w.p
 * may be NULL (all ones); rstd: [rows].
 */
#ifndef HP_KERN_RMSNORM_H
#define HP_KERN_RMSNORM_H

#include "kern/num.h"

/* hp_rmsnorm writes y and rstd (rstd may be NULL); y may be x. */
void hp_rmsnorm(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num y, float *rstd,
                int threads);
void hp_rmsnorm_ref(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num y,
                    float *rstd);

/* hp_rmsnorm_dx writes dx = rstd (w dy - x rstd^2 mean(x w dy)); dx may be dy. */
void hp_rmsnorm_dx(int64_t rows, int64_t width, hp_num x, hp_num w, const float *rstd, hp_num dy,
                   hp_num dx, int threads);
void hp_rmsnorm_dx_ref(int64_t rows, int64_t width, hp_num x, hp_num w, const float *rstd,
                       hp_num dy, hp_num dx);

/* hp_rmsnorm_dw writes (or adds to) dw the sum over rows of dy x rstd. */
void hp_rmsnorm_dw(int64_t rows, int64_t width, hp_num x, const float *rstd, hp_num dy, hp_num dw,
                   bool accumulate, int threads);
void hp_rmsnorm_dw_ref(int64_t rows, int64_t width, hp_num x, const float *rstd, hp_num dy,
                       hp_num dw, bool accumulate);

#endif

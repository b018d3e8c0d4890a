/* softmax.h -- softmax of rows. A row that is -inf throughout gives zeros. */
#ifndef HP_KERN_SOFTMAX_H
#define HP_KERN_SOFTMAX_H

#include "kern/num.h"

/* hp_softmax writes y = exp(x - max) / sum over each row of [rows, width]; y may be x. */
void hp_softmax(int64_t rows, int64_t width, hp_num x, hp_num y, int threads);
void hp_softmax_ref(int64_t rows, int64_t width, hp_num x, hp_num y);

/* hp_softmax_dx writes dx = y (dy - sum(y dy)) from the output y; dx may be dy. */
void hp_softmax_dx(int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx, int threads);
void hp_softmax_dx_ref(int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx);

#endif

/* bias.h -- a vector added to every row, and its gradient: the sum of columns. */
#ifndef HP_KERN_BIAS_H
#define HP_KERN_BIAS_H

#include "kern/num.h"

/* hp_bias writes y[r, c] = x[r, c] + b[c] for x, y [rows, width], b [width]; y may be x. */
void hp_bias(int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y, int threads);
void hp_bias_ref(int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y);

/* hp_bias_dw writes (or adds to) db[c] the sum over rows of dy[r, c]. */
void hp_bias_dw(int64_t rows, int64_t width, hp_num dy, hp_num db, bool accumulate, int threads);
void hp_bias_dw_ref(int64_t rows, int64_t width, hp_num dy, hp_num db, bool accumulate);

#endif

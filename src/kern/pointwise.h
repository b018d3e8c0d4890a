/* pointwise.h -- sums, products, scaling, copies between storage types, constants.
 *
 * `n` elements each; the output may be one of the inputs (same storage type then). One flop and the
 * bytes of every operand an element.
 */
#ifndef HP_KERN_POINTWISE_H
#define HP_KERN_POINTWISE_H

#include "kern/num.h"

/* hp_add writes y = in[0] + ... + in[n_in-1], added in that order; no inputs give zeros. */
void hp_add(int n_in, const hp_num *in, int64_t n, hp_num y, int threads);
void hp_add_ref(int n_in, const hp_num *in, int64_t n, hp_num y);

/* hp_mul writes y = a b. */
void hp_mul(int64_t n, hp_num a, hp_num b, hp_num y, int threads);
void hp_mul_ref(int64_t n, hp_num a, hp_num b, hp_num y);

/* hp_scale writes y = alpha x. */
void hp_scale(int64_t n, float alpha, hp_num x, hp_num y, int threads);
void hp_scale_ref(int64_t n, float alpha, hp_num x, hp_num y);

/* hp_copy writes y = x, converting where the storage types differ. */
void hp_copy(int64_t n, hp_num x, hp_num y, int threads);
void hp_copy_ref(int64_t n, hp_num x, hp_num y);

/* hp_fill writes y = v. */
void hp_fill(int64_t n, float v, hp_num y, int threads);
void hp_fill_ref(int64_t n, float v, hp_num y);

#endif

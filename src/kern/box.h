/* box.h -- moving and reducing boxes of row-major tensors: what collectives and layout changes do.
 *
 * A box is given by lo and hi per dimension (hi exclusive) in the coordinates of the whole tensor;
 * its elements lie dense and row-major at its pointer. An empty box is legal everywhere.
 */
#ifndef HP_KERN_BOX_H
#define HP_KERN_BOX_H

#include "kern/num.h"
#include "kern/rop.h"

enum { HP_BOX_DIMS = 6 };

/* hp_box_copy copies the elements of box `meet` from `src` to `dst`; meet must lie in both boxes. nd = 0
 * is a scalar. */
void hp_box_copy(int nd, void *dst, const int64_t *dst_lo, const int64_t *dst_hi, const void *src,
                 const int64_t *src_lo, const int64_t *src_hi, const int64_t *meet_lo,
                 const int64_t *meet_hi, int64_t elem_bytes);

/* hp_reduce_flat writes y[i] = in[0][i] op in[1][i] op ..., in that order, for n elements; bf16 inputs combine in
 * float and are rounded once; y may be an input. n_in >= 1; for LSE n is a multiple of 3. */
void hp_reduce_flat(hp_rop op, int n_in, const hp_num *in, int64_t n, hp_num y, int threads);
void hp_reduce_flat_ref(hp_rop op, int n_in, const hp_num *in, int64_t n, hp_num y);

/* hp_box_reduce writes the box `meet` of y as the reduction, in order, of n_in sources that each have
 * their own box (in_lo[i], in_hi[i]); meet must lie in all. For LSE the last dimension is 3 and whole. */
void hp_box_reduce(hp_rop op, int nd, hp_num y, const int64_t *y_lo, const int64_t *y_hi, int n_in,
                   const hp_num *in, const int64_t *const *in_lo, const int64_t *const *in_hi,
                   const int64_t *meet_lo, const int64_t *meet_hi);

/* hp_permute writes y = x with its dimensions reordered: dimension i of y is dimension perm[i] of x,
 * whose sizes are len [nd]. Elements of 2 or 4 bytes. */
void hp_permute(int nd, const int64_t *len, const int *perm, const void *x, void *y,
                int64_t elem_bytes, int threads);

#endif

/* gemm.h -- matrix multiplication C (+)= op(A) op(B), and its grouped forms for experts.
 *
 * op(A) is [m, k]: A is stored [m, k], or [k, m] with `ta`; op(B) is [k, n]: B is stored [k, n], or
 * [n, k] with `tb`; C is [m, n]. All dense. Products of bf16 operands are summed in float. Any of m,
 * n, k may be 0 (k = 0 gives zeros). C must not overlap A or B.
 *
 * The work is cut into tiles that depend on the shape alone and each tile is one single-threaded
 * call, so that the bits do not depend on `threads`. Slabs of 384 to 768 columns cost nothing
 * against one whole call, row slabs of 64 cost 15-30 %. A thread needs about 1 MB of stack. Flops: 2 m n k.
 */
#ifndef HP_KERN_GEMM_H
#define HP_KERN_GEMM_H

#include "kern/num.h"

/* hp_gemm multiplies with the library the program was built with. */
void hp_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, hp_num b, hp_num c,
             bool accumulate, int threads);

/* hp_gemm_ref is hp_gemm as three loops, summing in double. */
void hp_gemm_ref(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, hp_num b, hp_num c,
                 bool accumulate);

/* hp_gemm_rows multiplies rows off[g] .. off[g+1]-1 of A [rows, k] by B[g] ([k, n], or [n, k] with
 * `tb`) into the same rows of C [rows, n], for every group: an expert layer forward, and its
 * gradient for the input. `off` holds groups + 1 ascending numbers from 0. */
void hp_gemm_rows(bool tb, int64_t groups, const int64_t *off, int64_t n, int64_t k, hp_num a,
                  hp_num b, hp_num c, bool accumulate, int threads);
void hp_gemm_rows_ref(bool tb, int64_t groups, const int64_t *off, int64_t n, int64_t k, hp_num a,
                      hp_num b, hp_num c, bool accumulate);

/* hp_gemm_weights gives every group C[g] [m, n] (+)= A_g^T B_g over its rows of A [rows, m] and
 * B [rows, n]: an expert layer's weight gradient. A group without rows gets zeros (or keeps C[g]). */
void hp_gemm_weights(int64_t groups, const int64_t *off, int64_t m, int64_t n, hp_num a, hp_num b,
                     hp_num c, bool accumulate, int threads);
void hp_gemm_weights_ref(int64_t groups, const int64_t *off, int64_t m, int64_t n, hp_num a,
                         hp_num b, hp_num c, bool accumulate);

#endif

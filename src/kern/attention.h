/* attention.h -- softmax(scale q k^T + mask) v for grouped heads, without a matrix of sequence by
 * sequence (Dao et al., arXiv 2205.14135), and its gradients.
 *
 * q [b, s, k, g, d], keys [b, t, k, d], values [b, t, k, dv], o [b, s, k, g, dv], lse [b, s, k, g]:
 * k key heads with g query heads each. Query (b, s) sees key (b, t) where
 *   - `causal`: pos_q[b, s] >= pos_k[b, t], and
 *   - doc_q and doc_k are given: doc_q[b, s] == doc_k[b, t].
 * Positions and documents may come in any order (a ring of any layout works); tiles that the mask
 * hides altogether are skipped. A query that sees nothing gives o = 0, lse = -inf, zero gradients.
 *
 * lse = log sum exp(scale q k): two results over different keys merge with hp_attention_merge.
 * Tiles are fixed by the shape and accumulate in key order, so bits do not depend on `threads`. Each
 * thread keeps its tiles on the stack: about 800 (d + dv) + 30000 floats. Flops: forward
 * 2 b s t k g (d + dv), backward 2 b s t k g (3 d + 2 dv), half of it when causal and s = t.
 */
#ifndef HP_KERN_ATTENTION_H
#define HP_KERN_ATTENTION_H

#include "kern/attention_shape.h"
#include "kern/num.h"

#include <stddef.h>

/* hp_attention writes o and lse. */
void hp_attention(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                  float *lse, int threads);
void hp_attention_ref(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                      float *lse);

/* hp_attention_dx writes dq, dk and dv (each unless its pointer is NULL) from dy = do, with o and
 * lse as the forward pass left them (for a ring: o and lse over all keys). `scratch` has
 * hp_attention_dx_scratch bytes, aligned to 64. */
void hp_attention_dx(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                     const float *lse, hp_num dy, hp_num dq, hp_num dk, hp_num dv, void *scratch,
                     int threads);
void hp_attention_dx_ref(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values,
                         hp_num o, const float *lse, hp_num dy, hp_num dq, hp_num dk, hp_num dv);
size_t hp_attention_dx_scratch(const hp_attention_shape *a);

/* hp_attention_merge combines (o1, lse1) and (o2, lse2) over disjoint keys into (o, lse): o* are
 * [rows, dv], lse* [rows]; the result may be either input. */
void hp_attention_merge(int64_t rows, int64_t dv, hp_num o1, const float *lse1, hp_num o2,
                        const float *lse2, hp_num o, float *lse, int threads);
void hp_attention_merge_ref(int64_t rows, int64_t dv, hp_num o1, const float *lse1, hp_num o2,
                            const float *lse2, hp_num o, float *lse);

#endif

/* attention_simd.h -- tiles of attention.h for every level. */
#ifndef HP_KERN_ATTENTION_SIMD_H
#define HP_KERN_ATTENTION_SIMD_H

#include "kern/attention_shape.h"
#include "kern/level.h"
#include "kern/num.h"

/* Query rows and keys a tile, and tiles of query rows that share a pass over the keys at most. */
enum { HP_ATTENTION_TILE = 96, HP_ATTENTION_SPAN = 4 };

/* The query rows of one (batch, key head) are numbered s * g + group. Attention of rows row0 .. row1-1, at most
 * HP_ATTENTION_SPAN tiles, over all keys. */
HP_SIMD_DECLARE(void, hp_attention_rows,
                (const hp_attention_shape *a, int64_t b, int64_t k, int64_t row0, int64_t row1,
                 hp_num q, hp_num keys, hp_num values, hp_num o, float *lse));

/* delta[r] = o[r] . dy[r]. */
HP_SIMD_DECLARE(void, hp_attention_delta,
                (int64_t rows, int64_t dv, hp_num o, hp_num dy, float *delta));

typedef struct hp_attention_grads {
    const hp_attention_shape *a;
    hp_num q, keys, values, dy;
    const float *lse, *delta;
    hp_num dk, dv; /* NULL: not wanted here */
    float *dq;     /* sums, [b, s, k, g, d]; NULL: not wanted here */
} hp_attention_grads;

/* Gradients from query rows row0 .. row1-1 and keys t0 .. t1-1 (both begin at a tile) of one (batch, key head):
 * adds to dq, and writes dk and dv of those keys. */
HP_SIMD_DECLARE(void, hp_attention_back,
                (const hp_attention_grads *w, int64_t b, int64_t k, int64_t row0, int64_t row1,
                 int64_t t0, int64_t t1));

/* y = wa a + wb b, n elements. */
HP_SIMD_DECLARE(void, hp_attention_blend,
                (int64_t n, float wa, hp_num a, float wb, hp_num b, hp_num y));

#endif

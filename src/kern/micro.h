/* micro.h -- the inner kernel of every matrix product here: C [HP_MR, HP_NR] (+)= A B in registers,
 * and the packing it wants. For *_simd.c files only.
 *
 * HP_NR is two vectors wide and HP_MR as tall as the register file allows (24 of 32 registers hold sums at
 * v4, 12 of 16 at v3), so that two loads of B and HP_MR broadcasts of A feed 2 HP_MR multiply-adds
 * (Goto and van de Geijn, ACM TOMS 34(3), 2008). HP_MR and HP_NR divide 96.
 */
#ifndef HP_KERN_MICRO_H
#define HP_KERN_MICRO_H

#include "kern/vec.h"

#if defined(__AVX512F__)
#define HP_MR 12
#elif defined(__AVX__) || !defined(__x86_64__)
#define HP_MR 6
#else
#define HP_MR 4
#endif
#define HP_NR (2 * HP_VL)

/* A(i, l) is a[i * rs + l * cs] (rs, cs constants at the call make this fast), B(l, j) is b[l * ldb + j],
 * C(i, j) is c[i * ldc + j]; b and c hold whole rows of HP_NR floats. `add` keeps C's old values. */
static inline __attribute__((always_inline)) void micro(int64_t k, const float *a, int64_t rs,
                                                        int64_t cs, const float *b, int64_t ldb,
                                                        float *c, int64_t ldc, bool add)
{
    vf c0[HP_MR], c1[HP_MR];
#pragma GCC unroll 16
    for (int i = 0; i < HP_MR; i++) {
        c0[i] = add ? (vf) * (const vf_mem *)(c + i * ldc) : vset(0);
        c1[i] = add ? (vf) * (const vf_mem *)(c + i * ldc + HP_VL) : vset(0);
    }
    for (int64_t l = 0; l < k; l++) {
        vf b0 = *(const vf_mem *)(b + l * ldb), b1 = *(const vf_mem *)(b + l * ldb + HP_VL);
#pragma GCC unroll 16
        for (int i = 0; i < HP_MR; i++) {
            float v = a[i * rs + l * cs];
            c0[i] += v * b0;
            c1[i] += v * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < HP_MR; i++) {
        *(vf_mem *)(c + i * ldc) = c0[i];
        *(vf_mem *)(c + i * ldc + HP_VL) = c1[i];
    }
}

typedef float v4f __attribute__((vector_size(16)));
typedef float v4f_mem __attribute__((vector_size(16), aligned(4), may_alias));

static inline v4f load4(hp_num x, int64_t i)
{
    if (x.t == HP_NUM_BF16)
        return (v4f){hp_num_get(x, i), hp_num_get(x, i + 1), hp_num_get(x, i + 2),
                     hp_num_get(x, i + 3)};
    return *(const v4f_mem *)((const float *)x.p + i);
}

/* y[l * ldy + r] = x[r * ldx + l] for r, l < 4. */
static inline void transpose4(hp_num x, int64_t at, int64_t ldx, float *y, int64_t ldy)
{
    v4f r0 = load4(x, at), r1 = load4(x, at + ldx), r2 = load4(x, at + 2 * ldx),
        r3 = load4(x, at + 3 * ldx);
    v4f a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
        b = __builtin_shufflevector(r2, r3, 0, 4, 1, 5),
        c = __builtin_shufflevector(r0, r1, 2, 6, 3, 7),
        d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(v4f_mem *)y = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    *(v4f_mem *)(y + ldy) = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    *(v4f_mem *)(y + 2 * ldy) = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    *(v4f_mem *)(y + 3 * ldy) = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/* One panel, transposed: y[l * width + r] = x[r * ldx + l] for l < k and r < rows; 0 for rows <= r < width. */
static inline void pack_across(int64_t width, int64_t rows, int64_t k, hp_num x, int64_t ldx,
                               float *y)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        int64_t l = 0;
        for (; l + 4 <= k; l += 4)
            transpose4(x, r * ldx + l, ldx, y + l * width + r, width);
        for (; l < k; l++)
            for (int64_t i = r; i < r + 4; i++)
                y[l * width + i] = hp_num_get(x, i * ldx + l);
    }
    for (; r < width; r++)
        for (int64_t l = 0; l < k; l++)
            y[l * width + r] = r < rows ? hp_num_get(x, r * ldx + l) : 0;
}

/* One panel, as it lies: y[l * width + j] = x[l * ldx + j] for l < k and j < cols; 0 for cols <= j < width. */
static inline void pack_along(int64_t width, int64_t cols, int64_t k, hp_num x, int64_t ldx,
                              float *y)
{
    for (int64_t l = 0; l < k; l++) {
        float *row = y + l * width;
        int64_t j = 0;
        for (; j + HP_VL <= cols; j += HP_VL)
            *(vf_mem *)(row + j) = vld(x, l * ldx + j, HP_VL);
        for (; j < width; j++)
            row[j] = j < cols ? hp_num_get(x, l * ldx + j) : 0;
    }
}

#endif

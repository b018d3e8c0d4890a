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

#if HP_VL == 16
#define HP_ZIP_LOW(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HP_ZIP_HIGH(a, b)                                                                          \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif HP_VL == 8
#define HP_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HP_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define HP_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HP_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Transposes HP_VL vectors by rounds of perfect shuffles: log2(HP_VL) rounds bring row i to lane i. */
static inline __attribute__((always_inline)) void transpose(vf *r)
{
#pragma GCC unroll 4
    for (int step = 1; step < HP_VL; step *= 2) {
        vf t[HP_VL];
#pragma GCC unroll 8
        for (int i = 0; i < HP_VL / 2; i++) {
            t[2 * i] = HP_ZIP_LOW(r[i], r[i + HP_VL / 2]);
            t[2 * i + 1] = HP_ZIP_HIGH(r[i], r[i + HP_VL / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < HP_VL; i++)
            r[i] = t[i];
    }
}

/* One panel, transposed: y[l * width + r] = x[r * ldx + l] for l < k and r < rows; 0 for rows <= r < width. */
static inline __attribute__((always_inline)) void
pack_across(int64_t width, int64_t rows, int64_t k, hp_num x, int64_t ldx, float *y)
{
    for (int64_t r = 0; r < width; r += HP_VL) {
        size_t bytes = (size_t)(width - r < HP_VL ? width - r : HP_VL) * sizeof(float);
        for (int64_t l = 0; l < k; l += HP_VL) {
            vf v[HP_VL];
#pragma GCC unroll 16
            for (int64_t i = 0; i < HP_VL; i++)
                v[i] = r + i < rows ? vld(x, (r + i) * ldx + l, k - l) : vset(0);
            transpose(v);
#pragma GCC unroll 16
            for (int64_t i = 0; i < HP_VL; i++)
                if (l + i < k)
                    memcpy(y + (l + i) * width + r, &v[i], bytes);
        }
    }
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

/* vec.h -- vectors of floats for *_simd.c files, as wide as the level allows, in GCC's vector extension.
 *
 * Loops read like scalar ones: `for (i = 0; i < n; i += HP_VL)` with vld(x, i, n - i) and
 * vst(y, i, n - i, v), which convert bf16 and take a short rest in their stride. Lanes beyond the rest
 * load as 0. Included by *_simd.c only.
 */
#ifndef HP_KERN_VEC_H
#define HP_KERN_VEC_H

#include "kern/level.h"
#include "kern/num.h"

#include <math.h>

#if defined(__AVX512F__)
#define HP_VL 16
#elif defined(__AVX__)
#define HP_VL 8
#else
#define HP_VL 4
#endif

typedef float vf __attribute__((vector_size(4 * HP_VL)));
typedef int32_t vi __attribute__((vector_size(4 * HP_VL)));
typedef uint32_t vu __attribute__((vector_size(4 * HP_VL)));
typedef uint16_t vh __attribute__((vector_size(2 * HP_VL)));
typedef float vf_mem __attribute__((vector_size(4 * HP_VL), aligned(4), may_alias));
typedef uint16_t vh_mem __attribute__((vector_size(2 * HP_VL), aligned(2), may_alias));

static inline vf vset(float v)
{
    return (vf){0} + v;
}

static inline vf vsel(vi mask, vf a, vf b)
{
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

/* The larger and the smaller; where one is a NaN, b. In assembly, because the compiler spells a comparison of vectors in
 * three instructions, and the intrinsics' header takes longer to read than the rest of the room. */
static inline vf vmax(vf a, vf b)
{
#if defined(__AVX__)
    __asm__("vmaxps %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
#elif defined(__SSE__)
    __asm__("maxps %1, %0" : "+x"(a) : "x"(b));
    return a;
#else
    return vsel(a > b, a, b);
#endif
}

static inline vf vmin(vf a, vf b)
{
#if defined(__AVX__)
    __asm__("vminps %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
#elif defined(__SSE__)
    __asm__("minps %1, %0" : "+x"(a) : "x"(b));
    return a;
#else
    return vsel(a < b, a, b);
#endif
}

static inline vf vsqrt(vf a)
{
    for (int i = 0; i < HP_VL; i++)
        a[i] = sqrtf(a[i]);
    return a;
}

static inline vf vwiden(vh h)
{
    return (vf)(__builtin_convertvector(h, vu) << 16);
}

/* Nearest, ties to even; NaN stays NaN. */
static inline vh vnarrow(vf v)
{
    vu u = (vu)v, round = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, nan = (u >> 16) | 0x40u;
    vu is_nan = (vu)(v != v);
    return __builtin_convertvector((nan & is_nan) | (round & ~is_nan), vh);
}

/* The first `left` (0 < left < HP_VL) elements. */
static __attribute__((noinline, unused)) vf vld_rest(hp_num x, int64_t i, int64_t left)
{
    float v[HP_VL] = {0};
    for (int64_t j = 0; j < left; j++)
        v[j] = hp_num_get(x, i + j);
    vf r;
    memcpy(&r, v, sizeof r);
    return r;
}

static __attribute__((noinline, unused)) void vst_rest(hp_num y, int64_t i, int64_t left, vf v)
{
    for (int64_t j = 0; j < left; j++)
        hp_num_put(y, i + j, v[j]);
}

static inline vf vld(hp_num x, int64_t i, int64_t left)
{
    if (__builtin_expect(left < HP_VL, 0))
        return vld_rest(x, i, left);
    if (x.t == HP_NUM_BF16)
        return vwiden(*(const vh_mem *)((const uint16_t *)x.p + i));
    return *(const vf_mem *)((const float *)x.p + i);
}

static inline void vst(hp_num y, int64_t i, int64_t left, vf v)
{
    if (__builtin_expect(left < HP_VL, 0))
        vst_rest(y, i, left, v);
    else if (y.t == HP_NUM_BF16)
        *(vh_mem *)((uint16_t *)y.p + i) = vnarrow(v);
    else
        *(vf_mem *)((float *)y.p + i) = v;
}

/* Lanes from `left` on become `v`. */
static inline vf vrest(vf x, int64_t left, float v)
{
    if (left >= HP_VL)
        return x;
    for (int64_t j = left; j < HP_VL; j++)
        x[j] = v;
    return x;
}

/* Lane j of `half` lanes on comes to lane j. */
#if HP_VL == 16
#define HP_LOWER(v, half)                                                                          \
    __builtin_shufflevector(v, v, (half), (half) + 1, (half) + 2, (half) + 3, (half) + 4,          \
                            (half) + 5, (half) + 6, (half) + 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif HP_VL == 8
#define HP_LOWER(v, half)                                                                          \
    __builtin_shufflevector(v, v, (half), (half) + 1, (half) + 2, (half) + 3, 4, 5, 6, 7)
#else
#define HP_LOWER(v, half) __builtin_shufflevector(v, v, (half), (half) + 1, 2, 3)
#endif

/* Sum of lanes, pairwise. */
static inline float vsum(vf v)
{
#if HP_VL == 16
    v += HP_LOWER(v, 8);
#endif
#if HP_VL >= 8
    v += HP_LOWER(v, 4);
#endif
    v += HP_LOWER(v, 2);
    v += HP_LOWER(v, 1);
    return v[0];
}

static inline float vtop(vf v)
{
#if HP_VL == 16
    v = vmax(v, HP_LOWER(v, 8));
#endif
#if HP_VL >= 8
    v = vmax(v, HP_LOWER(v, 4));
#endif
    v = vmax(v, HP_LOWER(v, 2));
    v = vmax(v, HP_LOWER(v, 1));
    return v[0];
}

/* exp with 1.5 units in the last place: x = n ln 2 + r, |r| <= ln 2 / 2, e^r by its Taylor polynomial of
 * degree 7 (error below 2e-8 there), 2^n in two factors so that the ends of the range come out right. */
static inline vf vexp(vf x)
{
    vf t = vsel(x < -104.0f, vset(-104.0f), x);
    t = vsel(t > 89.0f, vset(89.0f), t); /* a NaN passes both */
    vf magic = vset(12582912.0f);        /* 1.5 2^23: adding it rounds to an integer */
    vf shifted = t * 1.44269504f + magic;
    vi n = (vi)shifted - (vi)magic;
    vf k = shifted - magic;
    vf r = t - k * 0.693359375f + k * 2.12194440e-4f;
    vf p = vset(1.0f / 5040);
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    vi half = n >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
}

static inline vf vsigmoid(vf x)
{
    return 1.0f / (1.0f + vexp(-x));
}

#endif

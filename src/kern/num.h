/* num.h -- where a kernel's numbers lie: a pointer with its storage type.
 *
 * Every kernel of this room takes tensors as hp_num: dense row-major, stored as float, as bf16 (the
 * upper half of a float, in a uint16_t) or as int32_t. Arithmetic is in float whatever the storage.
 * The values of hp_numtype are those of the graph's dtypes in the same order. Room: kern.
 */
#ifndef HP_KERN_NUM_H
#define HP_KERN_NUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum hp_numtype { HP_NUM_F32, HP_NUM_BF16, HP_NUM_I32 } hp_numtype;

typedef struct hp_num {
    void *p; /* borrowed; NULL where there are no elements, or where a kernel calls it optional */
    int t;   /* hp_numtype */
} hp_num;

/* hp_num_f32, hp_num_bf16 and hp_num_none make an hp_num; inputs are never written through it. */
static inline hp_num hp_num_f32(const float *p)
{
    return (hp_num){(void *)(uintptr_t)p, HP_NUM_F32};
}

static inline hp_num hp_num_bf16(const uint16_t *p)
{
    return (hp_num){(void *)(uintptr_t)p, HP_NUM_BF16};
}

static inline hp_num hp_num_none(void)
{
    return (hp_num){NULL, HP_NUM_F32};
}

/* hp_num_bytes returns the size of one element. */
static inline int64_t hp_num_bytes(int t)
{
    return t == HP_NUM_BF16 ? 2 : 4;
}

/* hp_num_at returns x advanced by `i` elements; a NULL stays NULL. */
static inline hp_num hp_num_at(hp_num x, int64_t i)
{
    if (x.p)
        x.p = (char *)x.p + i * hp_num_bytes(x.t);
    return x;
}

/* hp_bf16_f32 widens a bf16, exactly. */
static inline float hp_bf16_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* hp_f32_bf16 rounds to the nearest bf16, ties to even; a NaN stays one. */
static inline uint16_t hp_f32_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* hp_num_get returns element `i` as a float, hp_num_put stores one: what the plain kernels stand on. */
static inline float hp_num_get(hp_num x, int64_t i)
{
    if (x.t == HP_NUM_BF16)
        return hp_bf16_f32(((const uint16_t *)x.p)[i]);
    if (x.t == HP_NUM_I32)
        return (float)((const int32_t *)x.p)[i];
    return ((const float *)x.p)[i];
}

static inline void hp_num_put(hp_num x, int64_t i, float v)
{
    if (x.t == HP_NUM_BF16)
        ((uint16_t *)x.p)[i] = hp_f32_bf16(v);
    else if (x.t == HP_NUM_I32)
        ((int32_t *)x.p)[i] = (int32_t)v;
    else
        ((float *)x.p)[i] = v;
}

#endif

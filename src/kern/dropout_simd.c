/* hp_rng_f32 in line, so that the compiler makes vectors of it: splitmix64's finaliser, top 24 bits. The
 * unit test compares with base/rng.h. */
#include "kern/dropout_simd.h"
#include "kern/vec.h"

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

enum { RUN = 256 };

void HP_SIMD(hp_dropout_row)(int64_t n, uint64_t stream, uint64_t first, float rate, hp_num x,
                             hp_num y)
{
    float keep[RUN], scale = 1 / (1 - rate);
    hp_num k = hp_num_f32(keep);
    for (int64_t at = 0; at < n; at += RUN) {
        uint64_t z = stream + (first + (uint64_t)at + 1) * 0x9e3779b97f4a7c15u;
        for (int i = 0; i < RUN; i++) {
            int32_t top = (int32_t)(mix(z + (uint64_t)i * 0x9e3779b97f4a7c15u) >> 40);
            keep[i] = (float)top * 0x1p-24f >= rate ? 1.0f : 0.0f;
        }
        for (int64_t i = 0; i < RUN && at + i < n; i += HP_VL) {
            int64_t left = n - at - i;
            vf v = vld(x, at + i, left) * scale;
            vst(y, at + i, left, vsel(vld(k, i, HP_VL) != 0.0f, v, vset(0)));
        }
    }
}

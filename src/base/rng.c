/* rng.c -- stateless draws; the same (stream, index) gives the same bits on every machine. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

uint64_t hp_hash64(const void *data, uint64_t n)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

uint64_t hp_hash_str(const char *s)
{
    return hp_hash64(s, strlen(s));
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t hp_rng_key(uint64_t seed, uint64_t key)
{
    return mix(mix(seed + 0x9e3779b97f4a7c15u) ^ key);
}

uint64_t hp_rng_u64(uint64_t stream, uint64_t i)
{
    return mix(stream + (i + 1) * 0x9e3779b97f4a7c15u);
}

float hp_rng_f32(uint64_t stream, uint64_t i)
{
    return (float)(hp_rng_u64(stream, i) >> 40) * 0x1p-24f;
}

float hp_rng_normal(uint64_t stream, uint64_t i)
{
    double u = ((double)(hp_rng_u64(stream, 2 * i) >> 11) + 1.0) * 0x1p-53;
    double v = (double)(hp_rng_u64(stream, 2 * i + 1) >> 11) * 0x1p-53;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

int64_t hp_rng_below(hp_rng *r, int64_t n)
{
    return (int64_t)(hp_rng_u64(r->stream, r->at++) % (uint64_t)n);
}

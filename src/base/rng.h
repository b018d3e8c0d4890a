/* rng.h -- counter-based random numbers: a value depends on its key and index alone.
 *
 * Any split of a tensor over devices draws the same numbers, because element i of stream (seed, key)
 * is a function of (seed, key, i). Method: splitmix64's finaliser over the mixed key (Steele, Lea,
 * Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Room: base.
 */
#ifndef HP_BASE_RNG_H
#define HP_BASE_RNG_H

#include <stdint.h>

/* hp_hash64 returns the FNV-1a hash of `n` bytes. */
uint64_t hp_hash64(const void *data, uint64_t n);

/* hp_hash_str returns the FNV-1a hash of a string. */
uint64_t hp_hash_str(const char *s);

/* hp_rng_key mixes a seed and a stream's key into one stream number. */
uint64_t hp_rng_key(uint64_t seed, uint64_t key);

/* hp_rng_u64 returns number `i` of a stream. */
uint64_t hp_rng_u64(uint64_t stream, uint64_t i);

/* hp_rng_f32 returns number `i` of a stream, uniform in [0,1). */
float hp_rng_f32(uint64_t stream, uint64_t i);

/* hp_rng_normal returns number `i` of a stream, standard normal (Box-Muller on two draws). */
float hp_rng_normal(uint64_t stream, uint64_t i);

/* hp_rng is a sequential generator over one stream, for tests and searches. */
typedef struct hp_rng {
    uint64_t stream, at;
} hp_rng;

/* hp_rng_below returns the next number in [0, n), n >= 1. */
int64_t hp_rng_below(hp_rng *r, int64_t n);

#endif

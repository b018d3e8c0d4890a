#include "base/rng.h"

#include "tap.h"

int main(void)
{
    /* Reference values: FNV-1a's published test vectors; splitmix64 seeded with 0. */
    ok(hp_hash_str("") == 0xcbf29ce484222325u, "the hash of nothing is FNV-1a's basis");
    ok(hp_hash_str("foobar") == 0x85944171f73967e8u, "\"foobar\" hashes as published");
    ok(hp_rng_u64(0, 0) == 0xe220a8397b1dcdafu, "stream 0 begins like splitmix64 seeded with 0");
    ok(hp_rng_u64(0, 1) == 0x6e789e6aa1b965f4u, "and goes on like it");

    ok(hp_rng_key(1, 2) != hp_rng_key(2, 1) && hp_rng_key(1, 2) != hp_rng_key(1, 3),
       "seed and key both matter");

    double sum = 0, sum2 = 0, least = 1, most = 0;
    uint64_t stream = hp_rng_key(7, hp_hash_str("embed.w"));
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        double u = (double)hp_rng_f32(stream, i), z = (double)hp_rng_normal(stream, i);
        least = u < least ? u : least;
        most = u > most ? u : most;
        sum += z;
        sum2 += z * z;
    }
    ok(least >= 0 && least < 1e-3 && most < 1 && most > 0.999, "uniform numbers fill [0,1)");
    near(sum / N, 0, 0.02, "normal numbers have mean 0");
    near(sum2 / N, 1, 0.02, "and variance 1");

    hp_rng r = {.stream = stream};
    int count[7] = {0}, outside = 0;
    for (int i = 0; i < 70000; i++) {
        int64_t v = hp_rng_below(&r, 7);
        if (v < 0 || v >= 7)
            outside++;
        else
            count[v]++;
    }
    is_int(outside, 0, "numbers below 7 are in [0,7)");
    int uneven = 0;
    for (int i = 0; i < 7; i++)
        uneven += abs(count[i] - 10000) > 500;
    is_int(uneven, 0, "each about as often");
    is_int(hp_rng_below(&r, 1), 0, "below 1 there is only 0");
    return done_testing();
}

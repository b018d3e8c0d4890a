#include "kern/dropout.h"

#include "base/rng.h"

/* The index in the whole tensor of local element `i`. */
static int64_t global_index(const hp_dropout_at *at, int64_t i)
{
    int64_t index = 0, stride = 1;
    for (int d = at->nd - 1; d >= 0; d--) {
        index += (at->lo[d] + i % at->len[d]) * stride;
        i /= at->len[d];
        stride *= at->full[d];
    }
    return index;
}

void hp_dropout_ref(const hp_dropout_at *at, hp_num x, hp_num y)
{
    int64_t n = 1;
    for (int d = 0; d < at->nd; d++)
        n *= at->len[d];
    float scale = 1 / (1 - at->rate);
    for (int64_t i = 0; i < n; i++) {
        bool keep = hp_rng_f32(at->stream, (uint64_t)global_index(at, i)) >= at->rate;
        hp_num_put(y, i, keep ? hp_num_get(x, i) * scale : 0);
    }
}

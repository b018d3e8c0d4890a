#include "kern/embed_simd.h"
#include "kern/vec.h"

void HP_SIMD(hp_embed_columns)(int64_t n, int64_t width, int64_t c0, int64_t c1, int64_t lo,
                               int64_t len, const int32_t *token, hp_num dy, hp_num dw)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t row = token[i] - lo;
        if (row < 0 || row >= len)
            continue;
        hp_num from = hp_num_at(dy, i * width), to = hp_num_at(dw, row * width);
        for (int64_t c = c0; c < c1; c += HP_VL)
            vst(to, c, c1 - c, vld(to, c, c1 - c) + vld(from, c, c1 - c));
    }
}

#include "kern/embed.h"

void hp_embed_ref(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token,
                  hp_num table, hp_num y)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t row = token[i] - lo;
        bool here = row >= 0 && row < len;
        for (int64_t c = 0; c < width; c++)
            hp_num_put(y, i * width + c, here ? hp_num_get(table, row * width + c) : 0);
    }
}

void hp_embed_dw_ref(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token,
                     hp_num dy, hp_num dw, bool accumulate)
{
    for (int64_t i = 0; i < len * width && !accumulate; i++)
        hp_num_put(dw, i, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = token[i] - lo;
        if (row < 0 || row >= len)
            continue;
        for (int64_t c = 0; c < width; c++) {
            int64_t at = row * width + c;
            hp_num_put(dw, at, hp_num_get(dw, at) + hp_num_get(dy, i * width + c));
        }
    }
}

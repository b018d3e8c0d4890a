#include "kern/dropout.h"

#include "kern/dropout_simd.h"
#include "kern/team.h"

/* The index in the whole tensor where local row `r` begins (rows run along the last dimension). */
static int64_t row_start(const hp_dropout_at *at, int64_t r)
{
    int last = at->nd - 1;
    int64_t index = at->lo[last], stride = at->full[last];
    for (int d = last - 1; d >= 0; d--) {
        index += (at->lo[d] + r % at->len[d]) * stride;
        r /= at->len[d];
        stride *= at->full[d];
    }
    return index;
}

void hp_dropout(const hp_dropout_at *at, hp_num x, hp_num y, int threads)
{
    if (at->nd == 0) {
        hp_dropout_ref(at, x, y);
        return;
    }
    void (*row)(int64_t, uint64_t, uint64_t, float, hp_num, hp_num) = HP_SIMD_PICK(hp_dropout_row);
    int64_t width = at->len[at->nd - 1], rows = 1;
    for (int d = 0; d < at->nd - 1; d++)
        rows *= at->len[d];
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t r = 0; r < rows; r++)
                    row(width, at->stream, (uint64_t)row_start(at, r), at->rate,
                        hp_num_at(x, r * width), hp_num_at(y, r * width)));
}

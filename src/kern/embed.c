/* The table's gradient is split by columns, so that every row sums its tokens in order of i whatever
 * the team. */
#include "kern/embed.h"

#include "kern/embed_simd.h"
#include "kern/pointwise.h"
#include "kern/team.h"

enum { COLUMNS = 128 };

void hp_embed(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token, hp_num table,
              hp_num y, int threads)
{
    HP_TEAM_FOR(
        threads, n * width, for (int64_t i = 0; i < n; i++) {
            int64_t row = token[i] - lo;
            if (row >= 0 && row < len)
                hp_copy(width, hp_num_at(table, row * width), hp_num_at(y, i * width), 1);
            else
                memset(hp_num_at(y, i * width).p, 0, (size_t)(width * hp_num_bytes(y.t)));
        });
}

void hp_embed_dw(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token, hp_num dy,
                 hp_num dw, bool accumulate, int threads)
{
    void (*block)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const int32_t *, hp_num,
                  hp_num) = HP_SIMD_PICK(hp_embed_columns);
    if (!accumulate)
        hp_fill(len * width, 0, dw, threads);
    HP_TEAM_FOR(threads, n * width,
                for (int64_t c = 0; c < width; c += COLUMNS)
                    block(n, width, c, hp_team_min(c + COLUMNS, width), lo, len, token, dy, dw));
}

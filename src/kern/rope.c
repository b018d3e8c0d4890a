#include "kern/rope.h"

#include "kern/rope_simd.h"
#include "kern/team.h"

#include <math.h>

void hp_rope(int64_t rows, int64_t heads, int64_t d, const int32_t *pos, double theta, bool inverse,
             hp_num x, hp_num y, int threads)
{
    void (*block)(int64_t, int64_t, int64_t, int64_t, int64_t, const double *, const int32_t *,
                  bool, hp_num, hp_num) = HP_SIMD_PICK(hp_rope_rows);
    int64_t step = hp_team_rows(heads * d);
    for (int64_t i0 = 0; i0 < d / 2; i0 += HP_ROPE_PAIRS) {
        int64_t n = hp_team_min(d / 2 - i0, HP_ROPE_PAIRS);
        double turns[HP_ROPE_PAIRS];
        for (int64_t i = 0; i < n; i++)
            turns[i] = pow(theta, -2.0 * (double)(i0 + i) / (double)d) / 6.283185307179586;
        HP_TEAM_FOR(threads, rows * heads * d,
                    for (int64_t r = 0; r < rows; r += step)
                        block(hp_team_min(rows - r, step), heads, d, i0, n, turns, pos + r, inverse,
                              hp_num_at(x, r * heads * d), hp_num_at(y, r * heads * d)));
    }
}

#include "kern/bias.h"

#include "kern/bias_simd.h"
#include "kern/team.h"

void hp_bias(int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y, int threads)
{
    void (*block)(int64_t, int64_t, hp_num, hp_num, hp_num) = HP_SIMD_PICK(hp_bias_rows);
    int64_t step = hp_team_rows(width);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t r = 0; r < rows; r += step)
                    block(hp_team_min(rows - r, step), width, hp_num_at(x, r * width), b,
                          hp_num_at(y, r * width)));
}

void hp_bias_dw(int64_t rows, int64_t width, hp_num dy, hp_num db, bool accumulate, int threads)
{
    void (*block)(int64_t, int64_t, int64_t, int64_t, hp_num, hp_num, bool) =
        HP_SIMD_PICK(hp_bias_columns);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t c = 0; c < width; c += HP_TEAM_COLUMNS) block(
                    rows, width, c, hp_team_min(c + HP_TEAM_COLUMNS, width), dy, db, accumulate));
}

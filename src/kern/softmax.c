#include "kern/softmax.h"

#include "kern/softmax_simd.h"
#include "kern/team.h"

void hp_softmax(int64_t rows, int64_t width, hp_num x, hp_num y, int threads)
{
    void (*block)(int64_t, int64_t, hp_num, hp_num) = HP_SIMD_PICK(hp_softmax_rows);
    int64_t step = hp_team_rows(width);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t r = 0; r < rows; r += step)
                    block(hp_team_min(rows - r, step), width, hp_num_at(x, r * width),
                          hp_num_at(y, r * width)));
}

void hp_softmax_dx(int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx, int threads)
{
    void (*block)(int64_t, int64_t, hp_num, hp_num, hp_num) = HP_SIMD_PICK(hp_softmax_dx_rows);
    int64_t step = hp_team_rows(width);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t r = 0; r < rows; r += step)
                    block(hp_team_min(rows - r, step), width, hp_num_at(y, r * width),
                          hp_num_at(dy, r * width), hp_num_at(dx, r * width)));
}

#include "kern/layernorm.h"

#include "kern/layernorm_simd.h"
#include "kern/team.h"

void hp_layernorm(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num b, hp_num y,
                  float *mean, float *rstd, int threads)
{
    void (*block)(int64_t, int64_t, float, hp_num, hp_num, hp_num, hp_num, float *, float *) =
        HP_SIMD_PICK(hp_layernorm_rows);
    int64_t step = hp_team_rows(width);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t r = 0; r < rows; r += step)
                    block(hp_team_min(rows - r, step), width, eps, hp_num_at(x, r * width), w, b,
                          hp_num_at(y, r * width), mean ? mean + r : NULL, rstd ? rstd + r : NULL));
}

void hp_layernorm_dx(int64_t rows, int64_t width, hp_num x, hp_num w, const float *mean,
                     const float *rstd, hp_num dy, hp_num dx, int threads)
{
    void (*block)(int64_t, int64_t, hp_num, hp_num, const float *, const float *, hp_num, hp_num) =
        HP_SIMD_PICK(hp_layernorm_dx_rows);
    int64_t step = hp_team_rows(width);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t r = 0; r < rows; r += step)
                    block(hp_team_min(rows - r, step), width, hp_num_at(x, r * width), w, mean + r,
                          rstd + r, hp_num_at(dy, r * width), hp_num_at(dx, r * width)));
}

void hp_layernorm_dw(int64_t rows, int64_t width, hp_num x, const float *mean, const float *rstd,
                     hp_num dy, hp_num dw, hp_num db, bool accumulate, int threads)
{
    void (*block)(int64_t, int64_t, int64_t, int64_t, hp_num, const float *, const float *, hp_num,
                  hp_num, hp_num, bool) = HP_SIMD_PICK(hp_layernorm_columns);
    HP_TEAM_FOR(threads, rows * width,
                for (int64_t c = 0; c < width; c += HP_TEAM_COLUMNS)
                    block(rows, width, c, hp_team_min(c + HP_TEAM_COLUMNS, width), x, mean, rstd,
                          dy, dw, db, accumulate));
}

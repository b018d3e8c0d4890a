#include "kern/rmsnorm_simd.h"
#include "kern/vec.h"

static inline vf weight(hp_num w, int64_t i, int64_t left)
{
    return w.p ? vld(w, i, left) : vset(1);
}

void HP_SIMD(hp_rmsnorm_rows)(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num y,
                              float *rstd)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width), yr = hp_num_at(y, r * width);
        vf sum = vset(0);
        for (int64_t i = 0; i < width; i += HP_VL) {
            vf v = vld(xr, i, width - i);
            sum += v * v;
        }
        float rs = 1 / sqrtf(vsum(sum) / (float)width + eps);
        for (int64_t i = 0; i < width; i += HP_VL)
            vst(yr, i, width - i, vld(xr, i, width - i) * rs * weight(w, i, width - i));
        if (rstd)
            rstd[r] = rs;
    }
}

void HP_SIMD(hp_rmsnorm_dx_rows)(int64_t rows, int64_t width, hp_num x, hp_num w, const float *rstd,
                                 hp_num dy, hp_num dx)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width), dyr = hp_num_at(dy, r * width);
        hp_num dxr = hp_num_at(dx, r * width);
        vf sum = vset(0);
        for (int64_t i = 0; i < width; i += HP_VL)
            sum += vld(xr, i, width - i) * weight(w, i, width - i) * vld(dyr, i, width - i);
        float rs = rstd[r], pull = vsum(sum) / (float)width * rs * rs;
        for (int64_t i = 0; i < width; i += HP_VL) {
            vf wdy = weight(w, i, width - i) * vld(dyr, i, width - i);
            vst(dxr, i, width - i, rs * (wdy - vld(xr, i, width - i) * pull));
        }
    }
}

enum { PANEL = 4, ROWS = 64 };

/* Up to PANEL vectors of columns from c on, `left` of them real; rows in order, ROWS at a time. */
static inline void panel(int64_t rows, int64_t width, int64_t c, int64_t left, hp_num x,
                         const float *rstd, hp_num dy, hp_num dw, bool accumulate)
{
    vf total[PANEL];
    for (int j = 0; j < PANEL; j++)
        total[j] =
            accumulate && left > j * HP_VL ? vld(dw, c + j * HP_VL, left - j * HP_VL) : vset(0);
    for (int64_t r0 = 0; r0 < rows; r0 += ROWS) {
        vf sum[PANEL] = {{0}};
        for (int64_t r = r0; r < rows && r < r0 + ROWS; r++)
            for (int j = 0; j < PANEL; j++)
                if (left > j * HP_VL) {
                    int64_t at = r * width + c + j * HP_VL, rest = left - j * HP_VL;
                    sum[j] += vld(dy, at, rest) * (vld(x, at, rest) * rstd[r]);
                }
        for (int j = 0; j < PANEL; j++)
            total[j] += sum[j];
    }
    for (int j = 0; j < PANEL; j++)
        if (left > j * HP_VL)
            vst(dw, c + j * HP_VL, left - j * HP_VL, total[j]);
}

void HP_SIMD(hp_rmsnorm_columns)(int64_t rows, int64_t width, int64_t c0, int64_t c1, hp_num x,
                                 const float *rstd, hp_num dy, hp_num dw, bool accumulate)
{
    int64_t c = c0;
    for (; c + PANEL * HP_VL <= c1; c += PANEL * HP_VL)
        panel(rows, width, c, PANEL * HP_VL, x, rstd, dy, dw, accumulate);
    if (c < c1)
        panel(rows, width, c, c1 - c, x, rstd, dy, dw, accumulate);
}

#include "kern/bias_simd.h"
#include "kern/vec.h"

void HP_SIMD(hp_bias_rows)(int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width), yr = hp_num_at(y, r * width);
        for (int64_t i = 0; i < width; i += HP_VL)
            vst(yr, i, width - i, vld(xr, i, width - i) + vld(b, i, width - i));
    }
}

enum { PANEL = 4, ROWS = 64 };

/* Up to PANEL vectors of columns from c on, `left` of them real. */
static inline void panel(int64_t rows, int64_t width, int64_t c, int64_t left, hp_num dy, hp_num db,
                         bool accumulate)
{
    vf total[PANEL];
    for (int j = 0; j < PANEL; j++)
        total[j] =
            accumulate && left > j * HP_VL ? vld(db, c + j * HP_VL, left - j * HP_VL) : vset(0);
    for (int64_t r0 = 0; r0 < rows; r0 += ROWS) {
        vf sum[PANEL] = {{0}};
        for (int64_t r = r0; r < rows && r < r0 + ROWS; r++)
            for (int j = 0; j < PANEL; j++)
                if (left > j * HP_VL)
                    sum[j] += vld(dy, r * width + c + j * HP_VL, left - j * HP_VL);
        for (int j = 0; j < PANEL; j++)
            total[j] += sum[j];
    }
    for (int j = 0; j < PANEL; j++)
        if (left > j * HP_VL)
            vst(db, c + j * HP_VL, left - j * HP_VL, total[j]);
}

void HP_SIMD(hp_bias_columns)(int64_t rows, int64_t width, int64_t c0, int64_t c1, hp_num dy,
                              hp_num db, bool accumulate)
{
    int64_t c = c0;
    for (; c + PANEL * HP_VL <= c1; c += PANEL * HP_VL)
        panel(rows, width, c, PANEL * HP_VL, dy, db, accumulate);
    if (c < c1)
        panel(rows, width, c, c1 - c, dy, db, accumulate);
}

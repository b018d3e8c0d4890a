#include "kern/layernorm_simd.h"
#include "kern/vec.h"

static inline vf or_else(hp_num w, int64_t i, int64_t left, float missing)
{
    return w.p ? vld(w, i, left) : vset(missing);
}

/* Mean and reciprocal standard deviation of one row, in two passes (the second finds it in cache). */
static inline void moments(int64_t width, float eps, hp_num x, float *mean, float *rstd)
{
    vf sum = vset(0), sq = vset(0);
    for (int64_t i = 0; i < width; i += HP_VL)
        sum += vld(x, i, width - i);
    float mu = vsum(sum) / (float)width;
    for (int64_t i = 0; i < width; i += HP_VL) {
        vf d = vrest(vld(x, i, width - i) - mu, width - i, 0);
        sq += d * d;
    }
    *mean = mu;
    *rstd = 1 / sqrtf(vsum(sq) / (float)width + eps);
}

void HP_SIMD(hp_layernorm_rows)(int64_t rows, int64_t width, float eps, hp_num x, hp_num w,
                                hp_num b, hp_num y, float *mean, float *rstd)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width), yr = hp_num_at(y, r * width);
        float mu, rs;
        moments(width, eps, xr, &mu, &rs);
        for (int64_t i = 0; i < width; i += HP_VL) {
            int64_t left = width - i;
            vf xh = (vld(xr, i, left) - mu) * rs;
            vst(yr, i, left, xh * or_else(w, i, left, 1) + or_else(b, i, left, 0));
        }
        if (mean)
            mean[r] = mu;
        if (rstd)
            rstd[r] = rs;
    }
}

void HP_SIMD(hp_layernorm_dx_rows)(int64_t rows, int64_t width, hp_num x, hp_num w,
                                   const float *mean, const float *rstd, hp_num dy, hp_num dx)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width), dyr = hp_num_at(dy, r * width);
        hp_num dxr = hp_num_at(dx, r * width);
        float mu = mean[r], rs = rstd[r];
        vf s1 = vset(0), s2 = vset(0);
        for (int64_t i = 0; i < width; i += HP_VL) {
            vf wdy = or_else(w, i, width - i, 1) * vld(dyr, i, width - i);
            s1 += wdy;
            s2 += wdy * ((vld(xr, i, width - i) - mu) * rs);
        }
        float m1 = vsum(s1) / (float)width, m2 = vsum(s2) / (float)width;
        for (int64_t i = 0; i < width; i += HP_VL) {
            vf wdy = or_else(w, i, width - i, 1) * vld(dyr, i, width - i);
            vf xh = (vld(xr, i, width - i) - mu) * rs;
            vst(dxr, i, width - i, rs * (wdy - m1 - xh * m2));
        }
    }
}

enum { PANEL = 4, ROWS = 64 };

/* Adds rows r0 .. r1-1 of PANEL vectors of columns to sw and sb. */
static inline void add_rows(int64_t r0, int64_t r1, int64_t width, int64_t c, int64_t left,
                            hp_num x, const float *mean, const float *rstd, hp_num dy, vf *sw,
                            vf *sb)
{
    for (int64_t r = r0; r < r1; r++)
        for (int j = 0; j < PANEL; j++)
            if (left > j * HP_VL) {
                int64_t at = r * width + c + j * HP_VL, rest = left - j * HP_VL;
                vf d = vld(dy, at, rest);
                sb[j] += d;
                sw[j] += d * ((vld(x, at, rest) - mean[r]) * rstd[r]);
            }
}

static inline vf begin(hp_num w, int64_t c, int64_t left, bool accumulate)
{
    return accumulate && left > 0 && w.p ? vld(w, c, left) : vset(0);
}

/* Up to PANEL vectors of columns from c on, `left` of them real; rows in order, ROWS at a time. */
static inline void panel(int64_t rows, int64_t width, int64_t c, int64_t left, hp_num x,
                         const float *mean, const float *rstd, hp_num dy, hp_num dw, hp_num db,
                         bool accumulate)
{
    vf tw[PANEL], tb[PANEL];
    for (int j = 0; j < PANEL; j++) {
        tw[j] = begin(dw, c + j * HP_VL, left - j * HP_VL, accumulate);
        tb[j] = begin(db, c + j * HP_VL, left - j * HP_VL, accumulate);
    }
    for (int64_t r0 = 0; r0 < rows; r0 += ROWS) {
        vf sw[PANEL] = {{0}}, sb[PANEL] = {{0}};
        add_rows(r0, r0 + ROWS < rows ? r0 + ROWS : rows, width, c, left, x, mean, rstd, dy, sw,
                 sb);
        for (int j = 0; j < PANEL; j++) {
            tw[j] += sw[j];
            tb[j] += sb[j];
        }
    }
    for (int j = 0; j < PANEL; j++) {
        if (left > j * HP_VL && dw.p)
            vst(dw, c + j * HP_VL, left - j * HP_VL, tw[j]);
        if (left > j * HP_VL && db.p)
            vst(db, c + j * HP_VL, left - j * HP_VL, tb[j]);
    }
}

void HP_SIMD(hp_layernorm_columns)(int64_t rows, int64_t width, int64_t c0, int64_t c1, hp_num x,
                                   const float *mean, const float *rstd, hp_num dy, hp_num dw,
                                   hp_num db, bool accumulate)
{
    int64_t c = c0;
    for (; c + PANEL * HP_VL <= c1; c += PANEL * HP_VL)
        panel(rows, width, c, PANEL * HP_VL, x, mean, rstd, dy, dw, db, accumulate);
    if (c < c1)
        panel(rows, width, c, c1 - c, x, mean, rstd, dy, dw, db, accumulate);
}

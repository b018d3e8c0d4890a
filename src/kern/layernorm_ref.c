#include "kern/layernorm.h"

#include <math.h>

static double or_else(hp_num w, int64_t c, double missing)
{
    return w.p ? (double)hp_num_get(w, c) : missing;
}

/* Mean and reciprocal standard deviation of one row, in two passes. */
static void moments(int64_t width, float eps, hp_num x, double *mean, double *rstd)
{
    double sum = 0, sq = 0;
    for (int64_t c = 0; c < width; c++)
        sum += (double)hp_num_get(x, c);
    *mean = sum / (double)width;
    for (int64_t c = 0; c < width; c++) {
        double d = (double)hp_num_get(x, c) - *mean;
        sq += d * d;
    }
    *rstd = 1 / sqrt(sq / (double)width + (double)eps);
}

void hp_layernorm_ref(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num b,
                      hp_num y, float *mean, float *rstd)
{
    for (int64_t r = 0; r < rows; r++) {
        double mu, rs;
        hp_num xr = hp_num_at(x, r * width);
        moments(width, eps, xr, &mu, &rs);
        for (int64_t c = 0; c < width; c++) {
            double xh = ((double)hp_num_get(xr, c) - mu) * rs;
            hp_num_put(y, r * width + c, (float)(xh * or_else(w, c, 1) + or_else(b, c, 0)));
        }
        if (mean)
            mean[r] = (float)mu;
        if (rstd)
            rstd[r] = (float)rs;
    }
}

void hp_layernorm_dx_ref(int64_t rows, int64_t width, hp_num x, hp_num w, const float *mean,
                         const float *rstd, hp_num dy, hp_num dx)
{
    for (int64_t r = 0; r < rows; r++) {
        double mu = (double)mean[r], rs = (double)rstd[r], m1 = 0, m2 = 0;
        hp_num xr = hp_num_at(x, r * width), dyr = hp_num_at(dy, r * width);
        for (int64_t c = 0; c < width; c++) {
            double wdy = or_else(w, c, 1) * (double)hp_num_get(dyr, c);
            m1 += wdy;
            m2 += wdy * ((double)hp_num_get(xr, c) - mu) * rs;
        }
        m1 /= (double)width;
        m2 /= (double)width;
        for (int64_t c = 0; c < width; c++) {
            double wdy = or_else(w, c, 1) * (double)hp_num_get(dyr, c);
            double xh = ((double)hp_num_get(xr, c) - mu) * rs;
            hp_num_put(dx, r * width + c, (float)(rs * (wdy - m1 - xh * m2)));
        }
    }
}

void hp_layernorm_dw_ref(int64_t rows, int64_t width, hp_num x, const float *mean,
                         const float *rstd, hp_num dy, hp_num dw, hp_num db, bool accumulate)
{
    for (int64_t c = 0; c < width; c++) {
        double sw = accumulate ? or_else(dw, c, 0) : 0, sb = accumulate ? or_else(db, c, 0) : 0;
        for (int64_t r = 0; r < rows; r++) {
            double d = (double)hp_num_get(dy, r * width + c);
            sb += d;
            sw += d * ((double)hp_num_get(x, r * width + c) - (double)mean[r]) * (double)rstd[r];
        }
        if (dw.p)
            hp_num_put(dw, c, (float)sw);
        if (db.p)
            hp_num_put(db, c, (float)sb);
    }
}

#include "kern/rmsnorm.h"

#include <math.h>

static double weight(hp_num w, int64_t c)
{
    return w.p ? (double)hp_num_get(w, c) : 1;
}

void hp_rmsnorm_ref(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num y,
                    float *rstd)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            sum += (double)hp_num_get(x, i) * (double)hp_num_get(x, i);
        double rs = 1 / sqrt(sum / (double)width + (double)eps);
        for (int64_t c = 0; c < width; c++)
            hp_num_put(y, r * width + c,
                       (float)((double)hp_num_get(x, r * width + c) * rs * weight(w, c)));
        if (rstd)
            rstd[r] = (float)rs;
    }
}

void hp_rmsnorm_dx_ref(int64_t rows, int64_t width, hp_num x, hp_num w, const float *rstd,
                       hp_num dy, hp_num dx)
{
    for (int64_t r = 0; r < rows; r++) {
        double rs = (double)rstd[r], mean = 0;
        hp_num xr = hp_num_at(x, r * width), dyr = hp_num_at(dy, r * width);
        for (int64_t c = 0; c < width; c++)
            mean += (double)hp_num_get(xr, c) * weight(w, c) * (double)hp_num_get(dyr, c);
        mean /= (double)width;
        for (int64_t c = 0; c < width; c++) {
            double wdy = weight(w, c) * (double)hp_num_get(dyr, c);
            hp_num_put(dx, r * width + c,
                       (float)(rs * (wdy - (double)hp_num_get(xr, c) * rs * rs * mean)));
        }
    }
}

void hp_rmsnorm_dw_ref(int64_t rows, int64_t width, hp_num x, const float *rstd, hp_num dy,
                       hp_num dw, bool accumulate)
{
    for (int64_t c = 0; c < width; c++) {
        double sum = accumulate ? (double)hp_num_get(dw, c) : 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)hp_num_get(dy, r * width + c) * (double)hp_num_get(x, r * width + c) *
                   (double)rstd[r];
        hp_num_put(dw, c, (float)sum);
    }
}

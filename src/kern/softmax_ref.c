#include "kern/softmax.h"

#include <math.h>

void hp_softmax_ref(int64_t rows, int64_t width, hp_num x, hp_num y)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width);
        double max = -INFINITY, sum = 0;
        for (int64_t c = 0; c < width; c++)
            max = fmax(max, (double)hp_num_get(xr, c));
        for (int64_t c = 0; c < width && max > -INFINITY; c++)
            sum += exp((double)hp_num_get(xr, c) - max);
        for (int64_t c = 0; c < width; c++)
            hp_num_put(y, r * width + c,
                       sum > 0 ? (float)(exp((double)hp_num_get(xr, c) - max) / sum) : 0);
    }
}

void hp_softmax_dx_ref(int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx)
{
    for (int64_t r = 0; r < rows; r++) {
        double dot = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            dot += (double)hp_num_get(y, i) * (double)hp_num_get(dy, i);
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            hp_num_put(dx, i,
                       (float)((double)hp_num_get(y, i) * ((double)hp_num_get(dy, i) - dot)));
    }
}

#include "kern/xent.h"

#include <math.h>

void hp_xent_merge(int64_t rows, const float *a, const float *b, float *out)
{
    for (int64_t i = 0; i < 3 * rows; i += 3) {
        float max = fmaxf(a[i], b[i]);
        float sum = max > -INFINITY ? a[i + 1] * expf(a[i] - max) + b[i + 1] * expf(b[i] - max) : 0;
        float picked = a[i + 2] + b[i + 2];
        out[i] = max;
        out[i + 1] = sum;
        out[i + 2] = picked;
    }
}

double hp_xent_loss(int64_t rows, const int32_t *target, const float *stats, float seed)
{
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        if (target[r] >= 0)
            sum += (double)stats[3 * r] + log((double)stats[3 * r + 1]) - (double)stats[3 * r + 2];
    return sum * (double)seed;
}

int64_t hp_xent_count(int64_t rows, const int32_t *target)
{
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++)
        n += target[r] >= 0;
    return n;
}

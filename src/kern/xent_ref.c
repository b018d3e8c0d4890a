#include "kern/xent.h"

#include <math.h>

/* How many of the local columns are not padding. */
static int64_t open_columns(int64_t lo, int64_t len, int64_t valid)
{
    int64_t n = valid - lo;
    return n < 0 ? 0 : n < len ? n : len;
}

void hp_xent_stats_ref(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                       hp_num logits, float *stats)
{
    int64_t open = open_columns(lo, len, valid);
    for (int64_t r = 0; r < rows; r++) {
        hp_num x = hp_num_at(logits, r * len);
        double max = -INFINITY, sum = 0;
        for (int64_t c = 0; c < open; c++)
            max = fmax(max, (double)hp_num_get(x, c));
        for (int64_t c = 0; c < open; c++)
            sum += exp((double)hp_num_get(x, c) - max);
        int64_t at = target[r] - lo;
        stats[3 * r] = (float)max;
        stats[3 * r + 1] = (float)sum;
        stats[3 * r + 2] = target[r] >= 0 && at >= 0 && at < open ? hp_num_get(x, at) : 0;
    }
}

void hp_xent_dx_ref(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                    hp_num logits, const float *stats, float seed, hp_num dlogits)
{
    int64_t open = open_columns(lo, len, valid);
    for (int64_t r = 0; r < rows; r++) {
        double max = (double)stats[3 * r], sum = (double)stats[3 * r + 1];
        for (int64_t c = 0; c < len; c++) {
            double v = 0;
            if (target[r] >= 0 && c < open)
                v = exp((double)hp_num_get(logits, r * len + c) - max) / sum -
                    (c == target[r] - lo);
            hp_num_put(dlogits, r * len + c, (float)(v * (double)seed));
        }
    }
}

#include "kern/xent.h"

#include "kern/team.h"
#include "kern/xent_simd.h"

#include <math.h>

/* How many of the local columns are not padding. */
static int64_t open_columns(int64_t lo, int64_t len, int64_t valid)
{
    int64_t n = valid - lo;
    return n < 0 ? 0 : hp_team_min(n, len);
}

void hp_xent_stats(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                   hp_num logits, float *stats, int threads)
{
    void (*row)(int64_t, hp_num, float *, float *) = HP_SIMD_PICK(hp_xent_row);
    int64_t open = open_columns(lo, len, valid);
    HP_TEAM_FOR(
        threads, rows * len, for (int64_t r = 0; r < rows; r++) {
            hp_num x = hp_num_at(logits, r * len);
            int64_t at = target[r] - lo;
            row(open, x, stats + 3 * r, stats + 3 * r + 1);
            stats[3 * r + 2] = target[r] >= 0 && at >= 0 && at < open ? hp_num_get(x, at) : 0;
        });
}

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

static void zeros(hp_num y, int64_t n)
{
    if (n > 0)
        memset(y.p, 0, (size_t)(n * hp_num_bytes(y.t)));
}

/* The target's column, where softmax - 1 cancels least in double. */
static float at_target(float x, const float *stats, float seed)
{
    return (float)((exp((double)x - (double)stats[0]) / (double)stats[1] - 1) * (double)seed);
}

void hp_xent_dx(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                hp_num logits, const float *stats, float seed, hp_num dlogits, int threads)
{
    void (*row)(int64_t, float, float, hp_num, hp_num) = HP_SIMD_PICK(hp_xent_dx_row);
    int64_t open = open_columns(lo, len, valid);
    HP_TEAM_FOR(
        threads, rows * len, for (int64_t r = 0; r < rows; r++) {
            hp_num x = hp_num_at(logits, r * len), y = hp_num_at(dlogits, r * len);
            const float *st = stats + 3 * r;
            int64_t at = target[r] - lo;
            if (target[r] < 0) {
                zeros(y, len);
                continue;
            }
            bool here = at >= 0 && at < open;
            float v = here ? at_target(hp_num_get(x, at), st, seed) : 0;
            row(open, st[0], seed / st[1], x, y);
            if (here)
                hp_num_put(y, at, v);
            zeros(hp_num_at(y, open), len - open);
        });
}

int64_t hp_xent_count(int64_t rows, const int32_t *target)
{
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++)
        n += target[r] >= 0;
    return n;
}

#include "kern/rope.h"

#include <math.h>

void hp_rope_ref(int64_t rows, int64_t heads, int64_t d, const int32_t *pos, double theta,
                 bool inverse, hp_num x, hp_num y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d / 2; i++) {
            double a = pos[r] * pow(theta, -2.0 * (double)i / (double)d);
            double c = cos(a), s = inverse ? -sin(a) : sin(a);
            for (int64_t h = 0; h < heads; h++) {
                int64_t lower = (r * heads + h) * d + i, upper = lower + d / 2;
                double x1 = (double)hp_num_get(x, lower), x2 = (double)hp_num_get(x, upper);
                hp_num_put(y, lower, (float)(x1 * c - x2 * s));
                hp_num_put(y, upper, (float)(x2 * c + x1 * s));
            }
        }
}

/* An angle is reduced in double, as turns: the nearest quarter is taken off and the rest, at most an
 * eighth, goes to Taylor polynomials in float (error below 1e-7). */
#include "kern/rope_simd.h"
#include "kern/vec.h"

static inline void sincos_turns(int64_t n, const double *turns, double pos, float sign, float *sine,
                                float *cosine)
{
    for (int64_t i = 0; i < n; i++) {
        double t = turns[i] * pos;
        t -= (double)(int64_t)t;
        int quarter = (int)(4 * t + (t < 0 ? -0.5 : 0.5));
        float r = (float)((t - 0.25 * quarter) * 6.283185307179586), r2 = r * r;
        float s = r * (1 - r2 * (1.0f / 6 - r2 * (1.0f / 120 - r2 * (1.0f / 5040))));
        float c = 1 - r2 * (0.5f - r2 * (1.0f / 24 - r2 * (1.0f / 720 - r2 * (1.0f / 40320))));
        bool odd = quarter & 1;
        float ss = odd ? c : s, cc = odd ? s : c;
        sine[i] = sign * (quarter & 2 ? -ss : ss);
        cosine[i] = (quarter + 1) & 2 ? -cc : cc;
    }
}

void HP_SIMD(hp_rope_rows)(int64_t rows, int64_t heads, int64_t d, int64_t i0, int64_t n,
                           const double *turns, const int32_t *pos, bool inverse, hp_num x,
                           hp_num y)
{
    float sine[HP_ROPE_PAIRS], cosine[HP_ROPE_PAIRS];
    hp_num s = hp_num_f32(sine), c = hp_num_f32(cosine);
    for (int64_t r = 0; r < rows; r++) {
        sincos_turns(n, turns, pos[r], inverse ? -1 : 1, sine, cosine);
        for (int64_t h = 0; h < heads; h++) {
            int64_t lower = (r * heads + h) * d + i0, upper = lower + d / 2;
            for (int64_t i = 0; i < n; i += HP_VL) {
                int64_t left = n - i;
                vf x1 = vld(x, lower + i, left), x2 = vld(x, upper + i, left);
                vf vs = vld(s, i, left), vc = vld(c, i, left);
                vst(y, lower + i, left, x1 * vc - x2 * vs);
                vst(y, upper + i, left, x2 * vc + x1 * vs);
            }
        }
    }
}

/* One pass over memory: columns come in runs that stay in the first cache; a run's larger maximum scales
 * down what was summed before. */
#include "kern/xent_simd.h"
#include "kern/vec.h"

enum { RUN = 1024 };

void HP_SIMD(hp_xent_row)(int64_t n, hp_num x, float *max, float *sum)
{
    float best = -INFINITY;
    double total = 0;
    for (int64_t at = 0; at < n; at += RUN) {
        int64_t end = at + RUN < n ? at + RUN : n;
        vf top = vset(-INFINITY), s = vset(0);
        for (int64_t i = at; i < end; i += HP_VL)
            top = vmax(vrest(vld(x, i, end - i), end - i, -INFINITY), top);
        float here = vtop(top);
        if (here > best) {
            total *= (double)expf(best - here);
            best = here;
        }
        if (!(best > -INFINITY))
            continue;
        for (int64_t i = at; i < end; i += HP_VL)
            s += vexp(vrest(vld(x, i, end - i) - best, end - i, -INFINITY));
        total += (double)vsum(s);
    }
    *max = best;
    *sum = (float)total;
}

void HP_SIMD(hp_xent_dx_row)(int64_t n, float max, float scale, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL)
        vst(y, i, n - i, vexp(vld(x, i, n - i) - max) * scale);
}

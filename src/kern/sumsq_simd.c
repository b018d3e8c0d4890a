#include "kern/sumsq_simd.h"
#include "kern/vec.h"

enum { RUN = 4096 }; /* summed in float before going to double */

double HP_SIMD(hp_sumsq_block)(int64_t n, hp_num x)
{
    double total = 0;
    for (int64_t i0 = 0; i0 < n; i0 += RUN) {
        int64_t end = i0 + RUN < n ? i0 + RUN : n;
        vf sum[4] = {{0}};
        int64_t i = i0;
        for (; i + 4 * HP_VL <= end; i += 4 * HP_VL)
            for (int j = 0; j < 4; j++) {
                vf v = vld(x, i + j * HP_VL, HP_VL);
                sum[j] += v * v;
            }
        for (; i < end; i += HP_VL) {
            vf v = vld(x, i, end - i);
            sum[0] += v * v;
        }
        total += (double)vsum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    return total;
}

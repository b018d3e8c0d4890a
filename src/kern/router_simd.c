#include "kern/router_simd.h"
#include "kern/vec.h"

float HP_SIMD(hp_router_scores)(int64_t e, bool sigmoid, hp_num x, float *score)
{
    hp_num y = hp_num_f32(score);
    vf top = vset(-INFINITY), sum = vset(0);
    for (int64_t i = 0; i < e && !sigmoid; i += HP_VL)
        top = vmax(vrest(vld(x, i, e - i), e - i, -INFINITY), top);
    float max = vtop(top);
    for (int64_t i = 0; i < e; i += HP_VL) {
        vf v = vld(x, i, e - i);
        v = vrest(sigmoid ? vsigmoid(v) : vexp(v - max), e - i, 0);
        sum += v;
        vst(y, i, e - i, v);
    }
    float total = vsum(sum);
    if (sigmoid)
        return total;
    for (int64_t i = 0; i < e; i += HP_VL)
        vst(y, i, e - i, vld(y, i, e - i) / total);
    return 1;
}

#include "kern/softmax_simd.h"
#include "kern/vec.h"

void HP_SIMD(hp_softmax_rows)(int64_t rows, int64_t width, hp_num x, hp_num y)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num xr = hp_num_at(x, r * width), yr = hp_num_at(y, r * width);
        vf top = vset(-INFINITY), sum = vset(0);
        for (int64_t i = 0; i < width; i += HP_VL)
            top = vmax(vrest(vld(xr, i, width - i), width - i, -INFINITY), top);
        float max = vtop(top);
        bool open = max > -INFINITY;
        for (int64_t i = 0; i < width && open; i += HP_VL)
            sum += vexp(vrest(vld(xr, i, width - i) - max, width - i, -INFINITY));
        float scale = open ? 1 / vsum(sum) : 0;
        for (int64_t i = 0; i < width; i += HP_VL)
            vst(yr, i, width - i, open ? vexp(vld(xr, i, width - i) - max) * scale : vset(0));
    }
}

void HP_SIMD(hp_softmax_dx_rows)(int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num yr = hp_num_at(y, r * width), dyr = hp_num_at(dy, r * width);
        hp_num dxr = hp_num_at(dx, r * width);
        vf sum = vset(0);
        for (int64_t i = 0; i < width; i += HP_VL)
            sum += vld(yr, i, width - i) * vld(dyr, i, width - i);
        float dot = vsum(sum);
        for (int64_t i = 0; i < width; i += HP_VL)
            vst(dxr, i, width - i, vld(yr, i, width - i) * (vld(dyr, i, width - i) - dot));
    }
}

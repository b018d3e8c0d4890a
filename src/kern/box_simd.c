#include "kern/box_simd.h"
#include "kern/rop.h"
#include "kern/vec.h"

static inline vf combine(int op, vf a, vf b)
{
    switch (op) {
    case HP_ROP_MAX:
        return vmax(a, b);
    case HP_ROP_MIN:
        return vmin(a, b);
    case HP_ROP_PROD:
        return a * b;
    case HP_ROP_ALL:
        return vsel((a != 0.0f) & (b != 0.0f), vset(1), vset(0));
    default:
        return a + b;
    }
}

/* `op` is a constant in each copy that block below makes of this. */
static inline __attribute__((always_inline)) void run(int op, int n_in, const hp_num *in,
                                                      int64_t at, int64_t n, hp_num y)
{
    for (int64_t i = at; i < at + n; i += HP_VL) {
        int64_t left = at + n - i;
        vf v = vld(in[0], i, left);
        if (op == HP_ROP_ALL)
            v = combine(op, v, vset(1));
        for (int j = 1; j < n_in; j++)
            v = combine(op, v, vld(in[j], i, left));
        vst(y, i, left, v);
    }
}

void HP_SIMD(hp_reduce_block)(int op, int n_in, const hp_num *in, int64_t at, int64_t n, hp_num y)
{
    switch (op) {
    case HP_ROP_MAX:
        run(HP_ROP_MAX, n_in, in, at, n, y);
        break;
    case HP_ROP_MIN:
        run(HP_ROP_MIN, n_in, in, at, n, y);
        break;
    case HP_ROP_PROD:
        run(HP_ROP_PROD, n_in, in, at, n, y);
        break;
    case HP_ROP_ALL:
        run(HP_ROP_ALL, n_in, in, at, n, y);
        break;
    default:
        run(HP_ROP_SUM, n_in, in, at, n, y);
    }
}

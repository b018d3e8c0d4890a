#include "kern/optim.h"

#include "kern/optim_simd.h"
#include "kern/team.h"

#include <math.h>

void hp_adamw(int64_t n, const hp_optim *o, float *p, hp_num g, float *m, float *v, uint16_t *p16,
              int threads)
{
    void (*block)(int64_t, const hp_adamw_now *, hp_num, hp_num, hp_num, hp_num, hp_num) =
        HP_SIMD_PICK(hp_adamw_block);
    double step = (double)o->step;
    hp_adamw_now now = {.beta1 = (float)o->beta1,
                        .beta2 = (float)o->beta2,
                        .rest1 = (float)(1 - o->beta1),
                        .rest2 = (float)(1 - o->beta2),
                        .c1 = (float)(o->lr / (1 - pow(o->beta1, step))),
                        .c2 = (float)(1 / (1 - pow(o->beta2, step))),
                        .eps = (float)o->eps,
                        .keep = (float)(1 - o->lr * o->decay),
                        .grad_scale = o->grad_scale};
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(hp_team_min(n - i, HP_TEAM_BLOCK), &now, hp_num_f32(p + i),
                          hp_num_at(g, i), hp_num_f32(m + i), hp_num_f32(v + i),
                          p16 ? hp_num_bf16(p16 + i) : hp_num_none()));
}

void hp_sgd(int64_t n, const hp_optim *o, float *p, hp_num g, uint16_t *p16, int threads)
{
    void (*block)(int64_t, float, float, hp_num, hp_num, hp_num) = HP_SIMD_PICK(hp_sgd_block);
    float lr = (float)(o->lr * (double)o->grad_scale), keep = (float)(1 - o->lr * o->decay);
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(hp_team_min(n - i, HP_TEAM_BLOCK), lr, keep, hp_num_f32(p + i),
                          hp_num_at(g, i), p16 ? hp_num_bf16(p16 + i) : hp_num_none()));
}

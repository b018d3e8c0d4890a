#include "kern/optim.h"

#include <math.h>

void hp_adamw_ref(int64_t n, const hp_optim *o, float *p, hp_num g, float *m, float *v,
                  uint16_t *p16)
{
    double c1 = 1 - pow(o->beta1, (double)o->step), c2 = 1 - pow(o->beta2, (double)o->step);
    for (int64_t i = 0; i < n; i++) {
        double gi = (double)hp_num_get(g, i) * (double)o->grad_scale;
        double mi = o->beta1 * (double)m[i] + (1 - o->beta1) * gi;
        double vi = o->beta2 * (double)v[i] + (1 - o->beta2) * gi * gi;
        double step = mi / c1 / (sqrt(vi / c2) + o->eps) + o->decay * (double)p[i];
        m[i] = (float)mi;
        v[i] = (float)vi;
        p[i] = (float)((double)p[i] - o->lr * step);
        if (p16)
            p16[i] = hp_f32_bf16(p[i]);
    }
}

void hp_sgd_ref(int64_t n, const hp_optim *o, float *p, hp_num g, uint16_t *p16)
{
    for (int64_t i = 0; i < n; i++) {
        double gi = (double)hp_num_get(g, i) * (double)o->grad_scale;
        p[i] = (float)((double)p[i] - o->lr * (gi + o->decay * (double)p[i]));
        if (p16)
            p16[i] = hp_f32_bf16(p[i]);
    }
}

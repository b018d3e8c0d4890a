/* optim.h -- optimizer steps over a flat range of parameters.
 *
 * AdamW with decoupled decay (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) and Adam's bias
 * correction (Kingma and Ba, arXiv 1412.6980); g is first multiplied by grad_scale (clipping):
 *   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
 *   p = p - lr (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps) + decay p)
 * SGD: p = p - lr (g + decay p). 28 bytes of traffic a parameter for AdamW in float.
 */
#ifndef HP_KERN_OPTIM_H
#define HP_KERN_OPTIM_H

#include "kern/num.h"

typedef struct hp_optim {
    double lr, beta1, beta2, eps, decay;
    float grad_scale;
    int64_t step; /* from 1 */
} hp_optim;

/* hp_adamw updates p, m, v [n] from g [n]; `p16` (NULL: none) receives p rounded to bf16. */
void hp_adamw(int64_t n, const hp_optim *o, float *p, hp_num g, float *m, float *v, uint16_t *p16,
              int threads);
void hp_adamw_ref(int64_t n, const hp_optim *o, float *p, hp_num g, float *m, float *v,
                  uint16_t *p16);

/* hp_sgd updates p [n] from g [n]. */
void hp_sgd(int64_t n, const hp_optim *o, float *p, hp_num g, uint16_t *p16, int threads);
void hp_sgd_ref(int64_t n, const hp_optim *o, float *p, hp_num g, uint16_t *p16);

#endif

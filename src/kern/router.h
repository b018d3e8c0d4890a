/* router.h -- which experts a token goes to, with which weight.
 *
 * score = softmax(logits) or sigmoid(logits) over the e experts. Chosen are the k largest of
 * score + bias, ties to the lower index, in falling order. With n_group > 1 the experts are cut into
 * n_group equal groups and only those of the topk_group best groups count, a group's worth being the
 * sum of its two best score + bias (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). The weight is the
 * score without bias, divided by the sum of the k chosen when `normalise`, times `scale`.
 *
 * The balance loss's parts, per sequence: f[b, e] = e / (k s_full) x times chosen,
 * p[b, e] = 1 / s_full x sum over the local tokens of score / sum of scores. Over a split sequence
 * both add up. The choices carry no gradient, p does.
 */
#ifndef HP_KERN_ROUTER_H
#define HP_KERN_ROUTER_H

#include "kern/num.h"

enum { HP_ROUTER_MAX_EXPERTS = 4096 };

typedef struct hp_router_shape {
    int64_t b, s, e, k; /* local batch and sequence; k <= e <= HP_ROUTER_MAX_EXPERTS */
    int64_t s_full;     /* length of the whole sequence */
    bool sigmoid, normalise;
    int64_t n_group, topk_group; /* n_group <= 1: no groups */
    float scale;
} hp_router_shape;

/* hp_router reads logits [b, s, e] and bias [e] (NULL: none) and writes idx [b, s, k], w [b, s, k], and
 * f and p [b, e] unless NULL. */
void hp_router(const hp_router_shape *r, hp_num logits, const float *bias, int32_t *idx, hp_num w,
               float *f, float *p, int threads);
void hp_router_ref(const hp_router_shape *r, hp_num logits, const float *bias, int32_t *idx,
                   hp_num w, float *f, float *p);

/* hp_router_dx writes dlogits [b, s, e] from dw [b, s, k] and dp [b, e] (either may be NULL). */
void hp_router_dx(const hp_router_shape *r, hp_num logits, const int32_t *idx, hp_num dw,
                  const float *dp, hp_num dlogits, int threads);
void hp_router_dx_ref(const hp_router_shape *r, hp_num logits, const int32_t *idx, hp_num dw,
                      const float *dp, hp_num dlogits);

#endif

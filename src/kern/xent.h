/* xent.h -- cross-entropy in pieces that a split vocabulary can merge.
 *
 * logits [rows, len] are columns lo .. lo+len-1 of the vocabulary, of which columns >= `valid` are
 * padding and masked out. target [rows]; a negative target is ignored. Per row three numbers,
 * stats [rows, 3] = (max, sum of exp(x - max), logit of the target or 0 where it is not here); no
 * column gives (-inf, 0, 0). Stats over disjoint columns merge as log-sum-exp does.
 */
#ifndef HP_KERN_XENT_H
#define HP_KERN_XENT_H

#include "kern/num.h"

/* hp_xent_stats writes stats of the local columns. */
void hp_xent_stats(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                   hp_num logits, float *stats, int threads);
void hp_xent_stats_ref(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                       hp_num logits, float *stats);

/* hp_xent_merge writes the stats of two disjoint sets of columns; `out` may be `a` or `b`. */
void hp_xent_merge(int64_t rows, const float *a, const float *b, float *out);

/* hp_xent_loss returns `seed` times the sum over rows with a target of max + log(sum) - picked, summed in
 * row order in double. */
double hp_xent_loss(int64_t rows, const int32_t *target, const float *stats, float seed);

/* hp_xent_dx writes dlogits = (softmax - [column is the target]) seed from merged stats; zero for
 * ignored rows and padding columns. dlogits may be logits. */
void hp_xent_dx(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                hp_num logits, const float *stats, float seed, hp_num dlogits, int threads);
void hp_xent_dx_ref(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                    hp_num logits, const float *stats, float seed, hp_num dlogits);

/* hp_xent_count returns how many targets are not negative. */
int64_t hp_xent_count(int64_t rows, const int32_t *target);

#endif

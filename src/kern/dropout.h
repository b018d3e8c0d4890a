/* dropout.h -- drops elements by random numbers that are addressed by position.
 *
 * Whether element i of the *whole* tensor is kept is hp_rng_f32(stream, i) >= rate, so that the same
 * elements go under any split; what is kept is divided by 1 - rate (Srivastava et al. 2014, inverted).
 * The backward pass is the same function on dy.
 */
#ifndef HP_KERN_DROPOUT_H
#define HP_KERN_DROPOUT_H

#include "kern/num.h"

enum { HP_DROPOUT_DIMS = 6 };

/* hp_dropout_at says which part of the whole tensor the local box is: len[d] of full[d] elements from
 * lo[d] on, row-major. */
typedef struct hp_dropout_at {
    uint64_t stream; /* hp_rng_key of seed, step, microbatch and the node's name */
    float rate;      /* in [0, 1) */
    int nd;
    int64_t lo[HP_DROPOUT_DIMS], len[HP_DROPOUT_DIMS], full[HP_DROPOUT_DIMS];
} hp_dropout_at;

/* hp_dropout writes y = x / (1 - rate) where kept and 0 elsewhere; y may be x. */
void hp_dropout(const hp_dropout_at *at, hp_num x, hp_num y, int threads);
void hp_dropout_ref(const hp_dropout_at *at, hp_num x, hp_num y);

#endif

/* gather.h -- whole tensors out of the pieces that ranks hold.
 *
 * A *slot* is one buffer of one program in one microbatch (-1: once a step). Every rank gives its
 * box; a slot is assembled once for each copy that the layout replicates, partial values combined
 * by their reduction. Room: session.
 */
#ifndef HP_SESSION_GATHER_H
#define HP_SESSION_GATHER_H

#include "op/op.h"
#include "plan/plan.h"

#include <stdbool.h>

typedef struct hp_gather hp_gather;

/* hp_gather_new returns an empty collection for a plan (borrowed); hp_gather_free frees it, NULL
 * is nothing. */
hp_gather *hp_gather_new(const hp_plan *p);
void hp_gather_free(hp_gather *g);

/* hp_gather_put copies a rank's box of a slot, replacing what it gave before. May be called by
 * several threads at once. */
void hp_gather_put(hp_gather *g, int program, int buffer, int micro, int rank, const hp_operand *o);

/* hp_gather_has says whether any rank has given its box of a slot. */
bool hp_gather_has(const hp_gather *g, int program, int buffer, int micro);

/* hp_gather_copies returns how many copies of a slot's buffer the layout makes; rank_of[copy]
 * (may be NULL, n_ranks long) is a rank that holds a part of it. */
int hp_gather_copies(const hp_gather *g, int program, int buffer, int *rank_of);

/* hp_gather_whole writes copy number `copy` of a slot into out[elements of the shape],
 * row-major, as f32. False when a rank's box is missing, or when the buffer is routed or partial
 * in a way that has no elementwise sum (LSE, AVG, PROD, ALL). */
bool hp_gather_whole(const hp_gather *g, int program, int buffer, int micro, int copy, float *out);

/* hp_gather_f32 converts an operand's elements (f32, bf16, i32) to f32. */
void hp_gather_f32(const hp_operand *o, float *out);

#endif

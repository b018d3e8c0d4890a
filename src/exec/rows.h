/* rows.h -- which rows of a routed buffer a rank holds (graph.h): those of its box that the router's choices name.
 *
 * The choices lie in the rank's route buffer, whose box covers the tokens of the routed box and may be larger. Room: exec; uses kern, op, shard.
 */
#ifndef HP_EXEC_ROWS_H
#define HP_EXEC_ROWS_H

#include "kern/routed.h"
#include "op/op.h"
#include "shard/layout.h"

/* hp_rows is the row table of one rank's box, with the tokens of the box alone. */
typedef struct hp_rows {
    hp_box box;         /* [batch, seq, experts, width] */
    const int32_t *idx; /* [tokens of the box, k] */
    hp_route route;
} hp_rows;

/* hp_rows_count returns how many rows of `box` exist by `choices` [batch, seq, k], whose box must cover the tokens. */
int64_t hp_rows_count(const hp_operand *choices, const hp_box *box);

/* hp_rows_bytes returns the storage hp_rows_build needs for boxes up to `box` with k choices a token. */
size_t hp_rows_bytes(const hp_box *box, int64_t k);

/* hp_rows_build fills *r, whose lists lie in `storage` (aligned to 64). */
void hp_rows_build(const hp_operand *choices, const hp_box *box, void *storage, hp_rows *r);

#endif

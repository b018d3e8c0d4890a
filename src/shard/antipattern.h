/* antipattern.h -- moves of a placement that a better plan would not make, found and named.
 *
 * None of them is wrong in numbers; each is bytes for nothing. Room: shard.
 */
#ifndef HP_SHARD_ANTIPATTERN_H
#define HP_SHARD_ANTIPATTERN_H

#include "shard/place.h"

typedef enum hp_antipattern_kind {
    HP_ANTI_GATHER_SLICE, /* an all-gather whose result nobody uses but slices over the same axes */
    HP_ANTI_GATHER_TWICE, /* two all-gathers of one tensor to one layout in one phase */
    HP_ANTI_ALL_REDUCE /* an all-reduce whose result nobody uses but slices over the same axes: a reduce-scatter would do */
} hp_antipattern_kind;

/* hp_antipattern is one find: the offending step and the one that makes it so. */
typedef struct hp_antipattern {
    hp_antipattern_kind kind;
    int tensor, step, other;
} hp_antipattern;

/* hp_antipattern_find lists all finds in the order of their steps and returns how many; *out is owned by the caller (free), NULL when none. */
int hp_antipattern_find(const hp_placement *p, hp_antipattern **out);

/* hp_antipattern_print appends one sentence: what, of which tensor, for whom, over which axes, at which steps, and what would do instead. */
void hp_antipattern_print(const hp_graph *g, const hp_mesh *m, const hp_placement *p,
                          const hp_antipattern *a, hp_str *out);

#endif

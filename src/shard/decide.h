/* decide.h -- the layouts one node computes in: every combination of modes priced, the cheapest taken.
 *
 * A mode says how the node lies over one unit of atoms (atoms that nothing concerned tells apart move together):
 *   R         everything replicated: each rank of the unit computes the same;
 *   L(label)  operands with the label split there, inputs without it replicated, outputs without it partial by their reduction;
 *   P(group)  the inputs of a linear group partial(sum), the others replicated, outputs partial(sum).
 * Price: moves to the inputs from their cheapest copies + moves of the outputs to their targets (nobody makes those now) + the operation itself.
 * Of equal prices: fewest outputs left partial, unless a later linear node could share the reduction; then most split. Room: shard.
 */
#ifndef HP_SHARD_DECIDE_H
#define HP_SHARD_DECIDE_H

#include "shard/routes.h"

enum { HP_MAX_COPIES = 16 };

/* hp_choice_operand is one operand of the node as the decision sees it: numbers of hp_routes only, so that equal questions are equal bytes. */
typedef struct hp_choice_operand {
    int shape;  /* -1: absent */
    int target; /* layout; a weight gradient's: its parameter's */
    int same;   /* first operand with the same tensor */
    int n_copies, copy[HP_MAX_COPIES];
    uint32_t late; /* output: atoms over which a later node may share the reduction */
    uint8_t fixed, free,
        weight; /* parameter or buffer (exactly in `target`); input (in any layout); weight gradient */
} hp_choice_operand;

typedef struct hp_choice {
    const hp_node *node;
    const hp_shape *shape[HP_MAX_OPERANDS];
    hp_choice_operand op[HP_MAX_OPERANDS];
    uint32_t ring;            /* atoms over which label ring_to goes with label ring_from; 0: none */
    int ring_from, ring_to;
} hp_choice;

/* hp_decision is the answer: the layout of every operand (-1 absent). */
typedef struct hp_decision {
    bool possible;
    int layout[HP_MAX_OPERANDS];
    double op_cost;
} hp_decision;

/* hp_decide answers a choice. With `strict` a weight gradient must come out split exactly as its parameter. Not possible: no mode serves the
 * parameters. */
hp_decision hp_decide(hp_routes *r, const hp_choice *c, bool strict);

/* hp_decide_weight_goal returns where a weight gradient that was made otherwise has to go: the parameter's split, partial as before elsewhere. */
int hp_decide_weight_goal(hp_routes *r, int made, int target);

/* hp_decide_conflict returns the first operand whose fixed layout the node cannot compute in, with its dimension; -1 when each alone could be served. */
int hp_decide_conflict(hp_routes *r, const hp_choice *c, int *dim);

#endif

/* place.h -- placement: which layout every node of a stage computes in, and the moves between.
 *
 * Greedy in topological order over *copies*: a tensor may exist in several layouts at once. Per node and atom the candidate modes are: R (all
 * replicated), L(label) (operands with the label split, outputs without it partial), P(group) (a linear group's inputs partial, outputs partial). A
 * combination is priced as: cheapest moves from existing copies to the required inputs + moves from the outputs to their targets + redundant compute.
 * Rules that keep plans good (communication bytes alone choose bad ones):
 *   - a parameter's compute layout is a hard constraint: parameters never move here; a weight gradient is split exactly as its parameter (partial over other atoms);
 *   - reduce late: outputs stay partial until a consumer needs them whole; a replicated value is never made partial; once reduced, the partial copy is dropped;
 *   - targets price the future, they do not force a reduction;
 *   - inputs (HP_T_INPUT) exist in every layout for free;
 *   - at the turn from forward to backward only the copies worth saving stay visible: per tensor the smallest per-rank, the latest among equals.
 * Decisions are memoised on (operation, shapes, copy layouts, targets, phase): planning does not grow with depth. Room: shard.
 */
#ifndef HP_SHARD_PLACE_H
#define HP_SHARD_PLACE_H

#include "shard/redist.h"

typedef struct hp_copy {
    int tensor;
    hp_layout layout;
    int step; /* index of the step that makes it, -1: exists from the start (parameter, input) */
    hp_phase phase; /* in which it was made */
} hp_copy;

typedef struct hp_step {
    int node; /* >= 0: run this node; -1: a move */
    int copy
        [HP_MAX_OPERANDS]; /* node: copies of its operands (inputs, outputs; -1 absent). move: copy[0] -> copy[1] */
    hp_move move;
    int consumer; /* move: the node for which it was made (the `why`) */
    hp_phase phase;
    double cost;
} hp_step;

typedef struct hp_placement {
    int n_copies, cap_copies;
    hp_copy *copy;
    int n_steps, cap_steps;
    hp_step *step;
    int n_decisions, n_memo; /* how many were searched, how many remembered */
} hp_placement;

/* hp_place_in is what placement needs to know of a stage. Arrays are indexed by tensor id of the graph. */
typedef struct hp_place_in {
    const hp_graph *g;
    const hp_mesh *mesh;
    const hp_shape *shape;   /* global shapes with cuts */
    const hp_layout *target; /* wished layout of every activation and gradient; compute layout of
                              * every parameter and buffer */
    const bool *given;       /* tensors that exist from the start in their target layout besides
                              * inputs and parameters (received from another stage) */
    int n_nodes;
    const int *node;         /* the stage's nodes in topological order */
    const hp_price *price;
    uint32_t ring;           /* atoms along which keys and values may circulate instead of being
                              * gathered: where a node of ring_from >= 0 splits that label over
                              * them, ring_to is split with it (its outputs come home whole; the
                              * lowering emits the ring) */
    const int8_t *ring_from, *ring_to; /* by node: labels, -1; NULL: no rings */
    bool split_weights;      /* W is a template of its own: copies made by WGRAD steps are
                              * invisible to BWD steps */
} hp_place_in;

/* hp_place fills *out (zeroed; freed by hp_placement_fini). HP_EINFEASIBLE names the node and operand that no mode can serve. */
hp_err hp_place(const hp_place_in *in, hp_placement *out, hp_errmsg *e);

/* hp_placement_fini frees the arrays; zeroed = empty. */
void hp_placement_fini(hp_placement *p);

#endif

/* flow.h -- which boxes a redistribution within a mesh moves: every rank's new box, assembled from its group's old boxes.
 *
 * For every rank the flow lists *pieces*: a box of the tensor, the ranks that hold it (several: parts to be reduced, in rank order) and the ranks that
 * receive it. A piece belongs to the *share* of one rank. Where several ranks of a group receive the same reduced box, each reduces a part of it for all
 * (an all-reduce). A flow depends on layouts, shape and group alone, never on data. Room: exec; uses shard.
 */
#ifndef HP_EXEC_FLOW_H
#define HP_EXEC_FLOW_H

#include "shard/redist.h"

typedef struct hp_piece {
    hp_box box;
    const int *src, *dst; /* ranks, ascending */
    int n_src, n_dst;
} hp_piece;

typedef struct hp_flow {
    hp_arena arena;
    hp_reduce red; /* how sources combine, NONE where no piece has several */
    bool
        in_place; /* right where source and destination are the same memory: every share reads only what it writes */
    int n_ranks;
    int *first; /* [n_ranks + 1]: rank r's share is piece[first[r]] .. */
    hp_piece *piece;
} hp_flow;

/* hp_flow_new makes the flow from layout `from` to `to` of a tensor within the groups of `atoms` (0: every rank by itself); from_box and to_box
 * [n_ranks] are what the ranks hold (the layouts' boxes, or those turned along a ring). HP_EINFEASIBLE says
 * why no group member could supply a box, or that two kinds of reduction meet in one move. */
hp_err hp_flow_new(const hp_mesh *m, uint32_t atoms, const hp_layout *from, const hp_layout *to,
                   const hp_box *from_box, const hp_box *to_box, hp_flow **out, hp_errmsg *e);

/* hp_flow_free frees a flow; NULL is nothing. */
void hp_flow_free(hp_flow *f);

/* hp_groups are the groups of a mask of atoms: member[group * size + i], ascending within a group. */
typedef struct hp_groups {
    uint32_t atoms;
    int n, size;
    int *of; /* [n_ranks]: group of a rank */
    int *member;
} hp_groups;

/* hp_groups_init fills *g; hp_groups_fini frees it. */
void hp_groups_init(hp_groups *g, const hp_mesh *m, uint32_t atoms);
void hp_groups_fini(hp_groups *g);

#endif

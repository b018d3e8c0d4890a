/* redist.h -- from one layout of a tensor to another: the cheapest sequence of collectives.
 *
 * Steps: slice (local), all-gather, reduce-scatter, all-reduce, all-to-all, permute (box intersection, the universal fallback). The search is
 * Dijkstra over layouts, pruned to the atoms that differ after the common prefix; a fast path (an atom goes only to replicated or to its final place) gives the upper
 * bound. Between different meshes (pipeline stages, towers): partials are reduced at the source, destination boxes intersect source boxes, each
 * piece comes from the least loaded replica, ordered by (source, destination). Room: shard; uses layout.
 */
#ifndef HP_SHARD_REDIST_H
#define HP_SHARD_REDIST_H

#include "shard/layout.h"

typedef enum hp_coll {
    HP_COLL_SLICE,
    HP_COLL_ALL_GATHER,
    HP_COLL_REDUCE_SCATTER,
    HP_COLL_ALL_REDUCE,
    HP_COLL_ALL_TO_ALL,
    HP_COLL_PERMUTE,
    HP_COLL_SEND_RECV /* across meshes */
} hp_coll;

/* hp_coll_name returns "slice", "all-gather", ...; hp_coll_find the inverse, -1 when unknown. */
const char *hp_coll_name(hp_coll k);
int hp_coll_find(const char *name);

/* hp_move is one step. Its meaning is fully given by (from, to): every rank's new box, assembled from the group's old
 * boxes, reduced in rank order where `from` is partial and `to` is not. */
typedef struct hp_move {
    hp_coll kind;
    uint32_t atoms; /* the group: ranks that differ in these atoms only */
    hp_layout from, to;
} hp_move;

/* hp_price gives the search its costs in seconds; filled by plan from the cost room. `bytes` is what a rank with the largest boxes sends by the
 * formulas of hp_move_bytes. Where a price is NULL, a collective costs 1 us and 1 ns a byte, a pass 1 ps a byte, an operation nothing. */
typedef struct hp_price {
    void *ctx;
    double (*coll)(void *ctx, const hp_mesh *m, hp_coll kind, uint32_t atoms, double bytes);
    double (*op)(void *ctx, const hp_node *n,
                 const hp_shape *local);     /* seconds of a node on local shapes, one an operand */
    double (*pass)(void *ctx, double bytes); /* seconds to read or write bytes of device memory */
} hp_price;

/* hp_move_source returns the rank of the group from which member number `dst` takes what it needs of the box of member number `src` (numbers as
 * hp_mesh_group lists them): itself where it holds that box, else owner number `dst` modulo their count. `box` is what every member holds before. */
int hp_move_source(const hp_box *box, int n, int src, int dst);

/* hp_move_bytes returns the bytes that `rank` sends in a move by the standard algorithms: all-gather and reduce-scatter (n-1)/n of the whole,
 * all-reduce twice that, all-to-all (n-1)/n of the local part (ring; Thakur, Rabenseifner, Gropp 2005); uneven boxes by their real sizes. Slice: 0.
 * Exactly, in a group of n with member i to the left of i+1: an all-gather sends the whole without the box of i+1, a reduce-scatter the whole
 * without the own new box, an all-reduce both on n balanced parts of the flat box, all-to-all and permute each element whose new owner lacks it,
 * once, from the owner that hp_move_source names. Over the group, bytes sent equal bytes received. */
double hp_move_bytes(const hp_mesh *m, const hp_move *mv, const hp_shape *shape, int elem_bytes,
                     int rank);

enum { HP_MAX_MOVES = 12 };
typedef struct hp_path {
    int n;
    hp_move move[HP_MAX_MOVES];
    double cost; /* seconds by hp_price */
    bool capped; /* the full search hit its limit; the best path found until then stands */
} hp_path;

/* hp_redist_path finds the cheapest path. Never makes a replicated value partial: an atom partial in `to` must be partial in `from` (else HP_EINFEASIBLE). */
hp_err hp_redist_path(const hp_mesh *m, const hp_shape *shape, int elem_bytes,
                      const hp_layout *from, const hp_layout *to, const hp_price *price,
                      hp_path *path, hp_errmsg *e);

/* hp_redist_price returns the seconds of one step between two layouts of `shape` by `price`; elem_bytes may be a fraction (sparse tensors). */
double hp_redist_price(const hp_mesh *m, const hp_shape *shape, double elem_bytes,
                       const hp_move *mv, const hp_price *price);

/* hp_redist_search is hp_redist_path for elements of any, also fractional, size. */
hp_err hp_redist_search(const hp_mesh *m, const hp_shape *shape, double elem_bytes,
                        const hp_layout *from, const hp_layout *to, const hp_price *price,
                        hp_path *path, hp_errmsg *e);

/* hp_xmove is one message of a redistribution between meshes: `box` goes from rank `src` of the source mesh to rank `dst` of the destination mesh. */
typedef struct hp_xmove {
    int src, dst;
    hp_box box;
} hp_xmove;

/* hp_redist_cross lists the messages from (ma, a) to (mb, b), ordered by (src, dst); `a` must not be partial. Owned by the caller (free). */
hp_err hp_redist_cross(const hp_mesh *ma, const hp_layout *a, const hp_mesh *mb, const hp_layout *b,
                       const hp_shape *shape, hp_xmove **out, int *n, hp_errmsg *e);

#endif

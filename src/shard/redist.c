/* redist.c -- what one step of a redistribution moves, and what it costs. */
#include "shard/redist.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const coll_name[] = {"slice",      "all-gather", "reduce-scatter", "all-reduce",
                                        "all-to-all", "permute",    "send-recv"};

const char *hp_coll_name(hp_coll k)
{
    return coll_name[k];
}

int hp_coll_find(const char *name)
{
    for (int k = HP_COLL_SLICE; k <= HP_COLL_SEND_RECV; k++)
        if (strcmp(coll_name[k], name) == 0)
            return k;
    return -1;
}

static bool same_box(const hp_box *a, const hp_box *b)
{
    for (int d = 0; d < a->nd; d++)
        if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d])
            return false;
    return true;
}

int hp_move_source(const hp_box *box, int n, int src, int dst)
{
    if (same_box(&box[dst], &box[src]))
        return dst;
    int owners = 0;
    for (int k = 0; k < n; k++)
        owners += same_box(&box[k], &box[src]);
    for (int k = 0, left = dst % owners; k < n; k++)
        if (same_box(&box[k], &box[src]) && left-- == 0)
            return k;
    assert(false);
    return src;
}

/* Elements that member `me` sends so that every member gets its new box from the old ones. */
static int64_t sent_by_owner(const hp_box *from, const hp_box *to, int n, int me)
{
    int64_t sent = 0;
    for (int dst = 0; dst < n; dst++) {
        if (dst == me || hp_move_source(from, n, me, dst) != me)
            continue;
        hp_box part = hp_box_meet(&from[me], &to[dst]);
        sent += hp_box_size(&part);
    }
    return sent;
}

/* Length of part i of n balanced parts. */
static int64_t balanced(int64_t whole, int n, int i)
{
    return whole / n + (i < whole % n);
}

static int64_t sent_elements(hp_coll kind, const hp_box *from, const hp_box *to, int n, int me)
{
    int64_t whole = 0;
    switch (kind) {
    case HP_COLL_ALL_GATHER:
        for (int k = 0; k < n; k++)
            whole += hp_box_size(&from[k]);
        return whole - hp_box_size(&from[(me + 1) % n]);
    case HP_COLL_REDUCE_SCATTER:
        return hp_box_size(&from[me]) - hp_box_size(&to[me]);
    case HP_COLL_ALL_REDUCE:
        whole = hp_box_size(&from[me]);
        return 2 * whole - balanced(whole, n, me) - balanced(whole, n, (me + 1) % n);
    case HP_COLL_ALL_TO_ALL:
    case HP_COLL_PERMUTE:
        return sent_by_owner(from, to, n, me);
    case HP_COLL_SLICE:
    case HP_COLL_SEND_RECV:
        break;
    }
    return 0;
}

double hp_move_bytes(const hp_mesh *m, const hp_move *mv, const hp_shape *shape, int elem_bytes,
                     int rank)
{
    if (mv->kind == HP_COLL_SLICE)
        return 0;
    int n = hp_mesh_group_size(m, mv->atoms), me = 0;
    int *member = hp_xmalloc((size_t)n * sizeof *member);
    hp_box *box = hp_xmalloc(2 * (size_t)n * sizeof *box);
    hp_mesh_group(m, rank, mv->atoms, member);
    for (int i = 0; i < n; i++) {
        if (member[i] == rank)
            me = i;
        box[i] = hp_layout_box(m, &mv->from, shape, member[i]);
        box[n + i] = hp_layout_box(m, &mv->to, shape, member[i]);
    }
    double sent = (double)sent_elements(mv->kind, box, box + n, n, me);
    free(member);
    free(box);
    return sent * elem_bytes;
}

/* --- prices -------------------------------------------------------------------------------------- */

enum {
    MAX_EXACT = 64
}; /* groups up to this size have a permute's bytes counted, larger ones the whole new box */

/* The most elements that a rank of rank 0's group lacks of its new box. */
static double most_received(const hp_mesh *m, const hp_shape *shape, const hp_move *mv)
{
    int n = hp_mesh_group_size(m, mv->atoms), member[MAX_EXACT];
    if (n > MAX_EXACT)
        return (double)hp_layout_max_size(m, &mv->to, shape);
    int64_t most = 0;
    hp_mesh_group(m, 0, mv->atoms, member);
    for (int i = 0; i < n; i++) {
        hp_box to = hp_layout_box(m, &mv->to, shape, member[i]),
               from = hp_layout_box(m, &mv->from, shape, member[i]);
        hp_box kept = hp_box_meet(&to, &from);
        int64_t lacks = hp_box_size(&to) - hp_box_size(&kept);
        most = lacks > most ? lacks : most;
    }
    return (double)most;
}

/* Elements that a rank with the largest boxes sends. */
static double largest_sent(const hp_mesh *m, const hp_shape *shape, const hp_move *mv)
{
    double n = hp_mesh_group_size(m, mv->atoms), share = (n - 1) / n;
    switch (mv->kind) {
    case HP_COLL_ALL_GATHER:
        return share * (double)hp_layout_max_size(m, &mv->to, shape);
    case HP_COLL_REDUCE_SCATTER:
    case HP_COLL_ALL_TO_ALL:
        return share * (double)hp_layout_max_size(m, &mv->from, shape);
    case HP_COLL_ALL_REDUCE:
        return 2 * share * (double)hp_layout_max_size(m, &mv->from, shape);
    case HP_COLL_PERMUTE:
        return most_received(m, shape, mv);
    case HP_COLL_SLICE:
    case HP_COLL_SEND_RECV:
        break;
    }
    return 0;
}

/* A slice and a permute also read and write the new box; a permute would else be a slice for nothing. */
static double pass_price(const hp_mesh *m, const hp_shape *shape, double elem_bytes,
                         const hp_move *mv, const hp_price *price)
{
    if (mv->kind != HP_COLL_SLICE && mv->kind != HP_COLL_PERMUTE)
        return 0;
    double bytes = 2 * elem_bytes * (double)hp_layout_max_size(m, &mv->to, shape);
    return price && price->pass ? price->pass(price->ctx, bytes) : bytes * 1e-12;
}

double hp_redist_price(const hp_mesh *m, const hp_shape *shape, double elem_bytes,
                       const hp_move *mv, const hp_price *price)
{
    double pass = pass_price(m, shape, elem_bytes, mv, price);
    if (mv->kind == HP_COLL_SLICE)
        return pass;
    double bytes = elem_bytes * largest_sent(m, shape, mv);
    return pass + (price && price->coll ? price->coll(price->ctx, m, mv->kind, mv->atoms, bytes)
                                        : 1e-6 + bytes * 1e-9);
}

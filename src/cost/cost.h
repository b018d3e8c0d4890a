/* cost.h -- how long things take: pure functions of a cluster and numbers, one source for sim,
 * search and placement.
 *
 * Operation: launch + max(flops / (peak x efficiency(shape)), bytes / (bandwidth x
 * efficiency(size))), the roofline of Williams, Waterman, Patterson (CACM 2009) with measured
 * efficiencies. Collective: by the levels that its group spans, the cheapest legal algorithm of
 * those that real libraries have, in the alpha-beta model of Thakur, Rabenseifner, Gropp (IJHPCA
 * 2005). `bytes` of a collective is always what its largest rank *sends* by the standard algorithms
 * (shard's hp_move_bytes): all-gather and reduce-scatter (n-1)/n of the whole, all-reduce twice
 * that, all-to-all (n-1)/n of the local part. Room: cost; uses cluster.
 */
#ifndef HP_COST_COST_H
#define HP_COST_COST_H

#include "cluster/cluster.h"

/* hp_work is what an operation does on one device: op's hp_op_work as plain numbers. */
typedef struct hp_work {
    double matmul_flops, other_flops, bytes;
    int64_t m, n, k, groups; /* GEMM shape when it is one (0 else) */
} hp_work;

/* Which of the terms an operation's time is. */
typedef enum hp_bound { HP_BOUND_LAUNCH, HP_BOUND_FLOPS, HP_BOUND_BYTES } hp_bound;

/* hp_cost_op returns seconds on a device that computes matrix products at `rate`; *why (may be
 * NULL) is the largest term. */
double hp_cost_op(const hp_cluster *c, const hp_work *w, hp_rate rate, hp_bound *why);

/* hp_cost_gemm_efficiency returns the fraction of the peak that an m x n x k product (groups of
 * them) reaches. */
double hp_cost_gemm_efficiency(const hp_cluster *c, hp_rate rate, int64_t m, int64_t n, int64_t k);

/* hp_cost_pass returns seconds to read or write `bytes` of device memory, without launch. */
double hp_cost_pass(const hp_cluster *c, double bytes);

typedef enum hp_xfer {
    HP_X_ALL_GATHER,
    HP_X_REDUCE_SCATTER,
    HP_X_ALL_REDUCE,
    HP_X_ALL_TO_ALL,
    HP_X_PERMUTE,
    HP_X_SEND,
    HP_X_KINDS
} hp_xfer;

/* hp_xfer_name returns "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute",
 * "send-recv"; hp_xfer_find the inverse, -1 when unknown. */
const char *hp_xfer_name(hp_xfer x);
int hp_xfer_find(const char *name);

typedef struct hp_xfer_cost {
    double seconds;
    /* "ring", "hierarchical", "tree", "in-switch", "direct", "torus", "send", "none"; a literal. */
    const char *algorithm;
    int level; /* whose links bound it, -1 when nothing moves */
} hp_xfer_cost;

/* hp_cost_collective returns the time of one collective of a group, from the last arrival to done;
 * `bytes` as above. A group of one costs nothing. */
hp_xfer_cost hp_cost_collective(const hp_cluster *c, hp_xfer kind, const hp_group *g, double bytes);

/* hp_cost_send returns the time of one message of `bytes` between two devices. */
hp_xfer_cost hp_cost_send(const hp_cluster *c, int from, int to, double bytes);

/* hp_cost_copy returns seconds to move bytes between device memory and `pool` (true) or the host's
 * memory. */
double hp_cost_copy(const hp_cluster *c, bool pool, double bytes);

#endif

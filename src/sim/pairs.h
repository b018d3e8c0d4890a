/* pairs.h -- which SEND instance meets which RECV instance: the n-th of (program, peer, edge,
 * microbatch) meets the n-th. Room: sim. */
#ifndef HP_SIM_PAIRS_H
#define HP_SIM_PAIRS_H

#include "plan/expand.h"

typedef struct hp_pair {
    int from, send; /* program and instance that sends */
    int to, recv;   /* program and instance that receives */
} hp_pair;

/* hp_pairs_find lists all pairs of a step (owned by the caller, free). HP_EINFEASIBLE names a
 * message that has no partner: the step could never end. */
hp_err hp_pairs_find(const hp_plan *p, const hp_expansion *x, hp_pair **out, int *n, hp_errmsg *e);

#endif

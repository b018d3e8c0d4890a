/* expand.h -- the task instances of one step of a program, with what each must wait for.
 *
 * exec and sim order a step by this and nothing else. Program order is the schedule's entries, and within an entry the template's tasks. An instance
 * depends on earlier instances whose bytes it reads (last writer) or overwrites (last writer and readers since), judged by addresses, so that reuse of
 * dead bytes is ordered too, and on the previous instance of its stream (implied, not listed). Redundant edges through one's own stream are left out.
 * A SEND leaves its stream when it is posted, but whoever overwrites its bytes depends on it until they are received: such edges are always listed, on the
 * own stream too. Routed operands also read their route buffer. Buffers of other tiers lie in an address space of their own.
 * Room: plan.
 */
#ifndef HP_PLAN_EXPAND_H
#define HP_PLAN_EXPAND_H

#include "plan/plan.h"

typedef struct hp_inst {
    int entry, task; /* schedule entry, task of its template */
    int first_dep, n_deps;
    int prev; /* previous instance on the same stream, -1 */
} hp_inst;

typedef struct hp_expansion {
    int n, n_deps, cap, cap_deps;
    hp_inst *inst; /* program order */
    int *dep;      /* instance numbers, ascending for each instance */
} hp_expansion;

/* hp_expand fills *x (zeroed) for a program; freed by hp_expansion_fini. */
void hp_expand(const hp_program *p, hp_expansion *x);
void hp_expansion_fini(hp_expansion *x);

/* hp_inst_task returns the task of an instance; hp_inst_entry its schedule entry. */
const hp_task *hp_inst_task(const hp_program *p, const hp_inst *i);
const hp_entry *hp_inst_entry(const hp_program *p, const hp_inst *i);

#endif

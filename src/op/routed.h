/* routed.h -- what the operations on routed tensors [batch, seq, experts, width] share: labels and the list of rows. Room: op. */
#ifndef HP_OP_ROUTED_H
#define HP_OP_ROUTED_H

#include "kern/routed.h"
#include "op/infer.h"
#include "op/run.h"

/* hp_routed_check checks that input i has `nd` dimensions and, when it is routed, follows the choices at input `idx`. */
hp_err hp_routed_check(const hp_graph *g, const hp_node *n, int i, int nd, int idx, hp_errmsg *e);

/* hp_routed_idx checks the choices [b s k] at input `idx` and labels them like the batch and sequence of operand `like`; k is blocked. */
hp_err hp_routed_idx(hp_graph *g, hp_node *n, int idx, int like, hp_errmsg *e);

/* hp_routed_output makes a routed output that follows the choices at input `idx`. */
hp_err hp_routed_output(hp_graph *g, hp_node *n, const hp_tensor *like, int idx, int *out,
                        hp_errmsg *e);

/* hp_routed_list lists the rows of the experts in dimension 2 of operand `rows` by the choices `idx`; in the call's scratch. HP_EINTERNAL
 * when the operand has not as many rows. */
hp_err hp_routed_list(const hp_call *c, const hp_operand *idx, const hp_operand *rows, hp_route *r,
                      hp_errmsg *e);

/* hp_routed_range is hp_routed_list over experts lo .. lo+len-1 without an operand to compare with. */
void hp_routed_range(const hp_call *c, const hp_operand *idx, int64_t lo, int64_t len, hp_route *r);

/* hp_routed_scratch returns the bytes of scratch that the list needs. */
int64_t hp_routed_scratch(const hp_operand *idx, const hp_operand *rows);

#endif

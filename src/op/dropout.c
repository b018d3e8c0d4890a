/* dropout.c -- drops elements by their global index, so that no split changes which. */
#include "kern/dropout.h"
#include "base/rng.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <string.h>

static hp_err dropout_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (!err)
        err = hp_infer_pointwise(g, n, 1, 1, 1, e);
    if (err)
        return err;
    double p = hp_infer_attr(n, "p", 0);
    if (!(p >= 0 && p < 1))
        return hp_fail(e, HP_EINPUT, "%s: dropout with p = %g; it must be at least 0 and below 1",
                       n->name, p);
    if (hp_infer_attr(n, "key", -1) < 0)
        hp_node_set(g, n, "key",
                    (double)(hp_hash_str(n->name) >> 12)); /* 52 bits: exact in a double */
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err dropout_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    hp_attr attr[] = {{"p", hp_infer_attr(n, "p", 0)}, {"key", hp_infer_attr(n, "key", 0)}};
    return hp_infer_emit(g, ctx, "dropout", "dx", false, 1, (int[]){hp_grad_of(ctx, 0)}, 2, attr, 0,
                         e);
}

static hp_err dropout_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    const hp_operand *x = hp_call_in(c, 0);
    uint64_t stream =
        hp_rng_key(hp_rng_key(hp_rng_key(c->seed, (uint64_t)c->step), (uint64_t)c->micro),
                   (uint64_t)hp_call_attr(c, "key", 0));
    hp_dropout_at at = {.stream = stream, .rate = (float)hp_call_attr(c, "p", 0), .nd = x->nd};
    memcpy(at.lo, x->lo, sizeof at.lo);
    memcpy(at.len, x->len, sizeof at.len);
    memcpy(at.full, x->full, sizeof at.full);
    HP_KERNEL(c, hp_dropout, &at, hp_in_num(c, 0), hp_out_num(c, 0));
    return HP_OK;
}

const hp_op hp_op_dropout = {{"dropout", dropout_infer, dropout_grad},
                             .in_place = true,
                             .work = hp_work_pointwise,
                             .run = dropout_run};

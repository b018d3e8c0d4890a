/* run.h -- what the `work` and `run` rows share: sizes of local boxes, and the choice of a kernel.
 *
 * Kernels come in pairs hp_x(..., threads) and hp_x_ref(...): HP_KERNEL picks by the call. Room: op.
 */
#ifndef HP_OP_RUN_H
#define HP_OP_RUN_H

#include "kern/num.h"
#include "op/op.h"

#define HP_KERNEL(c, fn, ...)                                                                      \
    ((c)->kernels == HP_KERN_REFERENCE ? fn##_ref(__VA_ARGS__) : fn(__VA_ARGS__, (c)->threads))

/* hp_call_in and hp_call_out return operands; hp_call_has says whether an optional input is there. */
static inline const hp_operand *hp_call_in(const hp_call *c, int i)
{
    return &c->arg[i];
}

static inline const hp_operand *hp_call_out(const hp_call *c, int i)
{
    return &c->arg[c->n_in + i];
}

static inline bool hp_call_has(const hp_call *c, int i)
{
    return i < c->n_in && c->arg[i].nd >= 0;
}

/* hp_call_attr returns an attribute of the call or `missing`. */
static inline double hp_call_attr(const hp_call *c, const char *key, double missing)
{
    return hp_attr_get(c->attr, c->n_attrs, key, missing);
}

/* hp_box_product returns the product of the local lengths of dimensions from .. to-1. */
static inline int64_t hp_box_product(const hp_operand *o, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= o->len[d];
    return n;
}

/* hp_box_count returns the number of local elements; of a routed operand, those of its rows. */
static inline int64_t hp_box_count(const hp_operand *o, bool routed)
{
    return routed ? o->rows * o->len[o->nd - 1] : hp_box_product(o, 0, o->nd);
}

/* hp_operand_num returns an operand's numbers for a kernel; none for an absent one. */
static inline hp_num hp_operand_num(const hp_operand *o)
{
    return o->nd < 0 ? hp_num_none() : (hp_num){o->data, (int)o->dtype};
}

static inline hp_num hp_in_num(const hp_call *c, int i)
{
    return i < c->n_in ? hp_operand_num(&c->arg[i]) : hp_num_none();
}

static inline hp_num hp_out_num(const hp_call *c, int i)
{
    return hp_operand_num(hp_call_out(c, i));
}

/* hp_work_bytes adds the bytes of all operands, each moved once; `routed` has a bit for every operand that is. */
void hp_work_bytes(const hp_call *c, uint32_t routed, hp_op_work *w);

/* hp_work_pointwise is the `work` of elementwise operations: a flop per element, operand and byte moved. */
void hp_work_pointwise(const hp_call *c, hp_op_work *w);

/* hp_work_gemm adds the flops 2 m n k and the shape of `groups` products [m, k] [k, n] (m over all groups). */
void hp_work_gemm(hp_op_work *w, int64_t groups, int64_t m, int64_t n, int64_t k);

/* hp_pointwise_count returns the elements of operand 0 of an elementwise call (attribute `routed`). */
int64_t hp_pointwise_count(const hp_call *c);

/* hp_walk goes over the first nd dimensions of a box in order; `small` is the index that a tensor with only the
 * dimensions whose bit is in the mask has there. */
typedef struct hp_walk {
    int nd;
    int64_t len[HP_MAX_DIMS], stride[HP_MAX_DIMS], at[HP_MAX_DIMS], small;
} hp_walk;

/* hp_walk_start begins at the first element; hp_walk_next goes to the next one. */
hp_walk hp_walk_start(const hp_operand *box, int nd, int mask);
void hp_walk_next(hp_walk *w);

#endif

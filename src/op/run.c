/* run.c -- bytes are counted once an operand: kernels here stream their operands, none rereads memory on purpose. */
#include "op/run.h"

void hp_work_bytes(const hp_call *c, uint32_t routed, hp_op_work *w)
{
    for (int i = 0; i < c->n_in + c->n_out; i++)
        if (c->arg[i].nd >= 0)
            w->bytes +=
                (double)hp_box_count(&c->arg[i], routed >> i & 1) * hp_dtype_bytes(c->arg[i].dtype);
    if (c->accumulate)
        w->bytes += (double)hp_box_count(hp_call_out(c, 0), false) *
                    hp_dtype_bytes(hp_call_out(c, 0)->dtype);
}

int64_t hp_pointwise_count(const hp_call *c)
{
    return hp_box_count(&c->arg[0], hp_call_attr(c, "routed", 0) != 0);
}

void hp_work_pointwise(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, hp_call_attr(c, "routed", 0) != 0 ? ~0u : 0, w);
    w->other_flops += (double)hp_pointwise_count(c) * (c->n_in + c->n_out - 1);
}

void hp_work_gemm(hp_op_work *w, int64_t groups, int64_t m, int64_t n, int64_t k)
{
    w->matmul_flops += 2.0 * (double)m * (double)n * (double)k;
    w->m = m;
    w->n = n;
    w->k = k;
    w->groups = groups;
}

hp_walk hp_walk_start(const hp_operand *box, int nd, int mask)
{
    hp_walk w = {.nd = nd};
    int64_t stride = 1;
    for (int d = nd - 1; d >= 0; d--) {
        w.len[d] = box->len[d];
        w.stride[d] = mask >> d & 1 ? stride : 0;
        if (mask >> d & 1)
            stride *= box->len[d];
    }
    return w;
}

void hp_walk_next(hp_walk *w)
{
    for (int d = w->nd - 1; d >= 0; d--) {
        w->small += w->stride[d];
        if (++w->at[d] < w->len[d])
            return;
        w->small -= w->stride[d] * w->len[d];
        w->at[d] = 0;
    }
}

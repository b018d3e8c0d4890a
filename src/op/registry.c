/* registry.c -- the one list of all operations; the graph's table is another view of the same rows. */
#include "op/rows.h"

#include <stddef.h>
#include <string.h>

#define OPERATIONS(X)                                                                              \
    X(embedding)                                                                                   \
    X(embedding_dw)                                                                                \
    X(linear) X(linear_dw) X(bias) X(bias_dw) X(add) X(mul) X(mulsum) X(scale) X(rmsnorm)          \
        X(rmsnorm_dx) X(rmsnorm_dw) X(layernorm) X(layernorm_dx) X(layernorm_dw) X(rope)           \
            X(attention) X(attention_dx) X(attention_merge) X(gelu) X(gelu_dx) X(silu) X(silu_dx)  \
                X(swiglu) X(swiglu_dx) X(softmax) X(softmax_dx) X(reshape) X(transpose) X(split)   \
                    X(concat) X(slice) X(dropout) X(ce_stats) X(ce_loss) X(ce_dx) X(count)         \
                        X(recip) X(sequences) X(fill) X(router) X(router_dx) X(aux_loss) X(aux_dx) \
                            X(dispatch) X(dispatch_dx) X(grouped) X(grouped_dx) X(grouped_dw)      \
                                X(combine) X(combine_dx) X(combine_dw) X(zero) X(cast) X(accum)    \
                                    X(sqnorm) X(sum_scalars) X(clip_scale) X(adamw) X(sgd)

#define OP_ROW(name) &hp_op_##name,
#define GRAPH_ROW(name) &hp_op_##name.graph,

const hp_op *const hp_ops[] = {OPERATIONS(OP_ROW) NULL};
static const hp_graph_op *const graph_rows[] = {OPERATIONS(GRAPH_ROW) NULL};

const hp_graph_op *const *hp_graph_ops(void)
{
    return graph_rows;
}

const hp_op *hp_op_find(const char *name)
{
    for (int i = 0; hp_ops[i]; i++)
        if (strcmp(hp_ops[i]->graph.name, name) == 0)
            return hp_ops[i];
    return NULL;
}

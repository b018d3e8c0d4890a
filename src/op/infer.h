/* infer.h -- what the `infer` and `grad` rows of all operations share: checking inputs, giving labels, making outputs.
 *
 * A tensor is taken as a copy (hp_infer_in), because creating an output moves the graph's arrays. Equal sizes are not
 * checked here: two dimensions under one label must agree, and hp_graph_add proves that. Room: op.
 */
#ifndef HP_OP_INFER_H
#define HP_OP_INFER_H

#include "graph/graph.h"

/* hp_infer_inputs checks that a node has between `least` and `most` inputs, that the first `least` are present and
 * that none is routed; hp_infer_routed does the same and allows routed ones. */
hp_err hp_infer_inputs(const hp_graph *g, const hp_node *n, int least, int most, hp_errmsg *e);
hp_err hp_infer_routed(const hp_graph *g, const hp_node *n, int least, int most, hp_errmsg *e);

/* hp_infer_has says whether input i is there. */
bool hp_infer_has(const hp_node *n, int i);

/* hp_infer_in returns a copy of the tensor of operand i. */
hp_tensor hp_infer_in(const hp_graph *g, const hp_node *n, int i);

/* hp_infer_nd checks that input i has between lo and hi dimensions; `want` describes them ("batch seq width"). */
hp_err hp_infer_nd(const hp_graph *g, const hp_node *n, int i, int lo, int hi, const char *want,
                   hp_errmsg *e);

/* hp_infer_dtype checks the storage type of input i: i32 when `integer`, else not. */
hp_err hp_infer_dtype(const hp_graph *g, const hp_node *n, int i, bool integer, hp_errmsg *e);

/* hp_infer_refuse says that input i does not fit, and why. */
hp_err hp_infer_refuse(const hp_graph *g, const hp_node *n, int i, const char *why, hp_errmsg *e);

/* hp_infer_attr returns an attribute of the node or `missing`. */
double hp_infer_attr(const hp_node *n, const char *key, double missing);

/* hp_infer_dim reads an attribute that names a dimension by its id; HP_EINPUT when it is absent or out of range. */
hp_err hp_infer_dim(const hp_graph *g, const hp_node *n, const char *key, int *dim, hp_errmsg *e);

/* hp_infer_weight returns a copy of input i of the node's forward node, whose gradient the node computes. */
hp_tensor hp_infer_weight(const hp_graph *g, const hp_node *n, int i);

/* hp_label_new returns a fresh label. */
int hp_label_new(hp_node *n);

/* hp_label_fresh gives every dimension of operand i a fresh label. */
void hp_label_fresh(const hp_graph *g, hp_node *n, int i);

/* hp_label_copy gives dimensions to_d .. to_d+count-1 of operand `to` the labels of `from` from from_d on. */
void hp_label_copy(hp_node *n, int to, int to_d, int from, int from_d, int count);

/* hp_label_block forbids to split dimension d of operand i. */
void hp_label_block(hp_node *n, int i, int d);

/* hp_infer_group makes the inputs of `mask` a linear group. */
void hp_infer_group(hp_node *n, uint32_t mask);

/* hp_infer_wide marks the tensor of operand i as one that kernels read as f32 whatever the strategy computes in. */
void hp_infer_wide(hp_graph *g, const hp_node *n, int i);

/* hp_infer_like makes an output with the dimensions, labels, route and width of operand `i`. */
hp_err hp_infer_like(hp_graph *g, hp_node *n, int i, const char *suffix, int *out, hp_errmsg *e);

/* hp_infer_pointwise does a node whose inputs (at least `least`) and n_out outputs all have the shape of input 0;
 * marks it with the attribute `routed` where they are routed. Further outputs are called out1, ... */
hp_err hp_infer_pointwise(hp_graph *g, hp_node *n, int least, int most, int n_out, hp_errmsg *e);

/* hp_infer_pass hands the gradient of output 0 on to input i unchanged. */
void hp_infer_pass(struct hp_grad *ctx, int i);

/* hp_infer_emit adds a gradient node with one output and gives it to input `to` of the forward node, if that wants it. */
hp_err hp_infer_emit(hp_graph *g, struct hp_grad *ctx, const char *op, const char *suffix,
                     bool weight, int n_in, const int *in, int n_attrs, const hp_attr *attr, int to,
                     hp_errmsg *e);

/* hp_infer_emit_bias gives a bias at input `to` its gradient: dy summed over the dimensions that the bias lacks. */
hp_err hp_infer_emit_bias(hp_graph *g, struct hp_grad *ctx, int to, hp_errmsg *e);

#endif

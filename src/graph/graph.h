/* graph.h -- the model as a graph of operations over tensors with named dimensions. It knows no device.
 *
 * A graph describes one *microbatch* of the whole job (all data-parallel copies together): the dimension
 * `batch` is free and gets its size when a strategy is resolved. Every node says, per operand and
 * dimension, a *label* local to that node; from the labels follow the legal ways to split the node over a
 * mesh axis (shard/place.h) without a rule of its own:
 *   - a label that is not `blocked` may be split: operands that carry it are split on that dimension, inputs without
 *     it are replicated, outputs without it become partial with the output's `reduce`;
 *   - the inputs of a *linear group* may be partial(sum) together, the rest replicated: then outputs are partial(sum).
 * Kernels receive (start, length, full size) of every dimension and accept length 0.
 *
 * Routed tensors (mixture of experts). Between dispatch and combine a tensor has the logical shape [batch, seq,
 * experts, width] and is sparse: row (b, s, e) exists where `route` [batch, seq, k] (i32, the router's choices) names e
 * for token (b, s). Stored are the existing rows of the local box, sorted by (e, b, s). Layouts, boxes and
 * redistribution see the logical shape, so that all-to-all is the ordinary move of an axis from batch to experts.
 *
 * Room: graph; uses base only.
 */
#ifndef HP_GRAPH_GRAPH_H
#define HP_GRAPH_GRAPH_H

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_MAX_DIMS = 6, HP_MAX_OPERANDS = 14, HP_MAX_LABELS = 12, HP_MAX_GROUPS = 8, HP_MAX_ATTRS = 12 };

typedef enum hp_dtype { HP_F32, HP_BF16, HP_I32 } hp_dtype;

/* hp_dtype_bytes returns the size of one element. */
int hp_dtype_bytes(hp_dtype t);

/* hp_dtype_name returns "f32", "bf16" or "i32"; hp_dtype_find the inverse, -1 when unknown. */
const char *hp_dtype_name(hp_dtype t);
int hp_dtype_find(const char *name);

/* Reductions under which a value can be partial over a mesh axis. LSE: the last dimension holds (max, sum of exp
 * relative to max, picked logit) and merges as log-sum-exp does. */
typedef enum hp_reduce {
    HP_RED_NONE, HP_RED_SUM, HP_RED_MAX, HP_RED_MIN, HP_RED_AVG, HP_RED_PROD, HP_RED_ALL, HP_RED_LSE
} hp_reduce;

/* hp_reduce_name returns "sum", "max", ...; hp_reduce_find the inverse, -1 when unknown. */
const char *hp_reduce_name(hp_reduce r);
int hp_reduce_find(const char *name);

typedef struct hp_dim {
    char *name;
    int64_t size; /* 0: free, bound later (batch, micro) */
} hp_dim;

typedef enum hp_tkind {
    HP_T_INPUT,  /* data: tokens, targets, positions, documents; any layout can be loaded */
    HP_T_PARAM,  /* trained; `init` says how it starts */
    HP_T_BUFFER, /* part of the model without gradient (router bias) */
    HP_T_ACT,    /* forward value */
    HP_T_GRAD,   /* gradient of an activation */
    HP_T_WGRAD,  /* one contribution to a parameter's gradient in one microbatch */
    HP_T_STEP    /* once a step: token count, gradient seed */
} hp_tkind;

typedef enum hp_init { HP_INIT_NONE, HP_INIT_ZEROS, HP_INIT_ONES, HP_INIT_NORMAL } hp_init;

typedef struct hp_tensor {
    char *name;  /* unique: "layers.3.attn.q", "layers.3.attn.q.w", "grad:layers.3.attn.q" */
    char *alias; /* second name that layout globs may use ("layers.3.resid"), or NULL */
    hp_tkind kind;
    hp_dtype dtype;
    int nd, dim[HP_MAX_DIMS]; /* dimension ids, outermost first; local storage is dense row-major */
    int producer;             /* node id, -1 for inputs and parameters */
    int of;                   /* GRAD/WGRAD: the tensor it is the gradient of, else -1 */
    int route;                /* routed: tensor id of the router's choices, else -1 */
    bool saved;               /* read by a backward node */
    hp_init init;
    float init_std;
    bool wide;                /* stays f32 where a strategy computes in bf16: statistics, losses, router values */
    bool frozen, decay;       /* PARAM: not trained; weight decay applies */
} hp_tensor;

typedef struct hp_attr {
    const char *key; /* a literal or arena string */
    double value;
} hp_attr;

typedef enum hp_phase {
    HP_P_INIT,  /* once a step, before the first forward */
    HP_P_FWD,
    HP_P_BWD,   /* gradients for inputs */
    HP_P_WGRAD, /* gradients for weights */
} hp_phase;

typedef struct hp_node {
    char *name; /* unique: "layers.3.attn.q", "layers.3.attn.q/dx", "layers.3.attn.q/dw" */
    int kind;   /* row of the operation table */
    hp_phase phase;
    int fwd;    /* backward nodes: the forward node, else -1 */
    int n_in, n_out;
    int arg[HP_MAX_OPERANDS];                      /* tensor ids: inputs, then outputs; -1: optional input absent */
    int8_t label[HP_MAX_OPERANDS][HP_MAX_DIMS];    /* per operand and dimension */
    int n_labels;
    bool blocked[HP_MAX_LABELS];
    int n_groups;
    uint32_t group[HP_MAX_GROUPS];                 /* bit i: input i belongs to the linear group */
    hp_reduce reduce[HP_MAX_OPERANDS];             /* per output, from 0: how a contracted label's parts combine */
    int n_attrs;
    hp_attr attr[HP_MAX_ATTRS];
} hp_node;

struct hp_graph;
struct hp_grad;

/* hp_graph_op is the graph row of an operation (src/op hands the table in).
 * `infer` checks the inputs, creates the outputs (hp_graph_tensor) and fills labels, blocked, groups and reduce.
 * `grad` emits the nodes that turn gradients of outputs into gradients of inputs; NULL: no gradient. */
typedef struct hp_graph_op {
    const char *name;
    hp_err (*infer)(struct hp_graph *g, hp_node *n, hp_errmsg *e);
    hp_err (*grad)(struct hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e);
} hp_graph_op;

/* hp_train is how the model is trained: part of the model script, with these defaults when silent: adamw, lr 1e-3, betas 0.9
 * 0.95, eps 1e-8, decay 0, clip 1 (0 = none), warmup 0 steps. Learning rate at step s (from 0): lr min(1, (s+1)/warmup). */
typedef struct hp_train {
    bool sgd;
    double lr, beta1, beta2, eps, decay, clip;
    int warmup;
} hp_train;

typedef struct hp_graph {
    char *name;
    hp_train train;
    int n_layers;                /* blocks under repeated(...), for reports */
    const hp_graph_op *const *ops; /* borrowed table, NULL-terminated */
    int n_dims, cap_dims;
    hp_dim *dim;
    int n_tensors, cap_tensors;
    hp_tensor *tensor;
    int n_nodes, cap_nodes;
    hp_node *node; /* topological order: forward, then (after hp_graph_autodiff) backward and weight gradients */
    int loss;      /* scalar tensor, -1 until named */
    int n_inputs;
    hp_map dim_id, tensor_id;
    hp_arena arena;
} hp_graph;

/* hp_graph_new returns an empty graph over the operation table `ops` (borrowed, NULL-terminated). */
hp_graph *hp_graph_new(const char *name, const hp_graph_op *const *ops);

/* hp_graph_free frees a graph; NULL is nothing. */
void hp_graph_free(hp_graph *g);

/* hp_graph_dim returns the id of dimension `name`, creating it with `size` (0 = free); HP_EINPUT when it exists with
 * another size. */
hp_err hp_graph_dim(hp_graph *g, const char *name, int64_t size, int *id, hp_errmsg *e);

/* hp_graph_bind gives a free dimension its size; unknown names are HP_EINPUT. */
hp_err hp_graph_bind(hp_graph *g, const char *dim, int64_t size, hp_errmsg *e);

/* hp_graph_tensor adds a tensor; name is copied and must be new. Returns its id; HP_EINPUT names a clash. */
hp_err hp_graph_tensor(hp_graph *g, const char *name, hp_tkind kind, hp_dtype t, int nd, const int *dim, int *id,
                       hp_errmsg *e);

/* hp_graph_add appends a node of operation `op` with the given inputs and attributes, infers its outputs and returns
 * the node id; outputs are named `name`, and `name`.<suffix> beyond the first. Errors name the node, the operand and its dimensions. */
hp_err hp_graph_add(hp_graph *g, const char *op, const char *name, int n_in, const int *in, int n_attrs,
                    const hp_attr *attr, int *node, hp_errmsg *e);

/* hp_graph_autodiff appends the backward of `loss` (a scalar): gradient and weight-gradient nodes in an order in which
 * every value exists before it is read. A tensor with several consumers gets one `add` of all contributions. Each
 * parameter use yields one WGRAD tensor (a tied parameter has several). Marks `saved`. */
hp_err hp_graph_autodiff(hp_graph *g, int loss, hp_errmsg *e);

/* hp_attr_get returns a node's attribute or `missing`. */
double hp_attr_get(const hp_attr *attr, int n, const char *key, double missing);

/* hp_graph_size returns the number of elements of a tensor at the bound sizes (logical size for routed tensors). */
int64_t hp_graph_size(const hp_graph *g, int tensor);

/* hp_graph_params returns the number of trained and untrained elements of the model: PARAM plus BUFFER tensors. */
int64_t hp_graph_params(const hp_graph *g);

/* hp_graph_shape_text writes "layers.0.attn.q[batch seq=64 heads=4 head=32]" into buf (cut to n bytes) and returns buf. */
char *hp_graph_shape_text(const hp_graph *g, int tensor, char *buf, size_t n);

/* --- for the `infer` rows ----------------------------------------------------------------------------------- */

/* hp_node_output creates the next output of a node that is being inferred: called as the node (`suffix` NULL) or
 * "<node>.<suffix>", of the kind that the node's phase asks for (an infer row that sets the phase does so first). *operand
 * is its place in n->arg, where labels and reduce (index from 0) still have to be filled. Scalars, once-a-step values and weight gradients are `wide`; the row marks others. */
hp_err hp_node_output(hp_graph *g, hp_node *n, const char *suffix, hp_dtype t, int nd, const int *dim, int *operand,
                      hp_errmsg *e);

/* hp_node_set adds an attribute that `infer` derived; the key is copied. */
void hp_node_set(hp_graph *g, hp_node *n, const char *key, double value);

/* hp_graph_add_in is hp_graph_add for a node of a later phase that belongs to forward node `fwd`. A node all of whose
 * inputs are HP_T_STEP becomes HP_P_INIT whatever was asked. */
hp_err hp_graph_add_in(hp_graph *g, const char *op, const char *name, hp_phase phase, int fwd, int n_in, const int *in,
                       int n_attrs, const hp_attr *attr, int *node, hp_errmsg *e);

/* --- for the `grad` rows ------------------------------------------------------------------------------------ */

enum { HP_GRAD_ONE = -2 }; /* stands for the constant 1: the gradient of the loss with respect to itself */

/* hp_grad_of returns the tensor holding the gradient of output `i` of the node, -1 when nothing depends on it. Where
 * hp_grad_is_one holds it makes a scalar tensor with the value 1. */
int hp_grad_of(struct hp_grad *ctx, int i);

/* hp_grad_is_one says whether the gradient of output `i` is the constant 1; a row may then use a simpler form, or pass
 * HP_GRAD_ONE on to hp_grad_give. */
bool hp_grad_is_one(const struct hp_grad *ctx, int i);

/* hp_grad_wants says whether input `i` of the node needs a gradient. */
bool hp_grad_wants(const struct hp_grad *ctx, int i);

/* hp_grad_give records tensor `t` as a contribution to the gradient of input `i`; the same tensor may be given to
 * several inputs (add). For a parameter `t` must be a WGRAD tensor made by hp_grad_node. */
void hp_grad_give(struct hp_grad *ctx, int i, int t);

/* hp_grad_node adds a gradient node "<forward>/<suffix>"; phase WGRAD when `weight`. Outputs become GRAD/WGRAD of
 * the inputs listed in `of` (one an output, index of the forward node's input, -1 none). Tensors are called
 * "grad:<input>" where they are the whole gradient, else as the node's outputs, and their sum is "grad:<input>". */
hp_err hp_grad_node(struct hp_grad *ctx, const char *op, const char *suffix, bool weight, int n_in, const int *in,
                    int n_attrs, const hp_attr *attr, const int *of, int *node, hp_errmsg *e);

#endif

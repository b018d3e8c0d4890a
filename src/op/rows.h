/* rows.h -- every operation's row, and how each is called: inputs -> outputs, attributes, what may be split.
 *
 * `?` marks an optional input (tensor -1 in a graph). Dimensions in brackets are labels; those after `blocked` cannot be
 * split, {x} is a linear group, `contracts l` says that outputs are partial when l is split. An attribute `dim`s value is
 * the id of a dimension (hp_graph_dim). Lead dimensions "..." may be any. Targets and choices below 0 mean "none".
 *
 * Gradient operations (suffix _dx for inputs, _dw for weights) are emitted by the `grad` rows; where the gradient of an
 * operation is another one (linear with `transpose` flipped, rope with `inverse` flipped, slice and concat) there is no
 * operation of its own. Weight gradients accumulate and are f32.
 *
 * Once a step (phase INIT, tensors of kind STEP): count, sequences and fill by their rows; any node all of whose inputs
 * are HP_T_STEP by hp_graph_add. So recip(count(targets.all)) is the seed. Room: op.
 */
#ifndef HP_OP_ROWS_H
#define HP_OP_ROWS_H

#include "op/op.h"

/* embedding: ids i32 [...], table [v h..] -> [... h..]; contracts v {table}; an id outside the table gives zeros. Learned
 * positions are an embedding of `positions`. embedding_dw: ids, dy -> dtable. */
extern const hp_op hp_op_embedding, hp_op_embedding_dw;

/* linear: x [... c..], w [c.. o..] -> [... o..]; contracts c {x} {w}. `contract`: how many dimensions c has (1);
 * `transpose` = 1: w is [o.. c..] (tied head: table [v h] with contract 1 gives [... v]).
 * linear_dw: x, dy -> dw with the same attributes. Its gradient for x is linear with contract = number of o. */
extern const hp_op hp_op_linear, hp_op_linear_dw;

/* bias: x [... c..], b [c..] -> x + b. bias_dw: dy -> db. */
extern const hp_op hp_op_bias, hp_op_bias_dw;

/* add: 2..8 inputs of one shape {all}; routed too. */
extern const hp_op hp_op_add;

/* mul: a [l..], b with a subset of a's dimensions in order (by id; none = scalar) -> a b {a} {b}. The operands may come
 * in either order; b may be a parameter. Routed: equal shapes or a scalar b.
 * mulsum: a, b of one shape -> sum of a b over the dimensions whose bit is not in `keep` (0: a scalar) {a} {b}. */
extern const hp_op hp_op_mul, hp_op_mulsum;

/* scale: x -> x times `by` {x}; routed too. */
extern const hp_op hp_op_scale;

/* rmsnorm: x [... h], w [h] -> y, y.rstd [...]; `eps`; blocked h. rmsnorm_dx: x, w, rstd, dy {dy} -> dx.
 * rmsnorm_dw: x, rstd, dy {dy} -> dw. */
extern const hp_op hp_op_rmsnorm, hp_op_rmsnorm_dx, hp_op_rmsnorm_dw;

/* layernorm: x [... h], w [h], b? [h] -> y, y.mean [...], y.rstd [...]; `eps`; blocked h. layernorm_dx: x, w, mean, rstd,
 * dy {dy} -> dx. layernorm_dw: x, mean, rstd, dy {dy} -> dw. The gradient of b is bias_dw. */
extern const hp_op hp_op_layernorm, hp_op_layernorm_dx, hp_op_layernorm_dw;

/* rope: x [b s ... d], positions i32 [b s] -> x rotated {x}; blocked d; `theta`, `inverse`. */
extern const hp_op hp_op_rope;

/* attention: q [b s k g d] (or [b s k d]), k [b t k d], v [b t k u], pos_q i32 [b s], pos_k i32 [b t], doc_q? doc_k? (as
 * pos) -> o [b s k g u], o.lse f32 [b s k g]; blocked t d u; `causal` (by positions), `scale` (1/sqrt(d)). A query that
 * sees no key gives 0. Flops are counted at half where causal.
 * attention_dx: q, k, v, pos_q, pos_k, doc_q?, doc_k?, o, lse, do {do} -> dq, dk, dv; dk and dv contract s and g.
 * attention_merge: o1, lse1, o2, lse2 -> o, o.lse over the keys of both (ring attention); blocked u. */
extern const hp_op hp_op_attention, hp_op_attention_dx, hp_op_attention_merge;

/* gelu (tanh form), silu: x -> y; swiglu: gate, up {up} -> silu(gate) up; routed too. gelu_dx, silu_dx: x, dy {dy} -> dx;
 * swiglu_dx: gate, up, dy {dy} -> dgate, dup. */
extern const hp_op hp_op_gelu, hp_op_gelu_dx, hp_op_silu, hp_op_silu_dx, hp_op_swiglu,
    hp_op_swiglu_dx;

/* softmax: x [... l] -> y; blocked l. softmax_dx: y, dy {dy} -> dx. */
extern const hp_op hp_op_softmax, hp_op_softmax_dx;

/* reshape: x -> the same numbers with the dimensions `d0`, `d1`, ...; {x}; a dimension that stays keeps its label, merged
 * and cut ones are blocked. */
extern const hp_op hp_op_reshape;

/* transpose: x -> dimension i of the output is dimension `p<i>` of x {x}. */
extern const hp_op hp_op_transpose;

/* split: x [... l] -> parts along the last dimension, `d0`, `d1`, ... (their sizes add up to l; at most 8) {x}; blocked l.
 * concat: up to 8 inputs [... li] -> [... l] with `d` = l {all}; blocked l, li. An input may lack lead dimensions of the
 * largest one (in order, by id) and is repeated over them. `at<i>`: where input i starts (default: one after another,
 * the rest is zero). slice: x [... l] -> x[..., at : at + size of `d`], summed over the lead dimensions whose bit is in
 * `sum` {x}; blocked l. */
extern const hp_op hp_op_split, hp_op_concat, hp_op_slice;

/* dropout: x -> y, each element dropped with probability `p` by (seed, step, micro, `key`, global index) {x}; `key` is set
 * from the node's name. */
extern const hp_op hp_op_dropout;

/* ce_stats: logits [... v], targets i32 [...] -> f32 [... 3]: (max, sum of exp, picked), reduced by LSE over v; `valid`:
 * true vocabulary where v is padded. ce_loss: stats, targets, seed -> scalar: seed times the sum of the valid tokens'
 * losses; contracts all but 3. ce_dx: logits, stats, targets, seed -> dlogits; `valid`. seed is a scalar. */
extern const hp_op hp_op_ce_stats, hp_op_ce_loss, hp_op_ce_dx;

/* count: targets i32 [...] -> f32 scalar, how many are >= 0; contracts all. recip: x -> 1 / max(x, 1), a scalar.
 * sequences: targets.all i32 [micro b s] -> 1 / (micro b) by full sizes; all blocked. fill: -> scalar `value`. */
extern const hp_op hp_op_count, hp_op_recip, hp_op_sequences, hp_op_fill;

/* router: logits [b s e], bias? [e], given? i32 [b s k] -> idx i32 [b s k], idx.weights f32 [b s k], idx.f f32 [b e],
 * idx.p f32 [b e]; `d` = dimension k. blocked e k (and s with capacity); f and p contract s. `given` replays choices
 * (absent in graphs). `sigmoid` = 1: sigmoid scores, else softmax; `normalise` = 1: weights divided by their sum; `scale`
 * (1) times weights; `groups`, `top_groups`: DeepSeek-V3's group limit; `capacity` = c > 0: at most ceil(c k s / e)
 * choices an expert and sequence, further ones in order of position are dropped: a dropped choice of expert e is -1 - e.
 * router_dx: logits, idx, dweights?, dp? {dweights dp} -> dlogits.
 * aux_loss: f [b e], p [b e], share? {f} {p} -> scalar `coef` times share times the sum of f p; contracts b e. share is
 * sequences(targets.all). aux_dx: f, share? {f} -> dp. */
extern const hp_op hp_op_router, hp_op_router_dx, hp_op_aux_loss, hp_op_aux_dx;

/* dispatch: x [b s h], idx [b s k] {x} -> routed [b s e h]; `d` = dimension e. dispatch_dx: dxe, idx {dxe} -> dx; contracts e.
 * grouped: xe routed [b s e h], w [e h f], idx {xe} {w} -> routed [b s e f]; contracts h. grouped_dx: dye, w, idx -> dxe.
 * grouped_dw: xe, dye, idx -> dw; contracts b s.
 * combine: ye routed [b s e h], idx, weights [b s k] {ye} {weights} -> y [b s h]; contracts e. combine_dx: dy, idx, weights
 * -> dye (`d` = e). combine_dw: dy, ye, idx -> dweights; contracts e h. k is blocked in all. */
extern const hp_op hp_op_dispatch, hp_op_dispatch_dx, hp_op_grouped, hp_op_grouped_dx,
    hp_op_grouped_dw;
extern const hp_op hp_op_combine, hp_op_combine_dx, hp_op_combine_dw;

/* Not in graphs; boxes of one shape. Outputs marked = share the bytes of the input of the same place.
 * zero: -> x. cast: x -> y in y's storage type. accum: x -> acc, stored, or added with `accumulate`.
 * sqnorm: g -> f32 scalar, sum of squares; accumulates. sum_scalars: 1..13 scalars -> their sum.
 * clip_scale: sum of squares -> min(1, `clip` / (norm + 1e-6)) (torch.nn.utils.clip_grad_norm_; 1 where clip is 0), norm?.
 * adamw: p f32, m f32, v f32, g, clip scale? -> p=, m=, v=, bf16 copy?; `lr beta1 beta2 eps decay warmup`.
 * sgd: p f32, g, clip scale? -> p=, bf16 copy?; `lr decay warmup`. An absent copy is an absent last output
 * (nd = -1 or one output fewer). Learning rate: lr min(1, (step+1)/warmup). */
extern const hp_op hp_op_zero, hp_op_cast, hp_op_accum, hp_op_sqnorm, hp_op_sum_scalars,
    hp_op_clip_scale;
extern const hp_op hp_op_adamw, hp_op_sgd;

#endif

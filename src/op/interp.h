/* interp.h -- the independent reference: runs a graph on one device, plainly.
 *
 *     hp_interp *it = hp_interp_new(&(hp_interp_in){.g = g, .seed = 1, .fill = hp_corpus_fill, .fill_ctx = &corpus});
 *     hp_err err = hp_interp_step(it, 0, &e);       // all microbatches, clipping, the optimizer
 *     printf("%g\n", hp_interp_result(it)->loss);
 *     hp_interp_free(it);
 *
 * It shares nothing with plans and exec but the operations' rows (with reference kernels), the initial values and the data: every
 * tensor is whole, a microbatch at a time; weight gradients are computed alone and added up here. All free dimensions must be bound; the
 * dimension `micro` (1 where a graph has none) says how many microbatches a step has. Room: op.
 */
#ifndef HP_OP_INTERP_H
#define HP_OP_INTERP_H

#include "op/op.h"

typedef struct hp_interp_in {
    const hp_graph *g; /* borrowed; autodiff has run where gradients are wanted */
    uint64_t seed;
    hp_fill_fn *fill;
    void *fill_ctx;
    /* tap sees every tensor as it is computed (inputs included, parameters not), micro = -1: once a step; `value` is borrowed. NULL: none. */
    void (*tap)(void *ctx, int tensor, int64_t step, int64_t micro, const hp_operand *value);
    void *tap_ctx;
    /* choices may fill the choices [batch seq k] that router node `node` has to make, and returns whether it did. NULL: routers choose. */
    bool (*choices)(void *ctx, int node, int64_t step, int64_t micro, const hp_operand *given);
    void *choices_ctx;
} hp_interp_in;

/* What the last step gave: the loss summed over its microbatches, the gradient's norm before clipping and the factor applied. */
typedef struct hp_interp_out {
    double loss, grad_norm;
    float clip_scale;
} hp_interp_out;

typedef struct hp_interp hp_interp;

/* hp_interp_new allocates and initialises the parameters; *in is copied. hp_interp_free frees all; NULL is nothing. */
hp_interp *hp_interp_new(const hp_interp_in *in);
void hp_interp_free(hp_interp *it);

/* hp_interp_gradients runs all microbatches of a step and leaves summed gradients, without an update. */
hp_err hp_interp_gradients(hp_interp *it, int64_t step, hp_errmsg *e);

/* hp_interp_step is hp_interp_gradients, clipping and one step of the optimizer. */
hp_err hp_interp_step(hp_interp *it, int64_t step, hp_errmsg *e);

/* hp_interp_result returns what the last step gave; valid until the next. */
const hp_interp_out *hp_interp_result(const hp_interp *it);

/* The values of a PARAM or BUFFER tensor, and of a trained parameter its summed gradient and Adam's moments: f32, whole, owned by the
 * interpreter, writable (tests perturb parameters); NULL where there is none. */
float *hp_interp_param(const hp_interp *it, int tensor);
float *hp_interp_grad(const hp_interp *it, int tensor);
float *hp_interp_m(const hp_interp *it, int tensor);
float *hp_interp_v(const hp_interp *it, int tensor);

#endif

/* check.h -- does a plan compute what one device computes? Invariant 1 of DESIGN.md, as a function.
 *
 * The reference interpreter (op/interp.h) and the engine run one step (or some, of which the last
 * is compared) on the same data; loss, gradients and updated parameters are compared.
 *     error of a tensor   max|a-b| / max(max|b|, 1e-3 x median of all tensors' max|b|)
 *     limits              loss 1e-5, gradients 1e-4 in f32; both 2e-2 in bf16
 *     parameters          |a-b| <= 1e-5 max|p| + lr min(2, |dg| / (sqrt v + eps)), element by
 *                         element, sqrt v the smaller of both sides'; SGD: lr |dg|
 * Every copy that replication makes is compared, so that replicas that drift apart are seen. Router
 * choices of the engine are recorded: where they differ from the reference's at a clear margin, that
 * is a failure; at a tie (margin in logits over the largest: 1e-4 in f32, 2e-2 in bf16) it is
 * counted, and the reference runs again with the engine's choice. When something is apart, both run
 * again with every tensor watched, and the first that differs in the order of the graph is named.
 * Room: session.
 */
#ifndef HP_SESSION_CHECK_H
#define HP_SESSION_CHECK_H

#include "base/err.h"
#include "base/str.h"
#include "graph/graph.h"
#include "op/data.h"
#include "plan/plan.h"

#include <stdbool.h>

typedef struct hp_check_options {
    uint64_t seed;
    const char *data; /* a text, NULL: made-up tokens */
    int documents;    /* as hp_data_options */
    double ignore;
    int64_t steps;          /* 0: one; the last is compared */
    int workers;            /* 0: as the engine chooses */
    bool poison;            /* dead bytes are filled with NaN */
    bool reference_kernels; /* the engine too */
    bool bf16;              /* limits of bf16 */
    bool no_search;         /* do not look for the first divergence */
} hp_check_options;

typedef struct hp_check_report {
    bool ok;
    double err_loss, err_grads, err_params; /* params: in units of the limit, 1 = at it */
    double tol_loss, tol_grads, tol_params;
    double loss, loss_reference;
    char worst_tensor[160];            /* of the gradients; or what is missing */
    char worst_param[160];             /* "" when all parameters are within their limits */
    /* worst_tensor's reference in units of the median tensor's: below 1e-3 the gradient vanishes and
     * its error is noise */
    double worst_size;
    char div_op[160], div_tensor[160]; /* first divergence, "" when none was found */
    int div_rank;                      /* device number of a rank that holds it, -1 */
    int routing_ties, routing_misses; /* tokens whose choice differed at a tie; at a clear margin */
    int n_tensors;                    /* compared: gradients and parameters */
} hp_check_report;

/* hp_check runs and compares in this process. The graph's free dimensions are bound (hp_build
 * did). HP_OK: compared, *r says how it went; else one of the two could not run. */
hp_err hp_check(const hp_graph *g, const hp_plan *p, const hp_check_options *o, hp_check_report *r,
                hp_errmsg *e);

#endif

/* op.h -- one operation = one file of this room = one hp_op: its graph row, its cost row, its kernel call.
 *
 * registry.c lists them; nothing else in the program names an operation in C. A plan carries operations by
 * name; exec and the reference interpreter call `run` with local boxes. Room: op.
 */
#ifndef HP_OP_OP_H
#define HP_OP_OP_H

#include "graph/graph.h"

/* hp_operand is a local box of a tensor: dense row-major, `len[d]` of `full[d]` elements from `lo[d]` on. Routed
 * tensors ([batch, seq, experts, width]) hold `rows` rows of len[nd-1] elements, sorted by (expert, batch, seq); the
 * call's `route` operand (same batch and seq box) says which. data is NULL where the box is empty. */
typedef struct hp_operand {
    void *data;
    hp_dtype dtype;
    int nd;
    int64_t lo[HP_MAX_DIMS], len[HP_MAX_DIMS], full[HP_MAX_DIMS];
    int64_t rows;
} hp_operand;

/* Which kernels a call may use: the plain reference ones (for the interpreter), or the best for the machine. */
typedef enum hp_kernels { HP_KERN_REFERENCE, HP_KERN_BEST } hp_kernels;

typedef struct hp_call {
    const char *name; /* node name, for messages and random-number keys */
    int n_in, n_out;
    hp_operand arg[HP_MAX_OPERANDS]; /* inputs, then outputs; absent optional inputs have nd = -1 */
    int n_attrs;
    const hp_attr *attr;
    bool accumulate; /* add into output 0 instead of storing (rows with `accumulates`) */
    hp_kernels kernels;
    int threads;   /* OpenMP team size the call may use */
    uint64_t seed; /* of the run; dropout keys: (seed, step, micro, name, global element index) */
    int64_t step, micro;
    void *scratch; /* `scratch_bytes` of the cost row, aligned to 64 */
} hp_call;

/* hp_flops of a call on the given boxes: matmul flops and other flops, bytes of memory traffic, scratch it needs. */
typedef struct hp_op_work {
    double matmul_flops, other_flops, bytes;
    int64_t scratch_bytes;
    int64_t m, n, k, groups; /* GEMM shape when it is one (0 else): for efficiency curves */
} hp_op_work;

typedef struct hp_op {
    hp_graph_op graph;                             /* name, infer, grad */
    bool accumulates;                              /* run honours call->accumulate */
    bool in_place;                                 /* output 0 may share input 0's bytes */
    bool matmul;                                   /* counts as model flops */
    void (*work)(const hp_call *c, hp_op_work *w); /* from boxes alone: data pointers may be NULL */
    hp_err (*run)(const hp_call *c, hp_errmsg *e);
} hp_op;

/* hp_fill_fn fills the local box of a graph input ("tokens", "targets", "positions", ...) for a microbatch of a step; `micro` is
 * -1 for inputs of a whole step ("targets.all", whose dimension 0 is the microbatch). Called from several threads at once. */
typedef hp_err hp_fill_fn(void *ctx, const char *input, int64_t step, int64_t micro,
                          const hp_operand *box, hp_errmsg *e);

/* hp_ops is every operation, NULL-terminated; hp_graph_ops the same table's graph rows in the same order. */
extern const hp_op *const hp_ops[];
const hp_graph_op *const *hp_graph_ops(void);

/* hp_op_find returns the operation called `name`, NULL when there is none. */
const hp_op *hp_op_find(const char *name);

#endif

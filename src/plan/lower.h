/* lower.h -- from a resolved strategy to programs: the pieces of lowering, private to the plan room.
 *
 * A `lowering` builds one program (one stage). Chunks are placed first (lower_chunk.c), so that every contribution to a gradient is known before the
 * accumulators' layouts are fixed; then templates are written: I and O (lower_step.c), F and B of every chunk (lower_chunk.c). Addresses come
 * last (memory.c). Arrays are heap memory until lower_finish moves them into the plan's arena.
 */
#ifndef HP_PLAN_LOWER_H
#define HP_PLAN_LOWER_H

#include "base/map.h"
#include "plan/plan.h"
#include "plan/resolve.h"
#include "shard/place.h"

/* A template being written. */
typedef struct low_tmpl {
    hp_tmpl_kind kind;
    int chunk;
    int n, cap;
    hp_task *task;
} low_tmpl;

/* A router's choices gathered so far that they cover what two layouts hold. */
typedef struct low_route {
    int which, tensor, buffer;
    hp_layout layout;
} low_route;

/* One chunk: its placement and where every copy lies in F and in B. */
typedef struct low_chunk {
    int chunk, vstage;
    int n_nodes;
    int *node;
    bool *given;       /* by tensor: received, or made once a step */
    hp_placement placed;
    bool *saved;       /* by copy: made in F, kept for B */
    bool *again;       /* by copy: made in F, made again in B */
    int *buf[2];       /* by copy: buffer in F and in B, -1 not yet */
    bool *done[2];     /* by step: emitted in F, in B */
    int *unit[2];      /* gather order in F and B: units by first use */
    int n_units[2], gathered[2];
    int n_routes, cap_routes;
    low_route *route;    /* what F gathered is in the frame, so B has it too */
    low_tmpl *f, *b;
} low_chunk;

/* What a program knows of one parameter. */
typedef struct low_param {
    bool used, trained;
    bool home;           /* this program owns the states (a tied parameter has one home) */
    int home_stage;
    int store;           /* persistent buffer in storage layout, or the step copy of a parameter whose home is elsewhere */
    int kept;            /* gathered once a step, -1 */
    int master, m, v;    /* optimizer states, -1 */
    int acc;             /* gradient accumulator, -1 before the first contribution */
    hp_layout acc_layout;
    int n_contributions, n_written; /* planned over all chunks; emitted so far in the order templates are written */
    int grad;            /* reduced gradient in optimizer layout, -1 until emitted */
    int *gathered;       /* by template: gathered copy, -1 */
    int unit;
} low_param;

typedef struct lowering {
    hp_resolved *r;
    hp_plan *plan;
    hp_program *p;
    hp_errmsg *e;
    hp_price price;
    int cap_buffers, cap_streams;
    int n_tmpl;
    low_tmpl *tmpl[2 + 2 * HP_MAX_CHUNKS];
    int n_chunks;
    low_chunk *chunk;
    low_param *param;         /* by tensor */
    int *step_value;          /* by tensor (HP_T_STEP): buffer, -1 */
    int n_units;
    const char **unit;        /* gather units: names */
    hp_map names;             /* task names, to keep them unique */
    hp_map buffer_names;
    int loss_sum;             /* buffer, -1 */
    int *ready, n_ready;      /* parameters whose accumulators are complete and not yet reduced */
    int64_t ready_bytes, bucket_bytes; /* of those; when a bucket is full */
    const low_tmpl *dead_in;  /* accumulators that were reduced into other buffers in this template: their bytes are free */
    int *dead, n_dead;
    bool bf16;
} lowering;

/* --- lower.c: buffers, tasks, streams, moves --------------------------------------------------------------- */

/* low_buffer adds a buffer; `tensor` is the graph's tensor or -1; the name is made unique. Sizes follow from shape and layout. */
int low_buffer(lowering *w, const char *name, int tensor, hp_dtype t, const hp_shape *shape, const hp_layout *l, hp_bkind kind,
               hp_scope scope);

/* low_stream returns the stream called `name`, adding it. */
int low_stream(lowering *w, const char *name, bool comm, int role);

/* low_task appends a task with room for n_in + n_out operands (all -1) and returns it; valid until the next call on the same template. The name is made unique. */
hp_task *low_task(lowering *w, low_tmpl *t, const char *name, hp_task_kind kind, int stream, int n_in, int n_out);

/* low_op appends an operation by name with its operands (inputs then outputs). */
hp_task *low_op(lowering *w, low_tmpl *t, const char *name, const char *op, int n_in, const int *in, int n_out, const int *out);

/* low_attrs gives a task a node's attributes and its name as the key of random numbers. */
void low_attrs(lowering *w, hp_task *t, const hp_node *n);

/* low_coll appends one collective of a bucket of n pairs. */
hp_task *low_coll(lowering *w, low_tmpl *t, const char *name, hp_coll kind, uint32_t atoms, int n, const int *src, const int *dst,
                  const char *why);

/* low_why writes the reason of a move into the plan's arena: tensor, from, to, consumer. */
const char *low_why(lowering *w, int tensor, const hp_layout *from, const hp_layout *to, const char *consumer);

/* low_move emits the cheapest path from buffer `src` to layout `to` in template t: intermediates and, unless `dst` >= 0 is given, the result are new buffers of
 * `scope`. *out is the result (src itself when the layouts are equal and no dst is given). `async` false puts the moves on the compute stream. */
hp_err low_move(lowering *w, low_tmpl *t, int src, const hp_layout *to, int dst, hp_scope scope, bool async, const char *consumer, int *out);

/* low_template appends a template. */
low_tmpl *low_template(lowering *w, hp_tmpl_kind kind, int chunk);

/* low_dims fills the dimension names of a tensor (HP_MAX_DIMS pointers). */
void low_dims(const hp_graph *g, int tensor, const char **dims);

/* --- lower_param.c: parameters in a template ---------------------------------------------------------------- */

/* low_params decides which parameters this program uses and makes their persistent buffers. */
hp_err low_params(lowering *w);

/* low_param_buffer returns the buffer with a parameter in compute layout within a chunk's template (0 = F, 1 = B), gathering its unit (and those ahead) first. */
hp_err low_param_buffer(lowering *w, low_chunk *c, int which, int tensor, int *buffer);

/* low_gather_order fills a chunk's unit order from its placement. */
void low_gather_order(lowering *w, low_chunk *c);

/* low_accumulators fixes every accumulator's layout from all contributions and makes the buffers. */
hp_err low_accumulators(lowering *w);

/* low_contribute emits a weight-gradient step of a chunk, whose inputs are `in`, so that its outputs are added into the accumulators; reduces complete accumulators where
 * that is to overlap. */
hp_err low_contribute(lowering *w, low_chunk *c, int step, const int *in);

/* low_flush_grads reduces the accumulators that are complete, in the last microbatch of template t. */
hp_err low_flush_grads(lowering *w, low_tmpl *t);

/* --- lower_chunk.c -------------------------------------------------------------------------------------------- */

/* low_place places the nodes of a chunk (its own, unless they were set before); low_chunk_emit writes its F and B. */
hp_err low_place(lowering *w, low_chunk *c);
hp_err low_chunk_emit(lowering *w, low_chunk *c);
void low_chunk_fini(low_chunk *c);

/* low_is_ring says whether a step's attention has keys split along the ring; low_ring emits it: its inputs and outputs are buf[], its keys and values circulate (lower_ring.c). */
bool low_is_ring(const lowering *w, const low_chunk *c, const hp_step *s);
hp_err low_ring(lowering *w, low_tmpl *t, const hp_node *n, const int *buf, bool again);

/* low_emit_all writes all steps of a placement into the chunk's template f (the once-a-step nodes); low_copy_buffer returns where one of its copies lies. */
hp_err low_emit_all(lowering *w, low_chunk *c);
hp_err low_copy_buffer(lowering *w, low_chunk *c, int copy, int *buffer);

/* --- lower_step.c ----------------------------------------------------------------------------------------------- */

/* low_init writes template I, low_optimizer template O. */
hp_err low_init(lowering *w);
hp_err low_optimizer(lowering *w);

/* low_reduce_grad emits the reduction of complete accumulators into optimizer layout, buckets of one kind together. */
hp_err low_reduce_grads(lowering *w, low_tmpl *t, const int *tensor, int n, hp_when when, bool async);

/* --- lower_program.c, schedule.c, memory.c -------------------------------------------------------------------------------- */

/* low_schedule fills the entries of a program for the strategy's schedule (gpipe, 1f1b, interleaved) and assigns frames. */
hp_err low_schedule(lowering *w);

/* low_program builds the program of one stage into plan->program[stage]; the price functions are borrowed. */
hp_err low_program(hp_resolved *r, hp_plan *plan, int stage, const hp_price *price, hp_errmsg *e);

/* low_pass_in_place lets results lie on inputs that nobody reads any more (pass_inplace.c). */
void low_pass_in_place(hp_program *p);

/* low_addresses gives every buffer its offset and the scopes their sizes. */
void low_addresses(hp_program *p);

#endif

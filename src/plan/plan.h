/* plan.h -- the plan: the complete program of every device of one training step.
 *
 * exec and sim are two readers of it. A plan holds one *program* a pipeline stage (or group); all ranks of a program's mesh run the same tasks on boxes
 * of their own. A program holds buffers, *templates* (I once a step, F forward of a microbatch, B backward (with W merged unless split), O optimizer) and
 * a *schedule*: the list of template instances in program order. Streams are in-order queues of a device; tasks of different streams overlap as far as the
 * dependencies of plan/expand.h allow, which follow from the bytes that tasks read and write and from nothing else.
 *
 * Address of a buffer = base of its scope + offset: [persist | step | frame 0 .. frame n-1 | run]. Frame buffers live from the F to the B of one microbatch, run
 * buffers within one template instance. Offsets are the same on all ranks; `bytes` is the largest rank's size, rounded up to 64.
 *
 * Text form (plan/text.h): first line `hpbench-plan 1`; parse(print(p)) == p. Room: plan.
 */
#ifndef HP_PLAN_PLAN_H
#define HP_PLAN_PLAN_H

#include "shard/redist.h"

typedef enum hp_bkind {
    HP_B_PARAMS, HP_B_GRADS, HP_B_OPTIMIZER, HP_B_ACTIVATIONS, HP_B_LOGITS, HP_B_WORKSPACE, HP_B_COMM, HP_B_KV, HP_B_KINDS
} hp_bkind;

typedef enum hp_scope { HP_S_PERSIST, HP_S_STEP, HP_S_FRAME, HP_S_RUN, HP_S_SCOPES } hp_scope;
typedef enum hp_tier { HP_TIER_HBM, HP_TIER_HOST, HP_TIER_POOL, HP_TIER_FILE, HP_TIERS } hp_tier;

/* Names as used in text and JSON ("params", "step", "hbm", ...); the finders return -1 when unknown. */
const char *hp_bkind_name(hp_bkind k);
const char *hp_scope_name(hp_scope s);
const char *hp_tier_name(hp_tier t);
int hp_bkind_find(const char *s);
int hp_scope_find(const char *s);
int hp_tier_find(const char *s);

typedef struct hp_buffer {
    const char *name;   /* unique in the program: "layers.0.attn.q.w", "layers.0.attn.q#2" */
    const char *tensor; /* the graph's tensor (for data, initial values and checks), NULL for helpers */
    hp_dtype dtype;
    hp_shape shape;     /* global; cuts point into the plan */
    hp_layout layout;
    hp_bkind kind;
    hp_scope scope;
    hp_tier tier;
    int route;          /* routed: buffer with the router's choices, whose box covers this one's tokens; else -1 */
    int64_t rows;       /* routed: row capacity of a rank */
    hp_init init;       /* persistent values: how they start (keyed by seed, tensor and global element index) */
    float init_std;
    uint32_t turn_atoms;/* ring: a rank holds the box of the rank `turn` places further along these atoms */
    int turn;
    int alias;          /* lies on the bytes of this buffer (same scope): an in-place result, or one made when the other is dead; -1 */
    int64_t bytes, offset;
} hp_buffer;

typedef enum hp_task_kind {
    HP_TASK_OP,   /* run operation `op` on buf[0..n_in+n_out) */
    HP_TASK_COLL, /* collective: buf[i] -> buf[n_in + i], i < n_in (several = one bucket); layouts of the buffers say what moves */
    HP_TASK_LOAD, /* fill input buffers buf[n_in..] with this microbatch's data */
    HP_TASK_SEND, /* buf[0] to program `peer`, matched by `edge` and microbatch */
    HP_TASK_RECV, /* buf[0] (an output) from program `peer` */
    HP_TASK_COPY  /* buf[0] -> buf[1], between tiers */
} hp_task_kind;

/* When a task of a microbatch template runs: in every instance, only in the first of the step, in all but the first, only
 * in the last (hp_entry.first and .last say which an entry is; an entry may be both). */
typedef enum hp_when { HP_W_ALWAYS, HP_W_FIRST, HP_W_REST, HP_W_LAST } hp_when;

typedef struct hp_task {
    const char *name; /* unique in the program: "layers.3.attn.q/dx", "layers.3.attn.o/fwd>all-reduce" */
    hp_task_kind kind;
    int stream;       /* index into the program's streams; a COLL on the compute stream (0) blocks compute and is a transfer all the same */
    hp_when when;
    const char *op;   /* OP: name in the registry */
    const char *node; /* OP: the graph's node, which keys its random numbers (hp_call.name); NULL for helpers */
    int n_attrs;
    hp_attr *attr;
    bool accumulate;  /* OP: add into output 0 */
    bool recompute;   /* a forward operation run again in backward */
    int n_in, n_out;
    int *buf;         /* buffer ids, -1 for an absent optional input */
    hp_coll coll;     /* COLL */
    uint32_t atoms;   /* COLL: the group's atoms */
    int peer, edge;   /* SEND, RECV */
    const char *why;  /* COLL, SEND, COPY: tensor, from, to, consumer */
} hp_task;

typedef enum hp_tmpl_kind { HP_TMPL_I, HP_TMPL_F, HP_TMPL_B, HP_TMPL_W, HP_TMPL_O } hp_tmpl_kind;

typedef struct hp_template {
    hp_tmpl_kind kind;
    int chunk;
    int n_tasks;
    hp_task *task; /* in program order */
} hp_template;

typedef struct hp_entry {
    int tmpl, micro; /* micro = -1 for I and O */
    int frame;       /* -1 for I and O */
    bool first, last;/* first, last microbatch of this template in the step */
} hp_entry;

typedef struct hp_stream {
    const char *name; /* "compute", "tp", "dp", "h2d", ... */
    bool comm;        /* a transfer stream */
    int role;         /* HP_ROLE_* of the axis, -1 */
} hp_stream;

typedef struct hp_program {
    const char *name; /* "stage0" */
    int stage;
    hp_mesh mesh;
    int n_streams, n_buffers, n_templates, n_entries, n_frames;
    hp_stream *stream;
    hp_buffer *buffer;
    hp_template *tmpl;
    hp_entry *entry;
    int64_t scope_bytes[HP_S_SCOPES]; /* one frame's for HP_S_FRAME */
    int64_t host_bytes;               /* persistent bytes in other tiers */
} hp_program;

typedef struct hp_plan {
    hp_arena arena; /* owns everything below */
    const char *model, *cluster, *strategy;
    uint64_t strategy_hash;
    int n_devices;
    int64_t batch, micro, seq, vocab; /* sequences a microbatch (all devices), microbatches a step, tokens a sequence, tokens there are (without padding) */
    int64_t global_batch;
    int zigzag; /* > 0: sequences are permuted in head and tail pairs for that many ranks (data loader) */
    int n_cuts;
    hp_cut *cut;
    int n_programs;
    hp_program *program;
    double model_flops_causal, model_flops_full; /* of a step: DESIGN.md, model flops */
    int64_t budget_bytes;                        /* of a device's hbm */
} hp_plan;

/* hp_plan_new returns an empty plan; hp_plan_free frees it and all it owns. */
hp_plan *hp_plan_new(void);
void hp_plan_free(hp_plan *p);

/* hp_program_arena returns the bytes of hbm a device of this program needs: all scopes with all frames. */
int64_t hp_program_arena(const hp_program *p);

/* hp_buffer_address returns the offset of a buffer in the device's arena for a frame (ignored outside HP_S_FRAME). */
int64_t hp_buffer_address(const hp_program *p, int buffer, int frame);

/* hp_buffer_root follows aliases to the buffer whose bytes `buffer` lies on. */
int hp_buffer_root(const hp_program *p, int buffer);

/* hp_task_due says whether a task of a template runs in one of its schedule entries. */
bool hp_task_due(const hp_task *t, const hp_entry *e);

/* hp_buffer_box returns what `rank` holds of the buffer's tensor: its layout's box, turned along the ring. */
hp_box hp_buffer_box(const hp_program *p, int buffer, int rank);

/* hp_buffer_rank_bytes returns the bytes that `rank` really holds of the buffer (routed: its row capacity). */
int64_t hp_buffer_rank_bytes(const hp_program *p, int buffer, int rank);

/* hp_coll_axis returns the smallest axis that holds the group of a COLL, NULL when none does; rows of routed tensors go over the experts' axis where another has the
 * same devices. hp_coll_axis_name writes its name, or that of the atoms where they are not one axis, and returns buf. */
const hp_axis *hp_coll_axis(const hp_program *p, const hp_task *t);
char *hp_coll_axis_name(const hp_program *p, const hp_task *t, char *buf, size_t n);

/* hp_task_bytes returns the bytes `rank` sends in a COLL task by hp_move_bytes, summed over the bucket (routed buffers: at balanced
 * routing); 0 for tasks that send nothing. */
double hp_task_bytes(const hp_program *p, const hp_task *t, int rank);

#endif

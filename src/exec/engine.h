/* engine.h -- a plan made ready to run: what the engine's parts share. Nothing here is for other rooms.
 *
 * A *side* is one program on its ranks. `prepare` fills everything that is constant, `sched` owns all that changes in a step (marked: under the lock),
 * `work` executes instances without the lock. Arrays over (rank, instance) are indexed rank * n_inst + inst. Room: exec.
 */
#ifndef HP_EXEC_ENGINE_H
#define HP_EXEC_ENGINE_H

#include "exec/flow.h"
#include "exec/memory.h"
#include "exec/ready.h"
#include "exec/rows.h"
#include "exec/segment.h"

#include <pthread.h>

/* Phases of a collective instance, each a round of shares. */
typedef enum hp_coll_phase {
    HP_PHASE_NONE, /* before the last member has arrived */
    HP_PHASE_ROWS, /* routed: every rank lists its rows */
    HP_PHASE_MOVE, /* pieces go to their destination, or to staging memory */
    HP_PHASE_OUT,  /* staged: every rank copies its new box out */
    HP_PHASE_END
} hp_coll_phase;

/* hp_messages is what a SEND and a RECV task exchange: move[] ordered by (src, dst). */
typedef struct hp_messages {
    int program, task; /* of the sender; task as in hp_side.info */
    int to_program, to_task;
    int n;
    hp_xmove *move;
    int *n_from; /* per receiving rank: different senders */
    int *n_to;   /* per sending rank: different receivers */
} hp_messages;

/* What is constant about a task. */
typedef struct hp_info {
    const hp_task *task;
    const hp_op *op; /* OP */
    bool comm;
    int link;                /* pacing class, -1: local */
    const hp_groups *groups; /* COLL */
    hp_flow *const *flow;    /* COLL: one a pair, borrowed */
    bool routed, staged;     /* COLL */
    size_t list_bytes;       /* COLL, routed: storage of one row table */
    int64_t *stage_at;       /* COLL, staged: offset of each pair's box in staging memory */
    int64_t *sent;           /* per rank: bytes this task sends (routed: counted while it runs) */
    const hp_messages *messages; /* SEND, RECV */
} hp_info;

/* One instance of a collective in one group; under the lock. */
typedef struct hp_meet {
    int arrived, left;
    hp_coll_phase phase;
    int64_t xfer_ns, busy_ns, phase_ns;
} hp_meet;

/* One life of a RUN buffer within an entry, or of a FRAME buffer that begins in it, for poisoning. */
typedef struct hp_life {
    int buffer, entry, uses;
} hp_life;

/* Memory of a rank's stream beside its arena, for the collective at its head. */
typedef struct hp_storage {
    hp_rows *rows; /* of every pair: source, destination */
    char *lists;   /* of the row tables, each hp_info.list_bytes */
    char *stage;
} hp_storage;

typedef struct hp_side {
    const hp_program *p;
    const hp_expansion *x;
    int index, n_ranks, n_inst,
        device0;              /* device0: number of rank 0 among all ranks of the engine */
    int n_tasks, *first_task; /* per template: index of its first task in info */
    hp_info *info;
    hp_box *box;            /* [rank * n_buffers + buffer] */
    hp_memory *hbm, *far;   /* per rank; far: other tiers */
    int *succ_first, *succ; /* who waits for an instance's completion */
    int *follower;          /* SEND: next on its stream, released when posted; else -1 */
    int *start;             /* per instance: what it waits for at the step's start */
    int *meet_first;        /* per instance: index of its first meet, -1 */
    int *peer_inst;         /* SEND, RECV: the matching instance of the other program, -1 */
    int n_meets;
    hp_storage *storage;       /* [rank * n_streams + stream] */
    int *life_first, *life_of; /* poison: lives an instance uses: life_of[life_first[i]] .. */
    int n_lives;
    hp_life *life; /* owned, as life_of */
    /* under the lock */
    int *pending; /* dependencies left; of a posted SEND: receivers left */
    int *posts;   /* RECV: senders that have not posted */
    hp_meet *meet;
    int *life_left; /* [rank * n_lives + life] */
} hp_side;

typedef struct hp_engine {
    const hp_plan *plan;
    const hp_exec_options *o;
    const hp_exec_hooks *h;
    hp_segment *seg;
    hp_arena arena; /* constants of all sides */
    int n_sides, n_devices;
    hp_side *side;
    struct hp_known *known; /* flows, groups and messages, each made once */
    int workers, team, cores;
    bool paced; /* deadlines exist: the link thread runs */
    int64_t scratch_bytes;
    char **scratch; /* per worker */
    struct {
        int program, rank, inst, buffer; /* where a metric is read; program = -1: nowhere */
    } loss, grad_norm;
    const char *inject_glob; /* HPBENCH_INJECT */
    int inject;
    /* constant within a step */
    int64_t step, start_ns;
    int slot;
    hp_exec_metrics now;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t work, link;
    hp_ready *ready;               /* per worker: of its devices */
    hp_ready due;                  /* transfers whose bytes have been moved, by deadline */
    int sleeping, running, queued; /* threads asleep and at work, entries in all ready queues */
    int64_t left;                  /* instances of the step that are not done */
    bool step_open, quit;
    hp_err code;
    hp_errmsg error;
    /* without the lock */
    _Atomic int version; /* changes when there may be something to do */
} hp_engine;

/* hp_at is the index of (rank, inst) in a side's arrays. */
static inline int64_t hp_at(const hp_side *s, int rank, int inst)
{
    return (int64_t)rank * s->n_inst + inst;
}

/* hp_info_of returns the constants of an instance's task. */
static inline const hp_info *hp_info_of(const hp_side *s, int inst)
{
    const hp_inst *i = &s->x->inst[inst];
    return &s->info[s->first_task[s->p->entry[i->entry].tmpl] + i->task];
}

static inline const hp_entry *hp_entry_of(const hp_side *s, int inst)
{
    return hp_inst_entry(s->p, &s->x->inst[inst]);
}

/* hp_data returns where a buffer lies on a rank (in a frame). */
static inline char *hp_data(const hp_side *s, int rank, int buffer, int frame)
{
    const hp_memory *m = s->p->buffer[buffer].tier == HP_TIER_HBM ? s->hbm : s->far;
    return m[rank].base + hp_buffer_address(s->p, buffer, frame);
}

/* hp_box_of returns what a rank holds of a buffer. */
static inline const hp_box *hp_box_of(const hp_side *s, int rank, int buffer)
{
    return &s->box[(int64_t)rank * s->p->n_buffers + buffer];
}

/* hp_meet_of returns the meeting of a rank's group in a COLL instance. */
static inline hp_meet *hp_meet_of(hp_side *s, int rank, int inst)
{
    return &s->meet[s->meet_first[inst] + hp_info_of(s, inst)->groups->of[rank]];
}

#endif

/* segment.h -- the memory in which a run tells what it does: written by one engine, read by any number of readers, in its process or another.
 *
 * The newest steps lie in a ring of slots, the slowest (after the first) in a slot of its own. A slot's step number is -1 while it is being cleared; within
 * a slot every span is published by itself (trace/trace.h), so a reader may look at a step while it runs. A reader that copies asks hp_segment_holds
 * afterwards whether the slot still is the same step. Room: exec.
 */
#ifndef HP_EXEC_SEGMENT_H
#define HP_EXEC_SEGMENT_H

#include "exec/exec.h"

enum { HP_SEGMENT_RING = 8 };

/* Life of a run. */
typedef enum hp_run_phase { HP_RUN_STARTING, HP_RUN_RUNNING, HP_RUN_ENDED } hp_run_phase;

/* hp_segment_head lies at the start of the mapping. */
typedef struct hp_segment_head {
    uint64_t magic;
    int64_t bytes;
    int64_t max_steps;
    int n_programs, ring;
    _Atomic int64_t steps_done;
    _Atomic int phase;  /* hp_run_phase */
    _Atomic int cancel; /* as hp_exec_hooks.cancel */
    int workers, team;  /* what the run chose */
    hp_err code;        /* valid once phase is ENDED */
    char text[1024];
    struct {
        _Atomic int64_t step;    /* -1: empty or being cleared */
        int64_t start_ns;        /* monotonic clock */
        _Atomic int64_t step_ns; /* 0 while it runs */
    } slot[HP_SEGMENT_RING + 1]; /* the last is the slowest */
} hp_segment_head;

typedef struct hp_segment {
    hp_segment_head *head;
    hp_exec_metrics *metrics; /* [max_steps] */
    int n_programs;
    int *n_inst, *n_ranks; /* per program, owned */
    int64_t
        *first; /* per program: index of its first span in a slot; [n_programs]: spans of a slot */
    hp_span *span;    /* [ring + 1][spans] */
    int64_t *busy_ns; /* same shape: measured duration of the work alone */
    int fd;           /* of the memfd, -1 when private */
} hp_segment;

/* hp_segment_new makes a zeroed segment for the runs of a plan; in a memfd (for a child) when `shared`. HP_EINTERNAL when the machine refuses. */
hp_err hp_segment_new(const hp_plan *p, const hp_expansion *x, int64_t steps, bool shared,
                      hp_segment **out, hp_errmsg *e);

/* hp_segment_open maps what hp_segment_new made in another process; takes over fd. */
hp_err hp_segment_open(const hp_plan *p, const hp_expansion *x, int fd, hp_segment **out,
                       hp_errmsg *e);

/* hp_segment_free unmaps and closes; NULL is nothing. */
void hp_segment_free(hp_segment *s);

/* hp_segment_begin opens the slot of a step with all its spans empty; hp_segment_end closes it and keeps the slowest. */
int hp_segment_begin(hp_segment *s, int64_t index, int64_t step, int64_t start_ns);
void hp_segment_end(hp_segment *s, int slot, int64_t step_ns);

/* hp_segment_span and hp_segment_busy return the place of (program, rank, inst) in a slot. */
hp_span *hp_segment_span(const hp_segment *s, int slot, int program, int rank, int inst);
int64_t *hp_segment_busy(const hp_segment *s, int slot, int program, int rank, int inst);

/* hp_segment_newest returns the slot of the newest complete step, hp_segment_current that of the step that runs, hp_segment_slowest
 * the slowest one's; -1 when there is none. */
int hp_segment_newest(const hp_segment *s);
int hp_segment_current(const hp_segment *s);
int hp_segment_slowest(const hp_segment *s);

/* hp_segment_holds says whether the slot still holds that step. */
bool hp_segment_holds(const hp_segment *s, int slot, int64_t step);

/* hp_segment_trace makes *t a view of a slot; valid as long as the segment, freed by hp_segment_trace_fini. */
void hp_segment_trace(const hp_segment *s, int slot, hp_step_trace *t);
void hp_segment_trace_fini(hp_step_trace *t);

/* hp_segment_durations writes, per (rank, inst) of a program, the median measured duration over the steps that are kept (the
 * first step of a run only when there is no other): what sim replays. out: [n_ranks * n_inst]. */
void hp_segment_durations(const hp_segment *s, int program, int64_t *out);

#endif

/* exec.h -- runs a plan for real: virtual devices in shared memory, streams, collectives, messages, paced links.
 *
 * `hp_exec_run` (exec/run.h) runs in this process, `hp_exec_spawn` (exec/child.h) in a child that may crash without harm; both write the same *segment*, a
 * mapping with the spans of the newest steps, measured durations and metrics, which any number of readers may look at while the run goes on.
 *
 * A device is one mapping of exactly the plan's arena. W workers take ready tasks of all devices in a legal order: transfers first, then by program
 * order, their own devices before others'. A collective is cut into one share a rank when its last member has arrived. All results depend on plan, options
 * and data alone, never on workers, cores or timing. Room: exec.
 */
#ifndef HP_EXEC_EXEC_H
#define HP_EXEC_EXEC_H

#include "base/err.h"
#include "op/data.h"
#include "op/op.h"
#include "plan/plan.h"
#include "trace/trace.h"

/* Classes of links that can be paced, by the role of a transfer stream's axis; HP_LINK_COPY: streams without a role. */
enum { HP_LINK_COPY = HP_ROLE_OTHER + 1, HP_LINKS };

typedef struct hp_exec_options {
    int64_t steps, first_step; /* how many steps to run, and the number of the first */
    uint64_t seed;
    int workers; /* 0: min(cores, devices) */
    int cores;   /* 0: those this process may use */
    bool pin;    /* bind each worker (the calling thread too) to cores of its own */
    hp_kernels kernels;
    bool poison;                     /* fill dead bytes with NaN, to prove lifetimes */
    double link_bandwidth[HP_LINKS]; /* bytes/s, 0: as fast as memory goes */
    double link_latency[HP_LINKS];   /* seconds */
    int n_slow;
    double slow
        [64]; /* per device (global number): its compute takes so many times as long; 0 and 1: as it is */
    char corpus[512]; /* child: file that LOAD tasks read (op/data.h), "" made-up tokens */
    hp_data_options data;
    char tap
        [128]; /* child: glob of task names whose outputs are kept for hp_exec_tap_next; "" none */
} hp_exec_options;

/* hp_exec_options_default returns one step of seed 1 at full speed with the best kernels. */
hp_exec_options hp_exec_options_default(void);

/* hp_exec_metrics is what a step says of itself. NAN where the plan has no such buffer. */
typedef struct hp_exec_metrics {
    int64_t step, step_ns;
    double loss, grad_norm;
} hp_exec_metrics;

/* hp_exec_tap is one output of a task instance at its end, before anything may overwrite it. `operand` may be written: a tap that puts other values there
 * (recorded router choices) makes them the task's result. */
typedef struct hp_exec_tap {
    int program, rank, inst, output, buffer;
    bool routed; /* operand.rows rows of its last dimension */
    const hp_task *task;
    const hp_entry *entry;
    int64_t step;
    hp_operand operand;
} hp_exec_tap;

/* hp_exec_hooks is what a run asks of its caller; all functions are called from worker threads, load and tap concurrently. NULL members are
 * not called; a plan with LOAD tasks needs `load`. */
typedef struct hp_exec_hooks {
    void *ctx;
    hp_fill_fn *
        load; /* with load_ctx; fills a box of an input for a microbatch; micro = -1: of the whole step */
    void *load_ctx;
    void (*tap)(void *ctx, const hp_exec_tap *t);
    /* step is called between steps, by one thread. */
    void (*step)(void *ctx, const hp_exec_metrics *m);
    /* final is called after the last step for every persistent buffer of every rank. */
    void (*final)(void *ctx, int program, int rank, int buffer, const hp_operand *o);
    const _Atomic int *cancel; /* 1: end at the step's end, 2: now; NULL: never */
} hp_exec_hooks;

/* hp_exec_report points into the run's segment; freed by hp_exec_report_fini. */
typedef struct hp_exec_report {
    struct hp_segment *segment;
    int64_t steps;                  /* completed */
    const hp_exec_metrics *metrics; /* [steps] */
} hp_exec_report;

#endif

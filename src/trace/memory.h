/* memory.h -- the live bytes of a device over one step, by kind, from a plan and a trace.
 *
 * Persistent buffers live all the time. A step buffer lives from its first writer's start (from 0
 * when it is read first) to its last user's end, a frame buffer so within its microbatch, a run
 * buffer within its schedule entry. An operation that writes over an input's bytes (in place, or an
 * alias) ends that input's life. Sizes are the plan's (`bytes`: largest rank, rounded up to 64), so
 * the peak is the same for all ranks of a program but for time. The peak is the largest live sum in
 * hbm; what a device must have is the arena. Room: trace; uses plan.
 */
#ifndef HP_TRACE_MEMORY_H
#define HP_TRACE_MEMORY_H

#include "trace/trace.h"

/* From t_ns on, this much is live. */
typedef struct hp_memory_point {
    int64_t t_ns, total;
    int64_t kind[HP_B_KINDS];
} hp_memory_point;

typedef struct hp_memory_line {
    int n, cap;
    hp_memory_point *point; /* ascending in time, the first at 0 */
    int peak;               /* point with the largest total, the first of equals */
    int peak_inst;          /* an instance that begins or runs at the peak, -1 when none */
} hp_memory_line;

/* hp_memory_over_time fills *l (zeroed) for one device; freed by hp_memory_line_fini. */
void hp_memory_over_time(const hp_program *p, const hp_expansion *x, const hp_span *spans,
                         hp_memory_line *l);
void hp_memory_line_fini(hp_memory_line *l);

/* hp_memory_tier_bytes returns the bytes a device needs in a tier: hbm its arena, else the top of
 * what lies there. */
int64_t hp_memory_tier_bytes(const hp_program *p, hp_tier tier);

#endif

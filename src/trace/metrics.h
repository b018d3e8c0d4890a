/* metrics.h -- from plan and trace to the result record: the same figures for a run and for a
 * prediction.
 *
 * A *class* is the ranks of a program whose time is owned alike to the nanosecond; where a program
 * has more of those than HP_MAX_CLASSES_A_PROGRAM (every real run) it is one class, represented by
 * its rank with the largest compute + overlapped + exposed. The *critical* class has the largest of
 * these over all, first by name; the record's time, masking and axes are its. Memory is the worst
 * class'. Room: trace.
 */
#ifndef HP_TRACE_METRICS_H
#define HP_TRACE_METRICS_H

#include "cluster/cluster.h"
#include "trace/memory.h"
#include "trace/owners.h"

enum { HP_MAX_CLASSES_A_PROGRAM = 8 };

/* hp_metrics_fill fills step, tokens, time, masking, axes, memory and classes of r from one step.
 * Strings are copied into r's arena. */
void hp_metrics_fill(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t, hp_result *r);

/* hp_metrics_flops fills the flops of r: model flops from the plan, executed and recomputed ones
 * from its operations on all ranks (those with `matmul` in the operation table), replicated what
 * executed exceeds model, recomputed and padding by. */
void hp_metrics_flops(const hp_plan *p, hp_result *r);

/* hp_metrics_cluster fills what needs the cluster: bytes by level (a device of the critical class,
 * all bytes of a collective at the outermost level its group spans), mfu, hfu and their peak at
 * `rate`, capacity, the cluster's assumptions. After the other two. */
void hp_metrics_cluster(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t,
                        const hp_cluster *c, hp_rate rate, hp_result *r);

/* hp_metrics_memory returns the memory figures of a program on the given spans; strings in `a`. */
hp_memory_figures hp_metrics_memory(const hp_plan *p, int program, const hp_expansion *x,
                                    const hp_span *spans, hp_arena *a);

#endif

/* work.h -- what a task of a plan does on one rank, from its boxes alone: flops, traffic, GEMM
 * shape. Room: trace; uses op, plan. */
#ifndef HP_TRACE_WORK_H
#define HP_TRACE_WORK_H

#include "op/op.h"
#include "plan/plan.h"

/* hp_task_call fills a call with the rank's boxes and no data: what an operation's `work` row
 * reads. The attributes are borrowed from the plan. */
void hp_task_call(const hp_program *p, const hp_task *t, int rank, hp_call *c);

/* hp_task_work returns the work of an OP task on one rank: zero for other tasks, and for an
 * operation that no table knows. Routed operands count balanced rows. */
hp_op_work hp_task_work(const hp_program *p, const hp_task *t, int rank);

/* hp_task_is_matmul says whether the task's flops are model flops. */
bool hp_task_is_matmul(const hp_task *t);

#endif

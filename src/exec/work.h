/* work.h -- executes one task instance of a rank, without the scheduler's lock. Room: exec. */
#ifndef HP_EXEC_WORK_H
#define HP_EXEC_WORK_H

#include "exec/engine.h"

/* hp_work_operand describes a buffer on a rank; routed: with the rows that its choices name, which must not exceed its capacity
 * (HP_EINFEASIBLE names tensor, device, rows, capacity and moe.headroom). */
hp_err hp_work_operand(const hp_side *s, int rank, int buffer, int frame, hp_operand *o,
                       hp_errmsg *e);

/* hp_work_init fills every persistent buffer of a rank with its initial values. */
hp_err hp_work_init(hp_engine *g, hp_side *s, int rank, hp_errmsg *e);

/* hp_work_scratch returns the scratch bytes that the largest operation of all sides needs. */
int64_t hp_work_scratch(hp_engine *g);

/* hp_work_run executes an OP, LOAD, COPY or RECV instance; `worker` owns scratch memory. */
hp_err hp_work_run(hp_engine *g, hp_side *s, int rank, int inst, int worker, hp_errmsg *e);

/* hp_work_tap hands the outputs of an instance that is done to the tap. */
void hp_work_tap(hp_engine *g, hp_side *s, int rank, int inst);

#endif

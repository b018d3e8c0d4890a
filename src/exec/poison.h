/* poison.h -- dead bytes become NaN, so that whoever reads them is found out: lifetimes are proved by a run that stays right.
 *
 * A RUN buffer dies when its last user in an entry is done, a FRAME buffer with its last user of the microbatch. In-place results share bytes: of several lives that overlap in time and place only the one that is born
 * last and ends last is poisoned. All that is not persistent is poisoned before the first step and between steps. Room: exec.
 */
#ifndef HP_EXEC_POISON_H
#define HP_EXEC_POISON_H

#include "exec/engine.h"

/* hp_poison_prepare lists the lives of all sides. */
void hp_poison_prepare(hp_engine *g);

/* hp_poison_step poisons everything but persistent buffers and starts all lives anew. */
void hp_poison_step(hp_engine *g);

/* hp_poison_done counts an instance's uses and poisons what died with it; under the lock. */
void hp_poison_done(hp_side *s, int rank, int inst);

#endif

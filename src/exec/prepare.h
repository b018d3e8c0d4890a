/* prepare.h -- from a plan to an engine: checks, boxes, who waits for whom, what collectives and messages move, memory. Room: exec. */
#ifndef HP_EXEC_PREPARE_H
#define HP_EXEC_PREPARE_H

#include "exec/engine.h"

/* hp_prepare fills the constant part of a zeroed engine (plan, o, h and seg are set) and maps and touches all memory. x: the programs' expansions,
 * borrowed. HP_EINFEASIBLE: a device's arena is over the plan's budget, or all of them over this machine; HP_EINTERNAL: a plan that cannot be run. */
hp_err hp_prepare(hp_engine *g, const hp_expansion *x, hp_errmsg *e);

/* hp_prepare_undo frees all that hp_prepare made, also half of it. */
void hp_prepare_undo(hp_engine *g);

#endif

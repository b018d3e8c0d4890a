/* share.h -- a rank's share of a collective, executed without the scheduler's lock while the other members' shares run elsewhere. Room: exec. */
#ifndef HP_EXEC_SHARE_H
#define HP_EXEC_SHARE_H

#include "exec/engine.h"

/* hp_share_exists says whether a rank has anything to do in a phase of a collective. */
bool hp_share_exists(const hp_side *s, int rank, int inst, hp_coll_phase phase);

/* hp_share_run does it. HP_EINFEASIBLE: more routed rows than a buffer has room for. */
hp_err hp_share_run(hp_engine *g, hp_side *s, int rank, int inst, hp_coll_phase phase,
                    hp_errmsg *e);

#endif

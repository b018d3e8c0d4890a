/* wire.h -- which RECV instance each SEND instance belongs to. Room: exec. */
#ifndef HP_EXEC_WIRE_H
#define HP_EXEC_WIRE_H

#include "exec/engine.h"

/* hp_wire pairs the n-th SEND of (program, peer, edge, microbatch) with the n-th such RECV and finds their messages. HP_EINTERNAL names one that has no partner. */
hp_err hp_wire(hp_engine *g, hp_errmsg *e);

#endif

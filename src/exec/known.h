/* known.h -- flows, groups and messages of an engine: layers repeat them, so each is made once and found again. Room: exec. */
#ifndef HP_EXEC_KNOWN_H
#define HP_EXEC_KNOWN_H

#include "exec/engine.h"

typedef struct hp_known hp_known;

/* hp_known_new returns an empty store; hp_known_free frees it with all it handed out. */
hp_known *hp_known_new(void);
void hp_known_free(hp_known *k);

/* hp_known_flow finds or makes the flow between two buffers of a side; errors as hp_flow_new. */
hp_err hp_known_flow(hp_known *k, const hp_side *s, uint32_t atoms, int from, int to, hp_flow **out,
                     hp_errmsg *e);

/* hp_known_groups finds or makes the groups of a mask of atoms. */
const hp_groups *hp_known_groups(hp_known *k, const hp_side *s, uint32_t atoms);

/* hp_known_messages finds or makes what SEND task `task` of side a exchanges with RECV task `to_task` of side b; errors as hp_redist_cross. */
hp_err hp_known_messages(hp_known *k, const hp_side *a, int task, const hp_side *b, int to_task,
                         const hp_messages **out, hp_errmsg *e);

#endif

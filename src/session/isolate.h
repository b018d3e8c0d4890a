/* isolate.h -- the own program once more, in a process that may crash without harm. Room:
 * session. */
#ifndef HP_SESSION_ISOLATE_H
#define HP_SESSION_ISOLATE_H

#include "base/err.h"

/* hp_isolate runs this program again with its own words, the first of them replaced by `hidden`,
 * sharing its input and output, and waits for it. Returns what it ended with (a child has said
 * its own error: *e is empty then), HP_EINTERNAL when it was killed by a signal, which *e names,
 * and HP_ECANCELLED when the user asked to stop. `what` names the child in messages. */
hp_err hp_isolate(const char *hidden, const char *what, hp_errmsg *e);

#endif

/* recall.h -- results that are there already: in the store by number, in files by path. Room:
 * session. */
#ifndef HP_SESSION_RECALL_H
#define HP_SESSION_RECALL_H

#include "base/err.h"
#include "store/store.h"
#include "trace/result.h"

/* hp_recall reads the result called `name`: a run's number in the store ("12"), or the path of a
 * JSON result. HP_EUSAGE: no such run or file; HP_EINPUT: the file is no result. The caller
 * frees *out with hp_result_free. */
hp_err hp_recall(const char *name, hp_result **out, hp_errmsg *e);

/* hp_recall_id reads the number of a run; HP_EUSAGE when `name` is none. */
hp_err hp_recall_id(const char *name, int64_t *id, hp_errmsg *e);

/* hp_keep stores a result with its JSON and sets *id, or fills `warning` (NUL-terminated, cut to
 * fit) and sets *id = 0 when the store can't be written: a run goes on without one. `state` is
 * "done", "interrupted" or "failed". */
void hp_keep(const hp_result *r, const char *state, const char *json, int64_t *id, char *warning,
             size_t n);

#endif

/* prove.h -- `check` as a command: load, plan (or shrink and plan), compare, report. Room:
 * session. */
#ifndef HP_SESSION_PROVE_H
#define HP_SESSION_PROVE_H

#include "session/check.h"
#include "session/load.h"

typedef struct hp_prove_ask {
    hp_ask what;
    uint64_t seed;
    const char *data; /* a file, NULL: the corpus that comes along */
    bool shrink;
} hp_prove_ask;

/* hp_session_prove runs the comparison in this process. *said receives, when `shrink` was asked
 * for, what became of the sizes, one a line. HP_OK: compared, see r->ok; else it could not run. */
hp_err hp_session_prove(const hp_prove_ask *ask, hp_check_report *r, hp_str *said, hp_errmsg *e);

/* hp_prove_json appends the report as CLI.md's `check` record; hp_prove_table for people. */
void hp_prove_json(const hp_check_report *r, hp_str *out);
void hp_prove_table(const hp_check_report *r, hp_str *out);

/* hp_prove_verdict fills *e with one sentence on what is apart, and returns HP_EFAILED; HP_OK
 * when nothing is. */
hp_err hp_prove_verdict(const hp_check_report *r, hp_errmsg *e);

#endif

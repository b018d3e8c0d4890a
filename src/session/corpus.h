/* corpus.h -- the text to train on. Room: session. */
#ifndef HP_SESSION_CORPUS_H
#define HP_SESSION_CORPUS_H

#include "base/err.h"

/* hp_session_corpus sets *path (owned heap string) to `asked`, or to the corpus that comes along
 * when it is NULL. HP_EUSAGE: no such file. */
hp_err hp_session_corpus(const char *asked, char **path, hp_errmsg *e);

#endif

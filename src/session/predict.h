/* predict.h -- predicts a step on the modelled clock. Room: session. */
#ifndef HP_SESSION_PREDICT_H
#define HP_SESSION_PREDICT_H

#include "session/outcome.h"

typedef struct hp_predict_ask {
    hp_ask what;
    uint64_t seed;
} hp_predict_ask;

/* hp_session_predict simulates one step and stores the result. *out (zeroed) must be freed by
 * hp_outcome_fini in any case. */
hp_err hp_session_predict(const hp_predict_ask *ask, hp_outcome *out, hp_errmsg *e);

#endif

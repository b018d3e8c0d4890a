/* predict.c -- a prediction is a run whose trace comes from the simulator. */
#include "session/predict.h"

#include "sim/sim.h"

#include <math.h>

hp_err hp_session_predict(const hp_predict_ask *ask, hp_outcome *out, hp_errmsg *e)
{
    hp_err err = hp_outcome_open(&ask->what, out, e);
    if (!err)
        err = hp_sim_step(out->c.built.plan, out->x, out->c.cluster, NULL, &out->trace, e);
    if (err)
        return err;
    hp_outcome_describe(out, "sim", "model", "task", ask->seed);
    hp_outcome_measure(out, NAN);
    hp_outcome_keep(out);
    return HP_OK;
}

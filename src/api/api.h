/* api.h -- the workbench for Lua: hp.run, hp.sim, hp.plan, hp.check as lua/api.lua describes them,
 * in the sandbox of all scripts.
 *
 * Requests are tables (unknown keys are refused with the nearest known one), results are the JSON
 * records as tables. Only the budgets differ from those of a model's script: an experiment may take
 * as long as it takes. Room: api.
 */
#ifndef HP_API_API_H
#define HP_API_API_H

#include "base/err.h"

/* hp_api_run runs the script at `path` with its arguments in the word `arg`; print writes to
 * standard output. Errors are the script's, or those of what it called. */
hp_err hp_api_run(const char *path, int n_args, const char *const *args, hp_errmsg *e);

/* hp_api_repl reads lines from the terminal (readline, history in the state folder) or from
 * standard input, runs each and shows what it returns, until the end of input. A line's error is
 * shown and the next line read. */
hp_err hp_api_repl(hp_errmsg *e);

#endif

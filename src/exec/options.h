/* options.h -- a run's options as text: what a child process is told beside its plan. Room: exec. */
#ifndef HP_EXEC_OPTIONS_H
#define HP_EXEC_OPTIONS_H

#include "exec/exec.h"

/* hp_exec_options_print appends every option, one "key value" a line. */
void hp_exec_options_print(const hp_exec_options *o, hp_str *out);

/* hp_exec_options_parse reads that; HP_EINPUT names an unknown key or a value that is none. */
hp_err hp_exec_options_parse(const char *text, hp_exec_options *o, hp_errmsg *e);

#endif

/* args.h -- the command line: a table of flags per command, from which parsing and help both
 * follow.
 *
 * Flags are written --name VALUE, --name=VALUE, -n VALUE or -nVALUE; `--` ends them; what is no
 * flag is an argument. An unknown flag names the nearest known one. All errors are HP_EUSAGE. Room:
 * cli; uses base.
 */
#ifndef HP_CLI_ARGS_H
#define HP_CLI_ARGS_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct hp_args;

/* hp_flag is a row of a command's table; the table ends with a row without a name. */
typedef struct hp_flag {
    const char *name;  /* "steps" */
    char letter;       /* 'm' for -m, 0 for none */
    const char *value; /* what stands for its value in help ("N"), NULL for a switch */
    const char *help;
    bool repeated; /* may be given several times */
} hp_flag;

/* hp_command is a subcommand. `run` does it; what it returns is the exit status, with a message
 * in *e when it failed. */
typedef struct hp_command {
    const char *name;
    const char *usage; /* "-m M -c C -s S [options]" */
    const char *about; /* one line, as listed */
    const char *more;  /* paragraphs for `help NAME`, may be NULL */
    const hp_flag *flags;
    int max_args; /* arguments beside flags, -1: any number */
    hp_err (*run)(const struct hp_args *a, hp_errmsg *e);
} hp_command;

enum { HP_MAX_FLAGS_GIVEN = 256 };

typedef struct hp_given {
    const hp_flag *flag;
    const char *value;
} hp_given;

/* hp_args is a parsed command line; its strings are borrowed from argv. */
typedef struct hp_args {
    const hp_command *command;
    int n_given;
    hp_given given[HP_MAX_FLAGS_GIVEN];
    int n;
    const char *const *arg; /* the arguments, in order */
} hp_args;

/* hp_args_parse reads argv[0..argc) for `command`; arguments are moved to the front of argv. */
hp_err hp_args_parse(const hp_command *command, int argc, char **argv, hp_args *out, hp_errmsg *e);

/* hp_args_get returns the value of --name ("" for a switch), `missing` when it is not given; of
 * a repeated flag the last. */
const char *hp_args_get(const hp_args *a, const char *name, const char *missing);

/* hp_args_has says whether --name is given. */
bool hp_args_has(const hp_args *a, const char *name);

/* hp_args_need is hp_args_get for a flag that must be there. */
hp_err hp_args_need(const hp_args *a, const char *name, const char **value, hp_errmsg *e);

/* hp_args_int sets *v to a whole number within [lo, hi]; *v stays as it is when the flag is not
 * given. */
hp_err hp_args_int(const hp_args *a, const char *name, long long lo, long long hi, long long *v,
                   hp_errmsg *e);

/* hp_args_choice checks that --name, when given, is one of `n` words. */
hp_err hp_args_choice(const hp_args *a, const char *name, int n, const char *const *words,
                      hp_errmsg *e);

/* hp_args_help appends the help of a command: usage, about, flags in a column, more. */
void hp_args_help(const hp_command *c, hp_str *out);

#endif

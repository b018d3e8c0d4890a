/* commands.h -- the list of subcommands; each is defined in a file of its own, cmd_NAME.c, and
 * listed in commands.c. Room: cli. */
#ifndef HP_CLI_COMMANDS_H
#define HP_CLI_COMMANDS_H

#include "cli/args.h"

extern const hp_command hp_cmd_run, hp_cmd_sim, hp_cmd_check, hp_cmd_plan, hp_cmd_list, hp_cmd_show,
    hp_cmd_compare, hp_cmd_runs, hp_cmd_lua, hp_cmd_repl, hp_cmd_help;

/* hp_cmd_check_here is what `check` runs in a process of its own; it is not listed. */
extern const hp_command hp_cmd_check_here;

/* hp_commands is all of them in the order of help, NULL-terminated. */
extern const hp_command *const hp_commands[];

/* hp_command_find returns the subcommand called `name`; HP_EUSAGE names the nearest. */
hp_err hp_command_find(const char *name, const hp_command **out, hp_errmsg *e);

#endif

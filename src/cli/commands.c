/* commands.c -- a new subcommand is a file cmd_NAME.c and a row here. */
#include "cli/commands.h"

#include <string.h>

const hp_command *const hp_commands[] = {
    &hp_cmd_run,     &hp_cmd_sim,  &hp_cmd_check, &hp_cmd_plan, &hp_cmd_list, &hp_cmd_show,
    &hp_cmd_compare, &hp_cmd_runs, &hp_cmd_lua,   &hp_cmd_repl, &hp_cmd_help, NULL,
};

hp_err hp_command_find(const char *name, const hp_command **out, hp_errmsg *e)
{
    const char *names[sizeof hp_commands / sizeof *hp_commands];
    int n = 0;
    for (; hp_commands[n]; n++) {
        if (strcmp(hp_commands[n]->name, name) == 0) {
            *out = hp_commands[n];
            return HP_OK;
        }
        names[n] = hp_commands[n]->name;
    }
    return hp_fail(e, HP_EUSAGE,
                   "there is no command \"%s\"; the nearest is \"%s\" (hpbench help lists all)",
                   name, hp_near(name, names, n));
}

/* cmd_help.c -- help is generated from the tables that the parser reads. */
#include "cli/commands.h"

#include <stdio.h>

static void list_commands(hp_str *out)
{
    hp_str_add(out,
               "usage: hpbench COMMAND [options]\n"
               "\n"
               "Choose how a neural network is split over many devices: train it for real on\n"
               "virtual devices of this machine, prove that the split computes what one device\n"
               "computes, and predict it on a cluster that is not at hand.\n\n");
    for (int i = 0; hp_commands[i]; i++)
        hp_str_add(out, "  %-9s %s\n", hp_commands[i]->name, hp_commands[i]->about);
    hp_str_add(out, "\n"
                    "  hpbench run -m gpt2-small -c host:4 -s dp=2,tp=2\n"
                    "  hpbench help run\n"
                    "\n"
                    "Exit status: 0 ok, 1 failed check, 2 usage, 3 bad file, 4 infeasible,\n"
                    "5 internal error, 130 interrupted.\n");
}

static hp_err help(const hp_args *a, hp_errmsg *e)
{
    hp_str out = {0};
    const hp_command *c = NULL;
    hp_err err = a->n > 0 ? hp_command_find(a->arg[0], &c, e) : HP_OK;
    if (c)
        hp_args_help(c, &out);
    else if (!err)
        list_commands(&out);
    fputs(hp_str_text(&out), stdout);
    hp_str_fini(&out);
    return err;
}

const hp_command hp_cmd_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .about = "what a command does and which flags it has",
    .max_args = 1,
    .run = help,
};

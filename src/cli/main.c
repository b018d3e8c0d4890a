/* main.c -- the program: one subcommand, its exit status. The codes of hp_err are the exit
 * statuses. */
#include "base/version.h"
#include "cli/commands.h"
#include "exec/child.h"
#include "session/signals.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const no_command =
    "no command: the workbench on a terminal is not part of this version; "
    "name a command, as in hpbench run -m gpt2-small -c host:4 -s dp=2,tp=2 (hpbench help lists "
    "all)";
static const char *const no_terminal =
    "no command and no terminal: name a command, as in "
    "hpbench run -m gpt2-small -c host:4 -s dp=2,tp=2 (hpbench help lists all)";

static hp_err run_command(int argc, char **argv, hp_errmsg *e)
{
    const hp_command *c;
    hp_args a;
    if (argc < 2)
        return hp_fail(e, HP_EUSAGE, "%s",
                       isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? no_command : no_terminal);
    if (strcmp(argv[1], "--version") == 0) {
        printf("hpbench %s\n", HP_VERSION);
        return HP_OK;
    }
    bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    if (!help && argv[1][0] == '-')
        return hp_fail(
            e, HP_EUSAGE,
            "%s stands before any command: hpbench COMMAND [options] (hpbench help lists all)",
            argv[1]);
    hp_err err = HP_OK;
    if (strcmp(argv[1], hp_cmd_check_here.name) == 0)
        c = &hp_cmd_check_here;
    else
        err = hp_command_find(help ? "help" : argv[1], &c, e);
    if (!err)
        err = hp_args_parse(c, argc - 2, argv + 2, &a, e);
    if (err)
        return err;
    if (!hp_args_has(&a, "help"))
        return c->run(&a, e);
    hp_str out = {0};
    hp_args_help(c, &out);
    fputs(hp_str_text(&out), stdout);
    hp_str_fini(&out);
    return HP_OK;
}

int main(int argc, char **argv)
{
    hp_errmsg e = {0};
    if (argc > 1 && strcmp(argv[1], "__exec") == 0)
        return hp_exec_child_main(argc, argv);
    setlocale(LC_CTYPE, "");
    hp_err err = hp_signals_start(&e);
    if (!err)
        err = run_command(argc, argv, &e);
    if (fflush(stdout) != 0 && errno != EPIPE && !err)
        err = hp_fail(&e, HP_EINTERNAL, "standard output: %s", strerror(errno));
    if (err && e.text[0])
        fprintf(stderr, "hpbench: %s\n", e.text);
    return (int)err;
}

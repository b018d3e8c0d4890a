/* cmd_lua.c -- `lua` and `repl`: the workbench from scripts and from a prompt. */
#include "api/api.h"
#include "cli/commands.h"

static hp_err lua(const hp_args *a, hp_errmsg *e)
{
    if (a->n == 0)
        return hp_fail(e, HP_EUSAGE, "lua wants a script: hpbench lua SCRIPT.lua [ARGS]");
    return hp_api_run(a->arg[0], a->n - 1, a->arg + 1, e);
}

static hp_err repl(const hp_args *a, hp_errmsg *e)
{
    (void)a;
    return hp_api_repl(e);
}

static const char *const about_words =
    "Scripts are sandboxed: no files, no processes. Their words beside Lua's safe ones:\n"
    "  hp.run  { model =, cluster =, strategy =, over =, steps =, seed =, data =, clock = }\n"
    "  hp.sim  { model =, cluster =, strategy =, over = }\n"
    "  hp.plan { model =, cluster =, strategy =, over =, view = \"why\" }\n"
    "  hp.check { model =, cluster =, strategy =, over =, seed = }\n"
    "  arg, print, show\n"
    "over is a table like { [\"model.seq\"] = 64 }; results have the keys of --format=json.";

static const hp_flag no_flags[] = {{0}};

const hp_command hp_cmd_lua = {
    .name = "lua",
    .usage = "SCRIPT.lua [ARGS]",
    .about = "run a Lua script with hp.run, hp.sim, hp.plan and hp.check",
    .more = about_words,
    .flags = no_flags,
    .max_args = -1,
    .run = lua,
};

const hp_command hp_cmd_repl = {
    .name = "repl",
    .usage = "",
    .about = "the same at a prompt",
    .more = about_words,
    .flags = no_flags,
    .run = repl,
};

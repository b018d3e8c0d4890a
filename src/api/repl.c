/* repl.c -- a line is first read as an expression, whose values are shown, and else as a
 * statement. */
#include "api/api.h"

#include "api/open.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "session/signals.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

enum { HISTORY_LINES = 1000 };

/* --- one line --- */

static bool parses(lua_State *L, const hp_str *chunk)
{
    bool yes = luaL_loadbufferx(L, hp_str_text(chunk), chunk->len, "=repl", "t") == LUA_OK;
    lua_pop(L, 1);
    return yes;
}

static hp_err run_line(hp_sandbox *sb, const char *line, hp_errmsg *e)
{
    hp_str chunk = {0};
    lua_State *L = hp_sandbox_lua(sb);
    hp_str_add(&chunk, "local _ENV = session(_ENV); show(%s\n)", line);
    if (!parses(L, &chunk)) {
        hp_str_fini(&chunk);
        hp_str_add(&chunk, "local _ENV = session(_ENV); %s", line);
    }
    hp_err err = hp_sandbox_text(sb, "repl", hp_str_text(&chunk), chunk.len, e);
    hp_str_fini(&chunk);
    lua_settop(L, 0);
    return err;
}

/* --- where lines come from --- */

/* Ctrl-C at the prompt gives the line up instead of the program. */
static int watch_signals(void)
{
    if (!hp_signals_asked())
        return 0;
    hp_signals_hold(0);
    fputs("^C\n", stdout);
    rl_replace_line("", 0);
    rl_on_new_line();
    rl_redisplay();
    return 0;
}

static char *read_terminal(void)
{
    rl_event_hook = watch_signals;
    hp_signals_hold(0);
    char *line = readline("hpbench> ");
    hp_signals_release();
    return line;
}

static char *read_plain(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n > 0 && line[n - 1] == '\n')
        line[n - 1] = '\0';
    return line;
}

/* The history's file, NULL where the state folder can't be made: then the session has none. */
static char *history_path(void)
{
    char *dir = NULL, *path = NULL;
    if (hp_paths_state(&dir, NULL) == HP_OK && hp_paths_make(dir, NULL) == HP_OK)
        path = hp_paths_join(dir, "history");
    free(dir);
    return path;
}

static void run_lines(hp_sandbox *sb, bool terminal)
{
    hp_errmsg e;
    for (char *line; (line = terminal ? read_terminal() : read_plain()) != NULL; free(line)) {
        if (line[strspn(line, " \t")] == '\0')
            continue;
        if (terminal)
            add_history(line);
        if (run_line(sb, line, &e)) {
            fflush(stdout);
            fprintf(stderr, "%s\n", e.text);
        }
        fflush(stdout);
    }
}

hp_err hp_api_repl(hp_errmsg *e)
{
    hp_sandbox *sb = NULL;
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    hp_err err = hp_api_open(&sb, e);
    if (err)
        return err;
    char *path = terminal ? history_path() : NULL;
    rl_catch_signals = 0;
    if (path)
        read_history(path);
    if (terminal)
        puts("hp.run, hp.sim and hp.plan take { model = .., cluster = .., strategy = .. }; Ctrl-D "
             "ends");
    run_lines(sb, terminal);
    if (terminal)
        putchar('\n');
    if (path && write_history(path) == 0)
        history_truncate_file(path, HISTORY_LINES);
    free(path);
    hp_sandbox_free(sb);
    return HP_OK;
}

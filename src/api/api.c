/* api.c -- a script with its arguments. */
#include "api/api.h"

#include "api/open.h"

#include <lua.h>
#include <stdio.h>

/* The arguments as a list, for the word `arg`. */
static void push_arguments(lua_State *L, int n, const char *const *args)
{
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, args[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

hp_err hp_api_run(const char *path, int n_args, const char *const *args, hp_errmsg *e)
{
    hp_sandbox *sb = NULL;
    hp_err err = hp_api_open(&sb, e);
    if (err)
        return err;
    lua_State *L = hp_sandbox_lua(sb);
    err = hp_sandbox_module(sb, "api", e);
    if (!err) {
        lua_getfield(L, -1, "set_arguments");
        push_arguments(L, n_args, args);
        err = hp_sandbox_call(sb, 1, e);
    }
    if (!err)
        err = hp_sandbox_file(sb, path, e);
    fflush(stdout);
    hp_sandbox_free(sb);
    return err;
}

/* cluster.c -- runs a cluster script whose figures go straight into an hp_cluster. */
#include "script/cluster.h"

#include "base/mem.h"
#include "script/sandbox.h"
#include "script/source.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cluster_put(key, value, source, unverified) */
static int cluster_put(lua_State *L)
{
    hp_cluster *c = lua_touserdata(L, lua_upvalueindex(1));
    hp_errmsg e;
    if (hp_cluster_set(c, luaL_checkstring(L, 1), luaL_checkstring(L, 2), luaL_checkstring(L, 3),
                       lua_toboolean(L, 4), &e))
        return hp_script_raise(L, e.code, "%s", e.text);
    return 0;
}

/* Runs the script at `path` into c; `count` (64 bytes) gets what the file says of its size, "" when nothing. */
static hp_err run_profile(const char *path, hp_cluster *c, char *count, hp_errmsg *e)
{
    hp_sandbox *sb;
    hp_err err = hp_sandbox_new(NULL, &sb, e);
    if (err)
        return err;
    lua_State *L = hp_sandbox_lua(sb);
    hp_sandbox_function(sb, "cluster_put", cluster_put, c);
    err = hp_sandbox_words(sb, "common", e);
    if (!err)
        err = hp_sandbox_words(sb, "cluster", e);
    if (!err)
        err = hp_sandbox_module(sb, "cluster", e);
    if (!err) {
        lua_getfield(L, -1, "finish");
        err = hp_sandbox_file(sb, path, e);
    }
    if (!err) {
        lua_pushstring(L, path);
        err = hp_sandbox_call(sb, 2, e);
    }
    if (!err)
        snprintf(count, 64, "%s", lua_tostring(L, -1));
    hp_sandbox_free(sb);
    return err;
}

static hp_err load_profile(void *ctx, const char *name, hp_cluster *c, hp_errmsg *e)
{
    (void)ctx;
    char *path, count[64];
    hp_err err = hp_script_find("share/hardware", "cluster", name, &path, e);
    if (err)
        return err;
    err = run_profile(path, c, count, e);
    free(path);
    return err;
}

static hp_err from_file(const char *path, const char *count, int n, const hp_override *over,
                        hp_cluster **out, hp_errmsg *e)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return hp_fail(e, HP_EUSAGE, "the cluster file %s cannot be opened", path);
    fclose(f);
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    char name[64], own[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(stem, "."), stem);
    hp_cluster *c = hp_cluster_new(name);
    hp_err err = run_profile(path, c, own, e);
    for (int i = 0; i < n && !err; i++)
        err = hp_cluster_set(c, over[i].key, over[i].value, "set on the command line", false, e);
    if (!err && !count && !own[0])
        err = hp_fail(e, HP_EUSAGE,
                      "%s names no count of devices: write %s:COUNT, or count = in the file", path,
                      path);
    if (!err)
        err = hp_cluster_finish(c, count ? count : own, e);
    if (err)
        hp_cluster_free(c);
    else
        *out = c;
    return err;
}

hp_err hp_script_cluster(const char *spec, int n_over, const hp_override *over, hp_cluster **out,
                         hp_errmsg *e)
{
    hp_override *mine = hp_xcalloc((size_t)n_over + 1, sizeof *mine);
    int n = 0;
    for (int i = 0; i < n_over; i++)
        if (strncmp(over[i].key, "cluster.", 8) == 0)
            mine[n++] = (hp_override){over[i].key + 8, over[i].value};
    const char *colon = strrchr(spec, ':');
    char *path = hp_xstrdup(spec);
    if (colon && !strchr(colon, '/'))
        path[colon - spec] = 0;
    else
        colon = NULL;
    hp_err err = hp_script_is_path(path)
                     ? from_file(path, colon ? colon + 1 : NULL, n, mine, out, e)
                     : hp_cluster_parse(spec, n, mine, load_profile, NULL, out, e);
    free(path);
    free(mine);
    return err;
}

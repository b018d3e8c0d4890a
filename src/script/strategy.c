/* strategy.c -- fills hp_strategy key by key as lua/strategy.lua says them, and shows scripts what model and cluster are.
 *
 * Lua has checked the keys; here a table of fields says where each value goes. A path that this table lacks is our own fault.
 */
#include "script/strategy.h"

#include "base/str.h"
#include "script/sandbox.h"
#include "script/source.h"

#include <lauxlib.h>
#include <lua.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum field_kind { TEXT, INT, INT64, REAL, FLAG } field_kind;

typedef struct field {
    const char *path;
    field_kind kind;
    size_t at;
} field;

#define FIELD(path, kind, member)                                                                  \
    {                                                                                              \
        path, kind, offsetof(hp_strategy, member)                                                  \
    }
static const field fields[] = {
    FIELD("name", TEXT, name),
    FIELD("mode", TEXT, mode),
    FIELD("states.like", TEXT, states.like),
    FIELD("states.params", TEXT, states.params),
    FIELD("states.grads", TEXT, states.grads),
    FIELD("states.optimizer", TEXT, states.optimizer),
    FIELD("states.after_forward", TEXT, states.after_forward),
    FIELD("states.reduce.dtype", TEXT, states.reduce_dtype),
    FIELD("states.reduce.between", TEXT, states.reduce_between),
    FIELD("batch.global", INT64, batch.global),
    FIELD("batch.micro", INT64, batch.micro),
    FIELD("batch.accum", INT64, batch.accum),
    FIELD("batch.normalise", TEXT, batch.normalise),
    FIELD("overlap.grads", FLAG, overlap.grads),
    FIELD("overlap.params", FLAG, overlap.params),
    FIELD("overlap.pp", FLAG, overlap.pp),
    FIELD("overlap.cp", FLAG, overlap.cp),
    FIELD("overlap.ep", FLAG, overlap.ep),
    FIELD("overlap.bucket", INT64, overlap.bucket_bytes),
    FIELD("overlap.ahead", INT, overlap.ahead),
    FIELD("overlap.limit", INT64, overlap.ahead_limit),
    FIELD("overlap.tp_chunks", INT, overlap.tp_chunks),
    FIELD("pipeline.over", TEXT, pipeline.over),
    FIELD("pipeline.schedule", TEXT, pipeline.schedule),
    FIELD("pipeline.vpp", INT, pipeline.vpp),
    FIELD("pipeline.stages", TEXT, pipeline.stages),
    FIELD("cp.inner", TEXT, cp.inner),
    FIELD("cp.outer", TEXT, cp.outer),
    FIELD("cp.send", TEXT, cp.send),
    FIELD("moe.routing", TEXT, moe.routing),
    FIELD("moe.headroom", REAL, moe.headroom),
    FIELD("moe.imbalance", REAL, moe.imbalance),
    FIELD("moe.tiles", INT, moe.tiles),
    FIELD("moe.shared", TEXT, moe.shared),
    FIELD("uneven", FLAG, uneven),
    FIELD("dtype", TEXT, dtype),
    FIELD("memory.hbm", INT64, hbm_bytes),
    FIELD("zero", INT, zero),
    FIELD("split", INT, split.n),
    FIELD("param_split", INT, param_split.n),
};

static hp_strategy *strategy_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

static const char *keep(hp_strategy *s, const char *text)
{
    return hp_arena_strdup(&s->arena, text);
}

/* strategy_put(path, value) */
static int strategy_put(lua_State *L)
{
    hp_strategy *s = strategy_of(L);
    const char *path = luaL_checkstring(L, 1);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].path, path) != 0)
            continue;
        void *at = (char *)s + fields[i].at;
        switch (fields[i].kind) {
        case TEXT:
            *(const char **)at = keep(s, luaL_checkstring(L, 2));
            break;
        case INT:
            *(int *)at = (int)luaL_checkinteger(L, 2);
            break;
        case INT64:
            *(int64_t *)at = luaL_checkinteger(L, 2);
            break;
        case REAL:
            *(double *)at = luaL_checknumber(L, 2);
            break;
        case FLAG:
            *(bool *)at = luaL_checkinteger(L, 2) != 0;
            break;
        }
        return 0;
    }
    return hp_script_raise(L, HP_EINTERNAL, "the strategy has no field '%s'", path);
}

/* strategy_rule(list, glob, key, value) */
static int strategy_rule(lua_State *L)
{
    hp_strategy *s = strategy_of(L);
    const struct {
        const char *name;
        hp_rules *rules;
    } list[] = {{"layout", &s->layout}, {"states", &s->states.over}, {"recompute", &s->recompute},
                {"cut", &s->cuts},      {"offload", &s->offload},    {"other", &s->other}};
    const char *name = luaL_checkstring(L, 1);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].name, name) == 0)
            hp_rules_add(s, list[i].rules, luaL_checkstring(L, 2), luaL_checkstring(L, 3),
                         luaL_checkstring(L, 4));
    return 0;
}

/* strategy_split("split" | "param_split", dimension, axes, order or nil) */
static int strategy_split(lua_State *L)
{
    hp_strategy *s = strategy_of(L);
    hp_splits *list = strcmp(luaL_checkstring(L, 1), "split") == 0 ? &s->split : &s->param_split;
    enum { MOST = sizeof list->rule / sizeof *list->rule };
    if (list->n >= MOST)
        return hp_script_raise(L, HP_EINPUT, "a split has at most %d entries", MOST);
    const char *order = luaL_optstring(L, 4, NULL);
    list->rule[list->n++] = (hp_split_rule){.dim = keep(s, luaL_checkstring(L, 2)),
                                            .axes = keep(s, luaL_checkstring(L, 3)),
                                            .order = order ? keep(s, order) : NULL};
    return 0;
}

/* strategy_view(name, mesh) */
static int strategy_view(lua_State *L)
{
    hp_strategy *s = strategy_of(L);
    enum { MOST = sizeof s->view_name / sizeof *s->view_name };
    if (s->n_views >= MOST)
        return hp_script_raise(L, HP_EINPUT, "a strategy has at most %d views", MOST);
    s->view_name[s->n_views] = keep(s, luaL_checkstring(L, 1));
    s->view_mesh[s->n_views++] = keep(s, luaL_checkstring(L, 2));
    return 0;
}

/* strategy_item("unit" | "stage", text) */
static int strategy_item(lua_State *L)
{
    hp_strategy *s = strategy_of(L);
    bool unit = strcmp(luaL_checkstring(L, 1), "unit") == 0;
    const char **item = unit ? s->states.unit : s->pipeline.stage;
    int *n = unit ? &s->states.n_units : &s->pipeline.n_stages;
    int most = unit ? (int)(sizeof s->states.unit / sizeof *item)
                    : (int)(sizeof s->pipeline.stage / sizeof *item);
    if (*n >= most)
        return hp_script_raise(L, HP_EINPUT, "at most %d %s can be listed", most,
                               unit ? "units" : "stages");
    item[(*n)++] = keep(s, luaL_checkstring(L, 2));
    return 0;
}

static void add_functions(hp_sandbox *sb, hp_strategy *s)
{
    static const luaL_Reg functions[] = {{"strategy_put", strategy_put},
                                         {"strategy_rule", strategy_rule},
                                         {"strategy_split", strategy_split},
                                         {"strategy_view", strategy_view},
                                         {"strategy_item", strategy_item}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        hp_sandbox_function(sb, functions[i].name, functions[i].func, s);
}

/* --- what scripts can look at ------------------------------------------------------------------------------ */

static void set_int(lua_State *L, const char *key, int64_t v)
{
    lua_pushinteger(L, v);
    lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, double v)
{
    if (v == (double)(int64_t)v && v < 9e15 && v > -9e15)
        lua_pushinteger(L, (int64_t)v);
    else
        lua_pushnumber(L, v);
    lua_setfield(L, -2, key);
}

/* { name, layers, params, heads, and every dimension of known size; sizes = { dimension = size, 0 when free } } */
static void push_model(lua_State *L, const hp_graph *g)
{
    if (!g) {
        lua_pushboolean(L, 0);
        return;
    }
    int64_t kv = 0, group = 0;
    lua_newtable(L);
    lua_newtable(L);
    for (int i = 0; i < g->n_dims; i++) {
        set_int(L, g->dim[i].name, g->dim[i].size);
        if (strcmp(g->dim[i].name, "kv_heads") == 0)
            kv = g->dim[i].size;
        if (strcmp(g->dim[i].name, "group") == 0)
            group = g->dim[i].size;
    }
    lua_setfield(L, -2, "sizes");
    for (int i = 0; i < g->n_dims; i++)
        if (g->dim[i].size)
            set_int(L, g->dim[i].name, g->dim[i].size);
    if (kv > 0 && group > 0)
        set_int(L, "heads", kv * group);
    set_int(L, "layers", g->n_layers);
    set_int(L, "params", hp_graph_params(g));
    lua_pushstring(L, g->name);
    lua_setfield(L, -2, "name");
}

/* { name, size, hbm_bytes, budget_bytes, levels = { node = { name, size, bandwidth, latency } } } */
static void push_cluster(lua_State *L, const hp_cluster *c)
{
    if (!c) {
        lua_pushboolean(L, 0);
        return;
    }
    lua_newtable(L);
    lua_pushstring(L, c->name);
    lua_setfield(L, -2, "name");
    set_int(L, "size", c->n_devices);
    set_number(L, "hbm_bytes", c->device.hbm_bytes);
    set_number(L, "budget_bytes", c->budget_bytes);
    lua_newtable(L);
    for (int i = 0; i < c->n_levels; i++) {
        lua_newtable(L);
        lua_pushstring(L, c->level[i].name);
        lua_setfield(L, -2, "name");
        set_int(L, "size", c->level[i].size);
        set_number(L, "bandwidth", c->level[i].bandwidth);
        set_number(L, "latency", c->level[i].latency);
        lua_setfield(L, -2, c->level[i].name);
    }
    lua_setfield(L, -2, "levels");
}

static void push_overrides(lua_State *L, int n, const hp_override *over)
{
    static const char prefix[] = "strategy.";
    lua_newtable(L);
    for (int i = 0, k = 0; i < n; i++) {
        if (strncmp(over[i].key, prefix, sizeof prefix - 1) != 0)
            continue;
        lua_newtable(L);
        lua_pushstring(L, over[i].key + sizeof prefix - 1);
        lua_rawseti(L, -2, 1);
        lua_pushstring(L, over[i].value);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, ++k);
    }
}

/* Leaves the function `name` of lua/strategy.lua on the stack. */
static hp_err push_function(hp_sandbox *sb, const char *name, hp_errmsg *e)
{
    hp_err err = hp_sandbox_module(sb, "strategy", e);
    if (err)
        return err;
    lua_getfield(hp_sandbox_lua(sb), -1, name);
    lua_remove(hp_sandbox_lua(sb), -2);
    return HP_OK;
}

static hp_err begin(hp_sandbox *sb, const hp_graph *g, const hp_cluster *c, int n_over,
                    const hp_override *over, hp_errmsg *e)
{
    lua_State *L = hp_sandbox_lua(sb);
    hp_err err = push_function(sb, "begin", e);
    if (err)
        return err;
    push_model(L, g);
    push_cluster(L, c);
    push_overrides(L, n_over, over);
    err = hp_sandbox_call(sb, 3, e);
    if (!err)
        lua_pop(L, 1);
    if (!err)
        err = hp_sandbox_words(sb, "common", e);
    if (!err)
        err = hp_sandbox_words(sb, "strategy", e);
    return err;
}

static hp_err run_shorthand(hp_sandbox *sb, const char *text, const hp_cluster *c, hp_errmsg *e)
{
    lua_State *L = hp_sandbox_lua(sb);
    hp_err err = push_function(sb, "shorthand", e);
    if (err)
        return err;
    lua_pushstring(L, text);
    if (c)
        lua_pushinteger(L, c->n_devices);
    else
        lua_pushnil(L);
    return hp_sandbox_call(sb, 2, e);
}

static hp_err run_file(hp_sandbox *sb, const char *path, hp_errmsg *e)
{
    hp_err err = push_function(sb, "finish", e);
    if (!err)
        err = hp_sandbox_file(sb, path, e);
    if (err)
        return err;
    lua_pushstring(hp_sandbox_lua(sb), path);
    return hp_sandbox_call(sb, 2, e);
}

/* Sets *path to the script that `text` names, NULL where it is a shorthand. */
static hp_err locate(const char *text, char **path, hp_errmsg *e)
{
    *path = NULL;
    if (!hp_script_is_path(text)) {
        hp_errmsg ignored;
        if (!strpbrk(text, "=,"))
            hp_script_find("share/strategies", "strategy", text, path, &ignored);
        return HP_OK;
    }
    FILE *f = fopen(text, "r");
    if (!f)
        return hp_fail(e, HP_EUSAGE, "the strategy file %s cannot be opened", text);
    fclose(f);
    *path = hp_xstrdup(text);
    return HP_OK;
}

static void name_after(hp_strategy *s, const char *path)
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    char *name = hp_arena_strdup(&s->arena, stem);
    char *dot = strrchr(name, '.');
    if (dot)
        *dot = 0;
    s->name = name;
}

hp_err hp_script_strategy(const char *text, const hp_graph *g, const hp_cluster *c, int n_over,
                          const hp_override *over, hp_strategy **out, hp_errmsg *e)
{
    char *path;
    hp_sandbox *sb = NULL;
    hp_err err = locate(text, &path, e);
    if (err)
        return err;
    hp_strategy *s = hp_strategy_new();
    if (path)
        name_after(s, path);
    else
        s->name = "shorthand", s->shorthand = keep(s, text);
    err = hp_sandbox_new(NULL, &sb, e);
    if (!err) {
        add_functions(sb, s);
        err = begin(sb, g, c, n_over, over, e);
    }
    if (!err)
        err = path ? run_file(sb, path, e) : run_shorthand(sb, text, c, e);
    hp_sandbox_free(sb);
    free(path);
    if (err)
        hp_strategy_free(s);
    else
        *out = s;
    return err;
}

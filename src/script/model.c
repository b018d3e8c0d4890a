/* model.c -- the functions behind lua/model.lua: each turns Lua values into one call of hp_graph_*, and its refusal into an error at the
 * script's line. Lua holds tensors as numbers; every number is checked here.
 */
#include "script/model.h"

#include "base/str.h"
#include "fmt/hfconfig.h"
#include "op/op.h"
#include "script/sandbox.h"
#include "script/source.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct builder {
    hp_graph *g;
    int depth; /* of family files */
} builder;

static builder *builder_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

static int check_tensor(lua_State *L, const hp_graph *g, int arg)
{
    lua_Integer id = luaL_checkinteger(L, arg);
    if (id < 0 || id >= g->n_tensors)
        return hp_script_raise(L, HP_EINPUT, "this is no tensor of the model");
    return (int)id;
}

/* graph_dim(name, size) -> id; size 0 is free. */
static int graph_dim(lua_State *L)
{
    hp_errmsg e;
    int id;
    double size = luaL_checknumber(L, 2);
    const char *name = luaL_checkstring(L, 1);
    if (!(size >= 0 && size < 1e15) || size != (double)(int64_t)size)
        return hp_script_raise(L, HP_EINPUT, "dimension %s: %g is not a whole number from 1", name,
                               size);
    if (hp_graph_dim(builder_of(L)->g, name, (int64_t)size, &id, &e))
        return hp_script_raise(L, e.code, "%s", e.text);
    lua_pushinteger(L, id);
    return 1;
}

static const char *const kinds[] = {"input", "param", "buffer", NULL};
static const char *const inits[] = {"none", "zeros", "ones", "normal", NULL};

/* graph_tensor(name, kind, dtype, {dimension ids}, init, std, decay) -> id */
static int graph_tensor(lua_State *L)
{
    static const hp_tkind kind_of[] = {HP_T_INPUT, HP_T_PARAM, HP_T_BUFFER};
    hp_graph *g = builder_of(L)->g;
    const char *name = luaL_checkstring(L, 1);
    int kind = luaL_checkoption(L, 2, NULL, kinds), dtype = hp_dtype_find(luaL_checkstring(L, 3));
    luaL_checktype(L, 4, LUA_TTABLE);
    lua_Integer nd = luaL_len(L, 4);
    int dim[HP_MAX_DIMS], id;
    if (nd > HP_MAX_DIMS)
        return hp_script_raise(L, HP_EINPUT, "%s: %d dimensions are more than %d", name, (int)nd,
                               HP_MAX_DIMS);
    for (int d = 0; d < nd; d++) {
        lua_rawgeti(L, 4, d + 1);
        dim[d] = (int)luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    hp_errmsg e;
    if (hp_graph_tensor(g, name, kind_of[kind], (hp_dtype)dtype, (int)nd, dim, &id, &e))
        return hp_script_raise(L, e.code, "%s", e.text);
    g->tensor[id].init = (hp_init)luaL_checkoption(L, 5, "none", inits);
    g->tensor[id].init_std = (float)luaL_optnumber(L, 6, 0);
    g->tensor[id].decay = lua_toboolean(L, 7);
    lua_pushinteger(L, id);
    return 1;
}

/* Reads the list of tensors at `arg`; false stands for an input that is not there. */
static int read_inputs(lua_State *L, const hp_graph *g, int arg, int *in)
{
    luaL_checktype(L, arg, LUA_TTABLE);
    lua_Integer n = luaL_len(L, arg);
    if (n >= HP_MAX_OPERANDS)
        return hp_script_raise(L, HP_EINPUT, "%d inputs are too many", (int)n);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, arg, i + 1);
        in[i] = lua_isboolean(L, -1) ? -1 : check_tensor(L, g, -1);
        lua_pop(L, 1);
    }
    return (int)n;
}

/* Reads {{key, number}, ...}; keys stay owned by Lua while the call lasts. */
static int read_attrs(lua_State *L, int arg, hp_attr *attr)
{
    lua_Integer n = lua_istable(L, arg) ? luaL_len(L, arg) : 0;
    if (n > HP_MAX_ATTRS)
        return hp_script_raise(L, HP_EINPUT, "%d attributes are too many", (int)n);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, arg, i + 1);
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        attr[i] = (hp_attr){.key = luaL_checkstring(L, -2), .value = luaL_checknumber(L, -1)};
        lua_pop(L, 3);
    }
    return (int)n;
}

/* graph_node(op, name, {tensors}, {{key, number}, ...}) -> output tensors */
static int graph_node(lua_State *L)
{
    hp_graph *g = builder_of(L)->g;
    const char *op = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
    int in[HP_MAX_OPERANDS], node;
    hp_attr attr[HP_MAX_ATTRS];
    int n_in = read_inputs(L, g, 3, in), n_attrs = read_attrs(L, 4, attr);
    hp_errmsg e;
    if (hp_graph_add(g, op, name, n_in, in, n_attrs, attr, &node, &e))
        return hp_script_raise(L, e.code, "%s", e.text);
    const hp_node *n = &g->node[node];
    luaL_checkstack(L, n->n_out, NULL);
    for (int i = 0; i < n->n_out; i++)
        lua_pushinteger(L, n->arg[n->n_in + i]);
    return n->n_out;
}

/* graph_dims(tensor) -> {names of its dimensions} */
static int graph_dims(lua_State *L)
{
    const hp_graph *g = builder_of(L)->g;
    const hp_tensor *t = &g->tensor[check_tensor(L, g, 1)];
    lua_createtable(L, t->nd, 0);
    for (int d = 0; d < t->nd; d++) {
        lua_pushstring(L, g->dim[t->dim[d]].name);
        lua_rawseti(L, -2, d + 1);
    }
    return 1;
}

/* graph_alias(tensor, name) */
static int graph_alias(lua_State *L)
{
    hp_graph *g = builder_of(L)->g;
    int t = check_tensor(L, g, 1);
    g->tensor[t].alias = hp_arena_strdup(&g->arena, luaL_checkstring(L, 2));
    return 0;
}

/* graph_find(name) -> tensor or nil */
static int graph_find(lua_State *L)
{
    int id = hp_map_get(&builder_of(L)->g->tensor_id, luaL_checkstring(L, 1), -1);
    if (id < 0)
        lua_pushnil(L);
    else
        lua_pushinteger(L, id);
    return 1;
}

/* graph_close(name, layers, loss tensor) */
static int graph_close(lua_State *L)
{
    hp_graph *g = builder_of(L)->g;
    g->name = hp_arena_strdup(&g->arena, luaL_checkstring(L, 1));
    g->n_layers = (int)luaL_checkinteger(L, 2);
    g->loss = check_tensor(L, g, 3);
    return 0;
}

/* graph_train(key, number) */
static int graph_train(lua_State *L)
{
    hp_train *t = &builder_of(L)->g->train;
    const char *key = luaL_checkstring(L, 1);
    double v = luaL_checknumber(L, 2);
    const struct {
        const char *key;
        double *at;
    } field[] = {{"lr", &t->lr},   {"beta1", &t->beta1}, {"beta2", &t->beta2},
                 {"eps", &t->eps}, {"decay", &t->decay}, {"clip", &t->clip}};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (strcmp(key, field[i].key) == 0)
            *field[i].at = v;
    if (strcmp(key, "warmup") == 0)
        t->warmup = (int)v;
    if (strcmp(key, "sgd") == 0)
        t->sgd = v != 0;
    return 0;
}

/* model_file(name): runs models/NAME.lua, whose `override` sees what the caller's family said. */
static int model_file(lua_State *L)
{
    builder *b = builder_of(L);
    hp_errmsg e;
    char *path;
    if (b->depth++ > 4)
        return hp_script_raise(L, HP_EINPUT, "families are nested too deeply");
    hp_err err = hp_script_find("models", "model family", luaL_checkstring(L, 1), &path, &e);
    if (err)
        return hp_script_raise(L, HP_EINPUT, "%s", e.text);
    err = hp_sandbox_file(hp_sandbox_of(L), path, &e);
    free(path);
    b->depth--;
    return err ? hp_script_raise(L, err, "%s", e.text) : 1;
}

static void add_functions(hp_sandbox *sb, builder *b)
{
    static const luaL_Reg functions[] = {
        {"graph_dim", graph_dim},     {"graph_tensor", graph_tensor}, {"graph_node", graph_node},
        {"graph_dims", graph_dims},   {"graph_alias", graph_alias},   {"graph_find", graph_find},
        {"graph_close", graph_close}, {"graph_train", graph_train},   {"model_file", model_file}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        hp_sandbox_function(sb, functions[i].name, functions[i].func, b);
}

/* Calls the function `name` of lua/model.lua's table with a table of texts: {key = value}. */
static hp_err give_texts(hp_sandbox *sb, const char *name, int n, const hp_override *over,
                         hp_errmsg *e)
{
    lua_State *L = hp_sandbox_lua(sb);
    hp_err err = hp_sandbox_module(sb, "model", e);
    if (err)
        return err;
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_createtable(L, 2, 0);
        lua_pushstring(L, over[i].key);
        lua_rawseti(L, -2, 1);
        lua_pushstring(L, over[i].value);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, i + 1);
    }
    err = hp_sandbox_call(sb, 1, e);
    if (!err)
        lua_pop(L, 1);
    return err;
}

/* Runs the script and lets lua/model.lua check that it returned a model. */
static hp_err run_model(hp_sandbox *sb, const char *path, hp_errmsg *e)
{
    hp_err err = hp_sandbox_module(sb, "model", e);
    if (err)
        return err;
    lua_State *L = hp_sandbox_lua(sb);
    lua_getfield(L, -1, "finish");
    lua_remove(L, -2);
    err = hp_sandbox_file(sb, path, e);
    if (!err) {
        lua_pushstring(L, path);
        err = hp_sandbox_call(sb, 2, e);
    }
    return err;
}

static int pick(int n, const hp_override *over, const char *prefix, hp_override *out)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        if (strncmp(over[i].key, prefix, strlen(prefix)) == 0)
            out[k++] = (hp_override){over[i].key + strlen(prefix), over[i].value};
    return k;
}

/* Where the script lies and what a config.json says beside it. */
static hp_err locate(const char *name, char **path, hp_hfconfig *hf, hp_errmsg *e)
{
    size_t n = strlen(name);
    if (n > 5 && strcasecmp(name + n - 5, ".json") == 0) {
        hp_err err = hp_hfconfig_read(name, hf, e);
        return err ? err : hp_script_find("models", "model family", hf->family, path, e);
    }
    if (!hp_script_is_path(name))
        return hp_script_find("models", "model", name, path, e);
    FILE *f = fopen(name, "r");
    if (!f)
        return hp_fail(e, HP_EUSAGE, "the model file %s cannot be opened", name);
    fclose(f);
    *path = hp_xstrdup(name);
    return HP_OK;
}

static hp_err build(const char *path, const hp_hfconfig *hf, int n_over, const hp_override *over,
                    builder *b, hp_errmsg *e)
{
    hp_sandbox *sb;
    hp_err err = hp_sandbox_new(NULL, &sb, e);
    if (err)
        return err;
    hp_override *mine = hp_xcalloc((size_t)n_over + 1, sizeof *mine);
    int n = pick(n_over, over, "model.", mine);
    add_functions(sb, b);
    err = hp_sandbox_words(sb, "common", e);
    if (!err)
        err = hp_sandbox_words(sb, "model", e);
    if (!err)
        err = give_texts(sb, "set_config", hf->n, hf->set, e);
    if (!err)
        err = give_texts(sb, "set_overrides", n, mine, e);
    if (!err)
        err = run_model(sb, path, e);
    free(mine);
    hp_sandbox_free(sb);
    return err;
}

hp_err hp_script_model(const char *name, int n_over, const hp_override *over, hp_graph **out,
                       hp_errmsg *e)
{
    char *path = NULL;
    hp_hfconfig hf = {0};
    builder b = {0};
    hp_err err = locate(name, &path, &hf, e);
    if (!err) {
        b.g = hp_graph_new("model", hp_graph_ops());
        err = build(path, &hf, n_over, over, &b, e);
    }
    if (!err)
        err = hp_graph_autodiff(b.g, b.g->loss, e);
    hp_hfconfig_fini(&hf);
    free(path);
    if (err)
        hp_graph_free(b.g);
    else
        *out = b.g;
    return err;
}

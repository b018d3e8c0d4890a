/* sandbox.c -- the words of scripts are a copy of Lua's harmless ones; scripts, modules and errors between them.
 *
 * Invariants: no function of C that a script can reach loops longer than it charges for; nothing runs while hooks are off (no xpcall handler,
 * no `__close` of a dead coroutine, no finalizer: coroutines, xpcall and `__gc` are not there); once `spent`, the hook fires at
 * every instruction and raises, so the innermost pcall gains one instruction and the script ends.
 */
#include "script/sandbox.h"

#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "script/meter.h"
#include "script/pattern.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_SCRIPT = 1 << 20, MAX_NEAR = 512 };

struct hp_sandbox {
    hp_meter meter;
    lua_State *L;
    char *data; /* the data folder */
};

hp_sandbox *hp_sandbox_of(lua_State *L)
{
    hp_sandbox *sb;
    memcpy(&sb, lua_getextraspace(L), sizeof sb);
    return sb;
}

lua_State *hp_sandbox_lua(hp_sandbox *sb)
{
    return sb->L;
}

/* --- errors ----------------------------------------------------------------------------------------------- */

/* What goes wrong inside C or a trusted module gets the script's line in front. */
static int on_error(lua_State *L)
{
    const char *text = lua_tostring(L, 1);
    if (!text) {
        lua_pushfstring(L, "the error is a %s instead of a text", luaL_typename(L, 1));
        lua_replace(L, 1);
        text = lua_tostring(L, 1);
    }
    hp_script_where(L);
    const char *where = lua_tostring(L, -1);
    if (strncmp(text, where, strcspn(where, ":")) == 0)
        lua_settop(L, 1);
    else
        lua_insert(L, 1), lua_concat(L, 2);
    return 1;
}

static hp_err report(hp_sandbox *sb, int status, hp_errmsg *e)
{
    lua_State *L = sb->L;
    const char *text =
        lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error without a text";
    hp_err code = HP_EINPUT;
    if (status == LUA_ERRMEM && !sb->meter.spent) {
        hp_fail(e, code,
                "the script needs too much memory (the limit is %zu MiB, %zu MiB in one value)",
                sb->meter.limit.bytes >> 20, sb->meter.limit.block_bytes >> 20);
    } else if (status == LUA_ERRMEM) {
        hp_fail(e, code, "the script has spent %s", sb->meter.spent);
    } else {
        if (sb->meter.raised_text && strcmp(sb->meter.raised_text, text) == 0)
            code = sb->meter.raised;
        hp_fail(e, code, "%s", text);
    }
    lua_pop(L, 1);
    return code;
}

hp_err hp_sandbox_call(hp_sandbox *sb, int n_args, hp_errmsg *e)
{
    lua_State *L = sb->L;
    int handler = lua_gettop(L) - n_args;
    lua_pushcfunction(L, on_error);
    lua_insert(L, handler);
    int outermost = hp_meter_begin(&sb->meter);
    int status = lua_pcall(L, n_args, 1, handler);
    hp_meter_end(&sb->meter, outermost);
    lua_remove(L, handler);
    return status == LUA_OK ? HP_OK : report(sb, status, e);
}

/* --- loading ---------------------------------------------------------------------------------------------- */

static hp_err read_script(const char *path, char **text, size_t *n, hp_errmsg *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return hp_fail(e, HP_EINPUT, "%s: cannot be read: not a plain file", path);
    FILE *f = fopen(path, "rb");
    if (!f)
        return hp_fail(e, HP_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
    *text = hp_xmalloc(MAX_SCRIPT + 1);
    *n = fread(*text, 1, MAX_SCRIPT + 1, f);
    fclose(f);
    if (*n <= MAX_SCRIPT)
        return HP_OK;
    free(*text);
    return hp_fail(e, HP_EINPUT, "%s: is longer than a script may be (1 MiB)", path);
}

/* Leaves the compiled chunk with the environment on top of the stack as its _ENV, which is popped. */
static hp_err load_chunk(hp_sandbox *sb, const char *chunk, const char *text, size_t n,
                         hp_errmsg *e)
{
    lua_State *L = sb->L;
    if (n > 0 && text[0] == LUA_SIGNATURE[0]) {
        lua_pop(L, 1);
        return hp_fail(e, HP_EINPUT, "%s: is a compiled chunk; scripts are text", chunk + 1);
    }
    int status = luaL_loadbufferx(L, text, n, chunk, "t");
    if (status != LUA_OK) {
        lua_remove(L, -2);
        return report(sb, status, e);
    }
    lua_insert(L, -2);
    lua_setupvalue(L, -2, 1);
    return HP_OK;
}

/* Scripts may set names of their own; a name that nobody set is an error with the nearest word. */
static int unknown_word(lua_State *L)
{
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    if (!lua_isnil(L, -1))
        return 1;
    const char *names[MAX_NEAR];
    int n = 0;
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && n < MAX_NEAR)
            names[n++] = lua_tostring(L, -2);
    const char *near = hp_near(key, names, n);
    return hp_script_raise(L, HP_EINPUT, "unknown word '%s'; the nearest is '%s'", key,
                           near ? near : "?");
}

static void push_environment(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "hp.words");
    lua_pushcclosure(L, unknown_word, 1);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "environment");
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
}

hp_err hp_sandbox_text(hp_sandbox *sb, const char *name, const char *text, size_t n, hp_errmsg *e)
{
    hp_str chunk = {0};
    const char *slash = strrchr(name, '/');
    hp_str_add(&chunk, "@%s", strlen(name) > 56 && slash ? slash + 1 : name);
    push_environment(sb->L);
    char *outer = sb->meter.script;
    sb->meter.script = hp_str_take(&chunk);
    hp_err err = load_chunk(sb, sb->meter.script, text, n, e);
    memmove(sb->meter.script, sb->meter.script + 1, strlen(sb->meter.script));
    if (!err)
        err = hp_sandbox_call(sb, 0, e);
    free(sb->meter.script);
    sb->meter.script = outer;
    return err;
}

hp_err hp_sandbox_file(hp_sandbox *sb, const char *path, hp_errmsg *e)
{
    char *text;
    size_t n;
    hp_err err = read_script(path, &text, &n, e);
    if (err)
        return err;
    err = hp_sandbox_text(sb, path, text, n, e);
    free(text);
    return err;
}

/* Leaves the value of module lua/NAME.lua on the stack, running it the first time. */
hp_err hp_sandbox_module(hp_sandbox *sb, const char *name, hp_errmsg *e)
{
    lua_State *L = sb->L;
    lua_getfield(L, LUA_REGISTRYINDEX, "hp.loaded");
    if (lua_getfield(L, -1, name) != LUA_TNIL) {
        lua_remove(L, -2);
        return HP_OK;
    }
    lua_pop(L, 1);
    hp_str path = {0}, chunk = {0};
    hp_str_add(&path, "%s/lua/%s.lua", sb->data, name);
    hp_str_add(&chunk, "=lua/%s.lua", name);
    char *text;
    size_t n;
    hp_err err = read_script(hp_str_text(&path), &text, &n, e);
    if (!err) {
        lua_getfield(L, LUA_REGISTRYINDEX, "hp.trusted");
        err = load_chunk(sb, hp_str_text(&chunk), text, n, e);
        free(text);
    }
    if (!err)
        err = hp_sandbox_call(sb, 0, e);
    hp_str_fini(&path);
    hp_str_fini(&chunk);
    if (err) {
        lua_pop(L, 1);
        return err;
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
    lua_remove(L, -2);
    return HP_OK;
}

void hp_sandbox_function(hp_sandbox *sb, const char *name, lua_CFunction fn, void *ctx)
{
    lua_getfield(sb->L, LUA_REGISTRYINDEX, "hp.trusted");
    lua_pushlightuserdata(sb->L, ctx);
    lua_pushcclosure(sb->L, fn, 1);
    lua_setfield(sb->L, -2, name);
    lua_pop(sb->L, 1);
}

/* A word is called through C: a tail call of a C function leaves the script's frame, and with it the line for messages. */
static int call_word(lua_State *L)
{
    int n = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L);
}

hp_err hp_sandbox_words(hp_sandbox *sb, const char *name, hp_errmsg *e)
{
    lua_State *L = sb->L;
    hp_err err = hp_sandbox_module(sb, name, e);
    if (err)
        return err;
    lua_getfield(L, -1, "words");
    lua_remove(L, -2);
    lua_getfield(L, LUA_REGISTRYINDEX, "hp.words");
    for (lua_pushnil(L); lua_next(L, -3);) {
        if (lua_isfunction(L, -1))
            lua_pushcclosure(L, call_word, 1);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_pop(L, 2);
    return HP_OK;
}

/* --- the words of every script ---------------------------------------------------------------------------- */

static int word_require(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    size_t n = strlen(name);
    for (const char *p = name; *p; p++)
        if (!islower((unsigned char)*p) && *p != '_')
            return hp_script_raise(L, HP_EINPUT,
                                   "require '%.40s': only modules of lua/ can be required", name);
    hp_errmsg e = {0};
    hp_err err = n == 0 || n > 40 ? hp_fail(&e, HP_EINPUT, "no such module")
                                  : hp_sandbox_module(hp_sandbox_of(L), name, &e);
    return err ? hp_script_raise(L, HP_EINPUT, "require '%.40s': %s", name, e.text) : 1;
}

static int word_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        static const char *const refused[] = {"__gc", "__close", "__mode"};
        for (int i = 0; i < 3; i++) {
            lua_pushstring(L, refused[i]);
            lua_rawget(L, 2);
            if (!lua_isnil(L, -1))
                return hp_script_raise(L, HP_EINPUT, "setmetatable: %s is not allowed in a script",
                                       refused[i]);
            lua_pop(L, 1);
        }
    }
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return hp_script_raise(L, HP_EINPUT, "setmetatable: the metatable is protected");
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* fail(text, code): for trusted modules; code "usage", "infeasible", or nothing for a fault of the script. */
static int word_fail(lua_State *L)
{
    const char *text = luaL_checkstring(L, 1), *code = luaL_optstring(L, 2, "");
    hp_err err = strcmp(code, "usage") == 0        ? HP_EUSAGE
                 : strcmp(code, "infeasible") == 0 ? HP_EINFEASIBLE
                                                   : HP_EINPUT;
    return hp_script_raise(L, err, "%s", text);
}

/* near(word, list): the member of a list of texts that is nearest to a word. */
static int word_near(lua_State *L)
{
    const char *key = luaL_checkstring(L, 1), *names[MAX_NEAR];
    luaL_checktype(L, 2, LUA_TTABLE);
    int n = 0;
    for (lua_Integer i = 1; n < MAX_NEAR && lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
        names[n++] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_pushstring(L, hp_near(key, names, n));
    return 1;
}

/* bytes("40GiB"): a text with a unit as a number. */
static int word_bytes(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TNUMBER) {
        lua_pushvalue(L, 1);
        return 1;
    }
    hp_errmsg e = {0};
    long long n;
    if (hp_parse_bytes(luaL_checkstring(L, 1), &n, &e))
        return hp_script_raise(L, HP_EINPUT, "%s", e.text);
    lua_pushinteger(L, n);
    return 1;
}

/* The loops of the table library cost what they touch; the stock function (upvalue 1) then does the work. */
static int charged(lua_State *L)
{
    double cost = 0;
    int kind = (int)lua_tointeger(L, lua_upvalueindex(2));
    if (kind == 'm')
        cost = luaL_checknumber(L, 3) - luaL_checknumber(L, 2);
    else if (lua_type(L, 1) == LUA_TTABLE)
        cost = (double)luaL_len(L, 1) * (kind == 's' ? 24 : lua_gettop(L) > (kind == 'i' ? 2 : 1));
    if (cost > 0)
        hp_script_charge(L, cost < 1e15 ? (int64_t)cost : INT64_MAX);
    int n = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L);
}

static void charge_table_function(lua_State *L, const char *name, int kind)
{
    lua_getfield(L, -1, name);
    lua_pushinteger(L, kind);
    lua_pushcclosure(L, charged, 2);
    lua_setfield(L, -2, name);
}

static void drop(lua_State *L, const char *const *names)
{
    for (; *names; names++) {
        lua_pushnil(L);
        lua_setfield(L, -2, *names);
    }
}

static void open_libraries(lua_State *L)
{
    static const char *const base[] = {"collectgarbage", "dofile", "load",   "loadfile",
                                       "print",          "warn",   "xpcall", NULL};
    static const char *const string[] = {"dump", "pack", "unpack", "packsize", NULL};
    static const char *const math[] = {"random", "randomseed", NULL};
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    drop(L, base);
    lua_pop(L, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    drop(L, math);
    lua_pop(L, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    charge_table_function(L, "move", 'm');
    charge_table_function(L, "sort", 's');
    charge_table_function(L, "insert", 'i');
    charge_table_function(L, "remove", 'r');
    lua_pop(L, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    drop(L, string);
    hp_pattern_open(L);
    lua_pop(L, 1);
}

/* Makes the words that scripts see (a copy of the safe globals) and the environment of trusted modules (those and `fail`). */
static int set_up(lua_State *L)
{
    static const luaL_Reg words[] = {{"require", word_require},
                                     {"setmetatable", word_setmetatable},
                                     {"bytes", word_bytes},
                                     {NULL, NULL}};
    static const luaL_Reg trusted[] = {{"fail", word_fail}, {"near", word_near}, {NULL, NULL}};
    open_libraries(L);
    lua_pushglobaltable(L);
    luaL_setfuncs(L, words, 0);
    lua_pushnil(L);
    lua_setfield(L, -2, "_G");
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, -3);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_setfield(L, LUA_REGISTRYINDEX, "hp.words");
    luaL_setfuncs(L, trusted, 0);
    lua_setfield(L, LUA_REGISTRYINDEX, "hp.trusted");
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, "hp.loaded");
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    return 0;
}

hp_err hp_sandbox_new(const hp_sandbox_limits *limits, hp_sandbox **out, hp_errmsg *e)
{
    char *data;
    hp_err err = hp_paths_data(&data, e);
    if (err)
        return err;
    hp_sandbox *sb = hp_xcalloc(1, sizeof *sb);
    sb->data = data;
    hp_meter_init(&sb->meter, limits);
    sb->L = lua_newstate(hp_meter_allocate, &sb->meter);
    if (!sb->L) {
        hp_sandbox_free(sb);
        return hp_fail(e, HP_EINTERNAL, "a Lua state could not be made: out of memory");
    }
    memcpy(lua_getextraspace(sb->L), &sb, sizeof sb);
    lua_pushcfunction(sb->L, set_up);
    err = hp_sandbox_call(sb, 0, e);
    lua_settop(sb->L, 0);
    hp_meter_watch(sb->L);
    if (err) {
        hp_sandbox_free(sb);
        return err;
    }
    *out = sb;
    return HP_OK;
}

void hp_sandbox_free(hp_sandbox *sb)
{
    if (!sb)
        return;
    if (sb->L)
        lua_close(sb->L);
    hp_meter_fini(&sb->meter);
    free(sb->data);
    free(sb);
}

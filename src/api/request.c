/* request.c -- one loop over the table; a row a key. */
#include "api/request.h"

#include "base/str.h"
#include "script/meter.h"

#include <lauxlib.h>
#include <lua.h>
#include <string.h>

typedef enum kind { TEXT, WHOLE, SWITCH, OVERRIDES } kind;

typedef struct key {
    const char *name;
    kind kind;
    size_t at; /* offset in hp_api_request */
} key;

static const key keys[] = {
    {"model", TEXT, offsetof(hp_api_request, what.model)},
    {"cluster", TEXT, offsetof(hp_api_request, what.cluster)},
    {"strategy", TEXT, offsetof(hp_api_request, what.strategy)},
    {"over", OVERRIDES, 0},
    {"steps", WHOLE, offsetof(hp_api_request, steps)},
    {"seed", WHOLE, offsetof(hp_api_request, seed)},
    {"data", TEXT, offsetof(hp_api_request, data)},
    {"clock", TEXT, offsetof(hp_api_request, clock)},
    {"dtype", TEXT, offsetof(hp_api_request, dtype)},
    {"view", TEXT, offsetof(hp_api_request, view)},
    {"shrink", SWITCH, offsetof(hp_api_request, shrink)},
};
enum { KEYS = sizeof keys / sizeof *keys };

static const key *find_key(lua_State *L)
{
    const char *names[KEYS];
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
        names[i] = keys[i].name;
    }
    hp_script_raise(L, HP_EUSAGE, "a request has no key '%.40s'; the nearest is '%s'", name,
                    hp_near(name, names, KEYS));
    return NULL;
}

/* over = { ["model.seq"] = 64 }; numbers become text in place, which lua_next allows for values. */
static void read_overrides(lua_State *L, hp_api_request *r)
{
    hp_errmsg e = {0};
    if (!lua_istable(L, -1))
        hp_script_raise(L, HP_EUSAGE, "over must be a table like { [\"model.seq\"] = 64 }");
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table);) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1))
            hp_script_raise(L, HP_EUSAGE, "over must be a table like { [\"model.seq\"] = 64 }");
        const char *value = lua_tostring(L, -1);
        lua_pushvalue(L, -2);
        lua_pushstring(L, value);
        lua_rawset(L, table); /* the text lives as long as the table */
        if (hp_ask_over(&r->what, lua_tostring(L, -2), value, &e))
            hp_script_raise(L, e.code, "%s", e.text);
        lua_pop(L, 1);
    }
}

static void read_value(lua_State *L, const key *k, hp_api_request *r)
{
    char *field = (char *)r + k->at;
    int whole = 0;
    if (k->kind == OVERRIDES) {
        read_overrides(L, r);
    } else if (k->kind == SWITCH) {
        *(bool *)(void *)field = lua_toboolean(L, -1);
    } else if (k->kind == WHOLE) {
        *(int64_t *)(void *)field = lua_tointegerx(L, -1, &whole);
        if (!whole || *(int64_t *)(void *)field < 0)
            hp_script_raise(L, HP_EUSAGE, "%s must be a whole number from 0 on", k->name);
    } else {
        if (lua_type(L, -1) != LUA_TSTRING)
            hp_script_raise(L, HP_EUSAGE, "%s must be a text", k->name);
        *(const char **)(void *)field = lua_tostring(L, -1);
    }
}

void hp_api_read_request(lua_State *L, hp_api_request *r)
{
    *r = (hp_api_request){.steps = 20, .seed = 1};
    if (!lua_istable(L, 1))
        hp_script_raise(L, HP_EUSAGE,
                        "write a table: { model = \"gpt2-small\", cluster = \"host:4\", strategy = "
                        "\"dp=2,tp=2\" }");
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        read_value(L, find_key(L), r);
    const char *const needed[] = {r->what.model, r->what.cluster, r->what.strategy},
                      *const name[] = {"model", "cluster", "strategy"};
    for (int i = 0; i < 3; i++)
        if (!needed[i])
            hp_script_raise(L, HP_EUSAGE, "the request names no %s", name[i]);
}

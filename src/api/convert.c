/* convert.c -- one recursion over jansson's tree; depth is that of our own schemas. */
#include "api/convert.h"

#include <jansson.h>
#include <lauxlib.h>
#include <lua.h>

static void push(lua_State *L, const json_t *v);

static void push_map(lua_State *L, const json_t *v)
{
    const char *key;
    json_t *item;
    lua_createtable(L, 0, (int)json_object_size(v));
    json_object_foreach((json_t *)v, key, item)
    {
        push(L, item);
        lua_setfield(L, -2, key);
    }
}

static void push_list(lua_State *L, const json_t *v)
{
    lua_createtable(L, (int)json_array_size(v), 0);
    for (size_t i = 0; i < json_array_size(v); i++) {
        push(L, json_array_get(v, i));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push(lua_State *L, const json_t *v)
{
    luaL_checkstack(L, 4, "a result nested too deeply");
    if (json_is_object(v))
        push_map(L, v);
    else if (json_is_array(v))
        push_list(L, v);
    else if (json_is_string(v))
        lua_pushlstring(L, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        lua_pushinteger(L, (lua_Integer)json_integer_value(v));
    else if (json_is_real(v))
        lua_pushnumber(L, json_real_value(v));
    else if (json_is_boolean(v))
        lua_pushboolean(L, json_is_true(v));
    else
        lua_pushnil(L);
}

hp_err hp_api_push_json(lua_State *L, const char *text, hp_errmsg *e)
{
    json_error_t at;
    json_t *v = json_loads(text, JSON_DECODE_ANY, &at);
    if (!v)
        return hp_fail(e, HP_EINTERNAL, "our own JSON, line %d: %s", at.line, at.text);
    push(L, v);
    json_decref(v);
    return HP_OK;
}

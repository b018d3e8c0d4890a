/* convert.h -- results as Lua tables, requests from Lua tables. Room: api. */
#ifndef HP_API_CONVERT_H
#define HP_API_CONVERT_H

#include "base/err.h"

struct lua_State;

/* hp_api_push_json pushes a JSON text as a Lua value: maps and lists as tables, null as nil.
 * HP_EINTERNAL when the text is no JSON. */
hp_err hp_api_push_json(struct lua_State *L, const char *text, hp_errmsg *e);

#endif

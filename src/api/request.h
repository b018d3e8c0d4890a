/* request.h -- a table of Lua as a request: every key is known, or the error names the nearest.
 * Room: api. */
#ifndef HP_API_REQUEST_H
#define HP_API_REQUEST_H

#include "session/load.h"

struct lua_State;

/* hp_api_request is what a call like hp.run { ... } asks for; its strings are borrowed from the
 * Lua table. */
typedef struct hp_api_request {
    hp_ask what;
    int64_t steps, seed;
    const char *data, *clock, *dtype, *view;
    bool shrink;
} hp_api_request;

/* hp_api_read_request reads the table at stack index 1 and raises a Lua error for what is wrong
 * with it. */
void hp_api_read_request(struct lua_State *L, hp_api_request *r);

#endif

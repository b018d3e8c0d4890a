/* open.h -- the sandbox with the words of lua/api.lua. Room: api. */
#ifndef HP_API_OPEN_H
#define HP_API_OPEN_H

#include "script/sandbox.h"

/* hp_api_open makes it; the caller frees it with hp_sandbox_free. */
hp_err hp_api_open(hp_sandbox **sb, hp_errmsg *e);

#endif

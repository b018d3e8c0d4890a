/* meter.c -- the allocator, the count hook and hp_script_charge all end in one sticky flag, `spent`.
 *
 * Once it is set the hook fires at every instruction and raises: the innermost pcall gains one instruction, and the script ends. Small
 * allocations are paid by the instructions around them; a large block costs the time to touch it, and none is given any more once something is spent.
 */
#include "script/meter.h"

#include "base/clock.h"
#include "base/mem.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOOK_EVERY = 100, LARGE = 65536, BYTES_A_UNIT = 8, LONG_CHARGE = 10000 };

void hp_meter_init(hp_meter *m, const hp_sandbox_limits *limits)
{
    const hp_sandbox_limits none = {0};
    const hp_sandbox_limits *l = limits ? limits : &none;
    m->limit.instructions = l->instructions ? l->instructions : 20000000;
    m->limit.bytes = l->bytes ? l->bytes : (size_t)256 << 20;
    m->limit.block_bytes = l->block_bytes ? l->block_bytes : (size_t)32 << 20;
    m->limit.seconds = l->seconds > 0 ? l->seconds : 1.5;
    m->left = m->limit.instructions;
}

void hp_meter_fini(hp_meter *m)
{
    free(m->raised_text);
    m->raised_text = NULL;
}

static void spend(hp_meter *m, const char *what)
{
    if (!m->spent)
        m->spent = what;
}

static void check_time(hp_meter *m)
{
    if (m->started_ns &&
        (double)(m->used_ns + hp_now_ns() - m->started_ns) > m->limit.seconds * 1e9)
        spend(m, "its time");
}

static void take(hp_meter *m, int64_t units)
{
    m->left -= units < m->left ? units : m->left;
    if (m->left <= 0)
        spend(m, "its instructions");
}

int hp_meter_begin(hp_meter *m)
{
    if (m->started_ns)
        return 0;
    m->started_ns = hp_now_ns();
    return 1;
}

void hp_meter_end(hp_meter *m, int outermost)
{
    if (!outermost)
        return;
    m->used_ns += hp_now_ns() - m->started_ns;
    m->started_ns = 0;
}

static bool may_allocate(hp_meter *m, size_t more, size_t size)
{
    if (size > LARGE) {
        check_time(m);
        take(m, (int64_t)(more / BYTES_A_UNIT));
        if (m->spent)
            return false;
    }
    return size <= m->limit.block_bytes && m->bytes + more <= m->limit.bytes;
}

void *hp_meter_allocate(void *ud, void *p, size_t old, size_t size)
{
    hp_meter *m = ud;
    if (!p)
        old = 0; /* Lua passes the kind of object there */
    if (size == 0) {
        m->bytes -= old;
        free(p);
        return NULL;
    }
    if (size > old && !may_allocate(m, size - old, size))
        return NULL;
    void *q = realloc(p, size);
    if (q)
        m->bytes = m->bytes - old + size;
    return q;
}

static hp_meter *meter_of(lua_State *L)
{
    void *ud;
    lua_getallocf(L, &ud);
    return ud;
}

static int raise_spent(lua_State *L, const hp_meter *m)
{
    return hp_script_raise(
        L, HP_EINPUT, "the script has spent %s (the limit is %lld million instructions, %.1f s)",
        m->spent, (long long)(m->limit.instructions / 1000000), m->limit.seconds);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    hp_meter *m = meter_of(L);
    take(m, HOOK_EVERY);
    check_time(m);
    if (m->spent) {
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
        raise_spent(L, m);
    }
}

void hp_meter_watch(lua_State *L)
{
    lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_EVERY);
}

void hp_script_charge(lua_State *L, int64_t units)
{
    hp_meter *m = meter_of(L);
    take(m, units > 0 ? units : 0);
    if (units > LONG_CHARGE)
        check_time(m);
    if (m->spent)
        raise_spent(L, m);
}

void hp_script_where(lua_State *L)
{
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.source[0] == '@' && ar.currentline > 0) { /* modules of lua/ are named "=lua/..." */
            lua_pushfstring(L, "%s:%d: ", ar.source + 1, ar.currentline);
            return;
        }
    }
    const char *script = meter_of(L)->script;
    lua_pushfstring(L, script ? "%s: " : "%s", script ? script : "");
}

int hp_script_raise(lua_State *L, hp_err code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    hp_script_where(L);
    lua_pushstring(L, text);
    lua_concat(L, 2);
    hp_meter *m = meter_of(L);
    m->raised = code;
    free(m->raised_text);
    m->raised_text = hp_xstrdup(lua_tostring(L, -1));
    return lua_error(L);
}

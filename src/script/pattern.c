/* pattern.c -- a backtracking matcher for Lua's pattern language that counts its steps.
 *
 * Semantics as in the reference manual of Lua 5.4, section 6.4.1. Every pattern item tried and every character a
 * repetition scans is one step; steps are charged to the sandbox in handfuls, so a bomb ends as an endless loop does.
 */
#include "script/pattern.h"

#include "script/meter.h"

#include <lauxlib.h>
#include <lua.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MAX_CAPTURES = 32, MAX_DEPTH = 200, HANDFUL = 1024, MAX_REP = 32 << 20 };
enum { CAPTURE_OPEN = -1, CAPTURE_POSITION = -2 };

typedef struct matcher {
    lua_State *L;
    const char *src, *src_end, *pat_end;
    int n_captures, depth, steps;
    struct {
        const char *at;
        ptrdiff_t len;
    } capture[MAX_CAPTURES];
} matcher;

static const char *match(matcher *m, const char *s, const char *p);

static void step(matcher *m, int64_t n)
{
    m->steps += (int)(n < HANDFUL ? n : 0);
    if (n >= HANDFUL)
        hp_script_charge(m->L, n);
    if (m->steps >= HANDFUL) {
        hp_script_charge(m->L, m->steps);
        m->steps = 0;
    }
}

static int malformed(matcher *m, const char *why)
{
    return hp_script_raise(m->L, HP_EINPUT, "malformed pattern (%s)", why);
}

/* --- one character against one item ---------------------------------------------------------------------- */

/* Returns where the single-character item at p ends. */
static const char *item_end(matcher *m, const char *p)
{
    if (*p == '%') {
        if (p + 1 == m->pat_end)
            malformed(m, "ends with '%'");
        return p + 2;
    }
    if (*p++ != '[')
        return p;
    if (p < m->pat_end && *p == '^')
        p++;
    do { /* a ']' in first place is a character; Lua's strings end with a zero that stops the scan */
        if (p == m->pat_end)
            malformed(m, "missing ']'");
        if (*p++ == '%' && p < m->pat_end)
            p++;
    } while (*p != ']');
    return p + 1;
}

static bool in_class(int c, int class)
{
    bool in;
    switch (tolower(class)) {
    case 'a':
        in = isalpha(c);
        break;
    case 'c':
        in = iscntrl(c);
        break;
    case 'd':
        in = isdigit(c);
        break;
    case 'g':
        in = isgraph(c);
        break;
    case 'l':
        in = islower(c);
        break;
    case 'p':
        in = ispunct(c);
        break;
    case 's':
        in = isspace(c);
        break;
    case 'u':
        in = isupper(c);
        break;
    case 'w':
        in = isalnum(c);
        break;
    case 'x':
        in = isxdigit(c);
        break;
    default:
        return class == c;
    }
    return isupper(class) ? !in : in;
}

/* p at '[', last at its ']'. */
static bool in_set(int c, const char *p, const char *last)
{
    bool wanted = true;
    if (p[1] == '^') {
        wanted = false;
        p++;
    }
    while (++p < last) {
        if (*p == '%') {
            if (in_class(c, (unsigned char)*++p))
                return wanted;
        } else if (p[1] == '-' && p + 2 < last) {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
                return wanted;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return wanted;
        }
    }
    return !wanted;
}

static bool fits(const matcher *m, const char *s, const char *p, const char *end)
{
    if (s >= m->src_end)
        return false;
    int c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* --- items that are more than a character ----------------------------------------------------------------- */

static const char *balanced(matcher *m, const char *s, const char *p)
{
    if (p + 1 >= m->pat_end)
        malformed(m, "missing arguments to '%b'");
    if (s >= m->src_end || *s != p[0])
        return NULL;
    int open = 1;
    for (const char *at = s + 1; at < m->src_end; at++) {
        step(m, 1);
        if (*at == p[1]) {
            if (--open == 0)
                return at + 1;
        } else if (*at == p[0]) {
            open++;
        }
    }
    return NULL;
}

static const char *expand_most(matcher *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t n = 0;
    while (fits(m, s + n, p, end))
        n++;
    step(m, n);
    for (; n >= 0; n--) {
        const char *r = match(m, s + n, end + 1);
        if (r)
            return r;
    }
    return NULL;
}

static const char *expand_least(matcher *m, const char *s, const char *p, const char *end)
{
    for (;; s++) {
        const char *r = match(m, s, end + 1);
        if (r)
            return r;
        if (!fits(m, s, p, end))
            return NULL;
    }
}

static const char *open_capture(matcher *m, const char *s, const char *p)
{
    if (m->n_captures >= MAX_CAPTURES)
        malformed(m, "too many captures");
    bool position = p + 1 < m->pat_end && p[1] == ')';
    m->capture[m->n_captures].at = s;
    m->capture[m->n_captures].len = position ? CAPTURE_POSITION : CAPTURE_OPEN;
    m->n_captures++;
    const char *r = match(m, s, p + (position ? 2 : 1));
    if (!r)
        m->n_captures--;
    return r;
}

static const char *close_capture(matcher *m, const char *s, const char *p)
{
    int i = m->n_captures - 1;
    while (i >= 0 && m->capture[i].len != CAPTURE_OPEN)
        i--;
    if (i < 0)
        malformed(m, "a ')' without its '('");
    m->capture[i].len = s - m->capture[i].at;
    const char *r = match(m, s, p + 1);
    if (!r)
        m->capture[i].len = CAPTURE_OPEN;
    return r;
}

static const char *again(matcher *m, const char *s, int digit)
{
    int i = digit - '1';
    if (i < 0 || i >= m->n_captures || m->capture[i].len < 0)
        malformed(m, "a back reference to no capture");
    ptrdiff_t n = m->capture[i].len;
    step(m, n / 8);
    return m->src_end - s >= n && memcmp(m->capture[i].at, s, (size_t)n) == 0 ? s + n : NULL;
}

/* p behind "%f". */
static const char *frontier(matcher *m, const char *s, const char **p)
{
    if (*p >= m->pat_end || **p != '[')
        malformed(m, "missing '[' after '%f'");
    const char *end = item_end(m, *p);
    int before = s == m->src ? 0 : (unsigned char)s[-1],
        here = s < m->src_end ? (unsigned char)*s : 0;
    bool at = !in_set(before, *p, end - 1) && in_set(here, *p, end - 1);
    *p = end;
    return at ? s : NULL;
}

/* %b, %f and back references; *p is moved behind the item. *is says whether it was one. */
static const char *special(matcher *m, const char *s, const char **p, bool *is)
{
    int kind = *p + 1 < m->pat_end ? (*p)[1] : 0;
    *is = true;
    if (kind == 'b') {
        s = balanced(m, s, *p + 2);
        *p += 4;
        return s;
    }
    if (kind == 'f') {
        *p += 2;
        return frontier(m, s, p);
    }
    if (isdigit(kind)) {
        s = again(m, s, kind);
        *p += 2;
        return s;
    }
    *is = false;
    return s;
}

/* --- the matcher ------------------------------------------------------------------------------------------ */

static const char *match_here(matcher *m, const char *s, const char *p)
{
    while (p < m->pat_end) {
        step(m, 1);
        if (*p == '(')
            return open_capture(m, s, p);
        if (*p == ')')
            return close_capture(m, s, p);
        if (*p == '$' && p + 1 == m->pat_end)
            return s == m->src_end ? s : NULL;
        bool is = false;
        if (*p == '%')
            s = special(m, s, &p, &is);
        if (!s)
            return NULL;
        if (is)
            continue;
        const char *end = item_end(m, p);
        int suffix = end < m->pat_end ? *end : 0;
        if (suffix == '*')
            return expand_most(m, s, p, end);
        if (suffix == '-')
            return expand_least(m, s, p, end);
        bool here = fits(m, s, p, end);
        if (suffix == '+')
            return here ? expand_most(m, s + 1, p, end) : NULL;
        if (suffix == '?') {
            const char *r = here ? match(m, s + 1, end + 1) : NULL;
            if (r)
                return r;
            p = end + 1;
        } else if (here) {
            s++;
            p = end;
        } else {
            return NULL;
        }
    }
    return s;
}

/* Returns the end of the match of pattern p at s, NULL when there is none. */
static const char *match(matcher *m, const char *s, const char *p)
{
    if (++m->depth > MAX_DEPTH)
        hp_script_raise(m->L, HP_EINPUT, "the pattern is too complex");
    const char *r = match_here(m, s, p);
    m->depth--;
    return r;
}

static const char *match_at(matcher *m, const char *s, const char *p)
{
    m->n_captures = 0;
    m->depth = 0;
    return match(m, s, p);
}

static matcher matcher_of(lua_State *L, const char *s, size_t ls, const char *p, size_t lp)
{
    return (matcher){.L = L, .src = s, .src_end = s + ls, .pat_end = p + lp};
}

/* --- captures as Lua values ------------------------------------------------------------------------------- */

static void push_capture(const matcher *m, int i, const char *s, const char *end)
{
    if (i >= m->n_captures && i == 0) {
        lua_pushlstring(m->L, s, (size_t)(end - s));
    } else if (i >= m->n_captures) {
        hp_script_raise(m->L, HP_EINPUT, "invalid capture index %%%d", i + 1);
    } else if (m->capture[i].len == CAPTURE_POSITION) {
        lua_pushinteger(m->L, m->capture[i].at - m->src + 1);
    } else if (m->capture[i].len == CAPTURE_OPEN) {
        hp_script_raise(m->L, HP_EINPUT, "malformed pattern (unfinished capture)");
    } else {
        lua_pushlstring(m->L, m->capture[i].at, (size_t)m->capture[i].len);
    }
}

/* Pushes all captures, the whole match where there are none and s is given; returns how many. */
static int push_captures(const matcher *m, const char *s, const char *end)
{
    int n = m->n_captures == 0 && s ? 1 : m->n_captures;
    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, s, end);
    return n;
}

/* --- find, match ------------------------------------------------------------------------------------------ */

static size_t start_of(lua_Integer at, size_t len)
{
    if (at > 0)
        return (size_t)at - 1;
    if (at == 0 || at < -(lua_Integer)len)
        return 0;
    return len + (size_t)at;
}

static int find_plain(lua_State *L, const char *s, size_t ls, size_t from, const char *p, size_t lp)
{
    const char *at = NULL;
    for (size_t i = from; i + lp <= ls && !at; i++) {
        hp_script_charge(L, 1 + (int64_t)lp / 16);
        if (memcmp(s + i, p, lp) == 0)
            at = s + i;
    }
    if (!at) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, at - s + (lua_Integer)lp);
    return 2;
}

static int search(lua_State *L, bool find)
{
    size_t ls, lp;
    const char *s = luaL_checklstring(L, 1, &ls), *p = luaL_checklstring(L, 2, &lp);
    size_t from = start_of(luaL_optinteger(L, 3, 1), ls);
    if (from > ls) {
        lua_pushnil(L);
        return 1;
    }
    if (find && lua_toboolean(L, 4))
        return find_plain(L, s, ls, from, p, lp);
    bool anchored = lp > 0 && *p == '^';
    matcher m = matcher_of(L, s, ls, p, lp);
    for (const char *at = s + from; at <= m.src_end; at++) {
        const char *end = match_at(&m, at, p + anchored);
        if (end && find) {
            lua_pushinteger(L, at - s + 1);
            lua_pushinteger(L, end - s);
            return push_captures(&m, NULL, NULL) + 2;
        }
        if (end)
            return push_captures(&m, at, end);
        if (anchored)
            break;
    }
    lua_pushnil(L);
    return 1;
}

static int string_find(lua_State *L)
{
    return search(L, true);
}

static int string_match(lua_State *L)
{
    return search(L, false);
}

/* --- gmatch: upvalues are text, pattern, next position, end of the last match ------------------------------- */

static int gmatch_next(lua_State *L)
{
    size_t ls, lp;
    const char *s = lua_tolstring(L, lua_upvalueindex(1), &ls),
               *p = lua_tolstring(L, lua_upvalueindex(2), &lp);
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    matcher m = matcher_of(L, s, ls, p, lp);
    for (const char *at = s + lua_tointeger(L, lua_upvalueindex(3)); at <= m.src_end; at++) {
        const char *end = match_at(&m, at, p);
        if (!end || end - s == last)
            continue;
        lua_pushinteger(L, end - s);
        lua_copy(L, -1, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return push_captures(&m, at, end);
    }
    return 0;
}

static int string_gmatch(lua_State *L)
{
    luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, gmatch_next, 4);
    return 1;
}

/* --- gsub ------------------------------------------------------------------------------------------------- */

static void add_template(const matcher *m, luaL_Buffer *b, const char *s, const char *end)
{
    size_t n;
    const char *t = lua_tolstring(m->L, 3, &n);
    for (size_t i = 0; i < n; i++) {
        if (t[i] != '%') {
            luaL_addchar(b, t[i]);
        } else if (++i < n && t[i] == '%') {
            luaL_addchar(b, '%');
        } else if (i < n && t[i] == '0') {
            luaL_addlstring(b, s, (size_t)(end - s));
        } else if (i < n && isdigit((unsigned char)t[i])) {
            push_capture(m, t[i] - '1', s, end);
            luaL_tolstring(m->L, -1, NULL);
            lua_remove(m->L, -2);
            luaL_addvalue(b);
        } else {
            hp_script_raise(m->L, HP_EINPUT, "invalid use of '%%' in the replacement of gsub");
        }
    }
}

static void add_replacement(const matcher *m, luaL_Buffer *b, const char *s, const char *end)
{
    lua_State *L = m->L;
    int type = lua_type(L, 3);
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, s, end), 1);
    } else if (type == LUA_TTABLE) {
        push_capture(m, 0, s, end);
        lua_gettable(L, 3);
    } else {
        add_template(m, b, s, end);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, s, (size_t)(end - s));
    } else if (lua_isstring(L, -1)) {
        luaL_addvalue(b);
    } else {
        hp_script_raise(L, HP_EINPUT, "gsub: the replacement is a %s", luaL_typename(L, -1));
    }
}

static int string_gsub(lua_State *L)
{
    size_t ls, lp;
    const char *s = luaL_checklstring(L, 1, &ls), *p = luaL_checklstring(L, 2, &lp);
    int type = lua_type(L, 3);
    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                         type == LUA_TTABLE,
                     3, "string/function/table");
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)ls + 1), n = 0;
    bool anchored = lp > 0 && *p == '^';
    matcher m = matcher_of(L, s, ls, p, lp);
    const char *last = NULL;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    while (n < most) {
        const char *end = match_at(&m, s, p + anchored);
        if (end && end != last) {
            n++;
            add_replacement(&m, &b, s, end);
            s = last = end;
        } else if (s < m.src_end) {
            luaL_addchar(&b, *s++);
        } else {
            break;
        }
        if (anchored)
            break;
    }
    luaL_addlstring(&b, s, (size_t)(m.src_end - s));
    luaL_pushresult(&b);
    lua_pushinteger(L, n);
    return 2;
}

/* --- rep -------------------------------------------------------------------------------------------------- */

static int string_rep(lua_State *L)
{
    size_t n, n_sep;
    const char *s = luaL_checklstring(L, 1, &n), *sep = luaL_optlstring(L, 3, "", &n_sep);
    lua_Integer times = luaL_checkinteger(L, 2);
    if (times <= 0 || n + n_sep == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    double total = (double)times * (double)n + (double)(times - 1) * (double)n_sep;
    if (total > MAX_REP)
        return hp_script_raise(L, HP_EINPUT, "string.rep would make %.0f bytes; the limit is %d",
                               total, MAX_REP);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    hp_script_charge(L, times / 8);
    while (times-- > 0) {
        luaL_addlstring(&b, s, n);
        if (times > 0)
            luaL_addlstring(&b, sep, n_sep);
    }
    luaL_pushresult(&b);
    return 1;
}

void hp_pattern_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"find", string_find},     {"match", string_match},
                                         {"gmatch", string_gmatch}, {"gsub", string_gsub},
                                         {"rep", string_rep},       {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}

/* jsonw.c -- the comma belongs to the value that follows: `filled` says whether the innermost
 * container holds one already. */
#include "fmt/jsonw.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence that begins at s, 0 when it is malformed (RFC 3629: no overlong
 * forms, no surrogates). */
static int sequence(const unsigned char *s)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = s[0] < 0x80   ? 1
            : s[0] < 0xC2 ? 0
            : s[0] < 0xE0 ? 2
            : s[0] < 0xF0 ? 3
            : s[0] < 0xF5 ? 4
                          : 0;
    if (n < 2)
        return n;
    unsigned v = s[0] & (0xFFu >> (n + 1));
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        v = v << 6 | (s[i] & 0x3Fu);
    }
    return v < least[n] || v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF) ? 0 : n;
}

static void put_char(hp_str *out, unsigned char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *p = c ? strchr(plain, c) : NULL;
    if (p)
        hp_str_add(out, "\\%c", letter[p - plain]);
    else if (c < 0x20 || c == 0x7F)
        hp_str_add(out, "\\u%04x", c);
    else
        hp_str_put(out, (const char *)&c, 1);
}

static void put_string(hp_str *out, const char *s)
{
    hp_str_put(out, "\"", 1);
    while (*s) {
        int n = sequence((const unsigned char *)s);
        if (n > 1)
            hp_str_put(out, s, (size_t)n);
        else if (n == 1)
            put_char(out, (unsigned char)*s);
        else
            hp_str_put(out, "\xEF\xBF\xBD", 3);
        s += n ? n : 1;
    }
    hp_str_put(out, "\"", 1);
}

static void new_line(hp_jsonw *w)
{
    hp_str_add(w->out, "\n%*s", 2 * w->depth, "");
}

/* What stands before a value: comma, line break, key. */
static void begin(hp_jsonw *w, const char *key)
{
    if (w->depth > 0) {
        int d = w->depth - 1;
        if (w->filled[d])
            hp_str_put(w->out, ",", 1);
        if (!w->flat[d])
            new_line(w);
        else if (w->filled[d])
            hp_str_put(w->out, " ", 1);
        w->filled[d] = true;
    }
    if (key) {
        put_string(w->out, key);
        hp_str_put(w->out, ": ", 2);
    }
}

static void open_container(hp_jsonw *w, const char *key, char kind, bool flat)
{
    assert(w->depth < HP_JSONW_DEPTH);
    begin(w, key);
    hp_str_put(w->out, &kind, 1);
    w->end[w->depth] = kind == '{' ? '}' : ']';
    w->flat[w->depth] = flat || (w->depth > 0 && w->flat[w->depth - 1]);
    w->filled[w->depth++] = false;
}

void hp_jsonw_open(hp_jsonw *w, const char *key, char kind)
{
    open_container(w, key, kind, false);
}

void hp_jsonw_open_flat(hp_jsonw *w, const char *key, char kind)
{
    open_container(w, key, kind, true);
}

void hp_jsonw_close(hp_jsonw *w)
{
    assert(w->depth > 0);
    int d = --w->depth;
    if (w->filled[d] && !w->flat[d])
        new_line(w);
    hp_str_put(w->out, &w->end[d], 1);
    if (d == 0)
        hp_str_put(w->out, "\n", 1);
}

void hp_jsonw_num(hp_jsonw *w, const char *key, double v)
{
    if (!isfinite(v)) {
        hp_jsonw_null(w, key);
        return;
    }
    char buf[40];
    begin(w, key);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        if (strtod(buf, NULL) == v)
            break;
    }
    hp_str_add(w->out, "%s", buf);
}

void hp_jsonw_int(hp_jsonw *w, const char *key, int64_t v)
{
    begin(w, key);
    hp_str_add(w->out, "%" PRId64, v);
}

void hp_jsonw_bool(hp_jsonw *w, const char *key, bool v)
{
    begin(w, key);
    hp_str_add(w->out, "%s", v ? "true" : "false");
}

void hp_jsonw_null(hp_jsonw *w, const char *key)
{
    begin(w, key);
    hp_str_put(w->out, "null", 4);
}

void hp_jsonw_str(hp_jsonw *w, const char *key, const char *s)
{
    if (!s) {
        hp_jsonw_null(w, key);
        return;
    }
    begin(w, key);
    put_string(w->out, s);
}

void hp_jsonw_hash(hp_jsonw *w, const char *key, uint64_t h)
{
    begin(w, key);
    hp_str_add(w->out, "\"%016" PRIx64 "\"", h);
}

/* str.c -- the buffer keeps s[len] == '\0' after every call; a glob is matched token by token
 * against every prefix of the name at once, so that no pattern takes longer than its length times the
 * name's. */
#include "base/str.h"

#include "base/mem.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- the buffer --- */

static void reserve(hp_str *t, size_t more)
{
    size_t need = t->len + more + 1;
    if (need <= t->cap)
        return;
    size_t cap = t->cap ? t->cap * 2 : 64;
    t->cap = cap < need ? need : cap;
    t->s = hp_xrealloc(t->s, t->cap);
}

void hp_str_add(hp_str *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0) {
        reserve(t, (size_t)n);
        vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void hp_str_put(hp_str *t, const char *s, size_t n)
{
    reserve(t, n);
    if (n)
        memcpy(t->s + t->len, s, n);
    t->len += n;
    t->s[t->len] = '\0';
}

const char *hp_str_text(const hp_str *t)
{
    return t->s ? t->s : "";
}

char *hp_str_take(hp_str *t)
{
    reserve(t, 0);
    t->s[t->len] = '\0';
    char *s = t->s;
    *t = (hp_str){0};
    return s;
}

void hp_str_fini(hp_str *t)
{
    free(t->s);
    *t = (hp_str){0};
}

/* --- globs over dotted names --- */

/* Reads the number at *p and steps over it; false when there is no digit or it exceeds 9 digits. */
static bool read_number(const char **p, long *out)
{
    long v = 0;
    int digits = 0;
    for (; isdigit((unsigned char)**p); (*p)++, digits++) {
        if (digits == 9)
            return false;
        v = v * 10 + (**p - '0');
    }
    *out = v;
    return digits > 0;
}

typedef struct range {
    long from, to, step; /* to is excluded; INT32_MAX = open */
} range;

/* Reads "[i]", "[a:b]", "[a:]", "[a::n]", "[a:b:n]" (a may be left out) and steps over it. */
static bool read_range(const char **p, range *r)
{
    const char *q = *p + 1;
    *r = (range){0, INT32_MAX, 1};
    bool has_from = read_number(&q, &r->from);
    if (*q == ']') {
        r->to = r->from + 1;
    } else if (*q == ':') {
        q++;
        if (isdigit((unsigned char)*q) && !read_number(&q, &r->to))
            return false;
        if (*q == ':' && (q++, !read_number(&q, &r->step) || r->step < 1))
            return false;
        has_from = true;
    }
    if (*q != ']' || !has_from)
        return false;
    *p = q + 1;
    return true;
}

/* Where the number that begins at s[j] ends, when it is a whole dotted part within the range; else 0.
 * "x[3]" in a pattern stands for "x.3" in a name, so the dot before the number belongs to it. */
static size_t match_range(const range *r, const char *s, size_t j)
{
    const char *q = s + j;
    long v = 0;
    if (*q == '.')
        q++;
    else if (j > 0 && q[-1] != '.')
        return 0;
    if (!read_number(&q, &v) || (*q != '\0' && *q != '.'))
        return 0;
    return v >= r->from && v < r->to && (v - r->from) % r->step == 0 ? (size_t)(q - s) : 0;
}

/* Takes one token off the pattern: was[j] says that the pattern before it matches s[0..j), now[j]
 * that the pattern with it does. False when the token is malformed. */
static bool match_token(const char **pattern, const char *s, size_t n, const bool *was, bool *now)
{
    const char *p = *pattern;
    memset(now, 0, (n + 1) * sizeof *now);
    if (*p == '[') {
        range r;
        if (!read_range(pattern, &r))
            return false;
        for (size_t j = 0, end; j < n; j++)
            if (was[j] && (end = match_range(&r, s, j)) > 0)
                now[end] = true;
        return true;
    }
    bool across = p[0] == '*' && p[1] == '*';
    *pattern += across ? 2 : 1;
    for (size_t j = 0; j <= n; j++) {
        if (*p == '*')
            now[j] = was[j] || (j > 0 && now[j - 1] && (across || s[j - 1] != '.'));
        else
            now[j] = j > 0 && was[j - 1] && s[j - 1] == *p;
    }
    return true;
}

bool hp_glob_match(const char *pattern, const char *s)
{
    size_t n = strlen(s);
    bool *was = hp_xcalloc(n + 1, sizeof *was), *now = hp_xcalloc(n + 1, sizeof *now);
    bool legal = true;
    was[0] = true;
    while (*pattern && legal) {
        legal = match_token(&pattern, s, n, was, now);
        bool *t = was;
        was = now;
        now = t;
    }
    bool yes = legal && was[n];
    free(was);
    free(now);
    return yes;
}

/* --- the nearest name --- */

/* Levenshtein distance, one row of the table at a time; letters that differ in case cost nothing. */
static int distance(const char *a, const char *b)
{
    int nb = (int)strlen(b);
    int *row = hp_xmalloc((size_t)(nb + 1) * sizeof *row);
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            int best = diagonal + !same;
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    int d = row[nb];
    free(row);
    return d;
}

const char *hp_near(const char *s, const char *const *names, int n)
{
    const char *nearest = NULL;
    int least = 0;
    for (int i = 0; i < n; i++) {
        int d = distance(s, names[i]);
        if (!nearest || d < least) {
            nearest = names[i];
            least = d;
        }
    }
    return nearest;
}

/* --- quantities --- */

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1024},
    {"MiB", 1048576},
    {"GiB", 1073741824},
    {"TiB", 1099511627776},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
};

hp_err hp_parse_bytes(const char *s, long long *bytes, hp_errmsg *e)
{
    char *rest;
    bool hexadecimal = s[0] == '0' && tolower((unsigned char)s[1]) == 'x';
    if (!hexadecimal && (isdigit((unsigned char)s[0]) || s[0] == '.')) {
        double v = strtod(s, &rest);
        while (*rest == ' ')
            rest++;
        for (size_t i = 0; i < sizeof byte_units / sizeof byte_units[0]; i++) {
            if (strcasecmp(rest, byte_units[i].name) != 0)
                continue;
            double b = v * byte_units[i].factor;
            if (!(b < 9.2e18))
                break;
            *bytes = llround(b);
            return HP_OK;
        }
    }
    return hp_fail(e, HP_EUSAGE,
                   "\"%s\" is no size: write a number of bytes, or one with KiB, MiB, GiB, TiB, "
                   "KB, MB, GB or TB (below 8 EiB)",
                   s);
}

/* Three significant digits read best, but never an exponent. */
static int decimals(double v)
{
    double a = fabs(v);
    return a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2;
}

char *hp_format_bytes(double bytes, char *buf, size_t n)
{
    static const char *const name[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int i = 0;
    while (fabs(bytes) >= 1023.5 && i < 6) {
        bytes /= 1024;
        i++;
    }
    snprintf(buf, n, "%.*f %s", i == 0 ? 0 : decimals(bytes), bytes, name[i]);
    return buf;
}

char *hp_format_seconds(double s, char *buf, size_t n)
{
    double a = fabs(s);
    if (a >= 1 || a == 0)
        snprintf(buf, n, "%.3f s", s);
    else if (a >= 0.9995e-3)
        snprintf(buf, n, "%.*f ms", decimals(s * 1e3), s * 1e3);
    else if (a >= 0.9995e-6)
        snprintf(buf, n, "%.*f us", decimals(s * 1e6), s * 1e6);
    else
        snprintf(buf, n, "%.*f ns", decimals(s * 1e9), s * 1e9);
    return buf;
}

/* words.c -- words are cut in place: the blank behind a word is a NUL until the next word is asked for. */
#include "plan/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const hp_text_role[] = {"dp", "tp", "pp", "cp", "ep", "other"};
const char *const hp_text_when[] = {"always", "first", "rest", "last"};
const char *const hp_text_init[] = {"none", "zeros", "ones", "normal"};
const char *const hp_text_tmpl[] = {"I", "F", "B", "W", "O"};
const char *const hp_text_task[] = {"op", "coll", "load", "send", "recv", "copy"};
const char *const hp_text_cut[] = {"chunk", "balanced", "sizes"};

static bool is_bare(const char *s)
{
    if (!*s || *s == '"' || *s == '@' || strcmp(s, "-") == 0 || strcmp(s, "->") == 0 ||
        strcmp(s, ":") == 0)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 127)
            return false;
    return true;
}

void hp_words_put(hp_str *o, const char *s)
{
    if (!s || is_bare(s)) {
        const char *w = s ? s : "-";
        hp_str_put(o, " ", 1);
        hp_str_put(o, w, strlen(w));
        return;
    }
    hp_str_put(o, " \"", 2);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            hp_str_add(o, "\\%c", c);
        else if (c < ' ' || c == 127)
            hp_str_add(o, "\\x%02x", c);
        else
            hp_str_put(o, s, 1);
    }
    hp_str_put(o, "\"", 1);
}

hp_err hp_words_bad(hp_words *w, const char *what, const char *got, const char *legal)
{
    return hp_fail(w->e, HP_EINPUT, "plan, line %d: %s \"%.80s\": legal is %s", w->line, what,
                   got ? got : "end of line", legal);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes hp_words_put's quotes in place; *end is set behind the closing quote. False when the quote never closes or an escape is unknown. */
static bool unquote(char *from, char **end)
{
    char *out = from, *s = from + 1;
    for (; *s && *s != '"' && *s != '\n'; s++) {
        if (*s != '\\') {
            *out++ = *s;
        } else if (s[1] == '"' || s[1] == '\\') {
            *out++ = *++s;
        } else if (s[1] == 'x' && hex(s[2]) >= 0 && hex(s[3]) >= 0) {
            *out++ = (char)(hex(s[2]) * 16 + hex(s[3]));
            s += 3;
        } else {
            return false;
        }
    }
    if (*s != '"')
        return false;
    *end = s + 1;
    *out = '\0';
    return true;
}

/* Takes the next word of the line; {NULL} at its end. The blank behind it is a NUL until the next call, so words stay cut except for the last
 * of a line, whose newline is needed once more: skip_line moves past it without putting it back. */
hp_err hp_words_next(hp_words *w, hp_word *out)
{
    if (w->held == '\n' || (w->held == '\0' && (*w->at == '\n' || *w->at == '\0'))) {
        *out = (hp_word){0};
        return HP_OK;
    }
    if (w->held)
        w->at++;
    w->held = '\0';
    while (*w->at == ' ')
        w->at++;
    if (*w->at == '\n' || *w->at == '\0') {
        *out = (hp_word){0};
        return HP_OK;
    }
    *out = (hp_word){w->at, *w->at == '"'};
    char *end = w->at + strcspn(w->at, " \n");
    if (out->quoted && !unquote(w->at, &end))
        return hp_words_bad(w, "quoted word", "",
                            "\"...\" on one line, with \\\\, \\\" and \\xhh only");
    if (*end && *end != ' ' && *end != '\n')
        return hp_words_bad(w, "behind a quoted word", end, "a blank");
    w->held = *end;
    *end = '\0';
    w->at = end;
    return HP_OK;
}

void hp_words_skip(hp_words *w)
{
    if (w->held)
        w->at++;
    else if (*w->at == '\n')
        w->at++;
    w->held = '\0';
    w->line++;
}

hp_err hp_words_string(hp_words *w, const char *what, const char **out)
{
    hp_word word;
    hp_err rc = hp_words_next(w, &word);
    if (rc)
        return rc;
    if (!word.s)
        return hp_words_bad(w, what, NULL, "a word, or - for none");
    *out = !word.quoted && strcmp(word.s, "-") == 0 ? NULL : word.s;
    return HP_OK;
}

hp_err hp_words_name(hp_words *w, const char *what, const char **out)
{
    hp_err rc = hp_words_string(w, what, out);
    return rc ? rc : *out ? HP_OK : hp_words_bad(w, what, "-", "a name");
}

hp_err hp_words_literal(hp_words *w, const char *literal)
{
    hp_word word;
    hp_err rc = hp_words_next(w, &word);
    if (rc)
        return rc;
    return word.s && !word.quoted && strcmp(word.s, literal) == 0
               ? HP_OK
               : hp_words_bad(w, "word", word.s, literal);
}

hp_err hp_words_number(hp_words *w, const char *what, const char *s, int64_t lo, int64_t hi,
                       int64_t *out)
{
    char *end, range[64];
    errno = 0;
    long long v = s ? strtoll(s, &end, 10) : 0;
    if (!s || end == s || *end || errno || v < lo || v > hi) {
        snprintf(range, sizeof range, "an integer from %" PRId64 " to %" PRId64, lo, hi);
        return hp_words_bad(w, what, s, range);
    }
    *out = v;
    return HP_OK;
}

hp_err hp_words_int64(hp_words *w, const char *what, int64_t lo, int64_t hi, int64_t *out)
{
    hp_word word;
    hp_err rc = hp_words_next(w, &word);
    return rc ? rc : hp_words_number(w, what, word.s, lo, hi, out);
}

hp_err hp_words_int(hp_words *w, const char *what, int lo, int hi, int *out)
{
    int64_t v = 0;
    hp_err rc = hp_words_int64(w, what, lo, hi, &v);
    *out = (int)v;
    return rc;
}

hp_err hp_words_double(hp_words *w, const char *what, double *out)
{
    hp_word word;
    char *end;
    hp_err rc = hp_words_next(w, &word);
    if (rc)
        return rc;
    *out = word.s ? strtod(word.s, &end) : 0;
    return !word.s || end == word.s || *end ? hp_words_bad(w, what, word.s, "a number") : HP_OK;
}

hp_err hp_words_hex(hp_words *w, const char *what, uint64_t *out)
{
    hp_word word;
    char *end;
    hp_err rc = hp_words_next(w, &word);
    if (rc)
        return rc;
    errno = 0;
    *out = word.s ? strtoull(word.s, &end, 16) : 0;
    return !word.s || end == word.s || *end || errno
               ? hp_words_bad(w, what, word.s, "a hexadecimal number")
               : HP_OK;
}

int hp_words_find(const char *const *names, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], s) == 0)
            return i;
    return -1;
}

hp_err hp_words_choice(hp_words *w, const char *what, const char *const *names, int n, int *out)
{
    hp_word word;
    char legal[160] = "one of";
    hp_err rc = hp_words_next(w, &word);
    if (rc)
        return rc;
    *out = word.s && !word.quoted ? hp_words_find(names, n, word.s) : -1;
    if (*out >= 0)
        return HP_OK;
    for (int i = 0; i < n; i++)
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), " %s", names[i]);
    return hp_words_bad(w, what, word.s, legal);
}

hp_err hp_words_found(hp_words *w, const char *what, int (*find)(const char *s), const char *legal,
                      int *out)
{
    hp_word word;
    hp_err rc = hp_words_next(w, &word);
    if (rc)
        return rc;
    *out = word.s && !word.quoted ? find(word.s) : -1;
    return *out < 0 ? hp_words_bad(w, what, word.s, legal) : HP_OK;
}

hp_err hp_words_end(hp_words *w)
{
    hp_word word;
    hp_err rc = hp_words_next(w, &word);
    return rc ? rc : word.s ? hp_words_bad(w, "word", word.s, "the end of the line") : HP_OK;
}

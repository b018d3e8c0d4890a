/* str.h -- a growing text buffer, and the few string questions every room asks. Room: base. */
#ifndef HP_BASE_STR_H
#define HP_BASE_STR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* hp_str is a growing NUL-terminated text. Zeroed struct = empty; `s` is NULL until first written. */
typedef struct hp_str {
    char *s;
    size_t len, cap;
} hp_str;

/* hp_str_add appends formatted text. */
void hp_str_add(hp_str *t, const char *fmt, ...) HP_PRINTF(2, 3);

/* hp_str_put appends `n` bytes of `s`. */
void hp_str_put(hp_str *t, const char *s, size_t n);

/* hp_str_text returns the text, "" when nothing was written; borrowed from *t. */
const char *hp_str_text(const hp_str *t);

/* hp_str_take returns the text as an owned heap string and leaves *t empty. */
char *hp_str_take(hp_str *t);

/* hp_str_fini frees the text; *t is empty again. */
void hp_str_fini(hp_str *t);

/* hp_glob_match says whether the dotted name `s` matches `pattern`: `*` stands for any characters within
 * one dotted part, `**` for any characters, `[i]`, `[a:b]`, `[a:]`, `[a::n]` for a part that is a number in that
 * range (b excluded): "layers[3:].moe.experts", "layers.*.resid", "**.norm*". */
bool hp_glob_match(const char *pattern, const char *s);

/* hp_near returns the candidate nearest to `s` in edit distance (ties: first), NULL when there is none. */
const char *hp_near(const char *s, const char *const *names, int n);

/* hp_parse_bytes reads "40GiB", "128MiB", "16GB", "4096" into bytes. */
hp_err hp_parse_bytes(const char *s, long long *bytes, hp_errmsg *e);

/* hp_format_bytes writes bytes with a binary unit ("62.8 GiB") into buf and returns buf. */
char *hp_format_bytes(double bytes, char *buf, size_t n);

/* hp_format_seconds writes a duration with a fitting unit ("8.412 s", "41.8 ms", "3.10 us") and returns buf. */
char *hp_format_seconds(double s, char *buf, size_t n);

#endif

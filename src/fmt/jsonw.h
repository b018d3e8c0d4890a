/* jsonw.h -- writes JSON text: keys in the order in which they are given, numbers that read back
 * exactly.
 *
 *     hp_jsonw w = {.out = &text};
 *     hp_jsonw_open(&w, NULL, '{');
 *     hp_jsonw_num(&w, "step_s", 8.412);
 *     hp_jsonw_close(&w);
 *
 * `key` is NULL inside a list and for the outermost value. What has no meaning is null, never left
 * out. A list or map opened with hp_jsonw_open_flat stays on one line. Room: fmt; uses base only.
 */
#ifndef HP_FMT_JSONW_H
#define HP_FMT_JSONW_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_JSONW_DEPTH = 16 };

/* hp_jsonw is a writer that appends to `out` (borrowed); the rest starts zeroed. */
typedef struct hp_jsonw {
    hp_str *out;
    int depth;
    char end[HP_JSONW_DEPTH];
    bool flat[HP_JSONW_DEPTH], filled[HP_JSONW_DEPTH];
} hp_jsonw;

/* hp_jsonw_open begins a map ('{') or a list ('['); hp_jsonw_open_flat one that stays on a line;
 * hp_jsonw_close ends the innermost, the outermost with a newline. */
void hp_jsonw_open(hp_jsonw *w, const char *key, char kind);
void hp_jsonw_open_flat(hp_jsonw *w, const char *key, char kind);
void hp_jsonw_close(hp_jsonw *w);

/* hp_jsonw_num writes a number with the fewest digits that read back to the same double; NaN and
 * infinities are null. */
void hp_jsonw_num(hp_jsonw *w, const char *key, double v);

/* hp_jsonw_int writes a whole number; hp_jsonw_bool true or false; hp_jsonw_null null. */
void hp_jsonw_int(hp_jsonw *w, const char *key, int64_t v);
void hp_jsonw_bool(hp_jsonw *w, const char *key, bool v);
void hp_jsonw_null(hp_jsonw *w, const char *key);

/* hp_jsonw_str writes a string, NULL as null; bytes that are not UTF-8 become U+FFFD. */
void hp_jsonw_str(hp_jsonw *w, const char *key, const char *s);

/* hp_jsonw_hash writes a 64-bit hash as 16 hexadecimal digits, because numbers of JSON readers
 * have 53 bits. */
void hp_jsonw_hash(hp_jsonw *w, const char *key, uint64_t h);

#endif

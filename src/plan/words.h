/* words.h -- words of a plan's text: how they are written and taken off a line.
 *
 * A word is bare, or quoted where it would not survive bare; an unquoted "-" is an absent string. The reader cuts its (owned, writable) text into
 * words in place, so words live as long as the text. Every hp_words_* that returns hp_err is HP_EINPUT with line, word and what would be legal. Room: plan.
 */
#ifndef HP_PLAN_WORDS_H
#define HP_PLAN_WORDS_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/* The words of the enums that only plans have, in the enums' order. */
enum {
    HP_TEXT_ROLES = 6,
    HP_TEXT_WHENS = 4,
    HP_TEXT_INITS = 4,
    HP_TEXT_TMPLS = 5,
    HP_TEXT_TASKS = 6,
    HP_TEXT_CUTS = 3
};
extern const char *const hp_text_role[HP_TEXT_ROLES], *const hp_text_when[HP_TEXT_WHENS],
                                                          *const hp_text_init[HP_TEXT_INITS];
extern const char *const hp_text_tmpl[HP_TEXT_TMPLS], *const hp_text_task[HP_TEXT_TASKS],
                                                          *const hp_text_cut[HP_TEXT_CUTS];

/* hp_words_put appends a blank and the word, quoted where it must be; NULL becomes "-". */
void hp_words_put(hp_str *o, const char *s);

/* hp_words reads a text. Zeroed but for at, line = 1 and e. */
typedef struct hp_words {
    char *at;  /* where the next word begins */
    char held; /* the blank or newline that a cut word's NUL replaced */
    int line;
    hp_errmsg *e;
} hp_words;

typedef struct hp_word {
    char *s; /* NULL at the line's end */
    bool quoted;
} hp_word;

/* hp_words_bad fails: at this line, `what` is `got` (NULL: the line ended), where `legal` would be. */
hp_err hp_words_bad(hp_words *w, const char *what, const char *got, const char *legal);

/* hp_words_next takes the next word of the line, {NULL} at its end; hp_words_end fails unless the line has ended; hp_words_skip goes to the next line. */
hp_err hp_words_next(hp_words *w, hp_word *out);
hp_err hp_words_end(hp_words *w);
void hp_words_skip(hp_words *w);

/* Each of these takes one word: a string (NULL for "-"), a name (never NULL), exactly `literal`, an integer from lo to hi, a number, a hexadecimal
 * number, one of n names (its index), or what `find` knows (an index, -1 unknown). `what` names it in errors. */
hp_err hp_words_string(hp_words *w, const char *what, const char **out);
hp_err hp_words_name(hp_words *w, const char *what, const char **out);
hp_err hp_words_literal(hp_words *w, const char *literal);
hp_err hp_words_int64(hp_words *w, const char *what, int64_t lo, int64_t hi, int64_t *out);
hp_err hp_words_int(hp_words *w, const char *what, int lo, int hi, int *out);
hp_err hp_words_double(hp_words *w, const char *what, double *out);
hp_err hp_words_hex(hp_words *w, const char *what, uint64_t *out);
hp_err hp_words_choice(hp_words *w, const char *what, const char *const *names, int n, int *out);
hp_err hp_words_found(hp_words *w, const char *what, int (*find)(const char *s), const char *legal,
                      int *out);

/* hp_words_number reads an integer from a word that was taken already (NULL is none). */
hp_err hp_words_number(hp_words *w, const char *what, const char *s, int64_t lo, int64_t hi,
                       int64_t *out);

/* hp_words_find returns the index of `s` among n names, -1 when it is none. */
int hp_words_find(const char *const *names, int n, const char *s);

#endif

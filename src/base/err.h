/* err.h -- error codes and messages, shared by every room.
 *
 * A function that can fail returns hp_err and fills the caller's hp_errmsg with one sentence: what
 * is wrong, where, with which value, and what would be legal. The code of an error is the exit
 * status of the program, so that no table between them can drift. Only cli and tui print or exit.
 * Room: base.
 */
#ifndef HP_BASE_ERR_H
#define HP_BASE_ERR_H

typedef enum hp_err {
    HP_OK = 0,          /* done */
    HP_EFAILED = 1,     /* a check or a gate failed */
    HP_EUSAGE = 2,      /* flags, shorthand keys, unknown names on the command line, no terminal */
    HP_EINPUT = 3,      /* bad content of a file: script, JSON, trace */
    HP_EINFEASIBLE = 4, /* well-formed but cannot be: illegal split, does not fit */
    HP_EINTERNAL = 5,   /* our own fault, or the machine's */
    HP_ECANCELLED = 130 /* interrupted by the user */
} hp_err;

typedef struct hp_errmsg {
    hp_err code;
    char text[1024]; /* one sentence without a final newline, truncated to fit */
} hp_errmsg;

#if defined(__GNUC__)
#define HP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define HP_PRINTF(fmt, args)
#endif

/* hp_fail fills *e (when not NULL) with `code` and the formatted sentence, and returns `code`:
 * `return hp_fail(e, HP_EINPUT, "...")`. */
hp_err hp_fail(hp_errmsg *e, hp_err code, const char *fmt, ...) HP_PRINTF(3, 4);

/* hp_fail_at puts "where: " before a message that is there already and returns its code. */
hp_err hp_fail_at(hp_errmsg *e, const char *fmt, ...) HP_PRINTF(2, 3);

#endif

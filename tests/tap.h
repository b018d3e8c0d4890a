/* tap.h -- test programs speak TAP: one line a behaviour, a plan at the end.
 *
 *     int main(void)
 *     {
 *         ok(hp_map_get(&m, "tp", -1) == 3, "a key is found under its value");
 *         is_int(m.n, 1, "one key is there");
 *         is_str(buf, "62.8 GiB", "bytes are written with a binary unit");
 *         near(loss, 2.5, 1e-5, "the loss of %s", name);
 *         return done_testing();
 *     }
 *
 * Every check returns whether it held and takes a printf-like name that states a behaviour. What
 * failed is said on standard error. Runs under `prove`; not for several threads at once.
 */
#ifndef HP_TESTS_TAP_H
#define HP_TESTS_TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAP_FN(fmt, args) static __attribute__((unused, format(printf, fmt, args)))

static struct {
    int run, failed;
} tap;

static void tap_say(FILE *to, const char *fmt, va_list ap)
{
    fputs("# ", to);
    vfprintf(to, fmt, ap);
    fputc('\n', to);
}

/* diag says something that whoever runs prove should see: what belongs to a failure. */
TAP_FN(1, 2) void diag(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tap_say(stderr, fmt, ap);
    va_end(ap);
}

/* note says something that only prove -v shows. */
TAP_FN(1, 2) void note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tap_say(stdout, fmt, ap);
    va_end(ap);
}

static __attribute__((unused)) bool tap_vcheck(const char *file, int line, bool held,
                                               const char *fmt, va_list ap)
{
    char name[512];
    vsnprintf(name, sizeof name, fmt, ap);
    for (char *p = name; *p; p++)
        if (*p == '#' || *p == '\n')
            *p = *p == '#' ? '=' : ' '; /* '#' begins a TAP directive */
    tap.run++;
    printf("%s %d - %s\n", held ? "ok" : "not ok", tap.run, name);
    if (!held) {
        tap.failed++;
        diag("failed at %s:%d", file, line);
    }
    fflush(stdout);
    return held;
}

TAP_FN(4, 5) bool tap_ok(const char *file, int line, bool held, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tap_vcheck(file, line, held, fmt, ap);
    va_end(ap);
    return held;
}

TAP_FN(5, 6)
bool tap_is_int(const char *file, int line, long long got, long long want, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!tap_vcheck(file, line, got == want, fmt, ap))
        diag("got %lld, wanted %lld", got, want);
    va_end(ap);
    return got == want;
}

TAP_FN(5, 6)
bool tap_is_str(const char *file, int line, const char *got, const char *want, const char *fmt, ...)
{
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    va_list ap;
    va_start(ap, fmt);
    if (!tap_vcheck(file, line, same, fmt, ap))
        diag("got \"%s\", wanted \"%s\"", got ? got : "(NULL)", want ? want : "(NULL)");
    va_end(ap);
    return same;
}

TAP_FN(6, 7)
bool tap_near(const char *file, int line, double got, double want, double within, const char *fmt,
              ...)
{
    bool close = fabs(got - want) <= within; /* false for NaN */
    va_list ap;
    va_start(ap, fmt);
    if (!tap_vcheck(file, line, close, fmt, ap))
        diag("got %.9g, wanted %.9g within %.3g", got, want, within);
    va_end(ap);
    return close;
}

/* ok(held, name...), is_int(got, want, name...), is_str(got, want, name...), near(got, want, within,
 * name...) are the checks; near is absolute. */
#define ok(...) tap_ok(__FILE__, __LINE__, __VA_ARGS__)
#define is_int(...) tap_is_int(__FILE__, __LINE__, __VA_ARGS__)
#define is_str(...) tap_is_str(__FILE__, __LINE__, __VA_ARGS__)
#define near(...) tap_near(__FILE__, __LINE__, __VA_ARGS__)

/* skip counts `n` checks that cannot run here as passed, with the reason. */
static __attribute__((unused)) void skip(int n, const char *why)
{
    for (int i = 0; i < n; i++)
        printf("ok %d # SKIP %s\n", ++tap.run, why);
}

/* bail ends the whole test program: without what it names, no further check has a meaning. */
TAP_FN(1, 2) void bail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("not ok %d - ", ++tap.run);
    vprintf(fmt, ap);
    printf("\n1..%d\n", tap.run);
    va_end(ap);
    exit(1);
}

/* done_testing prints the plan and returns main's exit status. */
static __attribute__((unused)) int done_testing(void)
{
    printf("1..%d\n", tap.run);
    if (tap.run == 0)
        diag("no check ran");
    return tap.failed > 0 || tap.run == 0;
}

#endif

/* err.c -- a message is written once, at the place that knows most; callers may only prefix it. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hp_err hp_fail(hp_errmsg *e, hp_err code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        e->code = code;
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
    }
    return code;
}

hp_err hp_fail_at(hp_errmsg *e, const char *fmt, ...)
{
    if (!e)
        return HP_EINTERNAL;
    char where[sizeof e->text], old[sizeof e->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    memcpy(old, e->text, sizeof old);
    size_t n = strlen(where);
    if (n > sizeof e->text - 3)
        n = sizeof e->text - 3;
    memcpy(e->text, where, n);
    snprintf(e->text + n, sizeof e->text - n, ": %s", old);
    return e->code;
}

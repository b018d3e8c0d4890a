/* request.c -- a result file is written beside its place and renamed, so that a reader never
 * sees half of one. */
#include "cli/request.h"

#include "base/mem.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hp_err read_overrides(const hp_args *a, hp_ask *ask, hp_errmsg *e)
{
    for (int i = 0; i < a->n_given; i++) {
        if (strcmp(a->given[i].flag->name, "override") != 0)
            continue;
        const char *text = a->given[i].value, *equals = strchr(text, '=');
        if (!equals || equals == text)
            return hp_fail(e, HP_EUSAGE, "-o \"%s\": write KEY=VALUE, as in -o model.seq=64", text);
        const char *key = hp_arena_printf(&ask->arena, "%.*s", (int)(equals - text), text);
        hp_err err = hp_ask_over(ask, key, equals + 1, e);
        if (err)
            return err;
    }
    return HP_OK;
}

hp_err hp_request_ask(const hp_args *a, hp_ask *ask, hp_errmsg *e)
{
    hp_err err = hp_args_need(a, "model", &ask->model, e);
    if (!err)
        err = hp_args_need(a, "cluster", &ask->cluster, e);
    if (!err)
        err = hp_args_need(a, "strategy", &ask->strategy, e);
    return err ? err : read_overrides(a, ask, e);
}

static bool is_format(const char *given, const char *name)
{
    size_t n = strlen(name);
    return strncmp(given, name, n) == 0 && (given[n] == '\0' || given[n] == ':');
}

hp_err hp_request_formats(const hp_args *a, int n, const char *const *names, hp_errmsg *e)
{
    for (int i = 0; i < a->n_given; i++) {
        if (strcmp(a->given[i].flag->name, "format") != 0)
            continue;
        bool known = false;
        for (int k = 0; k < n; k++)
            known |= is_format(a->given[i].value, names[k]);
        if (known)
            continue;
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(a->given[i].value, ":"),
                 a->given[i].value);
        return hp_fail(e, HP_EUSAGE, "%s has no format \"%s\"; the nearest is \"%s\"",
                       a->command->name, word, hp_near(word, names, n));
    }
    return HP_OK;
}

const char *hp_request_format(const hp_args *a, const char *name)
{
    for (int i = 0; i < a->n_given; i++) {
        const char *v = a->given[i].value;
        if (strcmp(a->given[i].flag->name, "format") == 0 && is_format(v, name))
            return v[strlen(name)] ? v + strlen(name) + 1 : "";
    }
    return NULL;
}

bool hp_request_wants_report(const hp_args *a)
{
    if (hp_args_has(a, "quiet"))
        return false;
    for (int i = 0; i < a->n_given; i++)
        if (strcmp(a->given[i].flag->name, "format") == 0 && !strchr(a->given[i].value, ':'))
            return false;
    return true;
}

static hp_err write_stdout(const hp_str *text, hp_errmsg *e)
{
    fwrite(hp_str_text(text), 1, text->len, stdout);
    if (fflush(stdout) == 0 || errno == EPIPE) /* the reader has seen enough */
        return HP_OK;
    return hp_fail(e, HP_EINTERNAL, "standard output: %s", strerror(errno));
}

static hp_err write_beside(const char *path, const char *part, const hp_str *text, hp_errmsg *e)
{
    FILE *f = fopen(part, "w");
    if (!f)
        return hp_fail(e, HP_EINTERNAL, "%s cannot be written: %s", path, strerror(errno));
    bool whole = fwrite(hp_str_text(text), 1, text->len, f) == text->len;
    whole = fclose(f) == 0 && whole;
    if (whole && rename(part, path) == 0)
        return HP_OK;
    hp_fail(e, HP_EINTERNAL, "%s cannot be written: %s", path, strerror(errno));
    unlink(part);
    return HP_EINTERNAL;
}

hp_err hp_request_write(const char *path, const hp_str *text, hp_errmsg *e)
{
    struct stat st;
    if (!*path || strcmp(path, "-") == 0)
        return write_stdout(text, e);
    hp_str part = {0};
    if (stat(path, &st) == 0 &&
        !S_ISREG(st.st_mode)) { /* a pipe or /dev/stderr is written in place */
        FILE *f = fopen(path, "w");
        bool whole = f && fwrite(hp_str_text(text), 1, text->len, f) == text->len;
        whole = f && fclose(f) == 0 && whole;
        return whole ? HP_OK
                     : hp_fail(e, HP_EINTERNAL, "%s cannot be written: %s", path, strerror(errno));
    }
    hp_str_add(&part, "%s.%ld.part", path, (long)getpid());
    hp_err err = write_beside(path, hp_str_text(&part), text, e);
    hp_str_fini(&part);
    return err;
}

bool hp_request_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

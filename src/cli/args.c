/* args.c -- a flag is looked up in the command's own table and then in the one that all commands
 * have. */
#include "cli/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hp_flag everywhere[] = {{"help", 'h', NULL, "this text", false}, {0}};

static const hp_flag *find_in(const hp_flag *table, const char *name, size_t n, char letter)
{
    for (const hp_flag *f = table; f && f->name; f++)
        if (name ? strlen(f->name) == n && memcmp(f->name, name, n) == 0 : f->letter == letter)
            return f;
    return NULL;
}

static const hp_flag *find_flag(const hp_command *c, const char *name, size_t n, char letter)
{
    const hp_flag *f = find_in(c->flags, name, n, letter);
    return f ? f : find_in(everywhere, name, n, letter);
}

static hp_err unknown_flag(const hp_command *c, const char *word, hp_errmsg *e)
{
    const char *names[64];
    char bare[64];
    int n = 0;
    for (const hp_flag *f = c->flags; f && f->name && n < 63; f++)
        names[n++] = f->name;
    names[n++] = "help";
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word + strspn(word, "-"));
    return hp_fail(e, HP_EUSAGE, "%s has no flag %.*s; the nearest is --%s (hpbench help %s)",
                   c->name, (int)strcspn(word, "="), word, hp_near(bare, names, n), c->name);
}

static hp_err add_given(hp_args *a, const hp_flag *f, const char *value, hp_errmsg *e)
{
    if (!f->repeated && hp_args_has(a, f->name))
        return hp_fail(e, HP_EUSAGE, "--%s is given twice", f->name);
    if (a->n_given == HP_MAX_FLAGS_GIVEN)
        return hp_fail(e, HP_EUSAGE, "more than %d flags", HP_MAX_FLAGS_GIVEN);
    a->given[a->n_given++] = (hp_given){f, value ? value : ""};
    return HP_OK;
}

/* Reads the flag at argv[*at], and its value from the same or the next word. */
static hp_err read_flag(hp_args *a, int argc, char **argv, int *at, hp_errmsg *e)
{
    const char *word = argv[*at];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    const char *value = equals ? equals + 1 : !is_long && word[2] ? word + 2 : NULL;
    size_t len = equals ? (size_t)(equals - word) - 2 : is_long ? strlen(word + 2) : 1;
    const hp_flag *f = find_flag(a->command, is_long ? word + 2 : NULL, len, word[1]);
    if (!f)
        return unknown_flag(a->command, word, e);
    if (!f->value && value)
        return hp_fail(e, HP_EUSAGE, "--%s takes no value", f->name);
    if (f->value && !value) {
        if (*at + 1 >= argc)
            return hp_fail(e, HP_EUSAGE, "--%s wants a value: --%s %s", f->name, f->name, f->value);
        value = argv[++*at];
    }
    return add_given(a, f, value, e);
}

hp_err hp_args_parse(const hp_command *command, int argc, char **argv, hp_args *out, hp_errmsg *e)
{
    bool flags_ended = false;
    *out = (hp_args){.command = command, .arg = (const char *const *)argv};
    for (int i = 0; i < argc; i++) {
        hp_err err = HP_OK;
        if (!flags_ended && strcmp(argv[i], "--") == 0)
            flags_ended = true;
        else if (!flags_ended && argv[i][0] == '-' && argv[i][1])
            err = read_flag(out, argc, argv, &i, e);
        else
            argv[out->n++] = argv[i];
        if (err)
            return err;
    }
    if (command->max_args >= 0 && out->n > command->max_args && !hp_args_has(out, "help"))
        return hp_fail(e, HP_EUSAGE, "%s takes no argument \"%s\" here: hpbench %s %s",
                       command->name, out->arg[command->max_args], command->name, command->usage);
    return HP_OK;
}

const char *hp_args_get(const hp_args *a, const char *name, const char *missing)
{
    for (int i = a->n_given - 1; i >= 0; i--)
        if (strcmp(a->given[i].flag->name, name) == 0)
            return a->given[i].value;
    return missing;
}

bool hp_args_has(const hp_args *a, const char *name)
{
    return hp_args_get(a, name, NULL) != NULL;
}

hp_err hp_args_need(const hp_args *a, const char *name, const char **value, hp_errmsg *e)
{
    *value = hp_args_get(a, name, NULL);
    if (*value && **value)
        return HP_OK;
    const hp_flag *f = find_flag(a->command, name, strlen(name), 0);
    char letter[8] = "";
    if (f->letter)
        snprintf(letter, sizeof letter, "-%c or ", f->letter);
    return hp_fail(e, HP_EUSAGE, "%s wants %s--%s %s: %s", a->command->name, letter, name, f->value,
                   f->help);
}

hp_err hp_args_int(const hp_args *a, const char *name, long long lo, long long hi, long long *v,
                   hp_errmsg *e)
{
    const char *s = hp_args_get(a, name, NULL);
    if (!s)
        return HP_OK;
    char *rest;
    errno = 0;
    long long x = strtoll(s, &rest, 10);
    if (!*s || *rest || errno || x < lo || x > hi)
        return hp_fail(e, HP_EUSAGE, "--%s is \"%s\": it must be a whole number from %lld to %lld",
                       name, s, lo, hi);
    *v = x;
    return HP_OK;
}

hp_err hp_args_choice(const hp_args *a, const char *name, int n, const char *const *words,
                      hp_errmsg *e)
{
    const char *s = hp_args_get(a, name, words[0]);
    hp_str list = {0};
    for (int i = 0; i < n; i++) {
        if (strcmp(s, words[i]) == 0) {
            hp_str_fini(&list);
            return HP_OK;
        }
        hp_str_add(&list, "%s%s", i ? ", " : "", words[i]);
    }
    hp_fail(e, HP_EUSAGE, "--%s is \"%s\": it must be one of %s", name, s, hp_str_text(&list));
    hp_str_fini(&list);
    return HP_EUSAGE;
}

/* --- help --- */

enum { HELP_COLUMN = 24, HELP_WIDTH = 80 };

/* Appends words, starting at column `at` and continuing lines at HELP_COLUMN. */
static void wrap(hp_str *out, size_t at, const char *text)
{
    const char *between = "";
    while (*text) {
        size_t word = strcspn(text, " ");
        if (at + word >= HELP_WIDTH && at > HELP_COLUMN) {
            hp_str_add(out, "\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
            between = "";
        }
        hp_str_add(out, "%s%.*s", between, (int)word, text);
        at += word + 1;
        text += word + (text[word] == ' ');
        between = " ";
    }
    hp_str_put(out, "\n", 1);
}

static void help_flag(const hp_flag *f, hp_str *out)
{
    char head[64];
    int n = f->letter ? snprintf(head, sizeof head, "  -%c, --%s", f->letter, f->name)
                      : snprintf(head, sizeof head, "      --%s", f->name);
    if (f->value)
        n += snprintf(head + n, sizeof head - (size_t)n, "=%s", f->value);
    if (n + 1 > HELP_COLUMN)
        hp_str_add(out, "%s\n%*s", head, HELP_COLUMN, "");
    else
        hp_str_add(out, "%-*s", HELP_COLUMN, head);
    wrap(out, HELP_COLUMN, f->help);
}

void hp_args_help(const hp_command *c, hp_str *out)
{
    hp_str_add(out, "usage: hpbench %s %s\n\n%s\n", c->name, c->usage, c->about);
    if (c->flags && c->flags[0].name)
        hp_str_put(out, "\n", 1);
    for (const hp_flag *f = c->flags; f && f->name; f++)
        help_flag(f, out);
    if (c->more)
        hp_str_add(out, "\n%s\n", c->more);
}

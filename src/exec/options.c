/* options.c -- one table says where every option lies. */
#include "exec/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum type { T_I64, T_U64, T_INT, T_BOOL, T_DOUBLE, T_TEXT } type;

typedef struct option {
    const char *key;
    type type;
    size_t at, size; /* size: of a text */
    int n;           /* how many in a row */
} option;

#define AT(field) offsetof(hp_exec_options, field)

static const option options[] = {
    {"steps", T_I64, AT(steps), 0, 1},
    {"first_step", T_I64, AT(first_step), 0, 1},
    {"seed", T_U64, AT(seed), 0, 1},
    {"workers", T_INT, AT(workers), 0, 1},
    {"cores", T_INT, AT(cores), 0, 1},
    {"pin", T_BOOL, AT(pin), 0, 1},
    {"kernels", T_INT, AT(kernels), 0, 1},
    {"poison", T_BOOL, AT(poison), 0, 1},
    {"link_bandwidth", T_DOUBLE, AT(link_bandwidth), 0, HP_LINKS},
    {"link_latency", T_DOUBLE, AT(link_latency), 0, HP_LINKS},
    {"n_slow", T_INT, AT(n_slow), 0, 1},
    {"slow", T_DOUBLE, AT(slow), 0, 64},
    {"corpus", T_TEXT, AT(corpus), sizeof(((hp_exec_options *)0)->corpus), 1},
    {"data.seed", T_U64, AT(data.seed), 0, 1},
    {"data.vocab", T_I64, AT(data.vocab), 0, 1},
    {"data.zigzag", T_INT, AT(data.zigzag), 0, 1},
    {"data.documents", T_INT, AT(data.documents), 0, 1},
    {"data.ignore", T_DOUBLE, AT(data.ignore), 0, 1},
    {"tap", T_TEXT, AT(tap), sizeof(((hp_exec_options *)0)->tap), 1},
};

_Static_assert(sizeof(hp_kernels) == sizeof(int), "kernels is stored as an int");

static void print_value(const option *k, const char *at, int i, hp_str *out)
{
    switch (k->type) {
    case T_I64:
        hp_str_add(out, " %" PRId64, ((const int64_t *)(const void *)at)[i]);
        break;
    case T_U64:
        hp_str_add(out, " %" PRIu64, ((const uint64_t *)(const void *)at)[i]);
        break;
    case T_INT:
        hp_str_add(out, " %d", ((const int *)(const void *)at)[i]);
        break;
    case T_BOOL:
        hp_str_add(out, " %d", ((const bool *)(const void *)at)[i]);
        break;
    case T_DOUBLE:
        hp_str_add(out, " %.17g", ((const double *)(const void *)at)[i]);
        break;
    case T_TEXT:
        hp_str_add(out, " %s", at);
        break;
    }
}

void hp_exec_options_print(const hp_exec_options *o, hp_str *out)
{
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
        hp_str_add(out, "%s", options[k].key);
        for (int i = 0; i < options[k].n; i++)
            print_value(&options[k], (const char *)o + options[k].at, i, out);
        hp_str_add(out, "\n");
    }
}

/* Reads value i from *s, which moves behind it; false when there is none. */
static bool read_value(const option *k, char *at, int i, char **s)
{
    char *end = *s;
    errno = 0;
    switch (k->type) {
    case T_I64:
        ((int64_t *)(void *)at)[i] = strtoll(*s, &end, 10);
        break;
    case T_U64:
        ((uint64_t *)(void *)at)[i] = strtoull(*s, &end, 10);
        break;
    case T_INT:
        ((int *)(void *)at)[i] = (int)strtol(*s, &end, 10);
        break;
    case T_BOOL:
        ((bool *)(void *)at)[i] = strtol(*s, &end, 10) != 0;
        break;
    case T_DOUBLE:
        ((double *)(void *)at)[i] = strtod(*s, &end);
        break;
    case T_TEXT:
        if (strlen(*s + 1) >= k->size)
            return false;
        strcpy(at, *s + 1); /* all behind the blank */
        end = *s + strlen(*s);
        break;
    }
    bool read = end != *s && errno == 0;
    *s = end;
    return read;
}

static hp_err read_line(char *line, hp_exec_options *o, hp_errmsg *e)
{
    size_t n = strcspn(line, " ");
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
        if (strlen(options[k].key) != n || strncmp(options[k].key, line, n) != 0)
            continue;
        char *s = line + n;
        bool right = *s == ' ';
        for (int i = 0; i < options[k].n && right; i++)
            right = read_value(&options[k], (char *)o + options[k].at, i, &s);
        return right && !*s ? HP_OK
                            : hp_fail(e, HP_EINPUT, "options of a run: \"%.80s\" is no value of %s",
                                      line + n, options[k].key);
    }
    return hp_fail(e, HP_EINPUT, "options of a run: unknown key in \"%.80s\"", line);
}

hp_err hp_exec_options_parse(const char *text, hp_exec_options *o, hp_errmsg *e)
{
    char *copy = hp_xstrdup(text), *rest = copy, *line;
    hp_err rc = HP_OK;
    *o = hp_exec_options_default();
    while (!rc && (line = strsep(&rest, "\n")))
        if (*line)
            rc = read_line(line, o, e);
    free(copy);
    if (!rc && (o->n_slow < 0 || o->n_slow > 64 || o->steps < 0))
        rc = hp_fail(e, HP_EINPUT, "options of a run: n_slow is 0 to 64, steps at least 0");
    return rc;
}

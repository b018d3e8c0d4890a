/* quantity.c -- one table of suffixes a unit; what is not in the table is refused, never
 * guessed. */
#include "cluster/quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct suffix {
    const char *text;
    double factor;
} suffix;

static const suffix none[] = {{"", 1}, {NULL, 0}};
static const suffix fraction[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
static const suffix flops[] = {{"", 1},     {"k", 1e3},  {"M", 1e6}, {"G", 1e9},
                               {"T", 1e12}, {"P", 1e15}, {NULL, 0}};
static const suffix bytes[] = {{"", 1},
                               {"B", 1},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", 1024.0},
                               {"MiB", 1048576.0},
                               {"GiB", 1073741824.0},
                               {"TiB", 1099511627776.0},
                               {"kb", 125},
                               {"Mb", 125e3},
                               {"Gb", 125e6},
                               {"Tb", 125e9},
                               {NULL, 0}};
static const suffix seconds[] = {{"", 1},      {"s", 1},     {"ms", 1e-3},
                                 {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};

static const struct {
    const suffix *table;
    const char *tail; /* may follow the suffix */
    const char *legal;
} units[] = {
    [HP_UNIT_COUNT] = {none, "", "a whole number"},
    [HP_UNIT_NUMBER] = {none, "", "a number"},
    [HP_UNIT_FRACTION] = {fraction, "", "a fraction as 0.82 or 82%"},
    [HP_UNIT_FLOPS] = {flops, "FLOP/s", "FLOP/s as 989T or 1.5P"},
    [HP_UNIT_BYTES] = {bytes, "", "bytes as 80GiB or 16GB"},
    [HP_UNIT_BYTES_S] = {bytes, "/s", "bytes a second as 3.35TB/s, 450GB/s or 400Gb/s"},
    [HP_UNIT_SECONDS] = {seconds, "", "seconds as 1.9us, 250ns or 0.001"},
};

/* Finds the suffix that `rest` is, with or without the unit's tail. */
static const suffix *find_suffix(const suffix *table, const char *rest, const char *tail)
{
    for (; table->text; table++) {
        size_t n = strlen(table->text);
        if (strncmp(rest, table->text, n) != 0)
            continue;
        if (rest[n] == '\0' || strcmp(rest + n, tail) == 0)
            return table;
    }
    return NULL;
}

hp_err hp_quantity_parse(const char *s, hp_unit unit, double *v, hp_errmsg *e)
{
    char *rest;
    double x = strtod(s, &rest);
    bool hexadecimal = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    bool number = rest != s && isfinite(x) && x >= 0 && !hexadecimal;
    while (*rest == ' ')
        rest++;
    const suffix *f = number ? find_suffix(units[unit].table, rest, units[unit].tail) : NULL;
    bool whole = unit != HP_UNIT_COUNT || (x == floor(x) && x <= 2147483647.0);
    if (!f || !whole)
        return hp_fail(e, HP_EINPUT, "\"%s\" can't be read: write %s", s, units[unit].legal);
    *v = x * f->factor;
    return HP_OK;
}

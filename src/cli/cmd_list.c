/* cmd_list.c -- `list` and `show`: what can be named after -m, -c and -s. */
#include "cli/commands.h"
#include "session/catalog.h"

#include <stdio.h>

static hp_err list(const hp_args *a, hp_errmsg *e)
{
    hp_str out = {0};
    hp_err err = HP_OK;
    for (int i = 0; !err && i < hp_n_catalogs; i++)
        if (a->n == 0)
            err = hp_catalog_list(hp_catalogs[i], a->n == 0, &out, e);
    if (a->n > 0)
        err = hp_catalog_list(a->arg[0], false, &out, e);
    if (!err)
        fputs(hp_str_text(&out), stdout);
    hp_str_fini(&out);
    return err;
}

static hp_err show(const hp_args *a, hp_errmsg *e)
{
    hp_str out = {0};
    if (a->n == 0)
        return hp_fail(e, HP_EUSAGE,
                       "show wants a model, a cluster or a strategy: hpbench show gpt2-small, "
                       "hpbench show h100-sxm:8");
    hp_err err = hp_catalog_show(a->arg[0], &out, e);
    if (!err)
        fputs(hp_str_text(&out), stdout);
    hp_str_fini(&out);
    return err;
}

const hp_command hp_cmd_list = {
    .name = "list",
    .usage = "[models|clusters|strategies]",
    .about = "the models, clusters and strategies that can be named",
    .max_args = 1,
    .run = list,
};

const hp_command hp_cmd_show = {
    .name = "show",
    .usage = "M|C|S",
    .about = "one model, cluster or strategy in full",
    .max_args = 1,
    .run = show,
};

/* cmd_plan.c -- the plan, as a whole or one question about it. */
#include "cli/commands.h"
#include "cli/request.h"
#include "plan/report.h"
#include "plan/text.h"

#include <string.h>

static const char *const views[] = {"resolved", "why", "memory", "groups", "comm"};
enum { VIEWS = sizeof views / sizeof *views };

/* --dump=PASS: what a pass made. */
static hp_err pick_dump(const hp_args *a, const char **view, hp_errmsg *e)
{
    static const char *const passes[] = {"plan", "resolve"}, *const seen_as[] = {NULL, "resolved",
                                                                                 "why"};
    hp_err err = hp_args_choice(a, "dump", 2, passes, e);
    for (int i = 0; !err && i < 2; i++)
        if (strcmp(hp_args_get(a, "dump", "plan"), passes[i]) == 0)
            *view = seen_as[i];
    return err;
}

/* The one view that is asked for, NULL for the plan itself. */
static hp_err pick_view(const hp_args *a, const char **view, hp_errmsg *e)
{
    *view = NULL;
    hp_err err = pick_dump(a, view, e);
    if (err)
        return err;
    if (hp_args_has(a, "dump"))
        return HP_OK;
    for (int i = 0; i < VIEWS; i++) {
        if (!hp_args_has(a, views[i]))
            continue;
        if (*view)
            return hp_fail(e, HP_EUSAGE, "--%s and --%s: ask one question at a time", *view,
                           views[i]);
        *view = views[i];
    }
    return HP_OK;
}

static void write_view(const hp_built *b, const char *view, hp_str *out)
{
    if (!view)
        hp_plan_print(b->plan, out);
    else if (strcmp(view, "resolved") == 0)
        hp_str_put(out, hp_str_text(&b->resolved), b->resolved.len);
    else if (strcmp(view, "why") == 0)
        hp_report_why(b->plan, out);
    else if (strcmp(view, "memory") == 0)
        hp_report_memory(b->plan, out);
    else if (strcmp(view, "groups") == 0)
        hp_report_groups(b->plan, out);
    else
        hp_report_comm(b->plan, out);
}

static hp_err plan(const hp_args *a, hp_errmsg *e)
{
    hp_ask ask = {0};
    hp_case c = {0};
    hp_str out = {0};
    const char *view;
    hp_err err = pick_view(a, &view, e);
    if (!err)
        err = hp_request_ask(a, &ask, e);
    if (!err)
        err = hp_case_load(&ask, &c, e);
    if (!err) {
        write_view(&c.built, view, &out);
        err = hp_request_write(hp_args_get(a, "out", ""), &out, e);
    }
    hp_str_fini(&out);
    hp_case_fini(&c);
    hp_ask_fini(&ask);
    return err;
}

static const hp_flag flags[] = {
    HP_FLAGS_CASE,
    {"resolved", 0, NULL, "everything that was derived from model, cluster and strategy", false},
    {"why", 0, NULL, "every collective with its tensor, layouts, consumer and bytes", false},
    {"memory", 0, NULL,
     "what lies in a device's memory, by scope and kind, and the largest buffers", false},
    {"groups", 0, NULL, "the axes of every mesh and which ranks form their groups", false},
    {"comm", 0, NULL, "what is sent, by axis, collective and template", false},
    {"dump", 0, "PASS", "what a pass made: resolve or plan", false},
    {"out", 0, "PATH", "write to a file instead of standard output", false},
    {0},
};

const hp_command hp_cmd_plan = {
    .name = "plan",
    .usage = "-m M -c C -s S [--resolved | --why | --memory | --groups | --comm]",
    .about = "the complete program of every device, or one question about it",
    .flags = flags,
    .run = plan,
};

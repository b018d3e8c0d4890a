/* cmd_runs.c -- what the store remembers: list, show, compare, export, rm. */
#include "cli/commands.h"
#include "cli/request.h"
#include "fmt/json.h"
#include "fmt/table.h"
#include "session/recall.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- list --- */

static const char *cell(double v, char *(*show)(double, char *, size_t), char *buf, size_t n)
{
    return isnan(v) ? "-" : show(v, buf, n);
}

static void list_row(const hp_run_row *r, hp_str *out)
{
    char step[32], peak[32], what[128];
    snprintf(what, sizeof what, "%s %s %s", r->model, r->cluster, r->strategy);
    hp_str_add(out, "%5lld  %.16s  %-4s %-11s %9s %9s  %.60s\n", (long long)r->id, r->at, r->mode,
               r->state, cell(r->step_s, hp_format_seconds, step, sizeof step),
               cell(r->peak_bytes, hp_format_bytes, peak, sizeof peak), what);
}

static hp_err list_runs(hp_store *s, const hp_args *a, hp_errmsg *e)
{
    hp_run_rows rows = {0};
    hp_str out = {0};
    long long limit = 20;
    hp_err err = hp_args_int(a, "limit", 0, 1000000, &limit, e);
    if (!err)
        err = hp_store_list(s, (int)limit, &rows, e);
    if (!err && rows.n == 0)
        hp_str_add(&out, "no runs yet: hpbench run -m gpt2-small -c host:4 -s dp=2,tp=2\n");
    else if (!err)
        hp_str_add(&out, "%5s  %-16s  %-4s %-11s %9s %9s  %s\n", "run", "UTC", "mode", "state",
                   "step", "peak", "model, cluster, strategy");
    for (int i = 0; !err && i < rows.n; i++)
        list_row(&rows.row[i], &out);
    if (!err)
        err = hp_request_write("", &out, e);
    hp_str_fini(&out);
    hp_run_rows_fini(&rows);
    return err;
}

/* --- one run --- */

static hp_err show_run(const hp_args *a, hp_errmsg *e)
{
    hp_result *r = NULL;
    int64_t id;
    hp_err err = hp_recall_id(a->arg[1], &id, e);
    if (!err)
        err = hp_recall(a->arg[1], &r, e);
    if (err)
        return err;
    hp_str out = {0};
    hp_table_result(r, (hp_table_style){hp_request_utf8(), hp_args_has(a, "verbose")}, &out);
    err = hp_request_write("", &out, e);
    hp_str_fini(&out);
    hp_result_free(r);
    return err;
}

static hp_err export_run(hp_store *s, const hp_args *a, hp_errmsg *e)
{
    static const char *const formats[] = {"json"};
    int64_t id;
    hp_run_rows rows = {0};
    hp_str text = {0};
    hp_err err = hp_recall_id(a->arg[1], &id, e);
    if (!err)
        err = hp_request_formats(a, 1, formats, e);
    if (!err)
        err = hp_store_get(s, id, &rows, e);
    if (!err)
        hp_str_add(&text, "%s", rows.row[0].result);
    const char *path = hp_request_format(a, "json");
    if (!err)
        err = hp_request_write(path ? path : "", &text, e);
    hp_str_fini(&text);
    hp_run_rows_fini(&rows);
    return err;
}

static hp_err remove_runs(hp_store *s, const hp_args *a, hp_errmsg *e)
{
    hp_err err = HP_OK;
    for (int i = 1; !err && i < a->n; i++) {
        int64_t id;
        err = hp_recall_id(a->arg[i], &id, e);
        if (!err)
            err = hp_store_remove(s, id, e);
    }
    return err;
}

/* --- compare --- */

static hp_err compare_results(int n, const char *const *names, hp_errmsg *e)
{
    hp_result *r[64] = {0};
    hp_err err = HP_OK;
    if (n < 2 || n > 64)
        return hp_fail(e, HP_EUSAGE,
                       "compare wants 2 to 64 runs or result files, as in hpbench compare 3 4 or "
                       "hpbench compare a.json b.json");
    for (int i = 0; !err && i < n; i++)
        err = hp_recall(names[i], &r[i], e);
    if (!err) {
        hp_str out = {0};
        hp_table_compare(n, names, (const hp_result *const *)r, &out);
        err = hp_request_write("", &out, e);
        hp_str_fini(&out);
    }
    for (int i = 0; i < n; i++)
        hp_result_free(r[i]);
    return err;
}

static hp_err compare(const hp_args *a, hp_errmsg *e)
{
    return compare_results(a->n, a->arg, e);
}

/* --- dispatch --- */

static hp_err with_store(const hp_args *a, const char *verb, hp_errmsg *e)
{
    hp_store *s = NULL;
    hp_err err = hp_store_open(NULL, &s, e);
    if (err)
        return err;
    if (strcmp(verb, "list") == 0)
        err = list_runs(s, a, e);
    else if (strcmp(verb, "export") == 0)
        err = export_run(s, a, e);
    else
        err = remove_runs(s, a, e);
    hp_store_close(s);
    return err;
}

static hp_err runs(const hp_args *a, hp_errmsg *e)
{
    static const char *const verbs[] = {"list", "show", "compare", "export", "rm"};
    const char *verb = a->n > 0 ? a->arg[0] : "list";
    bool known = false;
    for (int i = 0; i < 5; i++)
        known |= strcmp(verb, verbs[i]) == 0;
    if (!known)
        return hp_fail(
            e, HP_EUSAGE,
            "runs cannot \"%s\"; the nearest is \"%s\" (list, show, compare, export, rm)", verb,
            hp_near(verb, verbs, 5));
    bool one = strcmp(verb, "show") == 0 || strcmp(verb, "export") == 0;
    if ((one && a->n != 2) || (strcmp(verb, "rm") == 0 && a->n < 2))
        return hp_fail(e, HP_EUSAGE, "runs %s wants a run's number, as in hpbench runs %s 3", verb,
                       verb);
    if (strcmp(verb, "show") == 0)
        return show_run(a, e);
    if (strcmp(verb, "compare") == 0)
        return compare_results(a->n - 1, a->arg + 1, e);
    return with_store(a, verb, e);
}

static const hp_flag runs_flags[] = {
    {"limit", 'n', "N", "list: the newest N runs (default 20, 0 = all)", false},
    {"format", 'f', "json[:PATH]", "export: where the JSON goes (default: standard output)", false},
    {"verbose", 'v', NULL, "show: every assumption", false},
    {0},
};

const hp_command hp_cmd_runs = {
    .name = "runs",
    .usage = "[list | show N | compare N M ... | export N | rm N ...]",
    .about = "runs that are stored: list, show, compare, export as JSON, forget",
    .more = "The store is $HPBENCH_STORE, or hpbench/store.db in $XDG_STATE_HOME (~/.local/state).",
    .flags = runs_flags,
    .max_args = -1,
    .run = runs,
};

static const hp_flag no_flags[] = {{0}};

const hp_command hp_cmd_compare = {
    .name = "compare",
    .usage = "A B ...",
    .about = "stored runs (by number) or JSON results side by side, differences first",
    .flags = no_flags,
    .max_args = -1,
    .run = compare,
};

/* recall.c -- the store is opened for each call and closed again, so that no run holds it while
 * it trains. */
#include "session/recall.h"

#include "base/str.h"
#include "fmt/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hp_err hp_recall_id(const char *name, int64_t *id, hp_errmsg *e)
{
    char *rest;
    errno = 0;
    long long v = strtoll(name, &rest, 10);
    if (!*name || *rest || errno || v < 1)
        return hp_fail(e, HP_EUSAGE, "\"%s\" is no run: give a number that `hpbench runs` shows",
                       name);
    *id = v;
    return HP_OK;
}

static hp_err recall_run(const char *name, hp_result **out, hp_errmsg *e)
{
    int64_t id = 0;
    hp_store *s = NULL;
    hp_run_rows rows = {0};
    hp_err err = hp_recall_id(name, &id, e);
    if (!err)
        err = hp_store_open(NULL, &s, e);
    if (!err)
        err = hp_store_get(s, id, &rows, e);
    if (!err && (err = hp_json_read_result(rows.row[0].result, out, e)) != HP_OK)
        hp_fail_at(e, "run %lld", (long long)id);
    hp_run_rows_fini(&rows);
    hp_store_close(s);
    return err;
}

enum { MAX_RESULT = 256 << 20 };

static hp_err read_file(const char *path, hp_str *text, hp_errmsg *e)
{
    char block[65536];
    size_t n;
    FILE *f = fopen(path, "r");
    if (!f)
        return hp_fail(e, HP_EUSAGE, "%s cannot be read: %s", path, strerror(errno));
    while ((n = fread(block, 1, sizeof block, f)) > 0 && text->len < MAX_RESULT)
        hp_str_put(text, block, n);
    bool bad = ferror(f) != 0;
    fclose(f);
    if (bad)
        return hp_fail(e, HP_EUSAGE, "%s cannot be read", path);
    return text->len < MAX_RESULT
               ? HP_OK
               : hp_fail(e, HP_EINPUT, "%s is longer than a result may be (256 MiB)", path);
}

hp_err hp_recall(const char *name, hp_result **out, hp_errmsg *e)
{
    if (name[strspn(name, "0123456789")] == '\0')
        return recall_run(name, out, e);
    hp_str text = {0};
    hp_err err = read_file(name, &text, e);
    if (!err && (err = hp_json_read_result(hp_str_text(&text), out, e)) != HP_OK)
        hp_fail_at(e, "%s", name);
    hp_str_fini(&text);
    return err;
}

static const char *strategy_of(const hp_result *r)
{
    return r->strategy_shorthand ? r->strategy_shorthand : r->strategy_name;
}

void hp_keep(const hp_result *r, const char *state, const char *json, int64_t *id, char *warning,
             size_t n)
{
    hp_store *s = NULL;
    hp_errmsg e = {0};
    hp_run_row row = {.mode = r->mode,
                      .state = state,
                      .model = r->model,
                      .cluster = r->cluster,
                      .strategy = strategy_of(r),
                      .strategy_hash = r->strategy_hash,
                      .seed = r->seed,
                      .n_devices = r->n_devices,
                      .n_steps = r->n_steps,
                      .step_s = r->step_s,
                      .tokens_per_s = r->tokens_per_s,
                      .peak_bytes = r->memory.peak_bytes,
                      .masking_ratio = r->masking_ratio,
                      .mfu = r->mfu,
                      .loss = r->n_steps > 0 && r->loss ? r->loss[r->n_steps - 1] : NAN,
                      .result = json};
    *id = 0;
    warning[0] = '\0';
    hp_err err = hp_store_open(NULL, &s, &e);
    if (!err)
        err = hp_store_add_run(s, &row, id, &e);
    if (err)
        snprintf(warning, n, "this run is not stored: %s", e.text);
    hp_store_close(s);
}

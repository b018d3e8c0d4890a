/* cmd_run.c -- `run` and `sim`: an outcome as report, JSON and trace. */
#include "cli/commands.h"
#include "cli/request.h"
#include "fmt/json.h"
#include "fmt/table.h"
#include "fmt/trace.h"
#include "session/predict.h"
#include "session/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const formats[] = {"json", "table", "trace"};
enum { FORMATS = sizeof formats / sizeof *formats };

/* --- output --- */

static void write_format(const hp_outcome *o, const hp_args *a, const char *name, hp_str *out)
{
    if (strcmp(name, "json") == 0)
        hp_json_result(o->result, out);
    else if (strcmp(name, "trace") == 0)
        hp_trace_chrome(o->c.built.plan, o->x, &o->trace, out);
    else
        hp_table_result(o->result, (hp_table_style){hp_request_utf8(), hp_args_has(a, "verbose")},
                        out);
}

static hp_err write_outcome(const hp_outcome *o, const hp_args *a, hp_errmsg *e)
{
    hp_err err = HP_OK;
    for (int i = 0; !err && i < FORMATS; i++) {
        const char *path = hp_request_format(a, formats[i]);
        bool report = i == 1 && !path && hp_request_wants_report(a);
        if (!path && !report)
            continue;
        hp_str out = {0};
        write_format(o, a, formats[i], &out);
        if (report && o->stored > 0)
            hp_str_add(&out, "\nrun %lld: hpbench runs show %lld\n", (long long)o->stored,
                       (long long)o->stored);
        err = hp_request_write(path ? path : "", &out, e);
        hp_str_fini(&out);
    }
    /* where nobody reads the report, a warning must still be seen */
    for (int i = 0;
         !hp_request_wants_report(a) && !hp_args_has(a, "quiet") && i < o->result->n_warnings; i++)
        fprintf(stderr, "hpbench: warning: %s\n", o->result->warning[i]);
    return err;
}

/* --- run --- */

/* One line that rewrites itself, only ever on a terminal. */
static void show_progress(void *ctx, const hp_progress *p)
{
    char step[32];
    (void)ctx;
    fprintf(stderr, "\rstep %lld/%lld", (long long)p->step, (long long)p->steps);
    if (!isnan(p->loss))
        fprintf(stderr, "  loss %.4f", p->loss);
    fprintf(stderr, "  %s", hp_format_seconds(p->step_s, step, sizeof step));
    if (!isnan(p->masking_ratio))
        fprintf(stderr, "  masked %.0f %%", 100 * p->masking_ratio);
    fputs("\x1b[K", stderr);
    if (p->step == p->steps)
        fputc('\n', stderr);
    fflush(stderr);
}

static hp_err ask_run(const hp_args *a, hp_run_ask *ask, hp_errmsg *e)
{
    static const char *const clocks[] = {"wall", "model"}, *const dtypes[] = {"f32", "bf16"};
    long long steps = 20, seed = 1;
    hp_err err = hp_request_formats(a, FORMATS, formats, e);
    if (!err)
        err = hp_args_int(a, "steps", 1, 100000000, &steps, e);
    if (!err)
        err = hp_args_int(a, "seed", 0, INT64_MAX, &seed, e);
    if (!err)
        err = hp_args_choice(a, "clock", 2, clocks, e);
    if (!err)
        err = hp_args_choice(a, "dtype", 2, dtypes, e);
    if (!err)
        err = hp_request_ask(a, &ask->what, e);
    if (!err && hp_args_has(a, "dtype"))
        err = hp_ask_over(&ask->what, "strategy.dtype", hp_args_get(a, "dtype", ""), e);
    ask->steps = steps;
    ask->seed = (uint64_t)seed;
    ask->data = hp_args_get(a, "data", NULL);
    ask->model_clock = strcmp(hp_args_get(a, "clock", "wall"), "model") == 0;
    if (isatty(STDERR_FILENO) && !hp_args_has(a, "quiet"))
        ask->progress = show_progress;
    return err;
}

static hp_err run(const hp_args *a, hp_errmsg *e)
{
    hp_run_ask ask = {0};
    hp_outcome o = {0};
    hp_err err = ask_run(a, &ask, e);
    if (!err)
        err = hp_session_run(&ask, &o, e);
    if ((!err || err == HP_ECANCELLED) && o.result) {
        hp_err written = write_outcome(&o, a, e);
        err = err ? err : written;
    }
    hp_outcome_fini(&o);
    hp_ask_fini(&ask.what);
    return err;
}

static const hp_flag run_flags[] = {
    HP_FLAGS_CASE,
    {"steps", 0, "N", "how many steps to train (default 20)", false},
    {"seed", 0, "N", "of initial values, data order and dropout (default 1)", false},
    {"data", 0, "FILE", "train on the bytes of this file instead of the corpus that comes along",
     false},
    {"dtype", 0, "T", "f32 (default) or bf16: storage and compute, with f32 master weights", false},
    {"clock", 0, "CLOCK",
     "wall: what happened here (default); model: measured durations replayed on the modelled clock",
     false},
    HP_FLAGS_OUTPUT("json, table or trace"),
    {0},
};

const hp_command hp_cmd_run = {
    .name = "run",
    .usage = "-m M -c host:N -s S [options]",
    .about = "train for real on virtual devices of this machine, and measure",
    .more =
        "  hpbench run -m gpt2-small -c host:4 -s dp=2,tp=2 --steps 50\n"
        "  hpbench run -m llama-small -c host:4 -s fsdp=4 --format=trace:step.json\n"
        "\n"
        "Ctrl-C ends the run after its step, a second one at once (exit status 130). The trace\n"
        "opens in Perfetto (ui.perfetto.dev). Every run is stored: hpbench runs.",
    .flags = run_flags,
    .run = run,
};

/* --- sim --- */

static hp_err sim(const hp_args *a, hp_errmsg *e)
{
    hp_predict_ask ask = {.seed = 1};
    hp_outcome o = {0};
    hp_err err = hp_request_formats(a, FORMATS, formats, e);
    if (!err)
        err = hp_request_ask(a, &ask.what, e);
    if (!err)
        err = hp_session_predict(&ask, &o, e);
    if (!err)
        err = write_outcome(&o, a, e);
    hp_outcome_fini(&o);
    hp_ask_fini(&ask.what);
    return err;
}

static const hp_flag sim_flags[] = {HP_FLAGS_CASE, HP_FLAGS_OUTPUT("json, table or trace"), {0}};

const hp_command hp_cmd_sim = {
    .name = "sim",
    .usage = "-m M -c C -s S [options]",
    .about = "predict a step on a cluster that is not at hand: time, memory, masking",
    .more = "  hpbench sim -m llama3-8b -c h100-sxm:64 -s dp=8,tp=8",
    .flags = sim_flags,
    .run = sim,
};

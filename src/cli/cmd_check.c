/* cmd_check.c -- `check` looks at its words and then does the work in a process of its own, so
 * that a crash of the engine is a message. */
#include "cli/commands.h"
#include "cli/request.h"
#include "session/isolate.h"
#include "session/prove.h"

#include <stdio.h>

static const char *const formats[] = {"json", "table"};

static hp_err read_ask(const hp_args *a, hp_prove_ask *ask, hp_errmsg *e)
{
    static const char *const dtypes[] = {"f32", "bf16"};
    long long seed = 1;
    hp_err err = hp_request_formats(a, 2, formats, e);
    if (!err)
        err = hp_args_int(a, "seed", 0, INT64_MAX, &seed, e);
    if (!err)
        err = hp_args_choice(a, "dtype", 2, dtypes, e);
    if (!err)
        err = hp_request_ask(a, &ask->what, e);
    if (!err && hp_args_has(a, "dtype"))
        err = hp_ask_over(&ask->what, "strategy.dtype", hp_args_get(a, "dtype", ""), e);
    ask->seed = (uint64_t)seed;
    ask->data = hp_args_get(a, "data", NULL);
    ask->shrink = hp_args_has(a, "shrink");
    return err;
}

static hp_err check(const hp_args *a, hp_errmsg *e)
{
    hp_prove_ask ask = {0};
    hp_err err = read_ask(a, &ask, e);
    hp_ask_fini(&ask.what);
    return err ? err : hp_isolate("__check", "the check", e);
}

static hp_err write_report(const hp_args *a, const hp_check_report *r, const hp_str *said,
                           hp_errmsg *e)
{
    hp_str text = {0};
    hp_err err = HP_OK;
    const char *json = hp_request_format(a, "json"), *table = hp_request_format(a, "table");
    if (json) {
        hp_prove_json(r, &text);
        err = hp_request_write(json, &text, e);
        hp_str_fini(&text);
    }
    if (!err && (table || hp_request_wants_report(a))) {
        hp_str_add(&text, "%s", hp_str_text(said));
        hp_prove_table(r, &text);
        err = hp_request_write(table ? table : "", &text, e);
        hp_str_fini(&text);
    }
    return err;
}

static hp_err check_here(const hp_args *a, hp_errmsg *e)
{
    hp_prove_ask ask = {0};
    hp_check_report r;
    hp_str said = {0};
    hp_err err = read_ask(a, &ask, e);
    if (!err)
        err = hp_session_prove(&ask, &r, &said, e);
    if (!err)
        err = write_report(a, &r, &said, e);
    if (!err)
        err = hp_prove_verdict(&r, e);
    hp_str_fini(&said);
    hp_ask_fini(&ask.what);
    return err;
}

static const hp_flag flags[] = {
    HP_FLAGS_CASE,
    {"shrink", 0, NULL,
     "prove the smallest model and mesh that keep every split and layout of a big strategy", false},
    {"seed", 0, "N", "of initial values, data and dropout (default 1)", false},
    {"data", 0, "FILE", "the text to take one step on", false},
    {"dtype", 0, "T", "f32 (default) or bf16", false},
    HP_FLAGS_OUTPUT("json or table"),
    {0},
};

const hp_command hp_cmd_check = {
    .name = "check",
    .usage = "-m M -c host:N -s S [--shrink] [options]",
    .about = "prove that the split computes what one device computes",
    .more = "One step runs on the virtual devices and in an independent interpreter on one. Exit\n"
            "status 1 when loss, gradients or updated parameters are apart:\n"
            "  error of a tensor = max|a-b| / max(max|b|, 1e-3 x median of all tensors' max|b|)\n"
            "  limits: loss 1e-5, gradients 1e-4 (bf16: 2e-2); parameters within\n"
            "  1e-5 max|p| + lr min(2, |dg| / (sqrt v + eps))\n"
            "\n"
            "  hpbench check -m gpt2-small -c host:4 -s dp=2,tp=2\n"
            "  hpbench check -m llama3-405b -c h100-sxm:16384 -s dp=128,tp=8,pp=16 --shrink",
    .flags = flags,
    .run = check,
};

const hp_command hp_cmd_check_here = {
    .name = "__check", .usage = "", .about = "", .flags = flags, .run = check_here};

/* open.c -- functions of C that lua/api.lua wraps. A Lua error leaves by longjmp, so everything
 * that must be freed is freed before one is raised. */
#include "api/open.h"

#include "api/convert.h"
#include "api/request.h"
#include "base/version.h"
#include "fmt/json.h"
#include "plan/report.h"
#include "plan/text.h"
#include "script/meter.h"
#include "session/predict.h"
#include "session/prove.h"
#include "session/run.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

/* An experiment may take long; what it allocates and the blocks of it stay bounded. */
static const hp_sandbox_limits limits = {
    .instructions = INT64_C(1) << 50, .bytes = (size_t)1 << 30, .seconds = 1e9};

/* Pushes the record of an outcome and frees it, or raises. */
static int finish(lua_State *L, hp_err err, hp_outcome *o, hp_errmsg *e)
{
    hp_str text = {0};
    if (!err) {
        hp_json_result(o->result, &text);
        err = hp_api_push_json(L, hp_str_text(&text), e);
    }
    hp_str_fini(&text);
    hp_outcome_fini(o);
    return err ? hp_script_raise(L, err, "%s", e->text) : 1;
}

static int api_run(lua_State *L)
{
    hp_api_request r;
    hp_errmsg e = {0};
    hp_outcome o = {0};
    hp_api_read_request(L, &r);
    hp_err err = r.dtype ? hp_ask_over(&r.what, "strategy.dtype", r.dtype, &e) : HP_OK;
    if (!err && r.clock && strcmp(r.clock, "wall") != 0 && strcmp(r.clock, "model") != 0)
        err = hp_fail(&e, HP_EUSAGE, "clock is \"%s\": it must be wall or model", r.clock);
    hp_run_ask ask = {.what = r.what, .steps = r.steps, .seed = (uint64_t)r.seed, .data = r.data};
    ask.model_clock = r.clock && strcmp(r.clock, "model") == 0;
    if (!err)
        err = hp_session_run(&ask, &o, &e);
    return finish(L, err, &o, &e);
}

static int api_sim(lua_State *L)
{
    hp_api_request r;
    hp_errmsg e = {0};
    hp_outcome o = {0};
    hp_api_read_request(L, &r);
    hp_predict_ask ask = {.what = r.what, .seed = (uint64_t)r.seed};
    return finish(L, hp_session_predict(&ask, &o, &e), &o, &e);
}

/* hp.plan { view = "why" }: the text that `hpbench plan --why` prints. */
static hp_err view_plan(const hp_built *b, const char *view, hp_str *out, hp_errmsg *e)
{
    static const char *const views[] = {"plan", "resolved", "why", "memory", "groups", "comm"};
    int i = 0;
    while (i < 6 && strcmp(views[i], view) != 0)
        i++;
    if (i == 6)
        return hp_fail(e, HP_EUSAGE, "there is no view \"%s\"; the nearest is \"%s\"", view,
                       hp_near(view, views, 6));
    if (i == 0)
        hp_plan_print(b->plan, out);
    else if (i == 1)
        hp_str_put(out, hp_str_text(&b->resolved), b->resolved.len);
    else
        (void (*const[])(const hp_plan *, hp_str *)){
            hp_report_why, hp_report_memory, hp_report_groups, hp_report_comm}[i - 2](b->plan, out);
    return HP_OK;
}

static int api_plan(lua_State *L)
{
    hp_api_request r;
    hp_errmsg e = {0};
    hp_case c = {0};
    hp_str out = {0};
    hp_api_read_request(L, &r);
    hp_err err = hp_case_load(&r.what, &c, &e);
    if (!err)
        err = view_plan(&c.built, r.view ? r.view : "plan", &out, &e);
    if (!err)
        lua_pushlstring(L, hp_str_text(&out), out.len);
    hp_str_fini(&out);
    hp_case_fini(&c);
    return err ? hp_script_raise(L, err, "%s", e.text) : 1;
}

/* The comparison runs in this process: an engine that crashes takes the script with it, but
 * nothing that is stored. */
static int api_check(lua_State *L)
{
    hp_api_request r;
    hp_errmsg e = {0};
    hp_check_report report;
    hp_str said = {0}, text = {0};
    hp_api_read_request(L, &r);
    hp_prove_ask ask = {
        .what = r.what, .seed = (uint64_t)r.seed, .data = r.data, .shrink = r.shrink};
    hp_err err = r.dtype ? hp_ask_over(&ask.what, "strategy.dtype", r.dtype, &e) : HP_OK;
    if (!err)
        err = hp_session_prove(&ask, &report, &said, &e);
    if (!err) {
        hp_prove_json(&report, &text);
        err = hp_api_push_json(L, hp_str_text(&text), &e);
    }
    hp_str_fini(&said);
    hp_str_fini(&text);
    return err ? hp_script_raise(L, err, "%s", e.text) : 1;
}

static int api_write(lua_State *L)
{
    size_t n;
    const char *s = luaL_checklstring(L, 1, &n);
    fwrite(s, 1, n, stdout);
    fputc('\n', stdout);
    return 0;
}

static int api_version(lua_State *L)
{
    lua_pushstring(L, HP_VERSION);
    return 1;
}

hp_err hp_api_open(hp_sandbox **sb, hp_errmsg *e)
{
    static const luaL_Reg functions[] = {{"api_run", api_run},         {"api_sim", api_sim},
                                         {"api_plan", api_plan},       {"api_check", api_check},
                                         {"api_version", api_version}, {"api_write", api_write}};
    hp_err err = hp_sandbox_new(&limits, sb, e);
    if (err)
        return err;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        hp_sandbox_function(*sb, functions[i].name, functions[i].func, NULL);
    err = hp_sandbox_words(*sb, "api", e);
    if (err) {
        hp_sandbox_free(*sb);
        *sb = NULL;
    }
    return err;
}

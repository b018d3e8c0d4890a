/* planned.h -- tests that plan a real model: model, cluster and strategy in the user's words, and
 * what is in the plan.
 *
 *     planned p = plan_of("llama-small", "model.layers=2 model.seq=64", "ideal:4", "dp=2,tp=2");
 *     is_int(p.err, HP_OK, "it plans") || (diag("%s", p.e.text), 0);
 *     traffic t = traffic_of(&p, 0, "F", "tp", HP_COLL_ALL_REDUCE); // a step: t.n, t.bytes of rank 0
 *     planned_free(&p);
 */
#ifndef HP_TESTS_PLANNED_H
#define HP_TESTS_PLANNED_H

#include "plan/report.h"
#include "session/check.h"
#include "session/load.h"
#include "tap.h"

#include <unistd.h>

typedef struct planned {
    hp_err err;
    hp_errmsg e;
    hp_case c;
    const hp_plan *plan; /* NULL where there is none */
    char over[1024];
} planned;

/* plan_of plans with overrides "model.layers=2 strategy.batch.micro=1"; whatever comes of it
 * must be freed by planned_free. */
static __attribute__((unused)) planned plan_of(const char *model, const char *over,
                                               const char *cluster, const char *strategy)
{
    planned p = {0};
    hp_ask ask = {.model = model, .cluster = cluster, .strategy = strategy};
    snprintf(p.over, sizeof p.over, "%s", over);
    for (char *save, *w = strtok_r(p.over, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(w, '=');
        if (!eq || ask.n_over == HP_MAX_OVERRIDES)
            bail("override %s", w);
        *eq = 0;
        ask.over[ask.n_over++] = (hp_override){w, eq + 1};
    }
    p.err = hp_case_load(&ask, &p.c, &p.e);
    p.plan = p.c.built.plan;
    return p;
}

static __attribute__((unused)) void planned_free(planned *p)
{
    hp_case_fini(&p->c);
    *p = (planned){0};
}

/* script_of writes a Lua script to a file of its own and returns its path, valid until the next
 * call but three. unlink it. */
static __attribute__((unused)) const char *script_of(const char *text)
{
    static char path[4][64];
    static int turn;
    char *at = path[turn++ % 4];
    snprintf(at, sizeof path[0], "/tmp/hp-case-XXXXXX.lua");
    int fd = mkstemps(at, 4);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("no temporary file");
    close(fd);
    return at;
}

/* must_plan is plan_of for a request without which the test has no meaning. */
static __attribute__((unused)) planned must_plan(const char *model, const char *over,
                                                 const char *cluster, const char *strategy)
{
    planned p = plan_of(model, over, cluster, strategy);
    if (p.err)
        bail("%s %s on %s with %s: exit %d: %s", model, over, cluster, strategy, p.err, p.e.text);
    return p;
}

/* refused checks that planning ends with `code` and a sentence that holds every one of the
 * |-separated `words`; the check's name begins with `id`. */
static __attribute__((unused)) bool refused(const char *id, const char *model, const char *over,
                                            const char *cluster, const char *strategy, hp_err code,
                                            const char *words)
{
    planned p = plan_of(model, over, cluster, strategy);
    char list[512];
    bool all = p.err == code;
    snprintf(list, sizeof list, "%s", words);
    for (char *save, *w = strtok_r(list, "|", &save); w; w = strtok_r(NULL, "|", &save))
        all = all && strstr(p.e.text, w);
    ok(all, "%s: %s %s on %s with %s: exit %d, naming %s", id, model, over, cluster, strategy, code,
       words);
    if (!all)
        diag("exit %d: %s", p.err, p.e.text);
    planned_free(&p);
    return all;
}

/* proved checks that a plan computes what one device computes, on made-up tokens; `ignore` is
 * the share of masked targets. */
static __attribute__((unused)) bool proved(const planned *p, double ignore, const char *name)
{
    hp_check_report r;
    hp_errmsg e = {0};
    hp_check_options o = {.seed = 7, .ignore = ignore, .poison = true};
    hp_err err = hp_check(p->c.graph, p->plan, &o, &r, &e);
    ok(err == HP_OK && r.ok, "%s: the same numbers as one device", name);
    if (err)
        diag("exit %d: %s", err, e.text);
    else if (!r.ok)
        diag("loss %g (one device %g), errors %g %g %g, worst %s, first apart %s of %s", r.loss,
             r.loss_reference, r.err_loss, r.err_grads, r.err_params, r.worst_tensor, r.div_tensor,
             r.div_op);
    return !err && r.ok;
}

/* runs_right plans and proves in one. */
static __attribute__((unused)) bool runs_right(const char *id, const char *model, const char *over,
                                               const char *cluster, const char *strategy)
{
    char name[512];
    planned p = plan_of(model, over, cluster, strategy);
    snprintf(name, sizeof name, "%s: %s %s with %s", id, model, over, strategy);
    bool held = p.err ? ok(false, "%s: it plans", name) : proved(&p, 0, name);
    if (p.err)
        diag("exit %d: %s", p.err, p.e.text);
    planned_free(&p);
    return held;
}

/* --- what a plan holds ----------------------------------------------------------------------- */

typedef struct traffic {
    int n;        /* how many a step */
    double bytes; /* that rank 0 sends a step */
} traffic;

/* traffic_of adds up the collectives of a kind over an axis ("" = any) in the templates whose
 * letters are listed ("IFBO"). */
static __attribute__((unused)) traffic
traffic_of(const planned *p, int program, const char *templates, const char *axis, hp_coll kind)
{
    static const char letter[] = "IFBWO";
    const hp_program *g = &p->plan->program[program];
    traffic sum = {0};
    for (int k = 0; k < g->n_templates; k++)
        for (int j = 0; j < g->tmpl[k].n_tasks && strchr(templates, letter[g->tmpl[k].kind]); j++) {
            const hp_task *t = &g->tmpl[k].task[j];
            char name[64];
            if (t->kind != HP_TASK_COLL || t->coll != kind ||
                (*axis && strcmp(hp_coll_axis_name(g, t, name, sizeof name), axis)))
                continue;
            int runs = hp_task_runs(g, k, t);
            sum.n += runs;
            sum.bytes += runs * hp_task_bytes(g, t, 0);
        }
    return sum;
}

/* task_of finds a program's task by its exact name; NULL when there is none. */
static __attribute__((unused)) const hp_task *task_of(const planned *p, int program,
                                                      const char *name)
{
    const hp_program *g = &p->plan->program[program];
    for (int k = 0; k < g->n_templates; k++)
        for (int j = 0; j < g->tmpl[k].n_tasks; j++)
            if (!strcmp(g->tmpl[k].task[j].name, name))
                return &g->tmpl[k].task[j];
    return NULL;
}

/* buffer_of finds a program's buffer by its exact name; bails when there is none. */
static __attribute__((unused)) const hp_buffer *buffer_of(const planned *p, int program,
                                                          const char *name)
{
    const hp_program *g = &p->plan->program[program];
    for (int i = 0; i < g->n_buffers; i++)
        if (!strcmp(g->buffer[i].name, name))
            return &g->buffer[i];
    bail("%s has no buffer %s", g->name, name);
    return NULL;
}

/* held_bytes adds up buffers of a kind and scope that lie on bytes of their own. */
static __attribute__((unused)) int64_t held_bytes(const planned *p, int program, hp_bkind kind,
                                                  hp_scope scope)
{
    const hp_program *g = &p->plan->program[program];
    int64_t sum = 0;
    for (int i = 0; i < g->n_buffers; i++)
        if (g->buffer[i].kind == kind && g->buffer[i].scope == scope && g->buffer[i].alias < 0 &&
            g->buffer[i].tier == HP_TIER_HBM)
            sum += g->buffer[i].bytes;
    return sum;
}

#endif

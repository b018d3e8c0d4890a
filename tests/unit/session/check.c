/* A right plan passes; a plan that is wrong in one place is caught, and the place is named. */
#include "session/check.h"

#include "session/load.h"
#include "session/prove.h"

#include "tap.h"

#include <jansson.h>

static hp_case load(const char *model, const char *cluster, const char *strategy)
{
    hp_ask ask = {.model = model, .cluster = cluster, .strategy = strategy};
    hp_case c = {0};
    hp_errmsg e = {0};
    hp_ask_over(&ask, "model.embed", "32", &e);
    hp_ask_over(&ask, "model.layers", "2", &e);
    hp_ask_over(&ask, "model.seq", "16", &e);
    hp_ask_over(&ask, "model.vocab", "64", &e);
    if (hp_case_load(&ask, &c, &e))
        bail("%s on %s with %s: %s", model, cluster, strategy, e.text);
    return c;
}

static hp_check_report compare(const hp_case *c, bool search)
{
    hp_check_options o = {.seed = 3, .no_search = !search, .poison = true};
    hp_check_report r;
    hp_errmsg e = {0};
    if (hp_check(c->graph, c->built.plan, &o, &r, &e))
        bail("the check runs: %s", e.text);
    return r;
}

static hp_task *find_task(const hp_case *c, const char *name)
{
    for (int i = 0; i < c->built.plan->n_programs; i++) {
        const hp_program *p = &c->built.plan->program[i];
        for (int k = 0; k < p->n_templates; k++)
            for (int j = 0; j < p->tmpl[k].n_tasks; j++)
                if (strcmp(p->tmpl[k].task[j].name, name) == 0)
                    return &p->tmpl[k].task[j];
    }
    bail("the plan has a task %s", name);
    return NULL;
}

static void set_attr(hp_task *t, const char *key, double v)
{
    for (int i = 0; i < t->n_attrs; i++)
        if (strcmp(t->attr[i].key, key) == 0)
            t->attr[i].value = v;
}

static void test_right(void)
{
    static const char *const strategies[] = {"dp=2,tp=2", "tp=4,sp", "fsdp=4",
                                             "pp=2,dp=2,gbs=8,zero=1"};
    for (int i = 0; i < 4; i++) {
        hp_case c = load("llama-small", "host:4", strategies[i]);
        hp_check_report r = compare(&c, true);
        if (!ok(r.ok, "%s computes the same", strategies[i]))
            diag("loss %g gradients %g parameters %g, worst %s", r.err_loss, r.err_grads,
                 r.err_params, r.worst_tensor);
        ok(r.n_tensors > 30 && !r.div_op[0], "all parameters were looked at, nothing diverged");
        hp_case_fini(&c);
    }
}

static void test_wrong_forward(void)
{
    hp_case c = load("llama-small", "host:4", "dp=2,tp=2");
    set_attr(find_task(&c, "layers.1.norm1"), "eps", 0.5);
    hp_check_report r = compare(&c, true);
    ok(!r.ok && r.err_loss > r.tol_loss, "a wrong operation is caught");
    is_str(r.div_op, "layers.1.norm1", "the first operation that is apart is named");
    is_str(r.div_tensor, "layers.1.norm1", "with its tensor");
    ok(r.div_rank >= 0 && r.div_rank < 4, "and a device");
    hp_case_fini(&c);
}

static void test_wrong_update(void)
{
    hp_case c = load("llama-small", "host:2", "dp=2");
    set_attr(find_task(&c, "layers.0.attn.q.w/update"), "lr", 2e-3);
    hp_check_report r = compare(&c, true);
    ok(!r.ok && r.err_params > 1 && r.err_grads <= r.tol_grads,
       "a wrong update is caught with right gradients");
    is_str(r.worst_param, "layers.0.attn.q.w", "and the parameter is named");
    hp_case_fini(&c);
}

/* Without its reduction the gradient is each rank's own part. */
static void test_lost_reduction(void)
{
    hp_case c = load("llama-small", "host:2", "dp=2");
    const hp_program *p = &c.built.plan->program[0];
    int lost = 0;
    for (int k = 0; k < p->n_templates; k++)
        for (int j = 0; j < p->tmpl[k].n_tasks; j++) {
            hp_task *t = &p->tmpl[k].task[j];
            if (t->kind != HP_TASK_COLL || p->buffer[t->buf[0]].kind != HP_B_GRADS)
                continue;
            for (int i = 0; i < t->n_in; i++, lost++)
                memset(p->buffer[t->buf[i]].layout.partial, 0,
                       sizeof p->buffer[t->buf[i]].layout.partial);
            t->coll = HP_COLL_SLICE;
        }
    hp_check_report r = compare(&c, false);
    ok(lost > 0 && !r.ok && r.err_grads > 0.01, "a lost reduction is caught");
    hp_case_fini(&c);
}

static void test_wrong_start(void)
{
    hp_case c = load("llama-small", "host:2", "tp=2");
    hp_program *p = &c.built.plan->program[0];
    for (int b = 0; b < p->n_buffers; b++)
        if (strcmp(p->buffer[b].name, "layers.0.norm1.w") == 0)
            p->buffer[b].init = HP_INIT_ZEROS;
    hp_check_report r = compare(&c, false);
    ok(!r.ok, "wrong initial values are caught");
    hp_case_fini(&c);
}

static void test_report(void)
{
    hp_check_report r = {.ok = false,
                         .err_loss = INFINITY,
                         .err_grads = 0.5,
                         .tol_grads = 1e-4,
                         .tol_loss = 1e-5,
                         .tol_params = 1,
                         .worst_tensor = "a",
                         .div_op = "op",
                         .div_tensor = "t",
                         .div_rank = 3};
    hp_str text = {0};
    hp_errmsg e = {0};
    hp_prove_json(&r, &text);
    json_t *o = json_loads(hp_str_text(&text), 0, NULL);
    ok(json_is_false(json_object_get(o, "ok")), "the record says that it is not ok");
    ok(json_is_null(json_object_get(json_object_get(o, "max_err"), "loss")),
       "an infinite error is null");
    is_int(json_integer_value(json_object_get(json_object_get(o, "first_divergence"), "rank")), 3,
           "the divergence has its device");
    json_decref(o);
    hp_str_fini(&text);
    is_int(hp_prove_verdict(&r, &e), HP_EFAILED, "the verdict is status 1");
    ok(strstr(e.text, "t of op on device 3") != NULL, "in words: %s", e.text);
    r.ok = true;
    is_int(hp_prove_verdict(&r, &e), HP_OK, "or 0");
}

int main(void)
{
    test_right();
    test_wrong_forward();
    test_wrong_update();
    test_lost_reduction();
    test_wrong_start();
    test_report();
    return done_testing();
}

/* plans.c -- real plans on the modelled clock: folding changes nothing, owners add up, bytes are the plan's. */
#include "plan/build.h"
#include "script/cluster.h"
#include "script/model.h"
#include "script/strategy.h"
#include "sim/sim.h"
#include "trace/metrics.h"

#include "tap.h"

typedef struct made {
    hp_cluster *c;
    hp_graph *g;
    hp_strategy *s;
    hp_built b;
    hp_expansion *x;
} made;

static bool make(const char *model, const char *cluster, const char *strategy, made *m)
{
    hp_errmsg e = {0};
    hp_override o[] = {{"model.seq", "32"}};
    *m = (made){0};
    if (hp_script_cluster(cluster, 0, NULL, &m->c, &e) || hp_script_model(model, 1, o, &m->g, &e) ||
        hp_script_strategy(strategy, m->g, m->c, 0, NULL, &m->s, &e) ||
        hp_build(m->g, m->c, m->s, &m->b, &e)) {
        diag("%s on %s by %s: %s", model, cluster, strategy, e.text);
        return false;
    }
    m->x = calloc((size_t)m->b.plan->n_programs, sizeof *m->x);
    for (int i = 0; i < m->b.plan->n_programs; i++)
        hp_expand(&m->b.plan->program[i], &m->x[i]);
    return true;
}

static void unmake(made *m)
{
    for (int i = 0; m->x && i < m->b.plan->n_programs; i++)
        hp_expansion_fini(&m->x[i]);
    free(m->x);
    hp_built_fini(&m->b);
    hp_strategy_free(m->s);
    hp_graph_free(m->g);
    hp_cluster_free(m->c);
}

static bool alike(const hp_plan *p, const hp_step_trace *a, const hp_step_trace *b)
{
    if (a->step_ns != b->step_ns)
        return false;
    for (int i = 0; i < p->n_programs; i++)
        for (int r = 0; r < p->program[i].mesh.n_ranks; r++) {
            const hp_span *x = hp_trace_spans(a, i, r), *y = hp_trace_spans(b, i, r);
            for (int k = 0; k < a->n_inst[i]; k++)
                if (x[k].start_ns != y[k].start_ns || x[k].xfer_ns != y[k].xfer_ns ||
                    x[k].end_ns != y[k].end_ns)
                    return false;
        }
    return true;
}

static void check_record(const made *m, const hp_step_trace *t)
{
    hp_result *r = hp_result_new();
    hp_metrics_fill(m->b.plan, m->x, t, r);
    hp_metrics_flops(m->b.plan, r);
    hp_metrics_cluster(m->b.plan, m->x, t, m->c, HP_RATE_F32, r);
    const hp_owned_time *o = &r->time;
    double sum = o->compute_s + o->overlapped_s + o->bubble_s + o->wait_s + o->host_s + o->free_s;
    for (int i = 0; i < HP_OWN_ROLES; i++)
        sum += o->exposed_s[i];
    near(sum, r->step_s, 1e-12, "... owners add up to %.3g s", r->step_s);
    ok(isnan(r->masking_ratio) || (r->masking_ratio >= 0 && r->masking_ratio <= 1),
       "... masking is a ratio");
    ok(r->memory.peak_bytes <= r->memory.arena_bytes,
       "... the peak fits into the arena (%.0f of %.0f)", r->memory.peak_bytes,
       r->memory.arena_bytes);
    ok(r->flops_executed >= 0.99 * r->flops_model && r->mfu > 0 && r->mfu <= 1,
       "... mfu %.3f, executed %.4g of model %.4g flops", r->mfu, r->flops_executed,
       r->flops_model);
    double by_axis = 0, by_level = 0;
    for (int i = 0; i < r->n_axes; i++)
        by_axis += r->axis[i].bytes;
    for (int i = 0; i < r->n_levels; i++)
        by_level += r->bytes_by_level[i];
    near(by_axis, by_level, 0, "... bytes by axis and by level are the same bytes");
    hp_result_free(r);
}

static void check_plan(const char *model, const char *cluster, const char *strategy)
{
    made m;
    hp_errmsg e = {0};
    if (!ok(make(model, cluster, strategy, &m), "%s on %s by %s is planned", model, cluster,
            strategy)) {
        unmake(&m);
        return;
    }
    hp_step_trace a = {0}, b = {0};
    hp_sim_options every = {.every_device = true};
    if (ok(!hp_sim_step(m.b.plan, m.x, m.c, NULL, &a, &e) &&
               !hp_sim_step(m.b.plan, m.x, m.c, &every, &b, &e),
           "... and simulated")) {
        int rows = 0;
        for (int i = 0; i < m.b.plan->n_programs; i++)
            rows += a.n_rows[i];
        ok(alike(m.b.plan, &a, &b), "... %d classes have the timelines of all %d devices", rows,
           m.b.plan->n_devices);
        check_record(&m, &a);
    } else {
        diag("%s", e.text);
    }
    hp_step_trace_fini(&a);
    hp_step_trace_fini(&b);
    unmake(&m);
}

int main(void)
{
    check_plan("gpt2-small", "ideal:1", "dp=1");
    check_plan("gpt2-small", "ideal:4", "dp=2,tp=2");
    check_plan("llama-small", "h100-sxm:16", "dp=4,tp=4,sp,zero=1");
    check_plan("llama-small", "tpu-v5p:2x2x2", "dp=8,zero=3");
    check_plan("llama-small", "910c-npu:4", "dp=2,cp=2,tp=2");
    return done_testing();
}

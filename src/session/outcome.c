/* outcome.c -- from a plan to a record, and from a record to the store. */
#include "session/outcome.h"

#include "fmt/json.h"
#include "session/recall.h"
#include "trace/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hp_err hp_outcome_open(const hp_ask *ask, hp_outcome *o, hp_errmsg *e)
{
    hp_err err = hp_case_load(ask, &o->c, e);
    if (err)
        return err;
    const hp_plan *p = o->c.built.plan;
    o->x = hp_xcalloc((size_t)p->n_programs + 1, sizeof *o->x);
    for (int i = 0; i < p->n_programs; i++)
        hp_expand(&p->program[i], &o->x[i]);
    return HP_OK;
}

void hp_outcome_fini(hp_outcome *o)
{
    for (int i = 0; o->x && i < o->c.built.plan->n_programs; i++)
        hp_expansion_fini(&o->x[i]);
    free(o->x);
    hp_step_trace_fini(&o->trace);
    hp_result_free(o->result);
    hp_case_fini(&o->c);
    *o = (hp_outcome){0};
}

void hp_outcome_copy_trace(hp_outcome *o, const hp_step_trace *t)
{
    const hp_plan *p = o->c.built.plan;
    hp_step_trace_fini(&o->trace);
    hp_step_trace_init(&o->trace, p, o->x);
    o->trace.step = t->step;
    o->trace.step_ns = t->step_ns;
    for (int i = 0; i < p->n_programs; i++)
        for (int r = 0; r < p->program[i].mesh.n_ranks; r++)
            memcpy(o->trace.span[i] + (size_t)r * (size_t)o->x[i].n, hp_trace_spans(t, i, r),
                   sizeof(hp_span) * (size_t)o->x[i].n);
}

/* Returns a copy of `list` with room for one more: others append to the record too, so nobody
 * knows of spare room. */
static void *grown(hp_arena *a, const void *list, int n, size_t size)
{
    void *more = hp_arena_alloc(a, size * ((size_t)n + 1));
    if (n > 0)
        memcpy(more, list, size * (size_t)n);
    return more;
}

void hp_outcome_warn(hp_outcome *o, const char *text)
{
    hp_result *r = o->result;
    r->warning = grown(&r->arena, r->warning, r->n_warnings, sizeof *r->warning);
    r->warning[r->n_warnings++] = hp_arena_strdup(&r->arena, text);
}

static const char *copied(hp_result *r, const char *s)
{
    return s ? hp_arena_strdup(&r->arena, s) : NULL;
}

void hp_outcome_assume(hp_outcome *o, const char *name, const char *value, const char *source,
                       bool unverified)
{
    hp_result *r = o->result;
    r->assumption = grown(&r->arena, r->assumption, r->n_assumptions, sizeof *r->assumption);
    r->assumption[r->n_assumptions++] =
        (hp_assumption){copied(r, name), copied(r, value), copied(r, source), unverified};
}

void hp_outcome_describe(hp_outcome *o, const char *mode, const char *clock, const char *grain,
                         uint64_t seed)
{
    hp_result *r = o->result = hp_result_new();
    const hp_case *c = &o->c;
    r->mode = mode;
    r->clock = clock;
    r->grain = grain;
    r->seed = seed;
    r->model = copied(r, c->graph->name);
    r->cluster = copied(r, c->cluster->spec);
    r->strategy_name = copied(r, c->strategy->name);
    r->strategy_shorthand = copied(r, c->strategy->shorthand);
    r->strategy_resolved = copied(r, hp_str_text(&c->built.resolved));
    r->strategy_hash = hp_strategy_hash(c->strategy);
    r->profile_hash = hp_cluster_hash(c->cluster);
    r->n_devices = c->built.plan->n_devices;
}

void hp_outcome_measure(hp_outcome *o, double step_s)
{
    const hp_case *c = &o->c;
    bool bf16 = c->strategy->dtype && strcmp(c->strategy->dtype, "bf16") == 0;
    hp_metrics_fill(c->built.plan, o->x, &o->trace, o->result);
    if (!isnan(step_s)) {
        hp_result *r = o->result;
        double tokens = (double)c->built.plan->global_batch * (double)c->built.plan->seq;
        r->step_s = step_s;
        r->tokens_per_s = tokens / step_s;
        r->tokens_per_s_per_device = r->tokens_per_s / r->n_devices;
    }
    hp_metrics_flops(c->built.plan, o->result);
    hp_metrics_cluster(c->built.plan, o->x, &o->trace, c->cluster,
                       bf16 ? HP_RATE_BF16 : HP_RATE_F32, o->result);
    for (int i = 0; i < c->built.n_notes; i++)
        hp_outcome_assume(o, c->built.note[i].name, c->built.note[i].value, c->built.note[i].source,
                          false);
}

void hp_outcome_keep(hp_outcome *o)
{
    hp_str text = {0};
    char warning[1200];
    hp_json_result(o->result, &text);
    hp_keep(o->result, o->interrupted ? "interrupted" : "done", hp_str_text(&text), &o->stored,
            warning, sizeof warning);
    if (warning[0])
        hp_outcome_warn(o, warning);
    hp_str_fini(&text);
}

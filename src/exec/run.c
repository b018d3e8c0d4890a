/* run.c -- prepare, then step after step. */
#include "exec/run.h"

#include "exec/pin.h"
#include "exec/poison.h"
#include "exec/prepare.h"
#include "exec/sched.h"
#include "exec/work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

hp_exec_options hp_exec_options_default(void)
{
    return (hp_exec_options){.steps = 1, .seed = 1, .kernels = HP_KERN_BEST};
}

hp_expansion *hp_exec_expand(const hp_plan *p)
{
    hp_expansion *x = hp_xcalloc((size_t)p->n_programs + 1, sizeof *x);
    for (int i = 0; i < p->n_programs; i++)
        hp_expand(&p->program[i], &x[i]);
    return x;
}

void hp_exec_expansions_free(const hp_plan *p, hp_expansion *x)
{
    for (int i = 0; x && i < p->n_programs; i++)
        hp_expansion_fini(&x[i]);
    free(x);
}

static void choose_workers(hp_engine *g)
{
    int cores = g->o->cores > 0 ? g->o->cores : hp_pin_cores();
    int n = g->o->workers > 0 ? g->o->workers : cores < g->n_devices ? cores : g->n_devices;
    g->cores = cores;
    g->workers = n < 1 ? 1 : n;
    g->team = cores / g->workers < 1 ? 1 : cores / g->workers;
    g->seg->head->workers = g->workers;
    g->seg->head->team = g->team;
    for (int i = 0; i < HP_LINKS; i++)
        g->paced = g->paced || g->o->link_bandwidth[i] > 0 || g->o->link_latency[i] > 0;
    for (int i = 0; i < g->o->n_slow; i++)
        g->paced = g->paced || g->o->slow[i] > 1;
}

static void allocate_scratch(hp_engine *g)
{
    g->scratch_bytes = (hp_work_scratch(g) + 63) / 64 * 64;
    g->scratch = hp_arena_alloc(&g->arena, (size_t)g->workers * sizeof *g->scratch);
    for (int i = 0; i < g->workers && g->scratch_bytes > 0; i++) {
        g->scratch[i] = aligned_alloc(64, (size_t)g->scratch_bytes);
        if (!g->scratch[i])
            abort();
        memset(g->scratch[i], 0, (size_t)g->scratch_bytes);
    }
}

static void read_inject(hp_engine *g)
{
    static const struct {
        const char *kind;
        int signal;
    } known[] = {{"abort:", SIGABRT}, {"segv:", SIGSEGV}, {"fail:", -1}};
    const char *s = getenv("HPBENCH_INJECT");
    for (size_t i = 0; s && i < sizeof known / sizeof known[0]; i++)
        if (strncmp(s, known[i].kind, strlen(known[i].kind)) == 0) {
            g->inject = known[i].signal;
            g->inject_glob = s + strlen(known[i].kind);
        }
}

static hp_err make_ready(hp_engine *g, const hp_expansion *x, hp_errmsg *e)
{
    hp_err rc = hp_prepare(g, x, e);
    if (rc)
        return rc;
    choose_workers(g);
    allocate_scratch(g);
    read_inject(g);
    if (g->o->poison)
        hp_poison_prepare(g);
    for (int k = 0; k < g->n_sides; k++)
        for (int r = 0; r < g->side[k].n_ranks && !rc; r++)
            rc = hp_work_init(g, &g->side[k], r, e);
    return rc;
}

static bool asked_to_stop(const hp_engine *g)
{
    return g->h->cancel && atomic_load(g->h->cancel) >= 1;
}

static hp_err run_steps(hp_engine *g, hp_errmsg *e)
{
    for (int64_t i = 0; i < g->o->steps; i++) {
        if (asked_to_stop(g))
            return hp_fail(e, HP_ECANCELLED, "ended after %lld of %lld steps, as asked",
                           (long long)i, (long long)g->o->steps);
        g->step = g->o->first_step + i;
        hp_err rc = hp_sched_step(g, e);
        if (rc)
            return rc;
        g->seg->metrics[i] = g->now;
        hp_segment_end(g->seg, g->slot, g->now.step_ns);
        if (g->h->step)
            g->h->step(g->h->ctx, &g->now);
    }
    return HP_OK;
}

static void hand_over(hp_engine *g)
{
    for (int k = 0; k < g->n_sides; k++)
        for (int r = 0; r < g->side[k].n_ranks; r++)
            for (int i = 0; i < g->side[k].p->n_buffers; i++) {
                hp_operand o;
                hp_errmsg e;
                if (g->side[k].p->buffer[i].scope == HP_S_PERSIST &&
                    g->side[k].p->buffer[i].route < 0 &&
                    hp_work_operand(&g->side[k], r, i, -1, &o, &e) == HP_OK)
                    g->h->final(g->h->ctx, k, r, i, &o);
            }
}

hp_err hp_exec_run_in(const hp_plan *p, const hp_expansion *x, const hp_exec_options *o,
                      const hp_exec_hooks *h, hp_segment *s, hp_errmsg *e)
{
    hp_exec_hooks hooks = h ? *h : (hp_exec_hooks){0};
    if (!hooks.cancel)
        hooks.cancel = &s->head->cancel;
    hp_engine *g = hp_xcalloc(1, sizeof *g);
    *g = (hp_engine){.plan = p, .o = o, .h = &hooks, .seg = s};
    hp_sched *sched = NULL;
    hp_err rc = make_ready(g, x, e);
    if (!rc)
        rc = hp_sched_start(g, &sched, e);
    atomic_store(&s->head->phase, HP_RUN_RUNNING);
    if (!rc)
        rc = run_steps(g, e);
    if (!rc && hooks.final)
        hand_over(g);
    hp_sched_stop(sched);
    for (int i = 0; g->scratch && i < g->workers; i++)
        free(g->scratch[i]);
    for (int i = 0; i < g->n_sides; i++) {
        free(g->side[i].life);
        free(g->side[i].life_of);
    }
    hp_prepare_undo(g);
    free(g);
    return rc;
}

hp_err hp_exec_run(const hp_plan *p, const hp_exec_options *o, const hp_exec_hooks *h,
                   hp_exec_report *out, hp_errmsg *e)
{
    hp_expansion *x = hp_exec_expand(p);
    *out = (hp_exec_report){0};
    hp_err rc = hp_segment_new(p, x, o->steps, false, &out->segment, e);
    if (!rc) {
        rc = hp_exec_run_in(p, x, o, h, out->segment, e);
        out->steps = atomic_load(&out->segment->head->steps_done);
        out->metrics = out->segment->metrics;
    }
    hp_exec_expansions_free(p, x);
    return rc;
}

void hp_exec_report_fini(hp_exec_report *r)
{
    hp_segment_free(r->segment);
    *r = (hp_exec_report){0};
}

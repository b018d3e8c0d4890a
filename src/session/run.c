/* run.c -- the engine runs in a child; this process looks at its segment, passes the user's wish
 * to stop on, and measures what is left. */
#include "session/run.h"

#include "exec/child.h"
#include "session/corpus.h"
#include "session/signals.h"
#include "sim/sim.h"
#include "trace/owners.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what the engine is asked for --- */

static hp_err fill_options(const hp_run_ask *ask, const hp_case *c, const char *corpus,
                           hp_exec_options *o, hp_errmsg *e)
{
    *o = hp_exec_options_default();
    o->steps = ask->steps > 0 ? ask->steps : 20;
    o->seed = ask->seed;
    o->pin = true;
    o->data.seed = ask->seed;
    if (strlen(corpus) >= sizeof o->corpus)
        return hp_fail(e, HP_EUSAGE, "--data: the path is longer than %zu characters",
                       sizeof o->corpus - 1);
    snprintf(o->corpus, sizeof o->corpus, "%s", corpus);
    const hp_level *node = hp_cluster_level(c->cluster, "node");
    for (int i = 0; c->cluster->paced && node && i < HP_LINK_COPY; i++) {
        o->link_bandwidth[i] = node->bandwidth;
        o->link_latency[i] = node->latency;
    }
    o->n_slow = c->built.plan->n_devices < 64 ? c->built.plan->n_devices : 64;
    for (int i = 0; i < o->n_slow; i++)
        o->slow[i] = hp_cluster_slowness(c->cluster, i);
    return HP_OK;
}

/* --- while it runs --- */

static double masking_now(const hp_outcome *out, const hp_segment *s)
{
    int slot = hp_segment_newest(s);
    if (slot < 0)
        return NAN;
    hp_step_trace t;
    hp_segment_trace(s, slot, &t);
    hp_owned o = hp_owners_sum(&out->c.built.plan->program[0], &out->x[0], hp_trace_spans(&t, 0, 0),
                               t.step_ns);
    hp_segment_trace_fini(&t);
    return hp_ratio(o.masked_ns, o.comm_ns);
}

static void tell_progress(const hp_run_ask *ask, const hp_outcome *out, const hp_segment *s,
                          int64_t steps, int64_t *told)
{
    int64_t done = atomic_load(&s->head->steps_done);
    if (!ask->progress || done <= *told)
        return;
    *told = done;
    const hp_exec_metrics *m = &s->metrics[done - 1];
    hp_progress p = {done, steps, m->loss, (double)m->step_ns * 1e-9, masking_now(out, s)};
    ask->progress(ask->ctx, &p);
}

/* Waits for the end of the child; true when the user asked to stop. */
static bool watch(const hp_run_ask *ask, const hp_outcome *out, hp_exec_child *child, int64_t steps)
{
    int64_t told = 0;
    bool stopped = false;
    hp_signals_hold(0); /* a second signal ends this process, whose death ends the child */
    while (!hp_exec_child_ended(child, 50000000)) {
        tell_progress(ask, out, hp_exec_child_segment(child), steps, &told);
        if (hp_signals_asked() && !stopped) {
            hp_exec_child_cancel(child);
            stopped = true;
        }
    }
    stopped = stopped || hp_signals_asked();
    hp_signals_release();
    tell_progress(ask, out, hp_exec_child_segment(child), steps, &told);
    return stopped;
}

/* --- what is left --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of the steps after the first (which pays for warming up), and half the width of its 95
 * % confidence interval from order statistics: ranks n/2 -+ 0.98 sqrt(n) (Conover, Practical
 * Nonparametric Statistics, 3.2); NAN below 6 steps. */
static double median_step(const double *step_s, int n, double *half_width)
{
    int skip = n > 1;
    n -= skip;
    double *v = hp_xmalloc(sizeof *v * (size_t)n);
    memcpy(v, step_s + skip, sizeof *v * (size_t)n);
    qsort(v, (size_t)n, sizeof *v, by_value);
    double median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    int lo = (int)floor(n / 2.0 - 0.98 * sqrt(n)), hi = n - 1 - lo;
    *half_width = n < 6 ? NAN : (v[hi] - v[lo < 0 ? 0 : lo]) / 2;
    free(v);
    return median;
}

/* The kept step whose length is nearest to the median: the one to look at. */
static int typical_slot(const hp_segment *s, double median_s)
{
    int best = -1;
    double nearest = INFINITY;
    for (int i = 0; i < s->head->ring; i++) {
        int64_t step = atomic_load(&s->head->slot[i].step),
                ns = atomic_load(&s->head->slot[i].step_ns);
        double off = fabs((double)ns * 1e-9 - median_s);
        if (step < 0 || ns <= 0 || off >= nearest)
            continue;
        nearest = off;
        best = i;
    }
    return best;
}

static void copy_curves(hp_outcome *out, const hp_segment *s, int n)
{
    hp_result *r = out->result;
    double **curve[] = {&r->loss, &r->grad_norm, &r->step_times};
    bool any_norm = false;
    for (int i = 0; i < 3; i++)
        *curve[i] = hp_arena_alloc(&r->arena, sizeof **curve[i] * ((size_t)n + 1));
    for (int i = 0; i < n; i++) {
        r->loss[i] = s->metrics[i].loss;
        r->grad_norm[i] = s->metrics[i].grad_norm;
        r->step_times[i] = (double)s->metrics[i].step_ns * 1e-9;
        any_norm = any_norm || !isnan(r->grad_norm[i]);
    }
    r->grad_norm = any_norm ? r->grad_norm : NULL;
    r->n_steps = n;
}

/* --clock model: the measured durations on the modelled clock, with as many devices at once as
 * the plan has. */
static hp_err replay(hp_outcome *out, const hp_segment *s, int slot, hp_errmsg *e)
{
    const hp_plan *p = out->c.built.plan;
    int64_t **busy = hp_xcalloc((size_t)p->n_programs + 1, sizeof *busy);
    hp_step_trace bytes, t = {0};
    for (int i = 0; i < p->n_programs; i++) {
        busy[i] = hp_xmalloc(sizeof **busy *
                             ((size_t)p->program[i].mesh.n_ranks * (size_t)out->x[i].n + 1));
        hp_segment_durations(s, i, busy[i]);
    }
    hp_segment_trace(s, slot, &bytes);
    hp_measured measured = {(const int64_t *const *)busy, &bytes};
    hp_sim_options o = {.measured = &measured, .every_device = true};
    hp_err err = hp_sim_step(p, out->x, out->c.cluster, &o, &t, e);
    if (!err) {
        t.step = bytes.step;
        out->trace = t;
    }
    hp_segment_trace_fini(&bytes);
    for (int i = 0; i < p->n_programs; i++)
        free(busy[i]);
    free(busy);
    return err;
}

static void warn_of_host(hp_outcome *out, const hp_run_ask *ask, const hp_segment *s)
{
    char text[256];
    int workers = s->head->workers, devices = out->c.built.plan->n_devices;
    if (workers < devices && !ask->model_clock) {
        snprintf(text, sizeof text,
                 "%d devices shared %d worker%s: wall times say little about overlap, because "
                 "devices took turns; --clock model replays the measured "
                 "durations as if each had its own",
                 devices, workers, workers == 1 ? "" : "s");
        hp_outcome_warn(out, text);
    }
    snprintf(text, sizeof text, "%d", workers);
    hp_outcome_assume(out, "exec.workers", text, "chosen for this machine", false);
}

static hp_err collect(const hp_run_ask *ask, hp_outcome *out, const hp_segment *s, hp_errmsg *e)
{
    int n = (int)atomic_load(&s->head->steps_done);
    double half_width = NAN, median = NAN;
    hp_err err = HP_OK;
    hp_outcome_describe(out, "run", ask->model_clock ? "model" : "wall", NULL, ask->seed);
    copy_curves(out, s, n);
    median = median_step(out->result->step_times, n, &half_width);
    int slot = typical_slot(s, median);
    if (slot >= 0 && ask->model_clock) {
        err = replay(out, s, slot, e);
    } else if (slot >= 0) {
        hp_step_trace t;
        hp_segment_trace(s, slot, &t);
        hp_outcome_copy_trace(out, &t);
        hp_segment_trace_fini(&t);
    }
    if (err)
        return err;
    hp_outcome_measure(out, ask->model_clock ? NAN : median);
    out->result->step_s_ci = ask->model_clock ? NAN : half_width;
    warn_of_host(out, ask, s);
    hp_outcome_keep(out);
    return HP_OK;
}

/* --- the whole --- */

static hp_err run_child(const hp_run_ask *ask, const hp_exec_options *o, hp_outcome *out,
                        hp_errmsg *e)
{
    hp_exec_child *child = NULL;
    hp_err err = hp_exec_spawn(out->c.built.plan, o, &child, e);
    if (err)
        return err;
    out->interrupted = watch(ask, out, child, o->steps);
    err = hp_exec_child_result(child, e);
    const hp_segment *s = hp_exec_child_segment(child);
    int64_t done = atomic_load(&s->head->steps_done);
    out->interrupted = out->interrupted && (err == HP_ECANCELLED || done < o->steps);
    if ((!err || err == HP_ECANCELLED) && done > 0) {
        hp_errmsg why;
        hp_err measured = collect(ask, out, s, &why);
        if (!err && measured) {
            err = measured;
            *e = why;
        }
    }
    hp_exec_child_free(child);
    if (out->interrupted)
        return hp_fail(e, HP_ECANCELLED, "interrupted after step %lld of %lld", (long long)done,
                       (long long)o->steps);
    return err;
}

hp_err hp_session_run(const hp_run_ask *ask, hp_outcome *out, hp_errmsg *e)
{
    char *corpus = NULL;
    hp_exec_options o;
    hp_err err = hp_session_corpus(ask->data, &corpus, e);
    if (!err)
        err = hp_outcome_open(&ask->what, out, e);
    if (!err && !out->c.cluster->is_host)
        err = hp_fail(
            e, HP_EUSAGE,
            "run trains on virtual devices of this machine: -c host:%d (hpbench sim predicts %s)",
            out->c.cluster->n_devices, out->c.cluster->spec);
    if (!err)
        err = fill_options(ask, &out->c, corpus, &o, e);
    if (!err)
        err = run_child(ask, &o, out, e);
    free(corpus);
    return err;
}

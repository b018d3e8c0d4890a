/* trace.c -- slices of one stream are made disjoint by construction: each begins no earlier than
 * the one before it ended. */
#include "fmt/trace.h"

#include "fmt/jsonw.h"
#include "trace/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all events of one device need. */
typedef struct device {
    hp_jsonw *w;
    const hp_program *p;
    const hp_expansion *x;
    const hp_span *span; /* of this rank */
    int pid;
    int64_t *flow; /* next flow number, shared by all devices */
} device;

static bool ended(const device *d, int inst)
{
    return atomic_load_explicit(&d->span[inst].state, memory_order_acquire) == HP_SPAN_DONE;
}

/* Opens an event; the caller adds args and closes it. */
static void event(device *d, const char *phase, const char *name, int tid, int64_t at_ns)
{
    hp_jsonw_open_flat(d->w, NULL, '{');
    hp_jsonw_str(d->w, "ph", phase);
    hp_jsonw_str(d->w, "name", name);
    hp_jsonw_int(d->w, "pid", d->pid);
    if (tid >= 0)
        hp_jsonw_int(d->w, "tid", tid);
    hp_jsonw_num(d->w, "ts", (double)at_ns / 1000);
}

/* --- names of processes and threads --- */

static void name_it(device *d, const char *what, int tid, const char *name)
{
    event(d, "M", what, tid, 0);
    hp_jsonw_open(d->w, "args", '{');
    hp_jsonw_str(d->w, "name", name);
    hp_jsonw_close(d->w);
    hp_jsonw_close(d->w);
}

static void say_names(device *d)
{
    char name[96];
    snprintf(name, sizeof name, "device %d (%s)", d->pid, d->p->name);
    name_it(d, "process_name", -1, name);
    for (int s = 0; s < d->p->n_streams; s++)
        name_it(d, "thread_name", s, d->p->stream[s].name);
}

/* --- slices --- */

static const char *category(const hp_task *t)
{
    static const char *const name[] = {"compute", "collective", "load", "send", "recv", "copy"};
    return name[t->kind];
}

static void say_wait(device *d, int stream, int64_t from, int64_t to)
{
    event(d, "X", "wait", stream, from);
    hp_jsonw_str(d->w, "cat", "wait");
    hp_jsonw_num(d->w, "dur", (double)(to - from) / 1000);
    hp_jsonw_close(d->w);
}

static void say_task(device *d, int inst, int64_t start, int64_t end)
{
    const hp_task *t = hp_inst_task(d->p, &d->x->inst[inst]);
    const hp_entry *entry = hp_inst_entry(d->p, &d->x->inst[inst]);
    const hp_span *s = &d->span[inst];
    char name[256];
    if (entry->micro >= 0)
        snprintf(name, sizeof name, "%s@%d", t->name, entry->micro);
    event(d, "X", entry->micro >= 0 ? name : t->name, t->stream, start);
    hp_jsonw_str(d->w, "cat", category(t));
    hp_jsonw_num(d->w, "dur", (double)(end - start) / 1000);
    hp_jsonw_open(d->w, "args", '{');
    hp_jsonw_num(d->w, "ready_us", (double)s->ready_ns / 1000);
    if (t->kind != HP_TASK_OP)
        hp_jsonw_int(d->w, "bytes", s->bytes);
    if (t->recompute)
        hp_jsonw_bool(d->w, "recompute", true);
    if (t->why)
        hp_jsonw_str(d->w, "why", t->why);
    hp_jsonw_close(d->w);
    hp_jsonw_close(d->w);
    if (s->xfer_ns > start && s->xfer_ns <= end)
        say_wait(d, t->stream, start, s->xfer_ns);
}

static void say_slices(device *d)
{
    int64_t *free_at = hp_xcalloc((size_t)d->p->n_streams + 1, sizeof *free_at);
    for (int i = 0; i < d->x->n; i++) {
        if (!ended(d, i))
            continue;
        int stream = hp_inst_task(d->p, &d->x->inst[i])->stream;
        int64_t start = d->span[i].start_ns, end = d->span[i].end_ns;
        start = start < free_at[stream] ? free_at[stream] : start;
        end = end < start ? start : end;
        free_at[stream] = end;
        say_task(d, i, start, end);
    }
    free(free_at);
}

/* --- flows --- */

static void say_flow(device *d, const char *phase, int stream, int64_t at, int64_t id)
{
    event(d, phase, "needs", stream, at);
    hp_jsonw_str(d->w, "cat", "dependency");
    hp_jsonw_int(d->w, "id", id);
    if (phase[0] == 'f')
        hp_jsonw_str(d->w, "bp", "e");
    hp_jsonw_close(d->w);
}

static void say_flows(device *d)
{
    for (int i = 0; i < d->x->n; i++) {
        const hp_inst *to = &d->x->inst[i];
        int stream = hp_inst_task(d->p, to)->stream;
        for (int k = 0; k < to->n_deps && ended(d, i); k++) {
            int from = d->x->dep[to->first_dep + k];
            int other = hp_inst_task(d->p, &d->x->inst[from])->stream;
            if (other == stream || !ended(d, from))
                continue;
            const hp_span *s = &d->span[from];
            int64_t id = (*d->flow)++;
            say_flow(d, "s", other, s->end_ns > s->start_ns ? s->end_ns - 1 : s->start_ns, id);
            say_flow(d, "f", stream, d->span[i].start_ns, id);
        }
    }
}

/* --- live bytes --- */

static void say_counters(device *d)
{
    hp_memory_line line = {0};
    hp_memory_over_time(d->p, d->x, d->span, &line);
    for (int i = 0; i < line.n; i++) {
        event(d, "C", "memory", -1, line.point[i].t_ns);
        hp_jsonw_open(d->w, "args", '{');
        for (int k = 0; k < HP_B_KINDS; k++)
            hp_jsonw_int(d->w, hp_bkind_name((hp_bkind)k), line.point[i].kind[k]);
        hp_jsonw_close(d->w);
        hp_jsonw_close(d->w);
    }
    hp_memory_line_fini(&line);
}

void hp_trace_chrome(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t, hp_str *out)
{
    hp_jsonw w = {.out = out};
    int64_t flow = 1;
    hp_jsonw_open(&w, NULL, '{');
    hp_jsonw_str(&w, "displayTimeUnit", "ms");
    hp_jsonw_open_flat(&w, "otherData", '{');
    hp_jsonw_str(&w, "model", p->model);
    hp_jsonw_str(&w, "cluster", p->cluster);
    hp_jsonw_str(&w, "strategy", p->strategy);
    hp_jsonw_int(&w, "step", t->step);
    hp_jsonw_close(&w);
    hp_jsonw_open(&w, "traceEvents", '[');
    for (int i = 0; i < p->n_programs; i++) {
        const hp_program *prog = &p->program[i];
        for (int rank = 0; rank < prog->mesh.n_ranks; rank++) {
            device d = {&w,   prog, &x[i], hp_trace_spans(t, i, rank), prog->mesh.first + rank,
                        &flow};
            say_names(&d);
            say_slices(&d);
            say_flows(&d);
            say_counters(&d);
        }
    }
    hp_jsonw_close(&w);
    hp_jsonw_close(&w);
}

/* metrics.c -- classes first; all else is read off the critical one. */
#include "trace/metrics.h"
#include "trace/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct class
{
    int program, rank, devices; /* rank: the one that stands for all */
    hp_owned owned;
    char name[64];
} class;

typedef struct classes {
    int n, cap;
    class *v;
} classes;

static int64_t weight(const hp_owned *o)
{
    int64_t sum = o->ns[HP_OWNER_COMPUTE] + o->ns[HP_OWNER_OVERLAPPED];
    for (int i = 0; i < HP_OWN_ROLES; i++)
        sum += o->ns[HP_OWNER_EXPOSED + i];
    return sum;
}

static bool alike(const hp_owned *a, const hp_owned *b)
{
    return memcmp(a->ns, b->ns, sizeof a->ns) == 0 && a->comm_ns == b->comm_ns &&
           a->masked_ns == b->masked_ns;
}

static class *add_class(classes *l, int program, int rank, const hp_owned *o)
{
    l->v = hp_grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    class *c = &l->v[l->n++];
    *c = (class){.program = program, .rank = rank, .owned = *o};
    return c;
}

/* Puts one row's ranks into the program's classes, which begin at `first`. */
static void add_row(classes *l, int first, int program, int rank, int devices, const hp_owned *o)
{
    class *c = NULL;
    for (int i = first; i < l->n && !c; i++)
        if (alike(&l->v[i].owned, o))
            c = &l->v[i];
    if (!c)
        c = add_class(l, program, rank, o);
    c->devices += devices;
}

/* Keeps only the heaviest class of a program, for all its devices. */
static void merge(classes *l, int first)
{
    int best = first, devices = 0;
    for (int i = first; i < l->n; i++) {
        devices += l->v[i].devices;
        if (weight(&l->v[i].owned) > weight(&l->v[best].owned))
            best = i;
    }
    class keep = l->v[best];
    keep.devices = devices;
    l->v[first] = keep;
    l->n = first + 1;
}

static void name_classes(classes *l, int first, const char *program)
{
    for (int i = first; i < l->n; i++) {
        if (l->n - first == 1)
            snprintf(l->v[i].name, sizeof l->v[i].name, "%s", program);
        else
            snprintf(l->v[i].name, sizeof l->v[i].name, "%s/rank%d", program, l->v[i].rank);
    }
}

static void classify_program(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t, int i,
                             classes *l)
{
    const hp_program *pr = &p->program[i];
    int first = l->n, ranks = pr->mesh.n_ranks;
    int rows = t->n_rows ? t->n_rows[i] : ranks;
    int *devices = hp_xcalloc((size_t)rows, sizeof *devices);
    for (int r = 0; r < ranks; r++)
        devices[hp_trace_row(t, i, r)]++;
    for (int r = 0; r < ranks; r++) {
        int row = hp_trace_row(t, i, r), n = devices[row];
        devices[row] = 0; /* a row is looked at with its first rank */
        if (n == 0)
            continue;
        hp_owned o = hp_owners_sum(pr, &x[i], hp_trace_spans(t, i, r), t->step_ns);
        add_row(l, first, i, r, n, &o);
    }
    free(devices);
    if (l->n - first > HP_MAX_CLASSES_A_PROGRAM)
        merge(l, first);
    name_classes(l, first, pr->name);
}

static classes classify(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t)
{
    classes l = {0};
    for (int i = 0; i < p->n_programs; i++)
        classify_program(p, x, t, i, &l);
    return l;
}

static const class *critical(const classes *l)
{
    const class *best = &l->v[0];
    for (int i = 1; i < l->n; i++) {
        int64_t a = weight(&l->v[i].owned), b = weight(&best->owned);
        if (a > b || (a == b && strcmp(l->v[i].name, best->name) < 0))
            best = &l->v[i];
    }
    return best;
}

/* --- memory
 * ------------------------------------------------------------------------------------------------ */

static const char *peak_text(const hp_program *p, const hp_expansion *x, int inst, hp_arena *a)
{
    if (inst < 0)
        return "outside of tasks";
    const hp_entry *e = hp_inst_entry(p, &x->inst[inst]);
    const char *task = hp_inst_task(p, &x->inst[inst])->name;
    return e->micro < 0 ? hp_arena_printf(a, "%s in %s", task, p->name)
                        : hp_arena_printf(a, "%s of microbatch %d in %s", task, e->micro, p->name);
}

hp_memory_figures hp_metrics_memory(const hp_plan *p, int program, const hp_expansion *x,
                                    const hp_span *spans, hp_arena *a)
{
    const hp_program *pr = &p->program[program];
    hp_memory_figures m = hp_memory_figures_none();
    hp_memory_line l = {0};
    hp_memory_over_time(pr, x, spans, &l);
    const hp_memory_point *peak = &l.point[l.peak];
    m.peak_bytes = (double)peak->total;
    for (int k = 0; k < HP_B_KINDS; k++)
        m.by_kind[k] = (double)peak->kind[k];
    m.by_kind[HP_MEM_KINDS - 1] = 0;
    m.arena_bytes = (double)hp_program_arena(pr);
    m.reserved_est_bytes = m.process_est_bytes = m.arena_bytes;
    m.capacity_bytes = p->budget_bytes > 0 ? (double)p->budget_bytes : NAN;
    m.fits = p->budget_bytes <= 0 || m.arena_bytes <= (double)p->budget_bytes;
    m.fits_basis = "arena";
    m.peak_at = peak_text(pr, x, l.peak_inst, a);
    for (int t = 0; t < HP_TIERS; t++)
        m.tier[t] = (double)hp_memory_tier_bytes(pr, (hp_tier)t);
    hp_memory_line_fini(&l);
    return m;
}

/* --- the record
 * -------------------------------------------------------------------------------------------- */

static void fill_axes(const hp_owned *o, hp_result *r)
{
    r->n_axes = o->n_axes;
    r->axis = hp_arena_alloc(&r->arena, (size_t)o->n_axes * sizeof *r->axis);
    for (int i = 0; i < o->n_axes; i++) {
        const hp_axis_use *u = &o->axis[i];
        r->axis[i] = (hp_axis_figures){.axis = hp_arena_strdup(&r->arena, u->name),
                                       .masking_ratio = hp_ratio(u->masked_ns, u->comm_ns),
                                       .comm_s = (double)u->comm_ns * 1e-9,
                                       .bytes = (double)u->bytes};
    }
}

static void fill_classes(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t,
                         const classes *l, hp_result *r)
{
    r->n_classes = l->n;
    r->cls = hp_arena_alloc(&r->arena, (size_t)l->n * sizeof *r->cls);
    for (int i = 0; i < l->n; i++) {
        const class *c = &l->v[i];
        hp_class_figures *f = &r->cls[i];
        f->name = hp_arena_strdup(&r->arena, c->name);
        f->devices = c->devices;
        f->stage = p->program[c->program].stage;
        f->time = hp_owned_seconds(&c->owned);
        f->masking_ratio = hp_ratio(c->owned.masked_ns, c->owned.comm_ns);
        f->memory = hp_metrics_memory(p, c->program, &x[c->program],
                                      hp_trace_spans(t, c->program, c->rank), &r->arena);
        if (i == 0 || f->memory.arena_bytes > r->memory.arena_bytes ||
            (f->memory.arena_bytes == r->memory.arena_bytes &&
             f->memory.peak_bytes > r->memory.peak_bytes))
            r->memory = f->memory;
    }
}

void hp_metrics_fill(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t, hp_result *r)
{
    classes l = classify(p, x, t);
    r->n_devices = p->n_devices;
    r->step_s = (double)t->step_ns * 1e-9;
    if (t->step_ns > 0 && p->global_batch > 0) {
        r->tokens_per_s = (double)p->global_batch * (double)p->seq / r->step_s;
        r->tokens_per_s_per_device = r->tokens_per_s / p->n_devices;
    }
    if (l.n > 0) {
        const hp_owned *o = &critical(&l)->owned;
        r->time = hp_owned_seconds(o);
        r->masking_ratio = hp_ratio(o->masked_ns, o->comm_ns);
        r->copy_masking_ratio = hp_ratio(o->copy_masked_ns, o->copy_ns);
        fill_axes(o, r);
        fill_classes(p, x, t, &l, r);
    }
    free(l.v);
}

/* --- flops
 * ------------------------------------------------------------------------------------------------- */

/* Matmul flops of a task on all ranks together. Of very many ranks the first and the last stand for
 * all: exact where boxes are even, since work then depends linearly on the place along an axis, if
 * at all (causal attention over a split sequence). */
static double task_flops(const hp_program *p, const hp_task *t)
{
    enum { MANY_RANKS = 64 };
    int n = p->mesh.n_ranks;
    if (n > MANY_RANKS)
        return 0.5 * n *
               (hp_task_work(p, t, 0).matmul_flops + hp_task_work(p, t, n - 1).matmul_flops);
    double sum = 0;
    for (int r = 0; r < n; r++)
        sum += hp_task_work(p, t, r).matmul_flops;
    return sum;
}

static void add_template_flops(const hp_program *p, int tmpl, double *executed, double *recompute)
{
    const hp_template *tm = &p->tmpl[tmpl];
    for (int k = 0; k < tm->n_tasks; k++) {
        const hp_task *t = &tm->task[k];
        if (!hp_task_is_matmul(t))
            continue;
        int times = 0;
        for (int i = 0; i < p->n_entries; i++)
            times += p->entry[i].tmpl == tmpl && hp_task_due(t, &p->entry[i]);
        double flops = times ? times * task_flops(p, t) : 0;
        *executed += flops;
        *recompute += t->recompute ? flops : 0;
    }
}

void hp_metrics_flops(const hp_plan *p, hp_result *r)
{
    double executed = 0, recompute = 0;
    for (int i = 0; i < p->n_programs; i++)
        for (int k = 0; k < p->program[i].n_templates; k++)
            add_template_flops(&p->program[i], k, &executed, &recompute);
    r->flops_model = p->model_flops_causal;
    r->flops_executed = executed;
    r->flops_recompute = recompute;
    r->flops_padding = 0; /* vocabulary and sequence are never padded silently */
    r->flops_replicated = fmax(0, executed - recompute - r->flops_model);
}

/* --- what needs the cluster
 * ---------------------------------------------------------------------------------- */

static int level_of_task(const hp_plan *p, const hp_program *pr, const hp_task *t, int rank,
                         const hp_cluster *c)
{
    if (t->kind == HP_TASK_COLL) {
        int *member = hp_xmalloc((size_t)pr->mesh.n_ranks * sizeof *member);
        int n = hp_mesh_group(&pr->mesh, rank, t->atoms, member);
        for (int i = 0; i < n; i++)
            member[i] += pr->mesh.first;
        int level = hp_cluster_group(c, member, n).outer;
        free(member);
        return level;
    }
    int here = pr->mesh.first + rank;
    int there = p->program[t->peer].mesh.first + rank % p->program[t->peer].mesh.n_ranks;
    int first = here < there ? here : there;
    return hp_cluster_level_of(c, first, here + there - 2 * first, here == there ? 1 : 2);
}

static void fill_levels(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t,
                        const hp_cluster *c, hp_result *r)
{
    classes l = classify(p, x, t);
    r->n_levels = c->n_levels;
    const class *k = l.n > 0 ? critical(&l) : NULL;
    for (int i = 0; k && i < x[k->program].n; i++) {
        const hp_program *pr = &p->program[k->program];
        const hp_task *task = hp_inst_task(pr, &x[k->program].inst[i]);
        int64_t bytes = hp_trace_spans(t, k->program, k->rank)[i].bytes;
        if (hp_task_class_of(task) != HP_TC_TRANSFER || bytes == 0)
            continue;
        int level = level_of_task(p, pr, task, k->rank, c);
        if (level >= 0)
            r->bytes_by_level[level] += (double)bytes;
    }
    free(l.v);
}

static void fill_assumptions(const hp_cluster *c, hp_result *r)
{
    r->assumption = hp_arena_alloc(&r->arena, (size_t)c->n_notes * sizeof *r->assumption);
    r->n_assumptions = c->n_notes;
    for (int i = 0; i < c->n_notes; i++) {
        const hp_cluster_note *n = &c->note[i];
        r->assumption[i] = (hp_assumption){hp_arena_printf(&r->arena, "cluster.%s", n->name),
                                           hp_arena_strdup(&r->arena, n->value),
                                           hp_arena_strdup(&r->arena, n->source), n->unverified};
    }
}

void hp_metrics_cluster(const hp_plan *p, const hp_expansion *x, const hp_step_trace *t,
                        const hp_cluster *c, hp_rate rate, hp_result *r)
{
    hp_rate used;
    double peak = hp_cluster_peak(c, rate, &used), could = peak * p->n_devices * r->step_s;
    r->cluster = hp_arena_strdup(&r->arena, c->spec);
    r->profile_hash = hp_cluster_hash(c);
    r->mfu_peak_tflops = peak * 1e-12;
    r->mfu_dtype = hp_rate_name(used);
    if (could > 0) {
        r->mfu = p->model_flops_causal / could;
        r->mfu_full_attention = p->model_flops_full / could;
        r->hfu =
            (p->model_flops_causal + (isnan(r->flops_recompute) ? 0 : r->flops_recompute)) / could;
    }
    fill_levels(p, x, t, c, r);
    fill_assumptions(c, r);
}

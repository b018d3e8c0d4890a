/* fit.c -- the peak is looked for template by template: what lives for good, what other microbatches in flight hold, and what is alive at each task.
 *
 * Changes are tried in the order of what they cost in time, cheapest first: sharding optimizer states and gradients moves no more bytes than data parallelism
 * does, recomputation costs at most a third of the compute, sharded parameters half as many bytes again, a smaller microbatch efficiency everywhere.
 */
#include "plan/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct moment {
    const hp_program *p;
    int tmpl, task;
    int64_t bytes;
} moment;

typedef struct span { /* first and last task of a template that names a buffer */
    int birth, death;
} span;

static void spans(const hp_program *p, const hp_template *t, span *s)
{
    for (int i = 0; i < p->n_buffers; i++)
        s[i] = (span){-1, -1};
    for (int i = 0; i < t->n_tasks; i++)
        for (int k = 0; k < t->task[i].n_in + t->task[i].n_out; k++) {
            int b = t->task[i].buf[k] < 0 ? -1 : hp_buffer_root(p, t->task[i].buf[k]);
            if (b < 0)
                continue;
            if (s[b].birth < 0)
                s[b].birth = i;
            s[b].death = i;
        }
    for (int i = 0; i < p->n_buffers; i++) /* frames outlive F and are there when B begins */
        if (p->buffer[i].scope == HP_S_FRAME && s[i].birth >= 0) {
            if (t->kind == HP_TMPL_F)
                s[i].death = t->n_tasks;
            else
                s[i].birth = 0;
        }
}

static bool alive(const hp_program *p, const span *s, int b, int task)
{
    if (p->buffer[b].tier != HP_TIER_HBM || p->buffer[b].alias >= 0)
        return false;
    if (p->buffer[b].scope == HP_S_PERSIST || p->buffer[b].scope == HP_S_STEP)
        return true;
    return s[b].birth >= 0 && s[b].birth <= task && task <= s[b].death;
}

static moment find_peak(const hp_program *p, span *s)
{
    moment best = {.p = p};
    for (int t = 0; t < p->n_templates; t++) {
        spans(p, &p->tmpl[t], s);
        int others = p->tmpl[t].kind == HP_TMPL_F || p->tmpl[t].kind == HP_TMPL_B ? p->n_frames - 1 : 0;
        for (int i = 0; i < p->tmpl[t].n_tasks; i++) {
            int64_t sum = others * p->scope_bytes[HP_S_FRAME];
            for (int b = 0; b < p->n_buffers; b++)
                sum += alive(p, s, b, i) ? p->buffer[b].bytes : 0;
            if (sum > best.bytes)
                best = (moment){p, t, i, sum};
        }
    }
    return best;
}

static void name_largest(const moment *m, const span *s, hp_str *out)
{
    const hp_program *p = m->p;
    bool *used = hp_xcalloc((size_t)p->n_buffers, sizeof *used);
    for (int k = 0; k < 5; k++) {
        int best = -1;
        for (int b = 0; b < p->n_buffers; b++)
            if (!used[b] && alive(p, s, b, m->task) && (best < 0 || p->buffer[b].bytes > p->buffer[best].bytes))
                best = b;
        if (best < 0)
            break;
        char bytes[32];
        used[best] = true;
        hp_str_add(out, "%s%s %s", k ? ", " : "", p->buffer[best].name, hp_format_bytes((double)p->buffer[best].bytes, bytes, sizeof bytes));
    }
    free(used);
}

/* --- changes that might fit ------------------------------------------------------------------------------------------------- */

enum { ZERO1 = 1, ZERO2 = 2, ZERO3 = 4, RECOMPUTE = 8, HALF = 16 };

static const char *data_axes(const hp_strategy *s)
{
    for (int i = 0; i < s->split.n; i++)
        if (!strcmp(s->split.rule[i].dim, "batch"))
            return s->split.rule[i].axes;
    return NULL;
}

static bool apply(hp_strategy *t, int change, hp_rule *all)
{
    const char *axes = data_axes(t);
    if (change & (ZERO1 | ZERO2 | ZERO3)) {
        if (!axes || (t->states.params && change & ZERO3) || (t->states.grads && change & ZERO2) || (t->states.optimizer && change & ZERO1))
            return false;
        t->states.optimizer = axes;
        t->states.grads = change & (ZERO2 | ZERO3) ? axes : t->states.grads;
        t->states.params = change & ZERO3 ? axes : t->states.params;
    }
    if (change & RECOMPUTE) {
        if (t->recompute.n)
            return false;
        *all = (hp_rule){"layers.*", "what", "inside"};
        t->recompute = (hp_rules){.n = 1, .cap = 1, .rule = all};
    }
    if (change & HALF) {
        if (t->batch.micro < 2 || t->batch.micro % 2)
            return false;
        t->batch.micro /= 2;
    }
    return true;
}

bool hp_fits(const hp_plan *p)
{
    for (int i = 0; i < p->n_programs; i++)
        if (p->budget_bytes > 0 && hp_program_arena(&p->program[i]) > p->budget_bytes)
            return false;
    return true;
}

static void suggest(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_try_fn *try, hp_str *out)
{
    static const struct {
        int change;
        const char *words;
    } list[] = {{ZERO1, "zero=1"},
                {ZERO2, "zero=2"},
                {RECOMPUTE, "recompute=full"},
                {ZERO1 | RECOMPUTE, "zero=1,recompute=full"},
                {ZERO2 | RECOMPUTE, "zero=2,recompute=full"},
                {ZERO3, "zero=3"},
                {ZERO3 | RECOMPUTE, "zero=3,recompute=full"},
                {HALF, "half the microbatch (mbs)"},
                {HALF | ZERO3 | RECOMPUTE, "zero=3,recompute=full and half the microbatch (mbs)"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hp_strategy t = *s;
        hp_rule all;
        hp_plan *p = NULL;
        hp_errmsg e;
        if (!apply(&t, list[i].change, &all) || try(g, c, &t, &p, &e))
            continue;
        bool ok = hp_fits(p);
        hp_plan_free(p);
        if (ok) {
            hp_str_add(out, "cheapest change that fits: %s", list[i].words);
            return;
        }
    }
    hp_str_add(out, "neither ZeRO, recomputation nor half the microbatch makes it fit: use more devices, or split the model (tp, pp)");
}

hp_err hp_fit_check(hp_graph *g, const hp_cluster *c, const hp_strategy *s, const hp_plan *p, hp_try_fn *try, hp_errmsg *e)
{
    if (hp_fits(p))
        return HP_OK;
    int worst = 0;
    for (int i = 1; i < p->n_programs; i++)
        if (hp_program_arena(&p->program[i]) > hp_program_arena(&p->program[worst]))
            worst = i;
    const hp_program *q = &p->program[worst];
    span *life = hp_xcalloc((size_t)q->n_buffers + 1, sizeof *life);
    moment m = find_peak(q, life);
    hp_str largest = {0}, change = {0};
    spans(q, &q->tmpl[m.tmpl], life);
    name_largest(&m, life, &largest);
    suggest(g, c, s, try, &change);
    char need[32], have[32];
    hp_err err = hp_fail(e, HP_EINFEASIBLE, "does not fit: a device of %s needs %s of %s; peak at %s; largest then: %s; %s", q->name,
                         hp_format_bytes((double)hp_program_arena(q), need, sizeof need),
                         hp_format_bytes((double)p->budget_bytes, have, sizeof have), q->tmpl[m.tmpl].task[m.task].name, hp_str_text(&largest),
                         hp_str_text(&change));
    free(life);
    hp_str_fini(&largest);
    hp_str_fini(&change);
    return err;
}

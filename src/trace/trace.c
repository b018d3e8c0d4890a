/* trace.c -- memory of traces. Spans are zeroed: state 0 is "not yet". */
#include "trace/trace.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void hp_step_trace_init_rows(hp_step_trace *t, const hp_plan *p, const hp_expansion *x,
                             const int *n_rows, int *const *row)
{
    size_t n = (size_t)p->n_programs;
    *t = (hp_step_trace){.n_programs = p->n_programs, .owned = true};
    t->n_inst = hp_xcalloc(n, sizeof *t->n_inst);
    t->n_rows = hp_xcalloc(n, sizeof *t->n_rows);
    t->row = hp_xcalloc(n, sizeof *t->row);
    t->span = hp_xcalloc(n, sizeof *t->span);
    for (size_t i = 0; i < n; i++) {
        size_t ranks = (size_t)p->program[i].mesh.n_ranks;
        t->n_inst[i] = x[i].n;
        t->n_rows[i] = n_rows[i];
        t->span[i] = hp_xcalloc((size_t)n_rows[i] * (size_t)x[i].n, sizeof *t->span[i]);
        if (!row || !row[i])
            continue;
        t->row[i] = hp_xmalloc(ranks * sizeof(int));
        memcpy(t->row[i], row[i], ranks * sizeof(int));
    }
}

void hp_step_trace_init(hp_step_trace *t, const hp_plan *p, const hp_expansion *x)
{
    int *n_rows = hp_xmalloc((size_t)p->n_programs * sizeof *n_rows);
    for (int i = 0; i < p->n_programs; i++)
        n_rows[i] = p->program[i].mesh.n_ranks;
    hp_step_trace_init_rows(t, p, x, n_rows, NULL);
    free(n_rows);
}

void hp_step_trace_fini(hp_step_trace *t)
{
    for (int i = 0; t->owned && i < t->n_programs; i++) {
        free(t->span[i]);
        free(t->row[i]);
    }
    if (t->owned) {
        free(t->n_inst);
        free(t->n_rows);
        free(t->row);
        free(t->span);
    }
    *t = (hp_step_trace){0};
}

int hp_trace_row(const hp_step_trace *t, int program, int rank)
{
    return t->row && t->row[program] ? t->row[program][rank] : rank;
}

const hp_span *hp_trace_spans(const hp_step_trace *t, int program, int rank)
{
    return t->span[program] + (size_t)hp_trace_row(t, program, rank) * (size_t)t->n_inst[program];
}

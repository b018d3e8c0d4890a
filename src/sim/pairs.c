/* pairs.c -- all ends sorted by key: sends and receives of one key stand together, each in program
 * order. */
#include "sim/pairs.h"

#include <stdlib.h>

typedef struct end {
    int from, to, edge, micro; /* the key */
    int recv, inst;
} end;

static int compare_keys(const end *a, const end *b)
{
    int x[] = {a->from, a->to, a->edge, a->micro}, y[] = {b->from, b->to, b->edge, b->micro};
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const end *x = a, *y = b;
    int c = compare_keys(x, y);
    if (c)
        return c;
    return x->recv != y->recv ? x->recv - y->recv : (x->inst > y->inst) - (x->inst < y->inst);
}

static end *collect(const hp_plan *p, const hp_expansion *x, int *n)
{
    end *v = NULL;
    int cap = 0;
    *n = 0;
    for (int k = 0; k < p->n_programs; k++)
        for (int i = 0; i < x[k].n; i++) {
            const hp_task *t = hp_inst_task(&p->program[k], &x[k].inst[i]);
            if (t->kind != HP_TASK_SEND && t->kind != HP_TASK_RECV)
                continue;
            bool recv = t->kind == HP_TASK_RECV;
            v = hp_grow(v, &cap, *n + 1, sizeof *v);
            v[(*n)++] = (end){recv ? t->peer : k,
                              recv ? k : t->peer,
                              t->edge,
                              hp_inst_entry(&p->program[k], &x[k].inst[i])->micro,
                              recv,
                              i};
        }
    if (*n)
        qsort(v, (size_t)*n, sizeof *v, compare);
    return v;
}

static hp_err no_partner(const hp_plan *p, const hp_expansion *x, const end *v, hp_errmsg *e)
{
    int k = v->recv ? v->to : v->from, other = v->recv ? v->from : v->to;
    const hp_task *t = hp_inst_task(&p->program[k], &x[k].inst[v->inst]);
    return hp_fail(e, HP_EINFEASIBLE,
                   "task %s of %s (edge %d, microbatch %d) has no partner in program %d: every "
                   "SEND needs one RECV",
                   t->name, p->program[k].name, v->edge, v->micro, other);
}

hp_err hp_pairs_find(const hp_plan *p, const hp_expansion *x, hp_pair **out, int *n, hp_errmsg *e)
{
    int ends;
    end *v = collect(p, x, &ends);
    hp_pair *pair = hp_xmalloc((size_t)ends * sizeof *pair);
    hp_err err = HP_OK;
    *n = 0;
    for (int i = 0, len; i < ends && !err; i += len) {
        len = 1;
        while (i + len < ends && compare_keys(&v[i], &v[i + len]) == 0)
            len++;
        for (int k = 0; k < len && !err; k++)
            if (v[i + k].recv != (k >= (len + 1) / 2) || len % 2)
                err = no_partner(p, x, &v[v[i].recv ? i : i + len - 1], e);
        for (int k = 0; k < len / 2 && !err; k++)
            pair[(*n)++] = (hp_pair){v[i].from, v[i + k].inst, v[i].to, v[i + len / 2 + k].inst};
    }
    free(v);
    if (err)
        free(pair);
    else
        *out = pair;
    return err;
}

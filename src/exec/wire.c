/* wire.c -- both ends' instances are sorted by the same key, so that partners stand next to each other. */
#include "exec/wire.h"

#include "exec/known.h"

#include <stdlib.h>

typedef struct end {
    int from, to, edge, micro, nth; /* the key */
    int program, inst;              /* whose end this is */
    bool recv;
} end;

static int compare(const end *a, const end *b, bool with_side)
{
    const int x[] = {a->from,
                     a->to,
                     a->edge,
                     a->micro,
                     a->nth,
                     with_side ? a->recv : 0,
                     with_side ? a->inst : 0};
    const int y[] = {b->from,
                     b->to,
                     b->edge,
                     b->micro,
                     b->nth,
                     with_side ? b->recv : 0,
                     with_side ? b->inst : 0};
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return compare(a, b, true);
}

static end *collect(hp_engine *g, int *n)
{
    end *v = NULL;
    int cap = 0;
    *n = 0;
    for (int k = 0; k < g->n_sides; k++) {
        hp_side *s = &g->side[k];
        s->peer_inst = hp_arena_alloc(&g->arena, (size_t)(s->n_inst + 1) * sizeof(int));
        for (int i = 0; i < s->n_inst; i++) {
            const hp_task *t = hp_info_of(s, i)->task;
            s->peer_inst[i] = -1;
            if (t->kind != HP_TASK_SEND && t->kind != HP_TASK_RECV)
                continue;
            bool recv = t->kind == HP_TASK_RECV;
            v = hp_grow(v, &cap, *n + 1, sizeof *v);
            v[(*n)++] = (end){recv ? t->peer : k,
                              recv ? k : t->peer,
                              t->edge,
                              hp_entry_of(s, i)->micro,
                              0,
                              k,
                              i,
                              recv};
        }
    }
    return v;
}

/* Numbers the ends of equal key, sends and receives apart, in instance order. */
static void number(end *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_key);
    for (int i = 1; i < n; i++) {
        end before = v[i - 1];
        before.nth = 0;
        if (before.recv == v[i].recv && compare(&before, &v[i], false) == 0)
            v[i].nth = v[i - 1].nth + 1;
    }
    qsort(v, (size_t)n, sizeof *v, by_key);
}

static int task_index(const hp_side *s, int inst)
{
    const hp_inst *i = &s->x->inst[inst];
    return s->first_task[s->p->entry[i->entry].tmpl] + i->task;
}

static hp_err pair(hp_engine *g, const end *send, const end *recv, hp_errmsg *e)
{
    hp_side *a = &g->side[send->program], *b = &g->side[recv->program];
    hp_info *from = &a->info[task_index(a, send->inst)], *to = &b->info[task_index(b, recv->inst)];
    const hp_buffer *x = &a->p->buffer[from->task->buf[0]], *y = &b->p->buffer[to->task->buf[0]];
    const hp_messages *m;
    if (x->dtype != y->dtype || x->route >= 0 || y->route >= 0 || x->turn || y->turn)
        return hp_fail(e, HP_EINTERNAL,
                       "plan: task %s sends %s to %s; legal are dense, unturned buffers of one type",
                       from->task->name, x->name, y->name);
    hp_err rc = hp_known_messages(g->known, a, task_index(a, send->inst), b,
                                  task_index(b, recv->inst), &m, e);
    if (rc)
        return hp_fail_at(e, "task %s of %s", from->task->name, a->p->name);
    if ((from->messages && from->messages != m) || (to->messages && to->messages != m))
        return hp_fail(e, HP_EINTERNAL,
                       "plan: task %s sends to several tasks; each needs one of its own",
                       from->task->name);
    int elem = hp_dtype_bytes(a->p->buffer[from->task->buf[0]].dtype);
    if (!from->messages)
        for (int i = 0; i < m->n; i++)
            from->sent[m->move[i].src] += hp_box_size(&m->move[i].box) * elem;
    from->messages = to->messages = m;
    a->peer_inst[send->inst] = recv->inst;
    b->peer_inst[recv->inst] = send->inst;
    return HP_OK;
}

hp_err hp_wire(hp_engine *g, hp_errmsg *e)
{
    int n;
    end *v = collect(g, &n);
    hp_err rc = HP_OK;
    if (n > 0)
        number(v, n);
    for (int i = 0; i < n && !rc; i += 2) {
        const hp_side *s = &g->side[v[i].program];
        if (i + 1 == n || compare(&v[i], &v[i + 1], false) != 0 || v[i].recv || !v[i + 1].recv)
            rc =
                hp_fail(e, HP_EINTERNAL,
                        "plan: task %s of %s (edge %d, microbatch %d) has no partner in program %d",
                        hp_info_of(s, v[i].inst)->task->name, s->p->name, v[i].edge, v[i].micro,
                        v[i].recv ? v[i].from : v[i].to);
        else
            rc = pair(g, &v[i], &v[i + 1], e);
    }
    free(v);
    return rc;
}

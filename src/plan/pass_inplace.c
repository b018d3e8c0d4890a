/* pass_inplace.c -- results that may lie where an input lay.
 *
 * An all-reduce, and an operation whose row allows it, writes over an input of the same shape and layout when that input is a run buffer that nobody reads later
 * in its template. The result becomes an alias; memory.c then sees one buffer with a longer life.
 */
#include "plan/lower.h"

#include "op/op.h"

#include <stdlib.h>
#include <string.h>

static bool same_box(const hp_buffer *a, const hp_buffer *b)
{
    hp_layout x = a->layout, y = b->layout;
    memset(x.partial, 0, sizeof x.partial);
    memset(y.partial, 0, sizeof y.partial);
    return a->bytes == b->bytes && a->dtype == b->dtype && a->turn == b->turn && a->shape.nd == b->shape.nd &&
           !memcmp(a->shape.size, b->shape.size, (size_t)a->shape.nd * sizeof *a->shape.size) && hp_layout_equal(&x, &y) && a->route == b->route;
}

static bool may_share(const hp_task *t)
{
    if (t->kind == HP_TASK_COLL)
        return t->coll == HP_COLL_ALL_REDUCE;
    if (t->kind != HP_TASK_OP || t->accumulate)
        return false;
    const hp_op *op = hp_op_find(t->op);
    return op && op->in_place;
}

/* First and last task of the template that names each buffer (roots). */
static void find_ends(const hp_program *p, const hp_template *t, int *first, int *last)
{
    for (int i = 0; i < t->n_tasks; i++)
        for (int k = 0; k < t->task[i].n_in + t->task[i].n_out; k++)
            for (int b = t->task[i].buf[k]; b >= 0; b = p->buffer[b].route) {
                int r = hp_buffer_root(p, b);
                if (first[r] < 0)
                    first[r] = i;
                last[r] = i;
            }
}

static void share(hp_program *p, const hp_task *t, int at, int in, int out, const int *first, int *last)
{
    if (in < 0 || out < 0)
        return;
    int a = hp_buffer_root(p, in);
    hp_buffer *b = &p->buffer[out];
    if (a == out || b->alias >= 0 || b->scope != HP_S_RUN || p->buffer[a].scope != HP_S_RUN || b->tier != p->buffer[a].tier)
        return;
    if (last[a] != at || first[out] != at || !same_box(&p->buffer[a], b))
        return;
    for (int k = 0, uses = 0; k < t->n_in; k++) { /* the same bytes as two inputs may not be overwritten */
        uses += t->buf[k] >= 0 && hp_buffer_root(p, t->buf[k]) == a;
        if (uses > 1)
            return;
    }
    b->alias = in;
    last[a] = last[out] > last[a] ? last[out] : last[a];
}

void low_pass_in_place(hp_program *p)
{
    size_t n = (size_t)p->n_buffers + 1;
    int *first = hp_xmalloc(n * sizeof *first), *last = hp_xmalloc(n * sizeof *last);
    for (int k = 0; k < p->n_templates; k++) {
        const hp_template *t = &p->tmpl[k];
        memset(first, 0xff, n * sizeof *first);
        memset(last, 0xff, n * sizeof *last);
        find_ends(p, t, first, last);
        for (int i = 0; i < t->n_tasks; i++) {
            const hp_task *task = &t->task[i];
            if (!may_share(task))
                continue;
            int pairs = task->kind == HP_TASK_COLL ? task->n_in : task->n_in && task->n_out;
            for (int j = 0; j < pairs; j++)
                share(p, task, i, task->buf[j], task->buf[task->n_in + j], first, last);
        }
    }
    free(first);
    free(last);
}

/* work.c -- boxes of a task's buffers as an operation's call. */
#include "trace/work.h"

#include <math.h>
#include <string.h>

/* Rows that a rank holds when the tokens of its box choose evenly among all experts. */
static int64_t balanced_rows(const hp_program *p, const hp_buffer *b, const hp_box *box)
{
    const hp_shape *choices = &p->buffer[b->route].shape;
    double each = (double)choices->size[choices->nd - 1] / (double)b->shape.size[2];
    double rows = each;
    for (int d = 0; d < 3; d++)
        rows *= (double)(box->hi[d] - box->lo[d]);
    return llround(rows);
}

static void fill_operand(const hp_program *p, int buffer, int rank, hp_operand *o)
{
    const hp_buffer *b = &p->buffer[buffer];
    hp_box box = hp_layout_box(&p->mesh, &b->layout, &b->shape, rank);
    o->dtype = b->dtype;
    o->nd = b->shape.nd;
    for (int d = 0; d < b->shape.nd; d++) {
        o->lo[d] = box.lo[d];
        o->len[d] = box.hi[d] - box.lo[d];
        o->full[d] = b->shape.size[d];
    }
    if (b->route >= 0)
        o->rows = balanced_rows(p, b, &box);
}

void hp_task_call(const hp_program *p, const hp_task *t, int rank, hp_call *c)
{
    *c = (hp_call){.name = t->node ? t->node : t->name,
                   .n_in = t->n_in,
                   .n_out = t->n_out,
                   .n_attrs = t->n_attrs,
                   .attr = t->attr,
                   .accumulate = t->accumulate,
                   .threads = 1};
    for (int i = 0; i < t->n_in + t->n_out && i < HP_MAX_OPERANDS; i++) {
        if (t->buf[i] < 0)
            c->arg[i].nd = -1;
        else
            fill_operand(p, t->buf[i], rank, &c->arg[i]);
    }
}

static const hp_op *op_of(const hp_task *t)
{
    return t->kind == HP_TASK_OP && t->op ? hp_op_find(t->op) : NULL;
}

hp_op_work hp_task_work(const hp_program *p, const hp_task *t, int rank)
{
    hp_op_work w = {0};
    const hp_op *op = op_of(t);
    if (!op || !op->work)
        return w;
    hp_call c;
    hp_task_call(p, t, rank, &c);
    op->work(&c, &w);
    return w;
}

bool hp_task_is_matmul(const hp_task *t)
{
    const hp_op *op = op_of(t);
    return op && op->matmul;
}

/* work.c -- an instance touches its own rank's bytes, and for a RECV the senders' buffers, which wait until they have been read. */
#include "exec/work.h"

#include "kern/box.h"
#include "op/init.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* --- operands --- */

static void describe(const hp_side *s, int rank, int buffer, hp_operand *o)
{
    const hp_buffer *b = &s->p->buffer[buffer];
    const hp_box *box = hp_box_of(s, rank, buffer);
    o->dtype = b->dtype;
    o->nd = b->shape.nd;
    o->rows = b->route >= 0 ? b->rows : 0;
    o->data = NULL;
    for (int d = 0; d < o->nd; d++) {
        o->lo[d] = box->lo[d];
        o->len[d] = box->hi[d] > box->lo[d] ? box->hi[d] - box->lo[d] : 0;
        o->full[d] = b->shape.size[d];
    }
}

hp_err hp_work_operand(const hp_side *s, int rank, int buffer, int frame, hp_operand *o,
                       hp_errmsg *e)
{
    const hp_buffer *b = &s->p->buffer[buffer];
    const hp_box *box = hp_box_of(s, rank, buffer);
    describe(s, rank, buffer, o);
    if (hp_box_size(box) > 0)
        o->data = hp_data(s, rank, buffer, frame);
    if (b->route < 0)
        return HP_OK;
    hp_operand choices;
    describe(s, rank, b->route, &choices);
    choices.data = hp_data(s, rank, b->route, frame);
    o->rows = hp_rows_count(&choices, box); /* also where no part of a row is here */
    if (o->rows <= b->rows)
        return HP_OK;
    return hp_fail(e, HP_EINFEASIBLE,
                   "%s: the router sends %lld rows to device %d, its buffer has room for %lld; "
                   "legal is a larger moe.headroom (now %lld rows) or "
                   "a capacity factor",
                   b->tensor ? b->tensor : b->name, (long long)o->rows, s->p->mesh.first + rank,
                   (long long)b->rows, (long long)b->rows);
}

hp_err hp_work_init(hp_engine *g, hp_side *s, int rank, hp_errmsg *e)
{
    for (int i = 0; i < s->p->n_buffers; i++) {
        const hp_buffer *b = &s->p->buffer[i];
        hp_operand o;
        if (b->scope != HP_S_PERSIST || b->route >= 0 || b->init == HP_INIT_NONE ||
            b->init == HP_INIT_ZEROS)
            continue; /* fresh memory is zero */
        hp_err rc = hp_work_operand(s, rank, i, -1, &o, e);
        if (rc)
            return rc;
        if (o.data)
            hp_init_fill(&o, b->tensor ? b->tensor : b->name, b->init, b->init_std, g->o->seed);
    }
    return HP_OK;
}

/* --- operations --- */

static void start_call(const hp_engine *g, const hp_info *in, hp_call *c)
{
    const hp_task *t = in->task;
    c->name = t->node ? t->node : t->name;
    c->n_in = t->n_in;
    c->n_out = t->n_out;
    c->n_attrs = t->n_attrs;
    c->attr = t->attr;
    c->accumulate = t->accumulate;
    c->kernels = g->o->kernels;
    c->threads = g->team;
    c->seed = g->o->seed;
    c->step = g->step;
    c->micro = -1;
    c->scratch = NULL;
    for (int i = 0; i < t->n_in + t->n_out; i++)
        c->arg[i] = (hp_operand){.nd = -1};
}

int64_t hp_work_scratch(hp_engine *g)
{
    int64_t most = 0;
    for (int k = 0; k < g->n_sides; k++) {
        const hp_side *s = &g->side[k];
        for (int i = 0; i < s->n_tasks; i++)
            for (int r = 0; r < s->n_ranks && s->info[i].op && s->info[i].op->work; r++) {
                const hp_task *t = s->info[i].task;
                hp_call c;
                hp_op_work w = {0};
                start_call(g, &s->info[i], &c);
                for (int b = 0; b < t->n_in + t->n_out; b++)
                    if (t->buf[b] >= 0)
                        describe(s, r, t->buf[b], &c.arg[b]);
                s->info[i].op->work(&c, &w);
                most = w.scratch_bytes > most ? w.scratch_bytes : most;
            }
    }
    return most;
}

/* HPBENCH_INJECT=KIND:GLOB harms the tasks whose name matches. */
static hp_err inject(const hp_engine *g, const hp_info *in, hp_errmsg *e)
{
    if (!g->inject_glob || !hp_glob_match(g->inject_glob, in->task->name))
        return HP_OK;
    if (g->inject == SIGABRT || g->inject == SIGSEGV) {
        signal(g->inject, SIG_DFL);
        raise(g->inject);
    }
    return hp_fail(e, HP_EINTERNAL, "failed as HPBENCH_INJECT asks");
}

static hp_err run_op(hp_engine *g, hp_side *s, int rank, int inst, int worker, hp_errmsg *e)
{
    const hp_info *in = hp_info_of(s, inst);
    const hp_entry *en = hp_entry_of(s, inst);
    const hp_task *t = in->task;
    hp_call c;
    hp_err rc = inject(g, in, e);
    start_call(g, in, &c);
    c.micro = en->micro;
    c.scratch = g->scratch[worker];
    for (int i = 0; i < t->n_in + t->n_out && !rc; i++)
        if (t->buf[i] >= 0)
            rc = hp_work_operand(s, rank, t->buf[i], en->frame, &c.arg[i], e);
    if (!rc)
        rc = in->op->run(&c, e);
    return rc ? hp_fail_at(e, "task %s on device %d", t->name, s->p->mesh.first + rank) : HP_OK;
}

static hp_err run_load(hp_engine *g, hp_side *s, int rank, int inst, hp_errmsg *e)
{
    const hp_task *t = hp_info_of(s, inst)->task;
    const hp_entry *en = hp_entry_of(s, inst);
    if (!g->h->load)
        return hp_fail(e, HP_EINTERNAL,
                       "task %s loads data, but the run was given no source of data", t->name);
    for (int i = t->n_in; i < t->n_in + t->n_out; i++) {
        const hp_buffer *b = &s->p->buffer[t->buf[i]];
        hp_operand o;
        hp_err rc = hp_work_operand(s, rank, t->buf[i], en->frame, &o, e);
        if (!rc && o.data)
            rc = g->h->load(g->h->load_ctx, b->tensor ? b->tensor : b->name, g->step, en->micro, &o,
                            e);
        if (rc)
            return hp_fail_at(e, "task %s on device %d", t->name, s->p->mesh.first + rank);
    }
    return HP_OK;
}

static void run_copy(hp_side *s, int rank, int inst)
{
    const hp_task *t = hp_info_of(s, inst)->task;
    int frame = hp_entry_of(s, inst)->frame;
    int64_t bytes = hp_buffer_rank_bytes(s->p, t->buf[0], rank);
    if (bytes > 0)
        memmove(hp_data(s, rank, t->buf[1], frame), hp_data(s, rank, t->buf[0], frame),
                (size_t)bytes);
}

static void run_recv(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_messages *m = hp_info_of(s, inst)->messages;
    const hp_side *a = &g->side[m->program];
    int from = a->info[m->task].task->buf[0], to = hp_info_of(s, inst)->task->buf[0];
    int from_frame = hp_entry_of(a, s->peer_inst[inst])->frame,
        to_frame = hp_entry_of(s, inst)->frame;
    int elem = hp_dtype_bytes(s->p->buffer[to].dtype);
    for (int i = 0; i < m->n; i++) {
        const hp_xmove *x = &m->move[i];
        if (x->dst != rank)
            continue;
        const hp_box *src = hp_box_of(a, x->src, from), *dst = hp_box_of(s, rank, to);
        hp_box_copy(x->box.nd, hp_data(s, rank, to, to_frame), dst->lo, dst->hi,
                    hp_data(a, x->src, from, from_frame), src->lo, src->hi, x->box.lo, x->box.hi,
                    elem);
    }
}

hp_err hp_work_run(hp_engine *g, hp_side *s, int rank, int inst, int worker, hp_errmsg *e)
{
    switch (hp_info_of(s, inst)->task->kind) {
    case HP_TASK_OP:
        return run_op(g, s, rank, inst, worker, e);
    case HP_TASK_LOAD:
        return run_load(g, s, rank, inst, e);
    case HP_TASK_COPY:
        run_copy(s, rank, inst);
        return HP_OK;
    default:
        run_recv(g, s, rank, inst);
        return HP_OK;
    }
}

void hp_work_tap(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_entry *en = hp_entry_of(s, inst);
    hp_exec_tap t = {.program = s->index,
                     .rank = rank,
                     .inst = inst,
                     .task = hp_info_of(s, inst)->task,
                     .entry = en,
                     .step = g->step};
    for (int i = t.task->n_in; i < t.task->n_in + t.task->n_out; i++) {
        hp_errmsg e;
        if (t.task->buf[i] < 0 ||
            hp_work_operand(s, rank, t.task->buf[i], en->frame, &t.operand, &e))
            continue;
        t.output = i - t.task->n_in;
        t.buffer = t.task->buf[i];
        t.routed = s->p->buffer[t.buffer].route >= 0;
        g->h->tap(g->h->ctx, &t);
    }
}

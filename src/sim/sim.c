/* sim.c -- the event loop.
 *
 * An instance of a row counts down what it lacks: its listed dependencies and its predecessor on
 * the stream. At zero it goes on the ready list and starts at this instant. Only ends are events.
 * Everything that starts at one instant starts at that instant whatever the order, so the queue's
 * total order decides nothing but which event is handled first. */
#include "sim/sim.h"
#include "sim/duration.h"
#include "sim/pairs.h"
#include "sim/ports.h"
#include "trace/owners.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { END_OF_TASK, END_OF_TRANSFER };

/* A message in flight between two rows, told apart by (pair, destination row). */
typedef struct pair {
    int from, send, to, recv;
    const hp_row_link *link;
    int *
        lacks; /* per destination row: posted sources and the started receiver that are still missing */
    int *untaken; /* per source row: destination rows that have not got it all yet */
    bool *moving; /* per source row: some of its messages have set out */
} pair;

typedef struct side { /* one program */
    const hp_program *p;
    const hp_expansion *x;
    const hp_program_rows *rows;
    int first_row;          /* number of its row 0 among all rows */
    int *first_next, *next; /* who depends on an instance */
    int *after;             /* next instance of the stream, -1 */
    int *lacks;             /* [row * n_inst + inst] */
    int *pair_of;           /* SEND, RECV: the pair */
    int *first_task;        /* per template: number of its first task */
    int n_tasks;
    int64_t *op_ns;               /* [row * n_tasks + task], -1: not asked yet */
    int64_t *sent;                /* the same: bytes sent */
    const hp_row_groups **groups; /* per task: of a collective */
    int *arrived;                 /* collectives: [first_arrival[inst] + group] */
    int *first_arrival;
    hp_transfer_time *coll; /* [first_coll[task] + group], algorithm NULL: not asked yet */
    int *first_coll;
    hp_span *span;
} side;

typedef struct ready {
    int program, row, inst;
} ready;

typedef struct sim {
    const hp_plan *p;
    const hp_cluster *c;
    const hp_measured *m;
    hp_classes classes;
    side *side;
    int n_pairs;
    pair *pair;
    hp_events queue;
    hp_ports ports;
    int n_ready, cap_ready;
    ready *ready;
    int n_port_ids, cap_port_ids;
    int *port_ids; /* scratch */
    hp_arena arena;
    hp_step_trace trace;
    int64_t now, left; /* instances that have not ended */
} sim;

static const hp_task *task_of(const side *s, int inst)
{
    return hp_inst_task(s->p, &s->x->inst[inst]);
}

static int task_number(const side *s, int inst)
{
    return s->first_task[s->p->entry[s->x->inst[inst].entry].tmpl] + s->x->inst[inst].task;
}

static hp_span *span_of(const side *s, int row, int inst)
{
    return &s->span[(size_t)row * (size_t)s->x->n + (size_t)inst];
}

static uint64_t key_of(const side *s, int row, int inst)
{
    return hp_order_key(s->p->mesh.first + s->rows->rep[row], task_of(s, inst)->stream, inst);
}

/* --- setting up
 * ------------------------------------------------------------------------------------------ */

static int *ints(sim *s, int n)
{
    return hp_arena_alloc(&s->arena, (size_t)n * sizeof(int));
}

/* Inverts the dependencies, and lists who follows on a stream. */
static void init_order(sim *s, side *k)
{
    int n = k->x->n;
    k->first_next = ints(s, n + 1);
    k->next = ints(s, k->x->n_deps + 1);
    k->after = ints(s, n + 1);
    memset(k->after, 0xff, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) {
        const hp_inst *q = &k->x->inst[i];
        if (q->prev >= 0)
            k->after[q->prev] = i;
        for (int d = 0; d < q->n_deps; d++)
            k->first_next[k->x->dep[q->first_dep + d] + 1]++;
    }
    for (int i = 0; i < n; i++)
        k->first_next[i + 1] += k->first_next[i];
    int *at = hp_xmalloc((size_t)(n + 1) * sizeof *at);
    memcpy(at, k->first_next, (size_t)(n + 1) * sizeof *at);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < k->x->inst[i].n_deps; d++)
            k->next[at[k->x->dep[k->x->inst[i].first_dep + d]]++] = i;
    free(at);
}

static void init_tasks(sim *s, side *k, int program)
{
    k->first_task = ints(s, k->p->n_templates + 1);
    for (int i = 0; i < k->p->n_templates; i++)
        k->first_task[i + 1] = k->first_task[i] + k->p->tmpl[i].n_tasks;
    k->n_tasks = k->first_task[k->p->n_templates];
    size_t costs = (size_t)k->rows->n * (size_t)k->n_tasks;
    k->op_ns = hp_arena_alloc(&s->arena, (costs + 1) * sizeof *k->op_ns);
    k->sent = hp_arena_alloc(&s->arena, (costs + 1) * sizeof *k->sent);
    memset(k->op_ns, 0xff, costs * sizeof *k->op_ns);
    memset(k->sent, 0xff, costs * sizeof *k->sent);
    k->groups = hp_arena_alloc(&s->arena, (size_t)(k->n_tasks + 1) * sizeof *k->groups);
    k->first_coll = ints(s, k->n_tasks + 1);
    int n = 0;
    for (int i = 0; i < k->p->n_templates; i++)
        for (int j = 0; j < k->p->tmpl[i].n_tasks; j++) {
            const hp_task *t = &k->p->tmpl[i].task[j];
            int id = k->first_task[i] + j;
            k->first_coll[id] = n;
            if (t->kind != HP_TASK_COLL || hp_task_class_of(t) != HP_TC_TRANSFER)
                continue;
            k->groups[id] = hp_classes_groups(&s->classes, program, t->atoms);
            n += k->groups[id]->n;
        }
    k->coll = hp_arena_alloc(&s->arena, (size_t)(n + 1) * sizeof *k->coll);
}

static void init_state(sim *s, side *k)
{
    int n = k->x->n, arrivals = 0;
    k->lacks = ints(s, k->rows->n * n + 1);
    for (int r = 0; r < k->rows->n; r++)
        for (int i = 0; i < n; i++)
            k->lacks[r * n + i] = k->x->inst[i].n_deps + (k->x->inst[i].prev >= 0);
    k->first_arrival = ints(s, n + 1);
    k->pair_of = ints(s, n + 1);
    memset(k->pair_of, 0xff, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) {
        const hp_row_groups *g = k->groups[task_number(k, i)];
        k->first_arrival[i] = arrivals;
        arrivals += g ? g->n : 0;
    }
    k->arrived = ints(s, arrivals + 1);
    s->left += (int64_t)k->rows->n * n;
}

static void init_pair(sim *s, pair *q, const hp_pair *from)
{
    side *a = &s->side[from->from], *b = &s->side[from->to];
    *q = (pair){.from = from->from, .send = from->send, .to = from->to, .recv = from->recv};
    int l = hp_classes_link(&s->classes, task_of(a, q->send), task_of(b, q->recv));
    q->link = &s->classes.link[l];
    q->lacks = ints(s, b->rows->n);
    q->untaken = ints(s, a->rows->n);
    q->moving = hp_arena_alloc(&s->arena, (size_t)a->rows->n * sizeof(bool));
    for (int r = 0; r < b->rows->n; r++)
        q->lacks[r] = 1 + q->link->first_of_dst[r + 1] - q->link->first_of_dst[r];
    memcpy(q->untaken, q->link->n_dst, (size_t)a->rows->n * sizeof(int));
    a->pair_of[q->send] = b->pair_of[q->recv] = (int)(q - s->pair);
}

static hp_err init_pairs(sim *s, const hp_expansion *x, hp_errmsg *e)
{
    hp_pair *list = NULL;
    hp_err err = hp_pairs_find(s->p, x, &list, &s->n_pairs, e);
    if (err)
        return err;
    s->pair = hp_arena_alloc(&s->arena, (size_t)(s->n_pairs + 1) * sizeof *s->pair);
    for (int i = 0; i < s->n_pairs; i++)
        init_pair(s, &s->pair[i], &list[i]);
    free(list);
    return HP_OK;
}

static void init_trace(sim *s, const hp_expansion *x)
{
    int *n_rows = hp_xcalloc((size_t)s->p->n_programs, sizeof *n_rows);
    int **row = hp_xcalloc((size_t)s->p->n_programs, sizeof *row);
    for (int i = 0; i < s->p->n_programs; i++) {
        n_rows[i] = s->classes.program[i].n;
        row[i] = s->classes.program[i].row;
    }
    hp_step_trace_init_rows(&s->trace, s->p, x, n_rows, row);
    for (int i = 0; i < s->p->n_programs; i++)
        s->side[i].span = s->trace.span[i];
    free(n_rows);
    free(row);
}

static hp_err sim_init(sim *s, const hp_expansion *x, bool fold, hp_errmsg *e)
{
    hp_err err = hp_classes_find(s->p, x, s->c, fold, &s->classes, e);
    if (err)
        return err;
    int rows = 0;
    s->side = hp_arena_alloc(&s->arena, (size_t)s->p->n_programs * sizeof *s->side);
    for (int i = 0; i < s->p->n_programs; i++) {
        side *k = &s->side[i];
        *k = (side){
            .p = &s->p->program[i], .x = &x[i], .rows = &s->classes.program[i], .first_row = rows};
        rows += k->rows->n;
        init_order(s, k);
        init_tasks(s, k, i);
        init_state(s, k);
    }
    hp_ports_init(&s->ports, rows * (s->c->n_levels + 1));
    err = init_pairs(s, x, e);
    if (!err)
        init_trace(s, x);
    return err;
}

static void sim_fini(sim *s)
{
    hp_classes_fini(&s->classes);
    hp_events_fini(&s->queue);
    hp_ports_fini(&s->ports);
    hp_arena_fini(&s->arena);
    free(s->ready);
    free(s->port_ids);
    hp_step_trace_fini(&s->trace);
}

/* --- durations
 * --------------------------------------------------------------------------------------------- */

/* The measured nanoseconds of an instance on a rank, -1 when there are none. */
static int64_t measured(const sim *s, int program, int row, int inst)
{
    if (!s->m || !s->m->busy_ns || !s->m->busy_ns[program])
        return -1;
    const side *k = &s->side[program];
    return s->m->busy_ns[program][(size_t)k->rows->rep[row] * (size_t)k->x->n + (size_t)inst];
}

static int64_t op_ns(sim *s, int program, int row, int inst)
{
    side *k = &s->side[program];
    int64_t real = measured(s, program, row, inst);
    if (real >= 0)
        return llround((double)real *
                       hp_cluster_slowness(s->c, k->p->mesh.first + k->rows->rep[row]));
    int64_t *ns = &k->op_ns[(size_t)row * (size_t)k->n_tasks + (size_t)task_number(k, inst)];
    if (*ns < 0)
        *ns = hp_duration_op(s->c, k->p, task_of(k, inst), k->rows->rep[row]);
    return *ns;
}

static hp_transfer_time coll_time(sim *s, int program, int inst, int group)
{
    side *k = &s->side[program];
    int id = task_number(k, inst);
    const hp_row_group *g = &k->groups[id]->group[group];
    int64_t real = -1;
    for (int i = 0; i < g->n && !s->c->paced; i++) {
        int64_t ns = measured(s, program, g->row[i], inst);
        real = ns > real ? ns : real;
    }
    if (real >= 0)
        return (hp_transfer_time){real, -1, "measured"};
    hp_transfer_time *t = &k->coll[k->first_coll[id] + group];
    if (!t->algorithm)
        *t = hp_duration_collective(s->c, k->p, k->rows, task_of(k, inst), g);
    return *t;
}

static hp_transfer_time message_time(sim *s, const pair *q, int dst)
{
    int64_t real = s->c->paced ? -1 : measured(s, q->to, dst, q->recv);
    if (real < 0)
        return hp_duration_message(s->c, q->link, dst);
    for (int i = q->link->first_of_dst[dst]; i < q->link->first_of_dst[dst + 1]; i++) {
        int64_t ns = measured(s, q->from, q->link->message[i].src, q->send);
        real = ns > real ? ns : real;
    }
    return (hp_transfer_time){real, -1, "measured"};
}

/* --- what tasks send
 * ---------------------------------------------------------------------------------------- */

static int64_t planned_bytes(const sim *s, const side *k, int row, int inst)
{
    const hp_task *t = task_of(k, inst);
    int rep = k->rows->rep[row];
    switch (t->kind) {
    case HP_TASK_COLL:
        return llround(hp_task_bytes(k->p, t, rep));
    case HP_TASK_SEND:
        return s->pair[k->pair_of[inst]].link->sent[row];
    case HP_TASK_COPY:
        return hp_buffer_rank_bytes(k->p, t->buf[0], rep);
    default:
        return 0;
    }
}

static int64_t sent_bytes(const sim *s, int program, int row, int inst)
{
    const side *k = &s->side[program];
    if (s->m && s->m->bytes)
        return hp_trace_spans(s->m->bytes, program, k->rows->rep[row])[inst].bytes;
    int64_t *sent = &k->sent[(size_t)row * (size_t)k->n_tasks + (size_t)task_number(k, inst)];
    if (*sent < 0)
        *sent = planned_bytes(s, k, row, inst);
    return *sent;
}

/* --- running
 * ------------------------------------------------------------------------------------------------ */

static void satisfy(sim *s, int program, int row, int inst, bool data)
{
    side *k = &s->side[program];
    if (data)
        span_of(k, row, inst)->ready_ns = s->now;
    if (--k->lacks[(size_t)row * (size_t)k->x->n + (size_t)inst] > 0)
        return;
    s->ready = hp_grow(s->ready, &s->cap_ready, s->n_ready + 1, sizeof *s->ready);
    s->ready[s->n_ready++] = (ready){program, row, inst};
}

static void leave_stream(sim *s, int program, int row, int inst)
{
    int next = s->side[program].after[inst];
    if (next >= 0)
        satisfy(s, program, row, next, false);
}

static void finish(sim *s, int program, int row, int inst)
{
    side *k = &s->side[program];
    hp_span *q = span_of(k, row, inst);
    q->end_ns = s->now;
    q->state = HP_SPAN_DONE;
    s->left--;
    if (s->now > s->trace.step_ns)
        s->trace.step_ns = s->now;
    for (int i = k->first_next[inst]; i < k->first_next[inst + 1]; i++)
        satisfy(s, program, row, k->next[i], true);
    if (task_of(k, inst)->kind != HP_TASK_SEND)
        leave_stream(s, program, row, inst);
}

/* Adds the port of a row at a level to the scratch list; level -1 shares nothing. */
static void use_port(sim *s, int program, int row, int level)
{
    if (level < 0)
        return;
    s->port_ids = hp_grow(s->port_ids, &s->cap_port_ids, s->n_port_ids + 1, sizeof(int));
    s->port_ids[s->n_port_ids++] =
        (s->side[program].first_row + row) * (s->c->n_levels + 1) + level;
}

static void begin_transfer(sim *s, int program, int row, int inst, int index, int64_t ns)
{
    uint64_t key = key_of(&s->side[program], row, inst);
    int id = hp_ports_begin(&s->ports, &s->queue, s->now, ns, s->n_port_ids, s->port_ids, key,
                            END_OF_TRANSFER);
    hp_transfer *t = &s->ports.transfer[id];
    t->program = program;
    t->inst = inst;
    t->index = index;
}

static void arrive(sim *s, int program, int row, int inst)
{
    side *k = &s->side[program];
    const hp_row_groups *gs = k->groups[task_number(k, inst)];
    int group = gs->of_row[row];
    const hp_row_group *g = &gs->group[group];
    if (++k->arrived[k->first_arrival[inst] + group] < g->n)
        return;
    hp_transfer_time time = coll_time(s, program, inst, group);
    s->n_port_ids = 0;
    for (int i = 0; i < g->n; i++) {
        span_of(k, g->row[i], inst)->xfer_ns = s->now;
        use_port(s, program, g->row[i], time.level);
    }
    begin_transfer(s, program, g->row[0], inst, group, time.ns);
}

/* All that a receiver waits for is there: its messages set out. */
static void set_out(sim *s, const pair *q, int dst)
{
    const hp_row_link *l = q->link;
    hp_transfer_time time = message_time(s, q, dst);
    s->n_port_ids = 0;
    use_port(s, q->to, dst, time.level);
    span_of(&s->side[q->to], dst, q->recv)->xfer_ns = s->now;
    for (int i = l->first_of_dst[dst]; i < l->first_of_dst[dst + 1]; i++) {
        int src = l->message[i].src;
        if (!q->moving[src])
            span_of(&s->side[q->from], src, q->send)->xfer_ns = s->now;
        q->moving[src] = true;
        for (int k = 0; k < l->message[i].takers; k++)
            use_port(s, q->from, src, time.level);
    }
    begin_transfer(s, q->to, dst, q->recv, dst, time.ns);
}

static void lacks_less(sim *s, pair *q, int dst)
{
    if (--q->lacks[dst] == 0)
        set_out(s, q, dst);
}

static void post(sim *s, int program, int row, int inst)
{
    pair *q = &s->pair[s->side[program].pair_of[inst]];
    const hp_row_link *l = q->link;
    leave_stream(s, program, row, inst);
    for (int i = 0; i < l->n; i++)
        if (l->message[i].src == row)
            lacks_less(s, q, l->message[i].dst);
    if (l->n_dst[row] == 0)
        finish(s, program, row, inst);
}

static void start_op(sim *s, int program, int row, int inst)
{
    hp_event e = {.at_ns = s->now + op_ns(s, program, row, inst),
                  .key = key_of(&s->side[program], row, inst),
                  .what = END_OF_TASK,
                  .row = row,
                  .inst = inst,
                  .version = (uint32_t)program};
    hp_events_push(&s->queue, e);
}

static void start_copy(sim *s, int program, int row, int inst)
{
    side *k = &s->side[program];
    hp_transfer_time time = hp_duration_copy(s->c, k->p, task_of(k, inst), k->rows->rep[row]);
    int64_t real = measured(s, program, row, inst);
    s->n_port_ids = 0;
    use_port(s, program, row, real < 0 ? time.level : -1);
    begin_transfer(s, program, row, inst, row, real < 0 ? time.ns : real);
}

static void start(sim *s, const ready *r)
{
    side *k = &s->side[r->program];
    hp_span *q = span_of(k, r->row, r->inst);
    q->start_ns = q->xfer_ns = s->now;
    q->state = HP_SPAN_RUNNING;
    q->bytes = sent_bytes(s, r->program, r->row, r->inst);
    switch (task_of(k, r->inst)->kind) {
    case HP_TASK_COLL:
        if (k->groups[task_number(k, r->inst)])
            arrive(s, r->program, r->row, r->inst);
        else
            start_op(s, r->program, r->row, r->inst);
        return;
    case HP_TASK_SEND:
        post(s, r->program, r->row, r->inst);
        return;
    case HP_TASK_RECV:
        lacks_less(s, &s->pair[k->pair_of[r->inst]], r->row);
        return;
    case HP_TASK_COPY:
        start_copy(s, r->program, r->row, r->inst);
        return;
    default:
        start_op(s, r->program, r->row, r->inst);
    }
}

static void start_ready(sim *s)
{
    while (s->n_ready > 0) {
        ready r = s->ready[--s->n_ready];
        start(s, &r);
    }
}

static void end_message(sim *s, pair *q, int dst)
{
    const hp_row_link *l = q->link;
    finish(s, q->to, dst, q->recv);
    for (int i = l->first_of_dst[dst]; i < l->first_of_dst[dst + 1]; i++)
        if (--q->untaken[l->message[i].src] == 0)
            finish(s, q->from, l->message[i].src, q->send);
}

static void end_transfer(sim *s, const hp_event *e)
{
    hp_transfer t;
    if (!hp_ports_ends(&s->ports, &s->queue, e, &t))
        return;
    s->now = e->at_ns;
    side *k = &s->side[t.program];
    const hp_task *task = task_of(k, t.inst);
    if (task->kind == HP_TASK_RECV) {
        end_message(s, &s->pair[k->pair_of[t.inst]], t.index);
        return;
    }
    if (task->kind == HP_TASK_COPY) {
        finish(s, t.program, t.index, t.inst);
        return;
    }
    const hp_row_group *g = &k->groups[task_number(k, t.inst)]->group[t.index];
    for (int i = 0; i < g->n; i++)
        finish(s, t.program, g->row[i], t.inst);
}

/* Everything that lacks nothing from the start, in reverse, since the list is taken from its
 * end. */
static void list_first(sim *s)
{
    for (int i = s->p->n_programs - 1; i >= 0; i--)
        for (int r = s->side[i].rows->n - 1; r >= 0; r--)
            for (int k = s->side[i].x->n - 1; k >= 0; k--) {
                if (s->side[i].lacks[(size_t)r * (size_t)s->side[i].x->n + (size_t)k] > 0)
                    continue;
                s->ready = hp_grow(s->ready, &s->cap_ready, s->n_ready + 1, sizeof *s->ready);
                s->ready[s->n_ready++] = (ready){i, r, k};
            }
}

static void run(sim *s)
{
    hp_event e;
    list_first(s);
    start_ready(s);
    while (hp_events_pop(&s->queue, &e)) {
        if (e.what == END_OF_TRANSFER) {
            end_transfer(s, &e);
        } else {
            s->now = e.at_ns;
            finish(s, (int)e.version, e.row, e.inst);
        }
        start_ready(s);
    }
}

/* Names the first task that began and never ended, else the first that never began. */
static hp_err deadlock(const sim *s, hp_errmsg *e)
{
    for (int state = HP_SPAN_RUNNING; state >= HP_SPAN_NOT_YET; state--)
        for (int i = 0; i < s->p->n_programs; i++)
            for (int r = 0; r < s->side[i].rows->n; r++)
                for (int k = 0; k < s->side[i].x->n; k++) {
                    const side *d = &s->side[i];
                    if (span_of(d, r, k)->state != state)
                        continue;
                    const hp_entry *en = hp_inst_entry(d->p, &d->x->inst[k]);
                    return hp_fail(e, HP_EINFEASIBLE,
                                   "deadlock: %s (microbatch %d) of %s on rank %d waits for a "
                                   "partner that waits for it; "
                                   "%lld tasks never end: change the schedule's order",
                                   task_of(d, k)->name, en->micro, d->p->name, d->rows->rep[r],
                                   (long long)s->left);
                }
    return HP_OK;
}

hp_err hp_sim_step(const hp_plan *p, const hp_expansion *x, const hp_cluster *c,
                   const hp_sim_options *o, hp_step_trace *t, hp_errmsg *e)
{
    sim s = {.p = p, .c = c, .m = o ? o->measured : NULL};
    bool fold = !(o && (o->every_device || o->measured));
    hp_err err = sim_init(&s, x, fold, e);
    if (!err) {
        run(&s);
        err = s.left > 0 ? deadlock(&s, e) : HP_OK;
    }
    if (!err) {
        *t = s.trace;
        s.trace = (hp_step_trace){0};
    }
    sim_fini(&s);
    return err;
}

/* sched.c -- an instance is ready when nothing it waits for is left; whoever takes the last thing away makes it ready.
 *
 * Transfers come before compute, then program order, then device: with a lowest instance always next, nothing starves. A worker looks at its own devices'
 * queue first. Everything but the work itself happens under one lock; the lock is dropped while an instance, a share or a tap runs.
 * The first error wins: it is kept, and every loop looks at g->code. */
#include "exec/sched.h"

#include "base/clock.h"
#include "exec/pin.h"
#include "exec/poison.h"
#include "exec/share.h"
#include "exec/work.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    SPINS = 1000,      /* about as long as waking a sleeper takes */
    NAP_NS = 50000000, /* sleepers look for a cancel now and then */
};

typedef struct worker {
    hp_engine *g;
    int index; /* g->workers: the link thread */
    pthread_t thread;
} worker;

struct hp_sched {
    hp_engine *g;
    int n; /* threads that were started */
    worker worker[];
};

static int64_t now(const hp_engine *g)
{
    return hp_now_ns() - g->start_ns;
}

static hp_span *span(const hp_engine *g, const hp_side *s, int rank, int inst)
{
    return hp_segment_span(g->seg, g->slot, s->index, rank, inst);
}

static void set_state(hp_span *sp, int state)
{
    atomic_store_explicit(&sp->state, state, memory_order_release);
}

/* --- waking --- */

/* Everybody should look again. */
static void changed(hp_engine *g)
{
    atomic_fetch_add_explicit(&g->version, 1, memory_order_release);
    pthread_cond_broadcast(&g->work);
    pthread_cond_signal(&g->link);
}

/* Wakes sleepers for the work that is queued, beyond the `taken` entries that awake threads are about to take. */
static void wake(hp_engine *g, int taken)
{
    for (int i = 0; i < g->sleeping && i < g->queued - taken; i++)
        pthread_cond_signal(&g->work);
    if (g->paced && g->queued > 0)
        pthread_cond_signal(&g->link);
}

static void fail(hp_engine *g, hp_err rc, const hp_errmsg *e)
{
    if (g->code == HP_OK) {
        g->code = rc;
        g->error = *e;
    }
    changed(g);
}

/* --- becoming ready --- */

static void push(hp_engine *g, const hp_side *s, int rank, int inst)
{
    int device = s->device0 + rank;
    bool comm = hp_info_of(s, inst)->comm;
    hp_work w = {((int64_t)!comm << 60) + ((int64_t)inst << 24) + device, s->index, rank, inst,
                 comm};
    hp_ready_push(&g->ready[(int64_t)device * g->workers / g->n_devices], w);
    g->queued++;
    atomic_fetch_add_explicit(&g->version, 1, memory_order_release);
}

static void release(hp_engine *g, hp_side *s, int rank, int inst);
static void finish(hp_engine *g, hp_side *s, int rank, int inst, int64_t at);

static void release_successors(hp_engine *g, hp_side *s, int rank, int inst)
{
    for (int k = s->succ_first[inst]; k < s->succ_first[inst + 1]; k++)
        release(g, s, rank, s->succ[k]);
}

/* Reads a metric that the instance has just written. */
static void read_metrics(hp_engine *g, const hp_side *s, int rank, int inst)
{
    int frame = hp_entry_of(s, inst)->frame;
    if (rank == 0 && g->loss.program == s->index && g->loss.inst == inst)
        g->now.loss = (double)*(const float *)(const void *)hp_data(s, 0, g->loss.buffer, frame);
    if (rank == 0 && g->grad_norm.program == s->index && g->grad_norm.inst == inst)
        g->now.grad_norm =
            (double)*(const float *)(const void *)hp_data(s, 0, g->grad_norm.buffer, frame);
}

static void finish(hp_engine *g, hp_side *s, int rank, int inst, int64_t at)
{
    hp_span *sp = span(g, s, rank, inst);
    sp->end_ns = at;
    set_state(sp, 2);
    read_metrics(g, s, rank, inst);
    if (g->o->poison)
        hp_poison_done(s, rank, inst);
    if (--g->left == 0)
        changed(g);
    release_successors(g, s, rank, inst);
}

/* Moves the collective on to its next phase with work in it, and pushes that phase's shares; false when there is none. */
static bool next_phase(hp_engine *g, hp_side *s, hp_meet *m, int group, int inst)
{
    const hp_groups *gr = hp_info_of(s, inst)->groups;
    m->busy_ns += m->phase_ns;
    m->phase_ns = 0;
    while (++m->phase < HP_PHASE_END) {
        for (int i = 0; i < gr->size; i++)
            m->left += hp_share_exists(s, gr->member[group * gr->size + i], inst, m->phase);
        if (m->left == 0)
            continue;
        for (int i = 0; i < gr->size; i++)
            if (hp_share_exists(s, gr->member[group * gr->size + i], inst, m->phase))
                push(g, s, gr->member[group * gr->size + i], inst);
        return true;
    }
    return false;
}

/* When a transfer that began at `xfer` may be over: latency + bytes / bandwidth later. */
static int64_t deadline(const hp_engine *g, int link, int64_t xfer, int64_t bytes)
{
    if (link < 0)
        return xfer;
    double bandwidth = g->o->link_bandwidth[link], s = g->o->link_latency[link];
    return xfer + llround(1e9 * (s + (bandwidth > 0 ? (double)bytes / bandwidth : 0)));
}

static void finish_meet(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_groups *gr = hp_info_of(s, inst)->groups;
    const hp_meet *m = hp_meet_of(s, rank, inst);
    int64_t at = now(g);
    for (int i = 0; i < gr->size; i++) {
        int r = gr->member[gr->of[rank] * gr->size + i];
        *hp_segment_busy(g->seg, g->slot, s->index, r, inst) = m->busy_ns;
        finish(g, s, r, inst, at);
    }
}

static void finish_recv(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_messages *m = hp_info_of(s, inst)->messages;
    hp_side *a = &g->side[m->program];
    int64_t at = now(g);
    for (int i = 0; i < m->n; i++) {
        if (m->move[i].dst != rank ||
            (i > 0 && m->move[i - 1].src == m->move[i].src && m->move[i - 1].dst == rank))
            continue;
        if (--a->pending[hp_at(a, m->move[i].src, s->peer_inst[inst])] == 0)
            finish(g, a, m->move[i].src, s->peer_inst[inst], at);
    }
    finish(g, s, rank, inst, at);
}

static void finish_any(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_info *in = hp_info_of(s, inst);
    if (in->groups)
        finish_meet(g, s, rank, inst);
    else if (in->task->kind == HP_TASK_RECV)
        finish_recv(g, s, rank, inst);
    else
        finish(g, s, rank, inst, now(g));
}

/* Ends an instance now, or at its deadline. */
static void end_by(hp_engine *g, hp_side *s, int rank, int inst, int64_t when)
{
    if (g->paced && when > now(g)) {
        hp_ready_push(&g->due, (hp_work){when, s->index, rank, inst, true});
        pthread_cond_signal(&g->link);
    } else {
        finish_any(g, s, rank, inst);
    }
}

static void end_meet(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_info *in = hp_info_of(s, inst);
    const hp_meet *m = hp_meet_of(s, rank, inst);
    int64_t most = 0;
    for (int i = 0; i < in->groups->size; i++) {
        int64_t bytes = __atomic_load_n(
            &span(g, s, in->groups->member[in->groups->of[rank] * in->groups->size + i], inst)
                 ->bytes,
            __ATOMIC_RELAXED);
        most = bytes > most ? bytes : most;
    }
    end_by(g, s, rank, inst, deadline(g, in->link, m->xfer_ns, most));
}

static void arrive(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_groups *gr = hp_info_of(s, inst)->groups;
    hp_meet *m = hp_meet_of(s, rank, inst);
    if (++m->arrived < gr->size)
        return;
    int group = gr->of[rank];
    m->xfer_ns = now(g);
    for (int i = 0; i < gr->size; i++)
        span(g, s, gr->member[group * gr->size + i], inst)->xfer_ns = m->xfer_ns;
    m->phase = HP_PHASE_NONE;
    if (!next_phase(g, s, m, group, inst))
        end_meet(g, s, rank, inst);
}

static void begin_recv(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_messages *m = hp_info_of(s, inst)->messages;
    const hp_side *a = &g->side[m->program];
    int64_t at = now(g);
    span(g, s, rank, inst)->xfer_ns = at;
    for (int i = 0; i < m->n; i++) {
        hp_span *sp = span(g, a, m->move[i].src, s->peer_inst[inst]);
        if (m->move[i].dst == rank && sp->xfer_ns == 0)
            sp->xfer_ns = at;
    }
    push(g, s, rank, inst);
}

/* A SEND is posted: its stream goes on, its bytes stay until every receiver has read them. */
static void post(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_messages *m = hp_info_of(s, inst)->messages;
    hp_side *b = &g->side[m->to_program];
    int to = s->peer_inst[inst];
    s->pending[hp_at(s, rank, inst)] = m->n_to[rank];
    for (int i = 0; i < m->n; i++) {
        int dst = m->move[i].dst;
        if (m->move[i].src != rank ||
            (i > 0 && m->move[i - 1].src == rank && m->move[i - 1].dst == dst))
            continue;
        bool arrived = atomic_load_explicit(&span(g, b, dst, to)->state, memory_order_relaxed) == 1;
        if (--b->posts[hp_at(b, dst, to)] == 0 && arrived)
            begin_recv(g, b, dst, to);
    }
    if (m->n_to[rank] == 0) {
        span(g, s, rank, inst)->xfer_ns = now(g);
        finish(g, s, rank, inst, now(g));
    }
    if (s->follower[inst] >= 0)
        release(g, s, rank, s->follower[inst]);
}

static void ready(hp_engine *g, hp_side *s, int rank, int inst)
{
    const hp_info *in = hp_info_of(s, inst);
    hp_span *sp = span(g, s, rank, inst);
    sp->ready_ns = sp->start_ns = now(g);
    if (in->sent)
        __atomic_store_n(&sp->bytes, in->sent[rank], __ATOMIC_RELAXED);
    if (in->task->kind == HP_TASK_COLL || in->task->kind == HP_TASK_SEND ||
        in->task->kind == HP_TASK_RECV)
        set_state(sp, 1);
    if (in->groups)
        arrive(g, s, rank, inst);
    else if (in->task->kind == HP_TASK_SEND)
        post(g, s, rank, inst);
    else if (in->task->kind == HP_TASK_RECV && s->posts[hp_at(s, rank, inst)] > 0)
        return;
    else if (in->task->kind == HP_TASK_RECV)
        begin_recv(g, s, rank, inst);
    else
        push(g, s, rank, inst);
}

static void release(hp_engine *g, hp_side *s, int rank, int inst)
{
    if (--s->pending[hp_at(s, rank, inst)] == 0)
        ready(g, s, rank, inst);
}

/* --- doing --- */

static double slowness(const hp_engine *g, int device)
{
    double f = device < g->o->n_slow ? g->o->slow[device] : 1;
    return f > 1 ? f : 1;
}

static void share_done(hp_engine *g, hp_side *s, int rank, int inst, int64_t took)
{
    const hp_groups *gr = hp_info_of(s, inst)->groups;
    hp_meet *m = hp_meet_of(s, rank, inst);
    m->phase_ns = took > m->phase_ns ? took : m->phase_ns;
    if (--m->left > 0 || next_phase(g, s, m, gr->of[rank], inst))
        return;
    if (g->h->tap) {
        pthread_mutex_unlock(&g->lock);
        for (int i = 0; i < gr->size; i++)
            hp_work_tap(g, s, gr->member[gr->of[rank] * gr->size + i], inst);
        pthread_mutex_lock(&g->lock);
    }
    end_meet(g, s, rank, inst);
}

static void run_share(hp_engine *g, hp_side *s, const hp_work *w)
{
    hp_errmsg e = {0};
    hp_coll_phase phase = hp_meet_of(s, w->rank, w->inst)->phase;
    pthread_mutex_unlock(&g->lock);
    int64_t from = now(g);
    hp_err rc = hp_share_run(g, s, w->rank, w->inst, phase, &e);
    int64_t took = now(g) - from;
    pthread_mutex_lock(&g->lock);
    if (rc)
        fail(g, rc, &e);
    else
        share_done(g, s, w->rank, w->inst, took);
}

static void run_instance(hp_engine *g, hp_side *s, const hp_work *w, int worker_index)
{
    const hp_info *in = hp_info_of(s, w->inst);
    hp_span *sp = span(g, s, w->rank, w->inst);
    hp_errmsg e = {0};
    int64_t from = now(g);
    if (in->task->kind != HP_TASK_RECV) {
        sp->start_ns = sp->xfer_ns = from;
        set_state(sp, 1);
    }
    pthread_mutex_unlock(&g->lock);
    hp_err rc = hp_work_run(g, s, w->rank, w->inst, worker_index, &e);
    int64_t took = now(g) - from;
    if (!rc && g->h->tap)
        hp_work_tap(g, s, w->rank, w->inst);
    pthread_mutex_lock(&g->lock);
    *hp_segment_busy(g->seg, g->slot, s->index, w->rank, w->inst) = took;
    if (rc)
        fail(g, rc, &e);
    else if (in->task->kind == HP_TASK_OP)
        end_by(g, s, w->rank, w->inst,
               from + llround((double)took * slowness(g, s->p->mesh.first + w->rank)));
    else
        end_by(g, s, w->rank, w->inst,
               deadline(g, in->link, sp->xfer_ns,
                        in->task->kind == HP_TASK_RECV
                            ? hp_buffer_rank_bytes(s->p, in->task->buf[0], w->rank)
                            : in->sent[w->rank]));
}

static void run(hp_engine *g, const hp_work *w, int worker_index)
{
    hp_side *s = &g->side[w->program];
    g->running++;
    if (hp_info_of(s, w->inst)->groups)
        run_share(g, s, w);
    else
        run_instance(g, s, w, worker_index);
    g->running--;
    wake(g, 1);
    if (g->code != HP_OK)
        changed(g);
}

/* --- workers --- */

/* The worker's own queue first, then the one with the most urgent work. */
static bool take(hp_engine *g, int own, bool comm_only, hp_work *w)
{
    hp_ready *best = own < g->workers && g->ready[own].n > 0 ? &g->ready[own] : NULL;
    for (int i = 0; i < g->workers && (!best || comm_only); i++) {
        hp_ready *q = &g->ready[i];
        if (q->n > 0 && (!best || q->at[0].key < best->at[0].key) && (!comm_only || q->at[0].comm))
            best = q;
    }
    for (int i = 0; i < g->workers && best && own < g->workers && !best->at[0].comm; i++)
        if (g->ready[i].n > 0 && g->ready[i].at[0].comm)
            best =
                &g->ready
                     [i]; /* another's transfer before one's own compute: somebody waits for it */
    if (!best)
        return false;
    *w = hp_ready_pop(best);
    g->queued--;
    return true;
}

static bool cancelled(const hp_engine *g, int level)
{
    return g->h->cancel && atomic_load(g->h->cancel) >= level;
}

/* Nothing is ready, nothing runs, nothing is due: the plan cannot go on. */
static void report_deadlock(hp_engine *g)
{
    hp_errmsg e;
    for (int k = 0; k < g->n_sides; k++)
        for (int i = 0; i < g->side[k].n_inst; i++)
            for (int r = 0; r < g->side[k].n_ranks; r++)
                if (atomic_load(&span(g, &g->side[k], r, i)->state) != 2) {
                    hp_fail(&e, HP_EINTERNAL,
                            "the plan deadlocks: %lld instances wait, first task %s of %s "
                            "(microbatch %d) on device %d",
                            (long long)g->left, hp_info_of(&g->side[k], i)->task->name,
                            g->side[k].p->name, hp_entry_of(&g->side[k], i)->micro,
                            g->side[k].p->mesh.first + r);
                    fail(g, HP_EINTERNAL, &e);
                    return;
                }
}

/* Waits for a change: a short spin where every runner has a core, then sleep. */
static void wait_for_work(hp_engine *g)
{
    int version = atomic_load_explicit(&g->version, memory_order_acquire);
    if (g->workers <= g->cores) {
        pthread_mutex_unlock(&g->lock);
        for (int i = 0;
             i < SPINS && atomic_load_explicit(&g->version, memory_order_acquire) == version; i++)
#if defined(__x86_64__)
            __builtin_ia32_pause();
#else
            atomic_signal_fence(memory_order_seq_cst);
#endif
        pthread_mutex_lock(&g->lock);
    }
    if (atomic_load_explicit(&g->version, memory_order_acquire) != version)
        return;
    int64_t until = hp_now_ns() + NAP_NS;
    struct timespec t = {until / 1000000000, until % 1000000000};
    g->sleeping++;
    pthread_cond_timedwait(&g->work, &g->lock, &t);
    g->sleeping--;
}

/* Works until the step is over; the lock is held on entry and return. */
static void work_step(hp_engine *g, int index)
{
    hp_work w;
    while (g->left > 0 && g->code == HP_OK) {
        hp_errmsg e;
        if (cancelled(g, 2))
            fail(g, hp_fail(&e, HP_ECANCELLED, "cancelled"), &e);
        else if (take(g, index, false, &w))
            run(g, &w, index);
        else if (g->running == 0 && g->due.n == 0)
            report_deadlock(g);
        else
            wait_for_work(g);
    }
}

static void *work_thread(void *arg)
{
    worker *w = arg;
    hp_engine *g = w->g;
    if (g->o->pin)
        hp_pin_thread(w->index, g->workers);
    pthread_mutex_lock(&g->lock);
    while (!g->quit) {
        if (g->step_open && g->left > 0 && g->code == HP_OK)
            work_step(g, w->index);
        else
            wait_for_work(g);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* The link thread ends transfers at their deadlines and moves bytes while all workers compute, as a copy engine would. */
static void *link_thread(void *arg)
{
    worker *w = arg;
    hp_engine *g = w->g;
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&g->lock);
    while (!g->quit) {
        hp_work due;
        if (g->code == HP_OK && g->due.n > 0 && g->due.at[0].key <= now(g)) {
            due = hp_ready_pop(&g->due);
            finish_any(g, &g->side[due.program], due.rank, due.inst);
            wake(g, 0);
        } else if (g->step_open && g->code == HP_OK && take(g, g->workers, true, &due)) {
            run(g, &due, g->workers);
        } else {
            int64_t until = g->due.n > 0 && g->code == HP_OK ? g->start_ns + g->due.at[0].key
                                                             : hp_now_ns() + NAP_NS;
            struct timespec t = {until / 1000000000, until % 1000000000};
            pthread_cond_timedwait(&g->link, &g->lock, &t);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void init_queues(hp_engine *g)
{
    int cap = 0;
    for (int i = 0; i < g->n_sides; i++)
        cap += g->side[i].n_ranks * g->side[i].p->n_streams;
    g->ready = hp_arena_alloc(&g->arena, (size_t)g->workers * sizeof *g->ready);
    for (int i = 0; i < g->workers; i++)
        hp_ready_init(&g->ready[i], cap);
    hp_ready_init(&g->due, cap);
}

static void init_lock(hp_engine *g)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->work, &attr);
    pthread_cond_init(&g->link, &attr);
    pthread_condattr_destroy(&attr);
}

hp_err hp_sched_start(hp_engine *g, hp_sched **out, hp_errmsg *e)
{
    hp_sched *s = hp_xcalloc(1, sizeof *s + (size_t)(g->workers + 1) * sizeof(worker));
    *out = s;
    s->g = g;
    init_lock(g);
    init_queues(g);
    if (g->o->pin)
        hp_pin_thread(0, g->workers);
    for (int i = 1; i < g->workers + g->paced; i++) {
        worker *w = &s->worker[s->n];
        *w = (worker){.g = g, .index = i};
        if (pthread_create(&w->thread, NULL, i < g->workers ? work_thread : link_thread, w) != 0)
            return hp_fail(e, HP_EINTERNAL, "the machine refuses worker thread %d of %d", i + 1,
                           g->workers);
        s->n++;
    }
    return HP_OK;
}

void hp_sched_stop(hp_sched *s)
{
    if (!s)
        return;
    hp_engine *g = s->g;
    pthread_mutex_lock(&g->lock);
    g->quit = true;
    changed(g);
    pthread_mutex_unlock(&g->lock);
    for (int i = 0; i < s->n; i++)
        pthread_join(s->worker[i].thread, NULL);
    for (int i = 0; i < g->workers; i++)
        hp_ready_fini(&g->ready[i]);
    hp_ready_fini(&g->due);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->work);
    pthread_cond_destroy(&g->link);
    free(s);
}

/* --- a step --- */

static void reset(hp_engine *g)
{
    g->left = 0;
    for (int k = 0; k < g->n_sides; k++) {
        hp_side *s = &g->side[k];
        g->left += (int64_t)s->n_ranks * s->n_inst;
        memset(s->meet, 0, (size_t)s->n_meets * sizeof *s->meet);
        for (int r = 0; r < s->n_ranks; r++)
            memcpy(s->pending + hp_at(s, r, 0), s->start, (size_t)s->n_inst * sizeof(int));
        for (int i = 0; i < s->n_inst; i++)
            for (int r = 0; r < s->n_ranks && s->peer_inst[i] >= 0 &&
                            hp_info_of(s, i)->task->kind == HP_TASK_RECV;
                 r++)
                s->posts[hp_at(s, r, i)] = hp_info_of(s, i)->messages->n_from[r];
    }
    if (g->o->poison)
        hp_poison_step(g);
}

static void start(hp_engine *g)
{
    for (int k = 0; k < g->n_sides; k++)
        for (int i = 0; i < g->side[k].n_inst; i++)
            for (int r = 0; r < g->side[k].n_ranks && g->side[k].start[i] == 0; r++)
                ready(g, &g->side[k], r, i);
}

hp_err hp_sched_step(hp_engine *g, hp_errmsg *e)
{
    pthread_mutex_lock(&g->lock);
    reset(g);
    g->start_ns = hp_now_ns();
    g->slot = hp_segment_begin(g->seg, g->step - g->o->first_step, g->step, g->start_ns);
    g->now = (hp_exec_metrics){.step = g->step, .loss = (double)NAN, .grad_norm = (double)NAN};
    g->step_open = true;
    start(g);
    changed(g);
    work_step(g, 0);
    while (g->running > 0)
        wait_for_work(g);
    g->now.step_ns = now(g);
    g->step_open = false;
    hp_err rc = g->code;
    if (rc)
        *e = g->error;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

/* engine.c -- random plans run in many ways: the bits depend on plan and seed alone, and bytes are where the plan says.
 *
 * Each draw runs two steps on one worker and then again: the same way, with other numbers of workers and cores, with random task durations (a tap that sleeps), with slow devices and
 * paced links, with dead bytes poisoned. Every output of every task must have the same bits. Of the first run every span's bytes are held against the plan and against
 * what boxes say that ranks receive. HP_SEED=n, HP_DRAW=k, HP_DRAWS=n and HP_TEST_LONG=1 as in check.c.
 */
#include "draw.h"

#include "exec/run.h"
#include "trace/memory.h"

#include <stdatomic.h>

typedef struct way {
    const char *name;
    int workers, cores;
    bool sleeps, slow, paced, poison;
} way;

static const way ways[] = {
    {"one worker", 1, 1, false, false, false, false},
    {"the same again", 1, 1, false, false, false, false},
    {"one worker with three cores", 1, 3, false, false, false, false},
    {"two workers", 2, 2, false, false, false, false},
    {"three workers with seven cores", 3, 7, false, false, false, false},
    {"random task durations", 3, 3, true, false, false, false},
    {"slow devices and paced links", 2, 2, false, true, true, false},
    {"poison", 2, 2, false, false, false, true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0], STEPS = 2 };

typedef struct trial {
    const draw *d;
    const way *w;
    hp_corpus corpus;
    _Atomic uint64_t bits, outputs; /* of all outputs, in any order */
    uint64_t metrics;
    int64_t peak[DRAW_DEVICES];
} trial;

typedef struct tally {
    int draws, differ[N_WAYS], wrong_bytes, beyond, peaks, peaks_differ;
    int64_t tasks, outputs;
} tally;

static uint64_t mix(uint64_t a, uint64_t b)
{
    return hp_rng_key(a, b);
}

static uint64_t hash_operand(const hp_operand *o, bool routed)
{
    int64_t n = routed ? o->rows : 1;
    for (int d = routed ? o->nd - 1 : 0; d < o->nd; d++)
        n *= o->len[d];
    return o->data && n > 0 ? hp_hash64(o->data, (uint64_t)(n * hp_dtype_bytes(o->dtype))) : 1;
}

static void on_tap(void *ctx, const hp_exec_tap *t)
{
    trial *x = ctx;
    uint64_t where = mix(mix((uint64_t)t->program << 32 | (uint64_t)t->rank, (uint64_t)t->inst << 8 | (uint64_t)t->output), (uint64_t)t->step);
    atomic_fetch_add(&x->bits, mix(where, hash_operand(&t->operand, t->routed)));
    atomic_fetch_add(&x->outputs, 1);
    uint64_t chance = mix(where, (uint64_t)x->d->number);
    if (x->w->sleeps && chance % 16 == 0)
        usleep((unsigned)(chance >> 8) % 300);
}

static void on_step(void *ctx, const hp_exec_metrics *m)
{
    trial *x = ctx;
    x->metrics = mix(mix(x->metrics, hp_hash64(&m->loss, sizeof m->loss)), hp_hash64(&m->grad_norm, sizeof m->grad_norm));
}

static void on_final(void *ctx, int program, int rank, int buffer, const hp_operand *o)
{
    trial *x = ctx;
    atomic_fetch_add(&x->bits, mix(mix((uint64_t)program << 32 | (uint64_t)rank, (uint64_t)buffer), hash_operand(o, false)));
}

static hp_exec_options options_of(const draw *d, const way *w)
{
    hp_exec_options o = hp_exec_options_default();
    o.steps = STEPS;
    o.seed = d->check.seed;
    o.workers = w->workers;
    o.cores = w->cores;
    o.poison = w->poison;
    for (int i = 0; i < HP_LINKS && w->paced; i++) {
        o.link_bandwidth[i] = 2e8 * (double)(1 + (d->number + i) % 5);
        o.link_latency[i] = 1e-6 * (double)((d->number + i) % 4);
    }
    o.n_slow = w->slow ? d->pp * d->ranks : 0;
    for (int i = 0; i < o.n_slow; i++)
        o.slow[i] = 1 + (double)((d->number + 3 * i) % 4);
    return o;
}

/* --- bytes and places of the first run ----------------------------------------------------------------------------- */

/* Bytes that the ranks of a program receive in a collective, by boxes: what they did not hold; reductions by the ring's rounds. */
static int64_t received(const hp_program *p, const hp_task *t)
{
    int64_t sum = 0;
    for (int i = 0; i < t->n_in; i++) {
        int from = t->buf[i], to = t->buf[t->n_in + i], n = hp_mesh_group_size(&p->mesh, t->atoms);
        int64_t elem = hp_dtype_bytes(p->buffer[from].dtype);
        for (int r = 0; r < p->mesh.n_ranks; r++) {
            hp_box a = hp_buffer_box(p, from, r), b = hp_buffer_box(p, to, r), both = hp_box_meet(&a, &b);
            int64_t reduced = hp_box_size(&a) * (n - 1) / n * elem; /* summed over a group of n: (n - 1) wholes */
            if (t->coll == HP_COLL_ALL_REDUCE)
                sum += 2 * (n - 1) * hp_box_size(&a) * elem / n;
            else if (t->coll == HP_COLL_REDUCE_SCATTER)
                sum += reduced;
            else if (t->coll != HP_COLL_SLICE && p->buffer[from].turn == p->buffer[to].turn)
                sum += (hp_box_size(&b) - hp_box_size(&both)) * elem;
            else if (t->coll != HP_COLL_SLICE)
                sum += hp_box_size(&b) * elem;
        }
    }
    return sum;
}

static bool is_routed(const hp_program *p, const hp_task *t)
{
    bool routed = false;
    for (int i = 0; i < t->n_in + t->n_out; i++)
        routed = routed || (t->buf[i] >= 0 && p->buffer[t->buf[i]].route >= 0);
    return routed;
}

static int64_t check_coll(const hp_program *p, const hp_step_trace *t, int program, int inst, const hp_task *task)
{
    int64_t wrong = 0, sum = 0, n = hp_mesh_group_size(&p->mesh, task->atoms);
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        int64_t bytes = hp_trace_spans(t, program, r)[inst].bytes;
        wrong += (double)bytes != (n == 1 ? 0 : hp_task_bytes(p, task, r));
        sum += bytes;
    }
    int64_t want = received(p, task), slack = task->coll == HP_COLL_REDUCE_SCATTER || task->coll == HP_COLL_ALL_REDUCE
                                                   ? 8 * p->mesh.n_ranks * task->n_in /* rounding of thirds in `received` */
                                                   : 0;
    return wrong + (llabs(sum - want) > slack);
}

/* Bytes of a message as its senders count them, against the boxes of those who receive it. */
static int64_t check_recv(const hp_plan *plan, const hp_expansion *x, const hp_step_trace *t, int program, int inst)
{
    const hp_program *p = &plan->program[program];
    const hp_task *task = hp_inst_task(p, &x[program].inst[inst]);
    int micro = hp_inst_entry(p, &x[program].inst[inst])->micro;
    const hp_program *q = &plan->program[task->peer];
    int64_t sent = 0, got = 0;
    for (int i = 0; i < x[task->peer].n; i++) {
        const hp_task *s = hp_inst_task(q, &x[task->peer].inst[i]);
        if (s->kind == HP_TASK_SEND && s->edge == task->edge && hp_inst_entry(q, &x[task->peer].inst[i])->micro == micro)
            for (int r = 0; r < q->mesh.n_ranks; r++)
                sent += hp_trace_spans(t, task->peer, r)[i].bytes;
    }
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        hp_box b = hp_buffer_box(p, task->buf[0], r);
        got += hp_box_size(&b) * hp_dtype_bytes(p->buffer[task->buf[0]].dtype);
    }
    return sent != got;
}

static void check_bytes(const hp_plan *plan, const hp_expansion *x, const hp_step_trace *t, tally *y)
{
    for (int k = 0; k < plan->n_programs; k++)
        for (int i = 0; i < x[k].n; i++) {
            const hp_task *task = hp_inst_task(&plan->program[k], &x[k].inst[i]);
            int64_t wrong = 0;
            y->tasks++;
            if (task->kind == HP_TASK_COLL && !is_routed(&plan->program[k], task))
                wrong = check_coll(&plan->program[k], t, k, i, task);
            else if (task->kind == HP_TASK_RECV)
                wrong = check_recv(plan, x, t, k, i);
            if (wrong)
                diag("bytes of %s are not the plan's", task->name);
            y->wrong_bytes += wrong != 0;
        }
}

/* Every buffer lies within its device's arena, and every rank's part within the buffer. */
static void check_places(const hp_plan *plan, tally *y)
{
    for (int k = 0; k < plan->n_programs; k++) {
        const hp_program *p = &plan->program[k];
        for (int b = 0; b < p->n_buffers; b++) {
            int frames = p->buffer[b].scope == HP_S_FRAME ? p->n_frames : 1;
            for (int f = 0; f < frames; f++)
                y->beyond += hp_buffer_address(p, b, f) + p->buffer[b].bytes > hp_program_arena(p) || hp_buffer_address(p, b, f) < 0;
            for (int r = 0; r < p->mesh.n_ranks; r++)
                y->beyond += hp_buffer_rank_bytes(p, b, r) > p->buffer[b].bytes;
        }
    }
}

static void measure_peaks(const hp_plan *plan, const hp_expansion *x, const hp_step_trace *t, trial *v)
{
    for (int k = 0; k < plan->n_programs; k++)
        for (int r = 0; r < plan->program[k].mesh.n_ranks; r++) {
            hp_memory_line l = {0};
            hp_memory_over_time(&plan->program[k], &x[k], hp_trace_spans(t, k, r), &l);
            v->peak[plan->program[k].mesh.first + r] = l.point[l.peak].total;
            hp_memory_line_fini(&l);
        }
}

/* --- runs ------------------------------------------------------------------------------------------------------------- */

static hp_err run(draw *d, const way *w, trial *v, tally *y, hp_errmsg *e)
{
    const hp_plan *plan = d->built.plan;
    hp_data_options data = {.seed = d->check.seed, .vocab = plan->vocab, .zigzag = plan->zigzag, .documents = d->check.documents, .ignore = d->check.ignore};
    *v = (trial){.d = d, .w = w};
    hp_err err = hp_corpus_open(&v->corpus, NULL, &data, e);
    hp_exec_hooks h = {.ctx = v, .load = hp_corpus_fill, .load_ctx = &v->corpus, .tap = on_tap, .step = on_step, .final = on_final};
    hp_exec_options o = options_of(d, w);
    hp_exec_report rep = {0};
    if (!err)
        err = hp_exec_run(plan, &o, &h, &rep, e);
    if (!err) {
        hp_expansion *x = hp_exec_expand(plan);
        hp_step_trace t;
        hp_segment_trace(rep.segment, hp_segment_newest(rep.segment), &t);
        if (w == ways)
            check_bytes(plan, x, &t, y);
        measure_peaks(plan, x, &t, v);
        hp_segment_trace_fini(&t);
        hp_exec_expansions_free(plan, x);
    }
    hp_exec_report_fini(&rep);
    hp_corpus_fini(&v->corpus);
    return err;
}

static bool run_all(draw *d, tally *y)
{
    trial first, other;
    hp_errmsg e = {0};
    bool right = true;
    int devices = d->pp * d->ranks;
    check_places(d->built.plan, y);
    for (int i = 0; i < N_WAYS; i++) {
        trial *v = i ? &other : &first;
        if (run(d, &ways[i], v, y, &e)) {
            diag("%s: %s", ways[i].name, e.text);
            y->differ[i]++;
            return false;
        }
        bool same = v->bits == first.bits && v->outputs == first.outputs && v->metrics == first.metrics;
        if (!same)
            diag("%s: other bits than on one worker", ways[i].name);
        y->differ[i] += !same;
        right = right && same;
        for (int k = 0; k < devices; k++) {
            y->peaks++;
            y->peaks_differ += v->peak[k] != first.peak[k];
            y->beyond += v->peak[k] > hp_program_arena(&d->built.plan->program[k / d->ranks]);
        }
    }
    y->outputs += (int64_t)first.outputs;
    return right;
}

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *s = getenv(name);
    return s ? strtoll(s, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    (void)argc;
    draw_calm(argv);
    int64_t one = number_of("HP_DRAW", -1), seed = number_of("HP_SEED", 1), wanted = number_of("HP_DRAWS", getenv("HP_TEST_LONG") ? 400 : 40);
    tally y = {0};
    int failed = 0;
    note("seed %lld", (long long)seed);
    for (int64_t i = one < 0 ? 0 : one; y.draws < wanted && failed < 5; i++) {
        hp_errmsg e = {0};
        draw *d = draw_new((uint64_t)seed, i);
        if (!draw_build(d, &e)) {
            y.draws++;
            int before = y.wrong_bytes + y.beyond;
            if (!run_all(d, &y) || y.wrong_bytes + y.beyond > before) {
                failed++;
                draw_print(d);
            }
        }
        draw_free(d);
        if (one >= 0)
            break;
    }
    for (int i = 1; i < N_WAYS; i++)
        is_int(y.differ[i], 0, "%s: %lld outputs of %d plans have the same bits", ways[i].name, (long long)y.outputs, y.draws);
    is_int(y.wrong_bytes, 0, "every span's bytes are the plan's, and sent is received (%lld tasks)", (long long)y.tasks);
    is_int(y.beyond, 0, "buffers, their parts and what is live at once lie within the plan's arena");
    note("live peaks that moved with timing: %d of %d", y.peaks_differ, y.peaks);
    return done_testing();
}

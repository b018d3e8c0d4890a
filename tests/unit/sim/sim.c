/* sim.c -- the event clock against closed forms, with folding and without, shared ports, stragglers, deadlocks, replay. */
#include "sim/sim.h"
#include "trace/metrics.h"

#include "base/rng.h"
#include "handplan.h"
#include "tap.h"

static hp_cluster *cluster(const char *spec, int n, const hp_override *over)
{
    hp_cluster *c = NULL;
    hp_errmsg e = {0};
    if (hp_cluster_parse(spec, n, over, NULL, NULL, &c, &e))
        bail("%s: %s", spec, e.text);
    return c;
}

static hp_step_trace run(const hp_plan *p, const hp_expansion *x, const hp_cluster *c,
                         const hp_sim_options *o)
{
    hp_step_trace t = {0};
    hp_errmsg e = {0};
    if (hp_sim_step(p, x, c, o, &t, &e))
        bail("%s", e.text);
    return t;
}

/* --- collectives ------------------------------------------------------------------------------------------ */

static void test_all_reduce(void)
{
    for (int n = 2; n <= 8; n *= 2) {
        char axes[16], spec[16];
        snprintf(axes, sizeof axes, "dp=%d", n);
        snprintf(spec, sizeof spec, "ideal:%d", n);
        hp_plan *p = hand_plan(1, n);
        hp_program *r = hand_program(p, 0, axes, 0);
        int dp = hand_stream(r, "dp", HP_ROLE_DP),
            g = hand_buffer(p, r, "g", HP_B_GRADS, HP_S_STEP, 64 << 20);
        r->buffer[g].layout.partial[0] = HP_RED_SUM;
        int h = hand_buffer(p, r, "h", HP_B_GRADS, HP_S_STEP, 64 << 20),
            o = hand_template(p, r, HP_TMPL_O);
        hand_collective(r, hand_task(p, r, o, "reduce", HP_TASK_COLL, dp, 1, 1, g, h),
                        HP_COLL_ALL_REDUCE);
        hand_entry(r, o, -1, -1);
        hand_close(r);
        hp_expansion *x = hand_expand(p);
        hp_cluster *c = cluster(spec, 0, NULL);
        hp_step_trace t = run(p, x, c, NULL);
        near((double)t.step_ns, 2e9 * (n - 1) / n * (64 << 20) / 100e9, 1,
             "all-reduce over %d: 2(n-1)/n S/bw", n);
        is_int(t.n_rows[0], 1, "... simulated once for all %d", n);
        is_int(t.span[0][0].bytes, 2LL * (n - 1) * (64 << 20) / n, "... with the bytes each sends");
        hp_step_trace_fini(&t);
        hp_cluster_free(c);
        hand_free(p, x);
    }
}

/* Two transfers of 1 s (100 GB at 100 GB/s) on two streams: together each takes 2 s. */
static void test_shared_port(void)
{
    hp_plan *p = hand_plan(1, 2);
    hp_program *r = hand_program(p, 0, "dp=2", 0);
    int s1 = hand_stream(r, "a", HP_ROLE_DP), s2 = hand_stream(r, "b", HP_ROLE_DP);
    int64_t size = 1000000LL * 64;
    int b[4];
    for (int i = 0; i < 4; i++)
        b[i] = hand_buffer(p, r, "b", HP_B_GRADS, HP_S_STEP, size);
    r->buffer[b[0]].layout.partial[0] = r->buffer[b[2]].layout.partial[0] = HP_RED_SUM;
    int o = hand_template(p, r, HP_TMPL_O);
    hand_collective(r, hand_task(p, r, o, "one", HP_TASK_COLL, s1, 1, 1, b[0], b[1]),
                    HP_COLL_ALL_REDUCE);
    hand_task(p, r, o, "first", HP_TASK_LOAD, 0, 0, 1, b[2]);
    hand_collective(r, hand_task(p, r, o, "two", HP_TASK_COLL, s2, 1, 1, b[2], b[3]),
                    HP_COLL_ALL_REDUCE);
    hand_entry(r, o, -1, -1);
    hand_close(r);
    hp_expansion *x = hand_expand(p);
    hp_cluster *c = cluster("ideal:2", 0, NULL);
    hp_step_trace t = run(p, x, c, NULL);
    int64_t alone = size / 100; /* ns: 64 MB over one port at 100 GB/s */
    int64_t late = size / 1000;
    is_int(t.span[0][1].end_ns, late, "the load ends when its bytes are written");
    is_int(t.span[0][2].xfer_ns, late, "the second transfer starts with it");
    is_int(t.span[0][0].end_ns, late + 2 * (alone - late), "the first is slowed from then on");
    is_int(t.span[0][2].end_ns, 2 * alone,
           "... and the second faster once it is alone: no bandwidth is lost");
    hp_step_trace_fini(&t);
    hp_cluster_free(c);
    hand_free(p, x);
}

/* --- pipelines ---------------------------------------------------------------------------------------------- */

/* A stage of a 1F1B pipeline (or GPipe) over dp=`dp`: F takes `f` us and B `b` us of every stage, messages are empty of time on a
 * cluster with endless links. */
static void pipeline_stage(hp_plan *p, int i, int stages, int m, int dp, int f_us, int b_us,
                           bool gpipe)
{
    char axes[16];
    snprintf(axes, sizeof axes, "dp=%d", dp);
    hp_program *r = hand_program(p, i, axes, i * dp);
    int in = hand_stream(r, "pp-in", HP_ROLE_PP), out = hand_stream(r, "pp-out", HP_ROLE_PP);
    int x = hand_buffer(p, r, "x", HP_B_ACTIVATIONS, HP_S_FRAME, 64),
        y = hand_buffer(p, r, "y", HP_B_COMM, HP_S_FRAME, 64);
    int gy = hand_buffer(p, r, "gy", HP_B_COMM, HP_S_FRAME, 64),
        gx = hand_buffer(p, r, "gx", HP_B_COMM, HP_S_FRAME, 64);
    int wf = hand_buffer(p, r, "wf", HP_B_WORKSPACE, HP_S_RUN, f_us * 1000000LL),
        wb = hand_buffer(p, r, "wb", HP_B_WORKSPACE, HP_S_RUN, b_us * 1000000LL);
    int tf = hand_template(p, r, HP_TMPL_F), tb = hand_template(p, r, HP_TMPL_B);
    bool head = i == 0, tail = i == stages - 1;
    hp_task *k;
    if (!head) {
        k = hand_task(p, r, tf, "recv-x", HP_TASK_RECV, in, 0, 1, x);
        k->peer = i - 1;
        k->edge = 0;
    }
    hand_task(p, r, tf, "F", HP_TASK_LOAD, 0, head ? 0 : 1, 2, head ? wf : x, head ? y : wf, y)
        ->n_out = 2;
    if (!tail) {
        k = hand_task(p, r, tf, "send-y", HP_TASK_SEND, out, 1, 0, y);
        k->peer = i + 1;
        k->edge = 0;
        k = hand_task(p, r, tb, "recv-gy", HP_TASK_RECV, in, 0, 1, gy);
        k->peer = i + 1;
        k->edge = 1;
    }
    hand_task(p, r, tb, "B", HP_TASK_LOAD, 0, 1, 2, tail ? y : gy, wb, gx);
    if (!head) {
        k = hand_task(p, r, tb, "send-gx", HP_TASK_SEND, out, 1, 0, gx);
        k->peer = i - 1;
        k->edge = 1;
    }
    int warm = gpipe ? m : stages - i < m ? stages - i : m;
    for (int j = 0; j < warm; j++)
        hand_entry(r, tf, j, j % (m + 1));
    for (int j = 0; j < m; j++) {
        hand_entry(r, tb, j, j % (m + 1));
        if (warm + j < m)
            hand_entry(r, tf, warm + j, (warm + j) % (m + 1));
    }
    hand_close(r);
}

static hp_plan *pipeline(int stages, int m, int dp, int f_us, int b_us, bool gpipe)
{
    hp_plan *p = hand_plan(stages, stages * dp);
    for (int i = 0; i < stages; i++)
        pipeline_stage(p, i, stages, m, dp, f_us, b_us, gpipe);
    return p;
}

static const hp_override endless[] = {{"link.bandwidth", "1000000000TB/s"}};

static void test_bubble(void)
{
    static const int draw[][4] = {
        {2, 4, 1, 1}, {4, 8, 1, 2}, {4, 4, 3, 5}, {8, 32, 1, 2}, {3, 1, 1, 2}};
    for (size_t i = 0; i < sizeof draw / sizeof draw[0]; i++)
        for (int gpipe = 0; gpipe < 2; gpipe++) {
            int stages = draw[i][0], m = draw[i][1], f = draw[i][2], b = draw[i][3];
            hp_plan *p = pipeline(stages, m, 1, f, b, gpipe);
            hp_expansion *x = hand_expand(p);
            char spec[16];
            snprintf(spec, sizeof spec, "ideal:%d", stages);
            hp_cluster *c = cluster(spec, 1, endless);
            hp_step_trace t = run(p, x, c, NULL);
            int64_t want = (int64_t)(m + stages - 1) * (f + b) * 1000;
            near((double)t.step_ns, (double)want, 0.002 * (double)want,
                 "%s of %d stages, %d microbatches: (m+p-1)(F+B)", gpipe ? "GPipe" : "1F1B", stages,
                 m);
            double worst = 0;
            for (int k = 0; k < stages; k++) {
                hp_owned o =
                    hp_owners_sum(&p->program[k], &x[k], hp_trace_spans(&t, k, 0), t.step_ns);
                double idle =
                    (double)(o.ns[HP_OWNER_BUBBLE] + o.ns[HP_OWNER_FREE]) / (double)t.step_ns;
                worst = fmax(worst, fabs(idle - (double)(stages - 1) / (m + stages - 1)));
            }
            ok(worst < 0.003, "... every stage idles (p-1)/(m+p-1) of it, off by %.2g", worst);
            hp_step_trace_fini(&t);
            hp_cluster_free(c);
            hand_free(p, x);
        }
}

static void test_message_time(void)
{
    hp_plan *p = pipeline(2, 1, 1, 1, 1, false);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < p->program[i].n_buffers; k++)
            if (p->program[i].buffer[k].kind == HP_B_COMM ||
                p->program[i].buffer[k].kind == HP_B_ACTIVATIONS) {
                p->program[i].buffer[k].bytes = 1 << 20;
                p->program[i].buffer[k].shape.size[0] = 1 << 18;
            }
    int64_t at = 0;
    for (int i = 0; i < 2; i++, at = 0)
        for (int k = 0; k < p->program[i].n_buffers; k++)
            if (p->program[i].buffer[k].scope == HP_S_FRAME) {
                p->program[i].buffer[k].offset = at;
                at += 1 << 20;
                p->program[i].scope_bytes[HP_S_FRAME] = at;
            }
    hp_expansion *x = hand_expand(p);
    hp_cluster *c = cluster("ideal:2", 0, NULL);
    hp_step_trace t = run(p, x, c, NULL);
    const hp_span *s = hp_trace_spans(&t, 1, 0);
    is_int(s[0].start_ns, 0, "a receiver waits from the start");
    is_int(s[0].end_ns - s[0].xfer_ns, (1 << 20) / 100 + 1,
           "a message of 1 MiB takes its bytes over the link");
    const hp_span *a = hp_trace_spans(&t, 0, 0);
    ok(a[1].start_ns == s[0].xfer_ns && a[1].end_ns == s[0].end_ns,
       "... seen alike from the sender");
    is_int(a[1].bytes, 1 << 20, "... which counts the bytes");
    is_int(s[0].bytes, 0, "... and the receiver none");
    hp_step_trace_fini(&t);
    hp_cluster_free(c);
    hand_free(p, x);
}

static void test_deadlock(void)
{
    hp_plan *p = hand_plan(2, 2);
    for (int i = 0; i < 2; i++) {
        hp_program *r = hand_program(p, i, "dp=1", i);
        int pp = hand_stream(r, "pp", HP_ROLE_PP),
            a = hand_buffer(p, r, "a", HP_B_COMM, HP_S_FRAME, 64);
        int b = hand_buffer(p, r, "b", HP_B_COMM, HP_S_FRAME, 64),
            f = hand_template(p, r, HP_TMPL_F);
        hp_task *k = hand_task(p, r, f, "take", HP_TASK_RECV, pp, 0, 1, a);
        k->peer = 1 - i;
        k->edge = 1 - i;
        k = hand_task(p, r, f, "give", HP_TASK_SEND, pp, 1, 0, b);
        k->peer = 1 - i;
        k->edge = i;
        hand_entry(r, f, 0, 0);
        hand_close(r);
    }
    hp_expansion *x = hand_expand(p);
    hp_cluster *c = cluster("ideal:2", 0, NULL);
    hp_step_trace t = {0};
    hp_errmsg e = {0};
    is_int(hp_sim_step(p, x, c, NULL, &t, &e), HP_EINFEASIBLE,
           "two receivers that wait for each other are a deadlock");
    ok(strstr(e.text, "take") && strstr(e.text, "stage0"), "... which names who waits (%s)",
       e.text);
    p->program[1].tmpl[0].task[1].edge = 7;
    is_int(hp_sim_step(p, x, c, NULL, &t, &e), HP_EINFEASIBLE,
           "a message that nobody takes is refused");
    ok(strstr(e.text, "partner"), "... saying so (%s)", e.text);
    hp_cluster_free(c);
    hand_free(p, x);
}

/* --- classes and stragglers ----------------------------------------------------------------------------------- */

/* An all-reduce of what does not divide has parts that differ by an element: bytes agree within two of those. */
static bool same_timelines(const hp_plan *p, const hp_step_trace *a, const hp_step_trace *b)
{
    if (a->step_ns != b->step_ns)
        return false;
    for (int i = 0; i < p->n_programs; i++)
        for (int r = 0; r < p->program[i].mesh.n_ranks; r++) {
            const hp_span *x = hp_trace_spans(a, i, r), *y = hp_trace_spans(b, i, r);
            for (int k = 0; k < a->n_inst[i]; k++)
                if (x[k].start_ns != y[k].start_ns || x[k].xfer_ns != y[k].xfer_ns ||
                    x[k].end_ns != y[k].end_ns || x[k].ready_ns != y[k].ready_ns ||
                    x[k].bytes != y[k].bytes)
                    return false;
        }
    return true;
}

/* Splits a buffer by random atoms (sizes are often no multiple of them). */
static void split(hp_program *r, int buffer, hp_rng *g, uint32_t keep)
{
    hp_buffer *b = &r->buffer[buffer];
    for (int a = 0; a < r->mesh.n_atoms; a++)
        if (!(keep & 1u << a) && hp_rng_below(g, 2))
            b->layout.split[0][b->layout.n[0]++] = (uint8_t)a;
}

static uint32_t atoms_of(const hp_program *r, const char *axis)
{
    const hp_axis *a = hp_mesh_axis(&r->mesh, axis);
    uint32_t mask = 0;
    for (int i = 0; i < a->n; i++)
        mask |= 1u << a->atom[i];
    return mask;
}

/* A stage with random work on dp x tp, all-reduces over either axis on streams of their own, and a message to the next stage. */
static void random_stage(hp_plan *p, int i, int stages, const char *axes, int first, bool even,
                         hp_rng *g)
{
    int64_t unit = even ? 64 * 24 : 64;
    hp_program *r = hand_program(p, i, axes, first);
    int tp = hand_stream(r, "tp", HP_ROLE_TP), dp = hand_stream(r, "dp", HP_ROLE_DP),
        pp = hand_stream(r, "pp", HP_ROLE_PP);
    int f = hand_template(p, r, HP_TMPL_F),
        carry =
            hand_buffer(p, r, "carry", HP_B_COMM, HP_S_FRAME, unit * (1 + hp_rng_below(g, 900)));
    r->buffer[carry].shape.size[0] = even ? 4800 : 4801;
    split(r, carry, g, 0);
    hp_task *k;
    if (i > 0) {
        k = hand_task(p, r, f, "recv", HP_TASK_RECV, pp, 0, 1, carry);
        k->peer = i - 1;
        k->edge = 0;
    }
    int last = carry;
    for (int j = 0; j < 4; j++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", j);
        int w =
            hand_buffer(p, r, "w", HP_B_WORKSPACE, HP_S_RUN, unit * (1 + hp_rng_below(g, 2000)));
        r->buffer[w].shape.size[0] = r->buffer[w].bytes / 4 - (even ? 0 : hp_rng_below(g, 9));
        split(r, w, g, 0);
        hand_task(p, r, f, name, HP_TASK_LOAD, 0, 1, 1, last, w);
        bool over_tp = hp_rng_below(g, 2);
        uint32_t atoms = atoms_of(r, over_tp ? "tp" : "dp");
        int from =
            hand_buffer(p, r, "from", HP_B_COMM, HP_S_RUN, unit * (1 + hp_rng_below(g, 2000)));
        split(r, from, g, atoms);
        int to = hand_buffer(p, r, "to", HP_B_COMM, HP_S_RUN, r->buffer[from].bytes);
        r->buffer[to].layout = r->buffer[from].layout;
        for (int a = 0; a < r->mesh.n_atoms; a++)
            if (atoms & 1u << a)
                r->buffer[from].layout.partial[a] = HP_RED_SUM;
        hand_task(p, r, f, name, HP_TASK_LOAD, 0, 1, 1, w, from);
        k = hand_task(p, r, f, name, HP_TASK_COLL, over_tp ? tp : dp, 1, 1, from, to);
        k->coll = HP_COLL_ALL_REDUCE;
        k->atoms = atoms;
        last = hp_rng_below(g, 2) ? to : w;
    }
    if (i + 1 < stages) {
        int out = hand_buffer(p, r, "out", HP_B_COMM, HP_S_FRAME, 64);
        r->buffer[out].shape = p->program[0].buffer[0].shape;
        split(r, out, g, 0);
        hand_task(p, r, f, "make", HP_TASK_LOAD, 0, 1, 1, last, out);
        k = hand_task(p, r, f, "send", HP_TASK_SEND, pp, 1, 0, out);
        k->peer = i + 1;
        k->edge = 0;
    }
    for (int m = 0; m < 3; m++)
        hand_entry(r, f, m, m);
    hand_close(r);
}

static void test_folding(uint64_t seed, int draws)
{
    static const char *const shape[] = {"dp=2,tp=4", "dp=4,tp=2", "dp=3,tp=4", "dp=8,tp=1",
                                        "dp=2,tp=2"};
    static const int ranks[] = {8, 8, 12, 8, 4};
    int folded = 0, wrong = 0;
    for (int d = 0; d < draws; d++) {
        hp_rng g = {hp_rng_key(seed, (uint64_t)d), 0};
        int stages = 1 + (int)hp_rng_below(&g, 3), first = 0;
        hp_plan *p = hand_plan(stages, 64);
        for (int i = 0; i < stages; i++) {
            int s = (int)hp_rng_below(&g, 3 + 2 * (i == 0));
            s = s == 3 ? 0 : s;
            random_stage(p, i, stages, shape[s], first, d % 3 > 0, &g);
            first += ranks[s];
        }
        char spec[16];
        snprintf(spec, sizeof spec, "ideal:%d", first);
        hp_override o[] = {{"slow", "rank=1,factor=1.5"}};
        hp_cluster *c = cluster(spec, hp_rng_below(&g, 3) == 0, o);
        hp_expansion *x = hand_expand(p);
        hp_sim_options every = {.every_device = true};
        hp_step_trace a = run(p, x, c, NULL), b = run(p, x, c, &every);
        int rows = 0;
        for (int i = 0; i < stages; i++)
            rows += a.n_rows[i];
        folded += rows < first;
        wrong += !same_timelines(p, &a, &b);
        if (!same_timelines(p, &a, &b))
            diag("draw %d: %d rows, step %lld against %lld", d, rows, (long long)a.step_ns,
                 (long long)b.step_ns);
        hp_step_trace_fini(&a);
        hp_step_trace_fini(&b);
        hp_cluster_free(c);
        hand_free(p, x);
    }
    note("seed %llu: %d of %d draws folded", (unsigned long long)seed, folded, draws);
    is_int(wrong, 0, "classes have the timelines of every device simulated, in %d random plans",
           draws);
    ok(folded > draws / 4, "... and many plans do fold");
}

static void test_straggler(void)
{
    hp_plan *p = pipeline(1, 1, 4, 10, 10, false);
    hp_program *r = &p->program[0];
    int dp = hand_stream(r, "dp", HP_ROLE_DP), o = hand_template(p, r, HP_TMPL_O);
    hand_collective(r, hand_task(p, r, o, "reduce", HP_TASK_COLL, dp, 1, 1, 3, 3),
                    HP_COLL_ALL_REDUCE);
    hand_task(p, r, o, "after", HP_TASK_LOAD, 0, 1, 1, 3, 0);
    hand_entry(r, o, 0, 0);
    hand_close(r);
    hp_expansion *x = hand_expand(p);
    hp_override slow[] = {{"slow", "{rank=2,factor=1.5}"}};
    hp_cluster *c = cluster("ideal:4", 1, slow);
    hp_step_trace t = run(p, x, c, NULL);
    is_int(t.n_rows[0], 2, "a straggler is a class of its own, the others are one");
    hp_owned o2 = hp_owners_sum(r, x, hp_trace_spans(&t, 0, 2), t.step_ns),
             o0 = hp_owners_sum(r, x, hp_trace_spans(&t, 0, 0), t.step_ns);
    near((double)o2.ns[HP_OWNER_COMPUTE], 30000, 3, "the straggler computes 1.5 times as long");
    near((double)o0.ns[HP_OWNER_WAIT], 10000, 3, "... and the others wait for it");
    is_int(o2.ns[HP_OWNER_WAIT], 0, "... who waits for nobody");
    hp_step_trace_fini(&t);
    hp_cluster_free(c);
    hand_free(p, x);
}

/* --- replay ------------------------------------------------------------------------------------------------- */

static void test_replay(void)
{
    hp_plan *p = pipeline(2, 2, 2, 1, 1, false);
    hp_expansion *x = hand_expand(p);
    int64_t *busy[2];
    for (int i = 0; i < 2; i++) {
        busy[i] = calloc((size_t)(2 * x[i].n), sizeof *busy[i]);
        for (int r = 0; r < 2; r++)
            for (int k = 0; k < x[i].n; k++) {
                hp_task_kind kind = hp_inst_task(&p->program[i], &x[i].inst[k])->kind;
                busy[i][r * x[i].n + k] = kind == HP_TASK_LOAD   ? 1000 + 500 * r
                                          : kind == HP_TASK_RECV ? 100
                                                                 : 50;
            }
    }
    const int64_t *const list[] = {busy[0], busy[1]};
    hp_measured m = {.busy_ns = list};
    hp_sim_options o = {.measured = &m};
    hp_cluster *c = cluster("ideal:4", 0, NULL);
    hp_step_trace t = run(p, x, c, &o);
    const hp_span *s = hp_trace_spans(&t, 0, 1);
    is_int(s[0].end_ns - s[0].start_ns, 1500,
           "a replayed task takes its measured time on its rank");
    is_int(hp_trace_spans(&t, 1, 0)[0].end_ns - hp_trace_spans(&t, 1, 0)[0].xfer_ns, 100,
           "a message takes the longer end's");
    is_int(t.step_ns, 3 * 3000 + 2 * 100, "the slow ranks' pipeline is the step");
    hp_step_trace again = run(p, x, c, &o);
    ok(same_timelines(p, &t, &again), "a replay is the same every time");
    hp_step_trace_fini(&t);
    hp_step_trace_fini(&again);
    free(busy[0]);
    free(busy[1]);
    hp_cluster_free(c);
    hand_free(p, x);
}

int main(void)
{
    test_all_reduce();
    test_shared_port();
    test_bubble();
    test_message_time();
    test_deadlock();
    test_folding(20260102, 150);
    test_straggler();
    test_replay();
    return done_testing();
}

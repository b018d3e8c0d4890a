#include "plans.h"

#include <unistd.h>

/* --- tensor parallelism: one partial product, reduced and moved in every way --- */

static hp_plan *tensor_plan(int ranks)
{
    draft d = {0};
    char atoms[16];
    snprintf(atoms, sizeof atoms, "%d", ranks);
    begin(&d, "tp", 0, ranks, atoms, 0);
    buffer(&d, "w", "persist", 40, "init normal 0.5 shape 10:0 4");
    buffer(&d, "x", "step", 60, "shape 6 10:0");
    buffer(&d, "y", "run", 24, "shape 6 4 ~0:sum");
    buffer(&d, "z", "run", 24, "shape 6 4");
    buffer(&d, "s", "run", 24, "shape 6:0 4");
    buffer(&d, "t", "run", 24, "shape 6 4");
    buffer(&d, "u", "run", 24, "shape 6 4:0");
    buffer(&d, "v", "run", 24, "shape 6:0 4");
    buffer_at(&d, "z2", "z2", "f32", "run", 24, 0, "alias y shape 6 4");
    buffer(&d, "g", "run", 24, "shape 6 4");
    buffer(&d, "h", "run", 24, "shape 6 4");
    buffer(&d, "m", "run", 24, "shape 6 4 ~0:avg");
    buffer(&d, "k", "run", 24, "shape 6 4");
    int64_t at = d.at[HP_S_RUN];
    buffer(&d, "i", "run", 24, "shape 6:0 4");
    buffer_at(&d, "j", "j", "f32", "run", 24, at, "alias i shape 6 4");
    buffer(&d, "q", "run", 24, "shape 6:0 4");
    buffer(&d, "loss.part", "step", 16, "shape ~0:sum");
    buffer_at(&d, "loss", "loss", "f32", "step", 16, -1, "shape");
    buffer_at(&d, "grad_norm", "-", "f32", "step", 16, -1, "shape");
    end(&d, "template F chunk 0\n"
            " load data compute always : -> x\n"
            " op lin compute always linear lin : x w -> y\n"
            " coll ar tp always all-reduce 1 - : y -> z\n"
            " coll rs tp always reduce-scatter 1 - : y -> s\n"
            " coll ag tp always all-gather 1 - : s -> t\n"
            " coll a2a tp always all-to-all 1 - : s -> u\n"
            " coll back tp always permute 1 - : u -> v\n"
            " op cpy compute always scale - : v -> i\n"
            " coll inplace tp always all-gather 1 - : i -> j\n"
            " coll cut tp always slice 1 - : j -> q\n"
            " coll bucket tp always all-gather 1 - : s v -> g h\n"
            " op mean compute always scale - : z -> m\n"
            " coll avg tp always all-reduce 1 - : m -> k\n"
            " op norm compute always sqnorm - : s -> loss.part\n"
            " coll lossred tp always all-reduce 1 - : loss.part -> loss\n"
            " op gn compute always scale - @ by 2 : loss -> grad_norm\n"
            " coll over tp always all-reduce 1 - : y -> z2\n"
            "entry 0 micro 0 frame -1 first last\n");
    return parsed(&d);
}

/* x w in double, from the values that the run loads and draws. */
static void expected_product(const record *r, int ranks, double *z)
{
    memset(z, 0, 24 * sizeof *z);
    for (int k = 0; k < ranks; k++) {
        const struct kept *x = kept(r, "data.0@0/0.%d", k);
        for (int64_t i = 0; i < x->n; i++) {
            int64_t row = i / x->len[1], c = x->lo[1] + i % x->len[1];
            for (int o = 0; o < 4; o++)
                z[row * 4 + o] +=
                    (double)x->v[i] * 0.5 *
                    (double)hp_rng_normal(hp_rng_key(1, hp_hash_str("w")), (uint64_t)(c * 4 + o));
        }
    }
}

static int differ(const struct kept *a, const struct kept *b, const char *what, int rank)
{
    if (same(a, b))
        return 0;
    diag("%s on rank %d differs", what, rank);
    return 1;
}

static void check_tensor(const record *r, const hp_exec_report *rep, int ranks)
{
    double z[24], worst = 0, squares = 0;
    expected_product(r, ranks, z);
    const struct kept *first = kept(r, "ar.0@0/0.0");
    for (int i = 0; i < 24; i++) {
        worst = fmax(worst, fabs((double)first->v[i] - z[i]));
        squares += z[i] * z[i];
    }
    ok(worst < 1e-5, "%d ranks: the reduced product is right (off by %.1e)", ranks, worst);
    int wrong = 0;
    static const char *const whole[] = {"ar", "ag", "bucket", "inplace", "over"};
    for (int k = 0; k < ranks; k++) {
        for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
            wrong += differ(first, kept(r, "%s.0@0/0.%d", whole[i], k), whole[i], k);
        const struct kept *mean = kept(r, "avg.0@0/0.%d", k);
        for (int i = 0; i < 24; i++)
            wrong += fabs((double)mean->v[i] - (double)first->v[i]) > 1e-6;
        wrong += differ(first, kept(r, "bucket.1@0/0.%d", k), "bucket's second", k);
        wrong +=
            differ(kept(r, "rs.0@0/0.%d", k), kept(r, "back.0@0/0.%d", k), "there and back", k);
        if (kept(r, "rs.0@0/0.%d", k)->n > 0)
            wrong += differ(kept(r, "rs.0@0/0.%d", k), kept(r, "cut.0@0/0.%d", k), "the slice", k);
    }
    is_int(wrong, 0, "%d ranks: every way to the same value gives the same bits on every rank",
           ranks);
    near(rep->metrics[0].loss, squares, 1e-4, "%d ranks: the loss is read", ranks);
    near(rep->metrics[0].grad_norm, 2 * rep->metrics[0].loss, 1e-5,
         "%d ranks: and the gradient norm", ranks);
}

/* Bytes that were sent are what the plan says, and every span is done and in order. */
static void check_spans(const hp_plan *p, const hp_exec_report *rep, int ranks)
{
    hp_step_trace t;
    hp_expansion *x = hp_exec_expand(p);
    hp_segment_trace(rep->segment, hp_segment_newest(rep->segment), &t);
    int wrong = 0;
    for (int g = 0; g < p->n_programs; g++)
        for (int r = 0; r < p->program[g].mesh.n_ranks; r++)
            for (int i = 0; i < x[g].n; i++) {
                const hp_span *s = &t.span[g][r * x[g].n + i];
                const hp_task *task = hp_inst_task(&p->program[g], &x[g].inst[i]);
                wrong += s->state != 2 || s->ready_ns > s->start_ns || s->start_ns > s->xfer_ns ||
                         s->xfer_ns > s->end_ns || s->end_ns > t.step_ns;
                if (task->kind == HP_TASK_COLL && p->program[g].buffer[task->buf[0]].route < 0)
                    wrong += s->bytes != llround(hp_task_bytes(&p->program[g], task, r));
            }
    is_int(wrong, 0, "%d ranks: all spans are done, in order, with the plan's bytes", ranks);
    hp_segment_trace_fini(&t);
    hp_exec_expansions_free(p, x);
}

static void test_tensor(int ranks)
{
    hp_plan *p = tensor_plan(ranks);
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    hp_exec_options o = hp_exec_options_default();
    record one = {.lock = PTHREAD_MUTEX_INITIALIZER}, many = one;
    if (!is_int(run_plan(p, o, 1, &one, &rep, &e), HP_OK, "%d ranks run on one worker", ranks)) {
        diag("%s", e.text);
        return;
    }
    check_tensor(&one, &rep, ranks);
    check_spans(p, &rep, ranks);
    hp_exec_report_fini(&rep);
    for (int workers = 2; workers <= 4; workers += 2) {
        o.poison = workers == 4;
        o.steps = 3;
        hp_err rc = run_plan(p, o, workers, &many, &rep, &e);
        hp_exec_report_fini(&rep);
        o.steps = 1;
        hp_err rc1 = run_plan(p, o, workers, &many, &rep, &e);
        ok(!rc && !rc1 && equal_records(&one, &many), "%d ranks: %d workers%s give the same bits",
           ranks, workers, o.poison ? " with dead bytes poisoned" : "");
        hp_exec_report_fini(&rep);
    }
    forget(&one);
    forget(&many);
    hp_plan_free(p);
}

/* --- a pipeline of two and three ranks: messages, frames, accumulation --- */

static hp_plan *pipeline_plan(int micro)
{
    draft d = {0};
    hp_str lines = {0};
    begin(&d, "stage0", 0, 2, "2", 2);
    buffer(&d, "acc", "persist", 15, "shape 5:0 3");
    buffer(&d, "x", "frame", 15, "shape 5:0 3");
    buffer(&d, "a", "frame", 15, "shape 5:0 3");
    buffer(&d, "g", "run", 15, "shape 5:0 3");
    hp_str_add(&lines, "template F chunk 0\n load data compute always : -> x\n op f0 compute "
                       "always scale - @ by 2 : x -> a\n"
                       " send s0 pp always peer 1 edge 0 - : a ->\n"
                       " send s0x pp always peer 1 edge 0 - : x ->\n"
                       "template B chunk 0\n recv r0 back always peer 1 edge 1 - : -> g\n op b0 "
                       "compute always add - : g x -> a\n"
                       " op u0 compute always accum - accumulate : a -> acc\n");
    for (int i = 0; i < micro + 1; i++) {
        if (i < micro)
            hp_str_add(&lines, "entry 0 micro %d frame %d%s%s\n", i, i % 2, i == 0 ? " first" : "",
                       i == micro - 1 ? " last" : "");
        if (i > 0)
            hp_str_add(&lines, "entry 1 micro %d frame %d%s%s\n", i - 1, (i - 1) % 2,
                       i == 1 ? " first" : "", i == micro ? " last" : "");
    }
    end(&d, lines.s);
    lines.len = 0;
    begin(&d, "stage1", 2, 3, "3", 1);
    buffer(&d, "a", "frame", 15, "shape 5 3:0");
    buffer(&d, "b", "frame", 15, "shape 5 3:0");
    buffer(&d, "g", "frame", 15, "shape 5 3:0");
    hp_str_add(&lines, "template F chunk 0\n recv r1 pp always peer 0 edge 0 - : -> a\n recv r1x "
                       "pp always peer 0 edge 0 - : -> b\n op f1 "
                       "compute always scale - @ by 3 : a -> g\n"
                       "template B chunk 0\n op b1 compute always add - : a g -> g\n send s1 back "
                       "always peer 0 edge 1 - : g ->\n");
    for (int i = 0; i < micro; i++)
        hp_str_add(&lines, "entry 0 micro %d frame 0%s%s\nentry 1 micro %d frame 0%s%s\n", i,
                   i == 0 ? " first" : "", i == micro - 1 ? " last" : "", i, i == 0 ? " first" : "",
                   i == micro - 1 ? " last" : "");
    end(&d, lines.s);
    hp_str_fini(&lines);
    return parsed(&d);
}

static void test_pipeline(void)
{
    enum { MICRO = 5 };
    hp_plan *p = pipeline_plan(MICRO);
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    record one = {.lock = PTHREAD_MUTEX_INITIALIZER}, many = one;
    hp_exec_options o = hp_exec_options_default();
    o.poison = true;
    if (!is_int(run_plan(p, o, 1, &one, &rep, &e), HP_OK,
                "a pipeline of two meshes runs on one worker")) {
        diag("%s", e.text);
        return;
    }
    double worst = 0;
    for (int r = 0; r < 2; r++) {
        const struct kept *acc = kept(&one, "u0.0@%d/0.%d", MICRO - 1, r);
        for (int64_t i = 0; i < acc->n; i++) {
            double sum = 0;
            for (int m = 0; m < MICRO; m++)
                sum += 9.0 * (double)input_value("x", 0, m, (acc->lo[0] + i / 3) * 3 + i % 3);
            worst = fmax(worst, fabs(sum - (double)acc->v[i]));
        }
        is_int(acc->len[0], r == 0 ? 3 : 2, "rank %d holds its uneven part", r);
    }
    for (int i = 0; i < 5; i++)
        worst = fmax(worst, fabs((double)kept(&one, "r1x.0@3/1.2")->v[i] -
                                 (double)input_value("x", 0, 3, 3 * i + 2)));
    ok(worst < 1e-5, "messages reach their boxes and microbatches add up (off by %.1e)", worst);
    check_spans(p, &rep, 5);
    hp_step_trace t;
    hp_segment_trace(rep.segment, hp_segment_newest(rep.segment), &t);
    int64_t sent = 0;
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < t.n_inst[g] * p->program[g].mesh.n_ranks; i++)
            sent += t.span[g][i].bytes;
    is_int(sent, MICRO * 3 * 15 * 4, "every byte is sent once");
    hp_segment_trace_fini(&t);
    hp_exec_report_fini(&rep);
    for (int workers = 2; workers <= 4; workers++) {
        hp_err rc = run_plan(p, o, workers, &many, &rep, &e);
        ok(!rc && equal_records(&one, &many), "%d workers give the same bits", workers);
        hp_exec_report_fini(&rep);
    }
    forget(&one);
    forget(&many);
    hp_plan_free(p);
}

/* --- routed rows --- */

/* 4 x 3 tokens over 2 ranks choose 2 of 5 experts; the rows go to the experts' ranks, are doubled there and come home. */
static hp_plan *routed_plan(int rows)
{
    draft d = {0};
    char rest[128];
    begin(&d, "ep", 0, 2, "2", 0);
    buffer_at(&d, "c", "c", "i32", "step", 24, -1, "shape 4:0 3 2");
    buffer_at(&d, "call", "c", "i32", "step", 24, -1, "shape 4 3 2");
    buffer(&d, "x", "step", 48, "shape 4:0 3 4");
    buffer(&d, "wt", "step", 24, "shape 4:0 3 2");
    static const char *const routed[] = {"xe", "c",    "4:0 3 5 4", "xr", "call", "4 3 5:0 4",
                                         "yr", "call", "4 3 5:0 4", "ye", "c",    "4:0 3 5 4"};
    for (int i = 0; i < 4; i++) {
        snprintf(rest, sizeof rest, "route %s %d shape %s", routed[3 * i + 1],
                 i % 3 == 0 ? 24 : rows, routed[3 * i + 2]);
        buffer(&d, routed[3 * i], "run", 24 * 4, rest);
    }
    buffer(&d, "y", "step", 48, "shape 4:0 3 4");
    end(&d, "template F chunk 0\n"
            " load choices compute always : -> c\n"
            " load data compute always : -> x wt\n"
            " coll cg tp always all-gather 1 - : c -> call\n"
            " op disp compute always dispatch - : x c -> xe\n"
            " coll there tp always all-to-all 1 - : xe -> xr\n"
            " op twice compute always scale - @ by 2 @ routed 1 : xr -> yr\n"
            " coll back tp always all-to-all 1 - : yr -> ye\n"
            " op comb compute always combine - : ye c wt -> y\n"
            "entry 0 micro 0 frame -1 first last\n");
    return parsed(&d);
}

/* Loaded choices are 0..7: experts beyond 4 become "dropped", equal pairs differ. */
static void mend_choices(const hp_exec_tap *t)
{
    int32_t *c = t->operand.data;
    if (strcmp(t->task->name, "choices") != 0)
        return;
    for (int64_t i = 0; i < elements(&t->operand, false); i += 2) {
        c[i] = c[i] > 4 ? -1 : c[i];
        c[i + 1] = c[i + 1] > 4 ? 4 : c[i + 1];
        if (c[i] == c[i + 1])
            c[i + 1] = (c[i] + 1) % 5;
    }
}

static double combined(const struct kept *x, const struct kept *w, const int32_t *c, int64_t i)
{
    double y = 0;
    for (int j = 0; j < 2; j++)
        if (c[i / 4 * 2 + j] >= 0)
            y += 2 * (double)w->v[i / 4 * 2 + j] * (double)x->v[i];
    return y;
}

static void test_routed(void)
{
    hp_plan *p = routed_plan(24);
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    record one = {.lock = PTHREAD_MUTEX_INITIALIZER, .touch = mend_choices}, many = one;
    hp_exec_options o = hp_exec_options_default();
    o.poison = true;
    if (!is_int(run_plan(p, o, 1, &one, &rep, &e), HP_OK, "routed rows travel")) {
        diag("%s", e.text);
        return;
    }
    double worst = 0;
    int64_t rows = 0, moved = 0;
    for (int r = 0; r < 2; r++) {
        const struct kept *x = kept(&one, "data.0@0/0.%d", r), *w = kept(&one, "data.1@0/0.%d", r),
                          *y = kept(&one, "comb.0@0/0.%d", r);
        const struct kept *c = kept(&one, "choices.0@0/0.%d", r);
        for (int64_t i = 0; i < y->n; i++)
            worst = fmax(worst, fabs((double)y->v[i] -
                                     combined(x, w, (const int32_t *)(const void *)c->v, i)));
        for (int64_t i = 0; i < c->n; i++) {
            int32_t expert = ((const int32_t *)(const void *)c->v)[i];
            rows += expert >= 0;
            moved += expert >= 0 && (expert >= 3) != (r == 1);
        }
    }
    ok(worst < 1e-6, "rows come home to their tokens (off by %.1e)", worst);
    is_int(kept(&one, "there.0@0/0.0")->n + kept(&one, "there.0@0/0.1")->n, rows * 4,
           "no row is lost or doubled");
    hp_step_trace t;
    hp_segment_trace(rep.segment, hp_segment_newest(rep.segment), &t);
    is_int(t.span[0][4].bytes + t.span[0][t.n_inst[0] + 4].bytes, moved * 4 * 4,
           "the bytes of the all-to-all are those of the rows that changed rank");
    hp_segment_trace_fini(&t);
    hp_exec_report_fini(&rep);
    hp_err rc = run_plan(p, o, 2, &many, &rep, &e);
    ok(!rc && equal_records(&one, &many), "two workers give the same bits");
    hp_exec_report_fini(&rep);
    hp_plan_free(p);

    p = routed_plan(3);
    is_int(run_plan(p, o, 1, &one, &rep, &e), HP_EINFEASIBLE,
           "more rows than a buffer holds end the run");
    ok(strstr(e.text, "xr") && strstr(e.text, "moe.headroom") && strstr(e.text, "room for 3"),
       "naming tensor, capacity and the key: %s", e.text);
    hp_exec_report_fini(&rep);
    forget(&one);
    forget(&many);
    hp_plan_free(p);
}

/* --- ends of a run --- */

static hp_plan *tiny_plan(const char *lines)
{
    draft d = {0};
    begin(&d, "p", 0, 2, "2", 0);
    buffer(&d, "a", "step", 16, "shape 4:0");
    buffer(&d, "b", "step", 16, "shape 4");
    buffer(&d, "c", "step", 16, "shape 4");
    end(&d, lines);
    return parsed(&d);
}

static void refused(hp_plan *p, hp_exec_options o, hp_err code, const char *expect,
                    const char *name)
{
    record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    hp_err rc = run_plan(p, o, 2, &r, &rep, &e);
    if (!ok(rc == code && strstr(e.text, expect), "%s", name))
        diag("code %d: %s (expected: %s)", (int)rc, e.text, expect);
    hp_exec_report_fini(&rep);
    forget(&r);
    hp_plan_free(p);
}

static void test_refusals(void)
{
    static const char ordinary[] = "template F chunk 0\n load l compute always : -> a\n coll g tp "
                                   "always all-gather 1 - : a -> b\n"
                                   "entry 0 micro 0 frame -1 first last\n";
    hp_exec_options o = hp_exec_options_default();
    hp_plan *p = tiny_plan(ordinary);
    p->budget_bytes = 100;
    refused(p, o, HP_EINFEASIBLE, "its budget is 100 B", "an arena over budget is refused");
    p = tiny_plan(ordinary);
    p->program[0].buffer[1].offset = 1 << 20;
    refused(p, o, HP_EINTERNAL, "buffer b of p lies at 1048576",
            "a buffer outside its scope is refused");
    refused(tiny_plan("template F chunk 0\n op x compute always nonsense - : a -> b\nentry 0 micro "
                      "0 frame -1\n"),
            o, HP_EINTERNAL, "operation \"nonsense\"", "an operation that does not exist is named");
    refused(tiny_plan("template F chunk 0\n send s tp always peer 0 edge 3 - : a ->\nentry 0 micro "
                      "0 frame -1\n"),
            o, HP_EINTERNAL, "edge 3, microbatch 0) has no partner",
            "a send without a receive is named");
    refused(tiny_plan("template F chunk 0\n recv r pp always peer 0 edge 0 - : -> b\n send s pp "
                      "always peer 0 edge 0 - : a ->\n"
                      "entry 0 micro 0 frame -1\n"),
            o, HP_EINTERNAL, "deadlocks: 4 instances wait, first task r of p",
            "a plan that cannot go on is reported, not waited for");
    refused(
        tiny_plan(
            "template F chunk 0\n coll g tp always slice 1 - : a -> b\nentry 0 micro 0 frame -1\n"),
        o, HP_EINFEASIBLE, "task g of p (slice): the group of rank 0 does not hold all",
        "a move that its group cannot make is refused");
    setenv("HPBENCH_INJECT", "fail:x", 1);
    refused(tiny_plan("template F chunk 0\n op x compute always scale - : b -> c\nentry 0 micro 0 "
                      "frame -1\n"),
            o, HP_EINTERNAL, "task x on device",
            "an operation's error ends the run and names task and device");
    unsetenv("HPBENCH_INJECT");
}

static _Atomic int cancel;

static void cancel_at_third(void *ctx, const hp_exec_metrics *m)
{
    (void)ctx;
    if (m->step == 12)
        cancel = 1;
}

static hp_err cancel_now(void *ctx, const char *name, int64_t step, int64_t micro,
                         const hp_operand *o, hp_errmsg *e)
{
    cancel = step == 1 ? 2 : 0;
    return load_input(ctx, name, step, micro, o, e);
}

static void test_cancel(void)
{
    hp_plan *p = tiny_plan("template F chunk 0\n load l compute always : -> a\n coll g tp always "
                           "all-gather 1 - : a -> b\n"
                           "entry 0 micro 0 frame -1 first last\n");
    hp_exec_options o = hp_exec_options_default();
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    o.steps = 20;
    o.first_step = 10;
    o.workers = 2;
    hp_exec_hooks h = {.load = load_input, .step = cancel_at_third, .cancel = &cancel};
    is_int(hp_exec_run(p, &o, &h, &rep, &e), HP_ECANCELLED, "a first cancel ends the run");
    is_int(rep.steps, 3, "at the step's end");
    is_int(rep.metrics[2].step, 12, "steps are numbered from the first");
    is_int(hp_segment_newest(rep.segment), 2, "the newest step can be looked at");
    hp_exec_report_fini(&rep);
    o.first_step = 0;
    cancel = 0;
    h = (hp_exec_hooks){.load = cancel_now, .cancel = &cancel};
    is_int(hp_exec_run(p, &o, &h, &rep, &e), HP_ECANCELLED, "a second cancel ends it at once");
    is_int(rep.steps, 1, "in the middle of a step");
    hp_exec_report_fini(&rep);
    hp_plan_free(p);
}

/* Two transfers of 20 ms on different streams with compute beside them. */
static void test_pacing(void)
{
    hp_plan *p = tiny_plan("template F chunk 0\n load l compute always : -> a\n coll g tp always "
                           "all-gather 1 - : a -> b\n"
                           " op x compute always scale - : a -> a\n op y compute always scale - : "
                           "b -> c\nentry 0 micro 0 frame -1 first last\n");
    hp_exec_options o = hp_exec_options_default();
    record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    o.link_bandwidth[HP_ROLE_TP] = 800; /* 8 bytes: 10 ms */
    o.link_latency[HP_ROLE_TP] = 0.01;
    o.n_slow = 2;
    o.slow[1] = 3;
    is_int(run_plan(p, o, 1, &r, &rep, &e), HP_OK, "a run with paced links and a slow device ends");
    hp_step_trace t;
    hp_segment_trace(rep.segment, hp_segment_newest(rep.segment), &t);
    const hp_span *gather = &t.span[0][1];
    ok(gather->end_ns - gather->xfer_ns >= 20000000,
       "a transfer takes latency and bytes over bandwidth");
    ok(t.span[0][3].start_ns >= gather->end_ns, "and what needs it waits");
    hp_segment_trace_fini(&t);
    hp_exec_report_fini(&rep);
    forget(&r);
    hp_plan_free(p);
}

static void test_segment(void)
{
    hp_plan *p = tiny_plan("template F chunk 0\n load l compute always : -> a\n coll g tp always "
                           "all-gather 1 - : a -> b\n"
                           "entry 0 micro 0 frame -1 first last\n");
    hp_exec_options o = hp_exec_options_default();
    record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    hp_errmsg e = {0};
    hp_exec_report rep = {0};
    o.steps = 20;
    is_int(run_plan(p, o, 2, &r, &rep, &e), HP_OK, "twenty steps run");
    const hp_segment *s = rep.segment;
    int64_t slowest = 1, out[4];
    for (int64_t i = 2; i < 20; i++)
        slowest = rep.metrics[i].step_ns > rep.metrics[slowest].step_ns ? i : slowest;
    hp_step_trace t;
    hp_segment_trace(s, hp_segment_newest(s), &t);
    is_int(t.step, 19, "the newest is the last");
    hp_segment_trace_fini(&t);
    hp_segment_trace(s, hp_segment_slowest(s), &t);
    is_int(t.step, slowest, "the slowest after the first is kept");
    hp_segment_trace_fini(&t);
    ok(hp_segment_holds(s, 19 % HP_SEGMENT_RING, 19) && !hp_segment_holds(s, 3, 3),
       "the ring keeps the newest eight");
    hp_segment_durations(s, 0, out);
    ok(out[0] > 0 && out[1] > 0 && out[1] == out[3],
       "durations are measured; a collective's is the same for all members");
    hp_exec_report_fini(&rep);
    forget(&r);
    hp_plan_free(p);
}

int main(void)
{
    for (int ranks = 2; ranks <= 4; ranks++)
        test_tensor(ranks);
    test_pipeline();
    test_routed();
    test_refusals();
    test_cancel();
    test_pacing();
    test_segment();
    return done_testing();
}

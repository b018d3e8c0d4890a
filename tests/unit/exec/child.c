/* Runs in processes of their own: this program is its own child. */
#include "plans.h"

#include "exec/child.h"
#include "exec/options.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static hp_plan *token_plan(void)
{
    draft d = {0};
    begin(&d, "p", 0, 2, "2", 0);
    buffer_at(&d, "tokens", "tokens", "i32", "step", 32, -1, "shape 4:0 8");
    buffer(&d, "table", "persist", 256 * 4, "init normal 1 shape 256 4");
    buffer(&d, "x", "step", 128, "shape 4:0 8 4");
    buffer(&d, "part", "step", 16, "shape ~0:sum");
    buffer(&d, "loss", "step", 16, "shape");
    end(&d, "template F chunk 0\n load data compute always : -> tokens\n op embed compute always "
            "embedding embed : tokens table -> x\n"
            " op norm compute always sqnorm - : x -> part\n coll sum tp always all-reduce 1 - : "
            "part -> loss\n"
            "entry 0 micro 0 frame -1 first last\n");
    return parsed(&d);
}

static hp_exec_child *spawn(const hp_plan *p, const hp_exec_options *o)
{
    hp_exec_child *c = NULL;
    hp_errmsg e = {0};
    if (hp_exec_spawn(p, o, &c, &e))
        bail("%s", e.text);
    return c;
}

static void test_options(void)
{
    hp_exec_options o = hp_exec_options_default(), back;
    hp_errmsg e = {0};
    hp_str a = {0}, b = {0};
    o.steps = 1234567890123;
    o.seed = UINT64_MAX;
    o.pin = o.poison = true;
    o.link_latency[HP_ROLE_EP] = 1e-6;
    o.slow[63] = 1.1;
    o.n_slow = 64;
    snprintf(o.corpus, sizeof o.corpus, "/a path/with blanks");
    hp_exec_options_print(&o, &a);
    is_int(hp_exec_options_parse(a.s, &back, &e), HP_OK, "options are read");
    hp_exec_options_print(&back, &b);
    is_str(b.s, a.s, "and printed as they were");
    is_str(back.corpus, o.corpus, "a path may hold blanks");
    is_int(hp_exec_options_parse("sed 5\n", &back, &e), HP_EINPUT, "an unknown key is refused");
    is_int(hp_exec_options_parse("seed five\n", &back, &e), HP_EINPUT,
           "a value that is none is refused");
    hp_str_fini(&a);
    hp_str_fini(&b);
}

static void test_same(const hp_plan *p)
{
    hp_exec_options o = hp_exec_options_default();
    hp_errmsg e = {0};
    o.steps = 3;
    o.seed = 7;
    snprintf(o.tap, sizeof o.tap, "em*");
    hp_exec_child *c = spawn(p, &o);
    is_int(hp_exec_child_result(c, &e), HP_OK, "a run in a child ends well");
    const hp_segment *s = hp_exec_child_segment(c);
    is_int(atomic_load(&s->head->steps_done), 3, "all its steps are there");

    hp_data_options data = {.vocab = 256};
    hp_corpus corpus;
    hp_corpus_open(&corpus, NULL, &data, &e);
    hp_exec_hooks h = {.load = hp_corpus_fill, .load_ctx = &corpus};
    hp_exec_report rep;
    is_int(hp_exec_run(p, &o, &h, &rep, &e), HP_OK, "the same run in this process");
    int equal = 0;
    for (int i = 0; i < 3; i++)
        equal += rep.metrics[i].loss == s->metrics[i].loss && rep.metrics[i].loss > 0;
    is_int(equal, 3, "has the same losses to the bit");
    hp_exec_report_fini(&rep);
    hp_corpus_fini(&corpus);

    hp_exec_tap t;
    int64_t cursor = 0;
    int n = 0;
    double squares[3] = {0};
    while (hp_exec_child_tap(c, &cursor, &t)) {
        n += strcmp(t.task->name, "embed") == 0;
        for (int64_t i = 0; i < t.operand.len[0] * t.operand.len[1] * t.operand.len[2]; i++)
            squares[t.step] += pow((double)((float *)t.operand.data)[i], 2);
    }
    is_int(n, 6, "taps of both ranks in three steps came out");
    near(squares[2], s->metrics[2].loss, 1e-3, "with their values");
    hp_exec_child_free(c);
}

static void test_crash(const hp_plan *p)
{
    hp_exec_options o = hp_exec_options_default();
    hp_errmsg e = {0};
    static const struct {
        const char *inject, *expect;
    } crash[] = {{"abort:emb*", "SIGABRT in step 0, at task "}, /* the task of either device */
                 {"segv:norm", "SIGSEGV in step 0, at task "}};
    for (size_t i = 0; i < 2; i++) {
        setenv("HPBENCH_INJECT", crash[i].inject, 1);
        hp_exec_child *c = spawn(p, &o);
        is_int(hp_exec_child_result(c, &e), HP_EINTERNAL, "a crash in the child is an error here");
        ok(strstr(e.text, crash[i].expect) != NULL, "with signal, step and task: %s", e.text);
        hp_exec_child_free(c);
    }
    setenv("HPBENCH_INJECT", "fail:norm", 1);
    hp_exec_child *c = spawn(p, &o);
    is_int(hp_exec_child_result(c, &e), HP_EINTERNAL, "an error of the run comes out");
    ok(strstr(e.text, "task norm on device") != NULL, "in its own words: %s", e.text);
    hp_exec_child_free(c);
    unsetenv("HPBENCH_INJECT");
}

static void wait_for_steps(hp_exec_child *c, int64_t n)
{
    while (atomic_load(&hp_exec_child_segment(c)->head->steps_done) < n &&
           !hp_exec_child_ended(c, 1000000))
        ;
}

static void test_cancel(const hp_plan *p)
{
    hp_exec_options o = hp_exec_options_default();
    hp_errmsg e = {0};
    o.steps = 3000000;
    hp_exec_child *c = spawn(p, &o);
    wait_for_steps(c, 3);
    ok(!hp_exec_child_ended(c, 0), "a long run goes on");
    hp_exec_child_cancel(c);
    is_int(hp_exec_child_result(c, &e), HP_ECANCELLED, "until it is cancelled");
    ok(atomic_load(&hp_exec_child_segment(c)->head->steps_done) >= 3, "its steps stay readable");
    hp_exec_child_free(c);

    o.link_latency[HP_ROLE_TP] = 100;
    c = spawn(p, &o);
    while (hp_segment_current(hp_exec_child_segment(c)) < 0 && !hp_exec_child_ended(c, 1000000))
        ;
    hp_exec_child_cancel(c);
    ok(!hp_exec_child_ended(c, 50000000), "one cancel waits for the step's end");
    hp_exec_child_cancel(c);
    is_int(hp_exec_child_result(c, &e), HP_ECANCELLED, "a second one does not");
    hp_exec_child_free(c);

    c = spawn(p, &o);
    pid_t group = getpgrp();
    hp_exec_child_free(c);
    ok(waitpid(-1, NULL, WNOHANG) < 0 && group == getpgrp(),
       "freeing a running child leaves no process behind");
}

static void test_corpus(const hp_plan *p)
{
    hp_exec_options o = hp_exec_options_default();
    hp_errmsg e = {0};
    o.steps = 1000;
    snprintf(o.corpus, sizeof o.corpus, "/nowhere/text");
    hp_exec_child *c = spawn(p, &o);
    is_int(hp_exec_child_result(c, &e), HP_EINPUT,
           "a corpus that cannot be read is the child's error: %s", e.text);
    hp_exec_child_free(c);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "__exec") == 0)
        return hp_exec_child_main(argc, argv);
    hp_plan *p = token_plan();
    test_options();
    test_same(p);
    test_crash(p);
    test_cancel(p);
    test_corpus(p);
    hp_plan_free(p);
    return done_testing();
}

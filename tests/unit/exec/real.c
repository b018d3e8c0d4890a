/* Plans of real models: split runs give the reference's loss and gradient norm, and the same bits for any number of workers and cores. */
#include "plans.h"

#include "op/interp.h"
#include "session/load.h"

enum { STEPS = 2 };

typedef struct trial {
    const char *model, *cluster, *strategy;
} trial;

static const trial trials[] = {
    {"gpt2-small", "host:1", "dp=1"},
    {"gpt2-small", "host:4", "dp=2,tp=2,sp,zero=3"},
    {"llama-small", "host:3", "tp=3,uneven"},
    {"llama-small", "host:4", "dp=2,pp=2,accum=3,recompute=full"},
    {"llama-small", "host:2", "cp=2,cp_kind=ring,zigzag"},
    {"moe-small", "host:4", "dp=4,ep=4,zero=1"},
};

/* All persistent bytes of a run, hashed in order. */
typedef struct digest {
    uint64_t hash;
} digest;

static void add_final(void *ctx, int program, int rank, int buffer, const hp_operand *o)
{
    digest *d = ctx;
    int64_t n = o->data ? elements(o, false) * hp_dtype_bytes(o->dtype) : 0;
    uint64_t part = hp_hash64(o->data, (uint64_t)n);
    d->hash = hp_rng_key(d->hash + (uint64_t)(program * 1000003 + rank * 1009 + buffer), part);
}

static hp_err run_once(const hp_plan *p, hp_corpus *corpus, hp_exec_options o, digest *d,
                       hp_exec_report *rep, hp_errmsg *e)
{
    *d = (digest){0};
    hp_exec_hooks h = {.ctx = d, .load = hp_corpus_fill, .load_ctx = corpus, .final = add_final};
    o.steps = STEPS;
    return hp_exec_run(p, &o, &h, rep, e);
}

static void check_reference(const trial *t, const hp_case *c, hp_corpus *corpus,
                            const hp_exec_report *rep)
{
    hp_errmsg e;
    hp_interp *it = hp_interp_new(
        &(hp_interp_in){.g = c->graph, .seed = 1, .fill = hp_corpus_fill, .fill_ctx = corpus});
    for (int i = 0; i < STEPS; i++) {
        if (hp_interp_step(it, i, &e))
            bail("%s", e.text);
        const hp_interp_out *ref = hp_interp_result(it);
        double off = fabs(rep->metrics[i].loss - ref->loss) / ref->loss;
        double off_norm = fabs(rep->metrics[i].grad_norm - ref->grad_norm) / ref->grad_norm;
        ok(off < 1e-5 && off_norm < 1e-4,
           "%s %s, step %d: the reference's loss and gradient norm (off by %.1e, %.1e)", t->model,
           t->strategy, i, off, off_norm);
    }
    hp_interp_free(it);
}

static void test_trial(const trial *t)
{
    static const struct {
        int workers, cores;
        bool poison;
    } ways[] = {{2, 2, true}, {1, 2, false}, {4, 2, false}};
    hp_ask ask = {.model = t->model, .cluster = t->cluster, .strategy = t->strategy};
    hp_case c = {0};
    hp_errmsg e = {0};
    hp_ask_over(&ask, "model.layers", "2", &e);
    hp_ask_over(&ask, "model.seq", "24", &e);
    if (!is_int(hp_case_load(&ask, &c, &e), HP_OK, "%s %s is planned", t->model, t->strategy)) {
        diag("%s", e.text);
        hp_case_fini(&c);
        return;
    }
    const hp_plan *p = c.built.plan;
    hp_data_options data = {.seed = 1, .vocab = p->vocab, .zigzag = p->zigzag};
    hp_corpus corpus;
    hp_corpus_open(&corpus, NULL, &data, &e);
    hp_exec_options o = hp_exec_options_default();
    digest first, other;
    hp_exec_report rep;
    o.workers = o.cores = 1;
    if (is_int(run_once(p, &corpus, o, &first, &rep, &e), HP_OK, "%s %s runs", t->model,
               t->strategy))
        check_reference(t, &c, &corpus, &rep);
    else
        diag("%s", e.text);
    hp_exec_report_fini(&rep);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        o.workers = ways[i].workers;
        o.cores = ways[i].cores;
        o.poison = ways[i].poison;
        hp_err rc = run_once(p, &corpus, o, &other, &rep, &e);
        ok(!rc && other.hash == first.hash, "%s %s: the same bits with %d workers on %d cores%s",
           t->model, t->strategy, o.workers, o.cores, o.poison ? ", dead bytes poisoned" : "");
        hp_exec_report_fini(&rep);
    }
    hp_corpus_fini(&corpus);
    hp_case_fini(&c);
}

int main(void)
{
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        test_trial(&trials[i]);
    return done_testing();
}

/* owners.c -- hand-made timelines with known owners, then random ones: nothing unexplained. */
#include "trace/owners.h"

#include "base/rng.h"
#include "handplan.h"
#include "tap.h"

/* Sets a span: ready when it starts, transferring from `xfer` on. */
static void span(hp_span *s, int64_t start, int64_t xfer, int64_t end)
{
    s->ready_ns = s->start_ns = start;
    s->xfer_ns = xfer;
    s->end_ns = end;
    s->state = HP_SPAN_DONE;
}

typedef struct fixture {
    hp_plan *p;
    hp_program *r;
    int tp, dp, f, a, b, c, d;
} fixture;

static fixture begin(void)
{
    fixture x = {.p = hand_plan(1, 4)};
    x.r = hand_program(x.p, 0, "dp=2,tp=2", 0);
    x.tp = hand_stream(x.r, "tp", HP_ROLE_TP);
    x.dp = hand_stream(x.r, "dp", HP_ROLE_DP);
    x.f = hand_template(x.p, x.r, HP_TMPL_F);
    x.a = hand_buffer(x.p, x.r, "a", HP_B_ACTIVATIONS, HP_S_FRAME, 64);
    x.b = hand_buffer(x.p, x.r, "b", HP_B_ACTIVATIONS, HP_S_FRAME, 64);
    x.c = hand_buffer(x.p, x.r, "c", HP_B_ACTIVATIONS, HP_S_FRAME, 64);
    x.d = hand_buffer(x.p, x.r, "d", HP_B_ACTIVATIONS, HP_S_FRAME, 64);
    return x;
}

static void over(hp_program *r, hp_task *k, const char *axis)
{
    const hp_axis *a = hp_mesh_axis(&r->mesh, axis);
    k->coll = HP_COLL_ALL_REDUCE;
    k->atoms = 0;
    for (int i = 0; i < a->n; i++)
        k->atoms |= 1u << a->atom[i];
}

static int64_t total(const hp_owned *o)
{
    int64_t sum = 0;
    for (int i = 0; i < HP_OWNERS; i++)
        sum += o->ns[i];
    return sum;
}

/* one computes [0,100) of a, the tensor's all-reduce arrives at 100, its partner at 130, ends at 200; two starts 210 (10 of launch) and
 * ends 300, while a gradient all-reduce runs [250,400); step 450. */
static void test_tp_chain(void)
{
    fixture x = begin();
    hand_task(x.p, x.r, x.f, "one", HP_TASK_OP, 0, 0, 1, x.a);
    over(x.r, hand_task(x.p, x.r, x.f, "one>all-reduce", HP_TASK_COLL, x.tp, 1, 1, x.a, x.b), "tp");
    hand_task(x.p, x.r, x.f, "two", HP_TASK_OP, 0, 1, 1, x.b, x.c);
    over(x.r, hand_task(x.p, x.r, x.f, "grads", HP_TASK_COLL, x.dp, 1, 1, x.a, x.d), "dp");
    hand_entry(x.r, x.f, 0, 0);
    hand_close(x.r);
    hp_expansion *e = hand_expand(x.p);
    hp_span s[4] = {{0}};
    span(&s[0], 0, 0, 100);
    span(&s[1], 100, 130, 200);
    span(&s[2], 210, 210, 300);
    span(&s[3], 240, 250, 400);
    s[1].bytes = 1000;
    s[3].bytes = 2000;
    hp_owned o = hp_owners_sum(x.r, e, s, 450);
    is_int(total(&o), 450, "owners add up to the step");
    is_int(o.ns[HP_OWNER_COMPUTE], 140, "compute without a transfer");
    is_int(o.ns[HP_OWNER_OVERLAPPED], 50, "compute under a transfer");
    is_int(o.ns[HP_OWNER_WAIT], 30, "a partner that hasn't arrived is wait");
    is_int(o.ns[HP_OWNER_EXPOSED + HP_ROLE_TP], 70,
           "data in flight for the next task is exposed on its axis");
    is_int(o.ns[HP_OWNER_HOST], 10, "nothing missing is host");
    is_int(o.ns[HP_OWNER_EXPOSED + HP_ROLE_DP], 100,
           "after the last compute the last transfer is exposed");
    is_int(o.ns[HP_OWNER_FREE], 50, "nothing left is free");
    is_int(o.comm_ns, 220, "transfers are a union");
    is_int(o.masked_ns, 50, "... of which compute hides some");
    is_int(o.n_axes, 2, "two axes");
    is_str(o.axis[0].name, "dp", "axes are sorted by name");
    is_int(o.axis[0].bytes, 2000, "bytes go to their axis");
    is_int(o.axis[1].comm_ns, 70, "an axis has its own transfers");
    is_int(o.axis[1].masked_ns, 0, "... and its own masking");
    hp_owned_time t = hp_owned_seconds(&o);
    near(t.exposed_s[HP_ROLE_TP], 70e-9, 1e-18, "seconds keep the nanoseconds");
    hand_free(x.p, e);
}

/* The next task lacks two things: the one that comes last owns the time; what that one waited for in its stream owns the time before. */
static void test_chain_of_lacks(void)
{
    fixture x = begin();
    hp_task *first = hand_task(x.p, x.r, x.f, "first", HP_TASK_COLL, x.dp, 0, 1, x.a);
    over(x.r, first, "dp");
    hp_task *second = hand_task(x.p, x.r, x.f, "second", HP_TASK_COLL, x.dp, 0, 1, x.b);
    over(x.r, second, "dp");
    hp_task *other = hand_task(x.p, x.r, x.f, "other", HP_TASK_COLL, x.tp, 0, 1, x.c);
    over(x.r, other, "tp");
    hand_task(x.p, x.r, x.f, "op", HP_TASK_OP, 0, 2, 1, x.b, x.c, x.d);
    hand_entry(x.r, x.f, 0, 0);
    hand_close(x.r);
    hp_expansion *e = hand_expand(x.p);
    hp_span s[4] = {{0}};
    span(&s[0], 0, 40, 100); /* waits 40 */
    span(&s[1], 100, 100, 300);
    span(&s[2], 0, 0, 250);
    span(&s[3], 300, 300, 310);
    hp_owned o = hp_owners_sum(x.r, e, s, 310);
    is_int(total(&o), 310, "owners add up to the step");
    is_int(o.ns[HP_OWNER_EXPOSED + HP_ROLE_DP], 260,
           "the lack that is satisfied last owns, and what held it up in its stream");
    is_int(o.ns[HP_OWNER_WAIT], 40, "... down to the partner that came late");
    is_int(o.ns[HP_OWNER_EXPOSED + HP_ROLE_TP], 0,
           "the lack that was satisfied earlier owns nothing");
    hand_free(x.p, e);
}

static void test_pipeline_and_copy(void)
{
    fixture x = begin();
    int pp = hand_stream(x.r, "pp", HP_ROLE_PP), h2d = hand_stream(x.r, "h2d", -1);
    hp_task *recv = hand_task(x.p, x.r, x.f, "recv", HP_TASK_RECV, pp, 0, 1, x.a);
    recv->peer = 0;
    hand_task(x.p, x.r, x.f, "one", HP_TASK_OP, 0, 1, 1, x.a, x.b);
    hand_task(x.p, x.r, x.f, "fetch", HP_TASK_COPY, h2d, 0, 1, x.c);
    hand_task(x.p, x.r, x.f, "two", HP_TASK_OP, 0, 2, 1, x.b, x.c, x.d);
    hand_entry(x.r, x.f, 0, 0);
    hand_close(x.r);
    hp_expansion *e = hand_expand(x.p);
    hp_span s[4] = {{0}};
    span(&s[0], 0, 60, 80);
    span(&s[1], 80, 80, 100);
    span(&s[2], 90, 90, 150);
    span(&s[3], 150, 150, 160);
    hp_owned o = hp_owners_sum(x.r, e, s, 160);
    is_int(o.ns[HP_OWNER_BUBBLE], 60, "what no stage has sent yet is bubble");
    is_int(o.ns[HP_OWNER_EXPOSED + HP_ROLE_PP], 20, "what is on its way is exposed");
    is_int(o.ns[HP_OWNER_EXPOSED + HP_OWN_OFFLOAD], 50, "a copy is exposed as offload");
    is_int(o.ns[HP_OWNER_OVERLAPPED], 0, "a copy under compute is no overlapped transfer");
    is_int(o.copy_masked_ns, 10, "... but has its own masking");
    is_int(o.copy_ns, 60, "... of its own length");
    is_int(total(&o), 160, "owners add up to the step");
    hand_free(x.p, e);
}

/* T01: span 2008.6 ms, compute 1626.1, transfers 627.5, their union 1978.3: overlap is 275.3, never more than all. */
static void test_t01(void)
{
    fixture x = begin();
    hand_task(x.p, x.r, x.f, "compute", HP_TASK_OP, 0, 0, 1, x.a);
    over(x.r, hand_task(x.p, x.r, x.f, "comm", HP_TASK_COLL, x.tp, 0, 1, x.b), "tp");
    hand_entry(x.r, x.f, 0, 0);
    hand_close(x.r);
    hp_expansion *e = hand_expand(x.p);
    hp_span s[2] = {{0}};
    span(&s[0], 0, 0, 1626100000);
    span(&s[1], 1350800000, 1350800000, 1978300000);
    hp_owned o = hp_owners_sum(x.r, e, s, 2008600000);
    int64_t busy =
        o.ns[HP_OWNER_COMPUTE] + o.ns[HP_OWNER_OVERLAPPED] + o.ns[HP_OWNER_EXPOSED + HP_ROLE_TP];
    is_int(busy, 1978300000, "T01: busy time is a union");
    is_int(o.masked_ns, 275300000, "T01: overlapped is what both have");
    near(hp_ratio(o.masked_ns, o.comm_ns), 0.4387, 1e-3, "T01: 44 %% of the transfers are hidden");
    is_int(o.ns[HP_OWNER_FREE], 30300000, "T01: the rest is idle");
    hand_free(x.p, e);
}

static void test_slice_is_compute(void)
{
    fixture x = begin();
    hp_task *k = hand_task(x.p, x.r, x.f, "slice", HP_TASK_COLL, 0, 1, 1, x.a, x.b);
    over(x.r, k, "tp");
    k->coll = HP_COLL_SLICE;
    hand_entry(x.r, x.f, 0, 0);
    hand_close(x.r);
    hp_expansion *e = hand_expand(x.p);
    hp_span s[1] = {{0}};
    span(&s[0], 0, 0, 10);
    hp_owned o = hp_owners_sum(x.r, e, s, 10);
    is_int(o.ns[HP_OWNER_COMPUTE], 10, "a slice moves nothing");
    ok(isnan(hp_ratio(o.masked_ns, o.comm_ns)), "without transfers there is no masking ratio");
    hand_free(x.p, e);
}

static void test_unfinished(void)
{
    fixture x = begin();
    hand_task(x.p, x.r, x.f, "one", HP_TASK_OP, 0, 0, 1, x.a);
    hand_task(x.p, x.r, x.f, "two", HP_TASK_OP, 0, 1, 1, x.a, x.b);
    hand_entry(x.r, x.f, 0, 0);
    hand_close(x.r);
    hp_expansion *e = hand_expand(x.p);
    hp_span s[2] = {{0}};
    hp_owned o = hp_owners_sum(x.r, e, s, 100);
    is_int(o.ns[HP_OWNER_FREE], 100, "a step in which nothing ended is free");
    span(&s[0], -5, -5, 120);
    o = hp_owners_sum(x.r, e, s, 100);
    is_int(o.ns[HP_OWNER_COMPUTE], 100, "times beyond the step are cut off");
    hand_free(x.p, e);
}

/* --- random timelines ------------------------------------------------------------------------------------- */

typedef struct order {
    int64_t at;
    bool gapless;
} order;

static void check_order(void *ctx, int64_t from, int64_t to, hp_owner owner, int inst)
{
    order *o = ctx;
    (void)owner, (void)inst;
    o->gapless = o->gapless && from == o->at && to > from;
    o->at = to;
}

/* Tasks on random streams with random reads, run by a simple clock with random waits, transfers and lengths. */
static void random_tasks(fixture *x, hp_rng *g, int n)
{
    int h2d = hand_stream(x->r, "h2d", -1), pp = hand_stream(x->r, "pp", HP_ROLE_PP);
    int stream[] = {0, 0, x->tp, x->dp, h2d, pp, pp};
    hp_task_kind kind[] = {HP_TASK_OP,   HP_TASK_LOAD, HP_TASK_COLL, HP_TASK_COLL,
                           HP_TASK_COPY, HP_TASK_SEND, HP_TASK_RECV};
    int buf[4] = {x->a, x->b, x->c, x->d};
    for (int i = 0; i < n; i++) {
        int k = (int)hp_rng_below(g, 7);
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        bool send = kind[k] == HP_TASK_SEND;
        int in = buf[hp_rng_below(g, 4)], out = buf[hp_rng_below(g, 4)];
        hp_task *t = send ? hand_task(x->p, x->r, x->f, name, kind[k], stream[k], 1, 0, in)
                          : hand_task(x->p, x->r, x->f, name, kind[k], stream[k], 1, 1, in, out);
        if (kind[k] == HP_TASK_COLL)
            over(x->r, t, k == 2 ? "tp" : "dp");
        t->peer = 0;
    }
}

static int64_t random_spans(const fixture *x, const hp_expansion *e, hp_rng *g, hp_span *s)
{
    int64_t end = 0;
    for (int i = 0; i < e->n; i++) {
        int64_t ready = e->inst[i].prev < 0 ? 0
                        : hp_inst_task(x->r, &e->inst[e->inst[i].prev])->kind == HP_TASK_SEND
                            ? s[e->inst[i].prev].start_ns
                            : s[e->inst[i].prev].end_ns;
        for (int k = 0; k < e->inst[i].n_deps; k++) {
            int64_t t = s[e->dep[e->inst[i].first_dep + k]].end_ns;
            ready = t > ready ? t : ready;
        }
        int64_t start = ready + (hp_rng_below(g, 3) ? 0 : hp_rng_below(g, 20));
        bool moves = hp_task_class_of(hp_inst_task(x->r, &e->inst[i])) == HP_TC_TRANSFER;
        int64_t xfer = start + (moves ? hp_rng_below(g, 30) : 0);
        span(&s[i], start, xfer, xfer + hp_rng_below(g, 60));
        end = s[i].end_ns > end ? s[i].end_ns : end;
    }
    return end + hp_rng_below(g, 2) * 17;
}

static void test_random(uint64_t seed, int draws)
{
    bool adds_up = true, gapless = true, ratio = true, overlap = true;
    for (int d = 0; d < draws; d++) {
        hp_rng g = {hp_rng_key(seed, (uint64_t)d), 0};
        fixture x = begin();
        random_tasks(&x, &g, 2 + (int)hp_rng_below(&g, 30));
        for (int m = 0; m < 3; m++)
            hand_entry(x.r, x.f, m, 0);
        hand_close(x.r);
        hp_expansion *e = hand_expand(x.p);
        hp_span *s = calloc((size_t)e->n, sizeof *s);
        int64_t step = random_spans(&x, e, &g, s);
        hp_owned o = hp_owners_sum(x.r, e, s, step);
        order in = {0, true};
        hp_owners_visit(x.r, e, s, step, check_order, &in);
        adds_up = adds_up && total(&o) == step;
        gapless = gapless && in.gapless && in.at == step;
        ratio =
            ratio && o.masked_ns >= 0 && o.masked_ns <= o.comm_ns && o.copy_masked_ns <= o.copy_ns;
        overlap = overlap && o.ns[HP_OWNER_OVERLAPPED] == o.masked_ns;
        for (int i = 0; i < HP_OWNERS; i++)
            adds_up = adds_up && o.ns[i] >= 0;
        for (int i = 0; i < o.n_axes; i++)
            ratio =
                ratio && o.axis[i].masked_ns <= o.axis[i].comm_ns && o.axis[i].comm_ns <= o.comm_ns;
        free(s);
        hand_free(x.p, e);
    }
    note("seed %llu", (unsigned long long)seed);
    ok(adds_up, "owners of %d random steps add up", draws);
    ok(gapless, "... are told in order and without gaps");
    ok(ratio, "... mask between nothing and all of the transfers");
    ok(overlap, "... and the overlapped time is the hidden transfers");
}

int main(void)
{
    test_tp_chain();
    test_chain_of_lacks();
    test_pipeline_and_copy();
    test_t01();
    test_slice_is_compute();
    test_unfinished();
    test_random(20260101, 400);
    return done_testing();
}

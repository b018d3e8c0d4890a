/* Chrome trace events of random timelines: valid JSON, slices that nest, flows that connect, counters. */
#include "fmt/trace.h"

#include "base/rng.h"
#include "handplan.h"

#include "tap.h"

#include <jansson.h>

enum { STREAMS = 3, TASKS = 12, MICROS = 3 };

typedef struct fixture {
    hp_plan *p;
    hp_program *r;
    hp_expansion *x;
    hp_step_trace t;
} fixture;

/* Two ranks, three streams, a chain of tasks that hop between streams. */
static fixture begin(uint64_t seed)
{
    hp_rng rng = {.stream = seed};
    fixture f = {.p = hand_plan(1, 2)};
    f.r = hand_program(f.p, 0, "tp=2", 0);
    int stream[STREAMS] = {0, hand_stream(f.r, "tp", HP_ROLE_TP), hand_stream(f.r, "h2d", -1)};
    int tmpl = hand_template(f.p, f.r, HP_TMPL_F), before = -1;
    for (int i = 0; i < TASKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%d", i);
        int b =
            hand_buffer(f.p, f.r, name, (hp_bkind)hp_rng_below(&rng, HP_B_KINDS), HP_S_FRAME, 64);
        int s = stream[hp_rng_below(&rng, STREAMS)];
        hp_task *k = before < 0 ? hand_task(f.p, f.r, tmpl, name, HP_TASK_OP, s, 0, 1, b)
                                : hand_task(f.p, f.r, tmpl, name, s ? HP_TASK_COLL : HP_TASK_OP, s,
                                            1, 1, before, b);
        k->coll = HP_COLL_ALL_REDUCE;
        k->atoms = 1;
        k->why = s ? "because" : NULL;
        before = b;
    }
    for (int m = 0; m < MICROS; m++)
        hand_entry(f.r, tmpl, m, 0);
    hand_close(f.r);
    f.x = hand_expand(f.p);
    hp_step_trace_init(&f.t, f.p, f.x);
    for (int rank = 0; rank < 2; rank++) {
        int64_t at[STREAMS] = {0};
        for (int i = 0; i < f.x->n; i++) {
            hp_span *s = &f.t.span[0][(size_t)rank * (size_t)f.x->n + (size_t)i];
            int64_t *now = &at[hp_inst_task(f.r, &f.x->inst[i])->stream];
            s->ready_ns = s->start_ns = *now + hp_rng_below(&rng, 500);
            s->xfer_ns = s->start_ns + hp_rng_below(&rng, 50);
            s->end_ns = s->xfer_ns + hp_rng_below(&rng, 1000);
            s->state = hp_rng_below(&rng, 20) ? HP_SPAN_DONE : HP_SPAN_RUNNING;
            *now = s->end_ns - hp_rng_below(&rng, 3); /* clocks are read with a little noise */
        }
    }
    return f;
}

static void end(fixture *f)
{
    hp_step_trace_fini(&f->t);
    hand_free(f->p, f->x);
}

static double num(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const char *str(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static bool same_thread(const json_t *a, const json_t *b)
{
    return num(a, "pid") == num(b, "pid") && num(a, "tid") == num(b, "tid");
}

/* Slices of one thread are disjoint or one lies in the other. */
static int crossings(const json_t *events)
{
    int bad = 0;
    size_t n = json_array_size(events);
    for (size_t i = 0; i < n; i++) {
        const json_t *a = json_array_get(events, i);
        for (size_t j = i + 1; j < n && str(a, "ph")[0] == 'X'; j++) {
            const json_t *b = json_array_get(events, j);
            if (str(b, "ph")[0] != 'X' || !same_thread(a, b))
                continue;
            double a0 = num(a, "ts"), a1 = a0 + num(a, "dur"), b0 = num(b, "ts"),
                   b1 = b0 + num(b, "dur"), e = 1e-9;
            bool disjoint = a1 <= b0 + e || b1 <= a0 + e;
            bool nested = (a0 <= b0 + e && b1 <= a1 + e) || (b0 <= a0 + e && a1 <= b1 + e);
            bad += !disjoint && !nested;
        }
    }
    return bad;
}

/* A flow's ends lie in slices of their threads, and every start has one finish that is not earlier. */
static int loose_flows(const json_t *events, int *n_flows)
{
    int bad = 0;
    size_t n = json_array_size(events);
    *n_flows = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *a = json_array_get(events, i);
        char ph = str(a, "ph")[0];
        if (ph != 's' && ph != 'f')
            continue;
        *n_flows += ph == 's';
        int ends = 0, inside = 0;
        for (size_t j = 0; j < n; j++) {
            const json_t *b = json_array_get(events, j);
            char other = str(b, "ph")[0];
            if ((other == 's' || other == 'f') && other != ph && num(b, "id") == num(a, "id"))
                ends++;
            if (other == 'X' && same_thread(a, b) && num(a, "ts") >= num(b, "ts") &&
                num(a, "ts") <= num(b, "ts") + num(b, "dur"))
                inside++;
        }
        bad += ends != 1 || inside < 1;
    }
    return bad;
}

static void test_random_timelines(void)
{
    int crossed = 0, loose = 0, flows = 0, broken = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        fixture f = begin(seed);
        hp_str text = {0};
        hp_trace_chrome(f.p, f.x, &f.t, &text);
        json_t *o = json_loads(hp_str_text(&text), JSON_REJECT_DUPLICATES, NULL);
        const json_t *events = json_object_get(o, "traceEvents");
        int n = 0;
        broken += !json_is_array(events);
        crossed += crossings(events);
        loose += loose_flows(events, &n);
        flows += n;
        json_decref(o);
        hp_str_fini(&text);
        end(&f);
    }
    is_int(broken, 0, "the text is JSON with a list of events");
    is_int(crossed, 0, "slices nest within a thread, noise of the clock or not");
    is_int(loose, 0, "every flow has two ends, each in a slice");
    ok(flows > 40, "there are flows (%d)", flows);
}

static void test_content(void)
{
    fixture f = begin(7);
    for (int i = 0; i < 2 * f.x->n; i++)
        f.t.span[0][i].state = HP_SPAN_DONE;
    hp_str text = {0};
    hp_trace_chrome(f.p, f.x, &f.t, &text);
    json_t *o = json_loads(hp_str_text(&text), 0, NULL);
    const json_t *events = json_object_get(o, "traceEvents");
    int slices = 0, waits = 0, counters = 0, threads = 0, whys = 0;
    bool device1 = false;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *v = json_array_get(events, i);
        const json_t *args = json_object_get(v, "args");
        char ph = str(v, "ph")[0];
        bool wait = strcmp(str(v, "name"), "wait") == 0;
        slices += ph == 'X' && !wait;
        waits += ph == 'X' && wait;
        counters += ph == 'C' && json_object_get(args, "activations") != NULL;
        threads += ph == 'M' && strcmp(str(v, "name"), "thread_name") == 0;
        device1 |= ph == 'M' && strcmp(str(args, "name"), "device 1 (stage0)") == 0;
        whys += strcmp(str(args, "why"), "because") == 0;
    }
    is_int(slices, 2 * TASKS * MICROS, "every instance of every device is a slice");
    ok(waits > 0, "waiting for partners is shown inside");
    ok(counters > 0, "memory by kind is a counter");
    is_int(threads, 2 * STREAMS, "a stream is a thread with a name");
    ok(device1, "a device is a process with a name");
    ok(whys > 0, "a collective says why");
    is_str(str(json_object_get(o, "otherData"), "model"), "hand", "the model is named");
    json_decref(o);
    hp_str_fini(&text);
    end(&f);
}

int main(void)
{
    test_random_timelines();
    test_content();
    return done_testing();
}

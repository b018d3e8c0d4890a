/* events.c -- events come out in a total order, however they went in. */
#include "sim/events.h"

#include "base/rng.h"
#include "tap.h"

static bool later(const hp_event *a, const hp_event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns > b->at_ns;
    return a->key != b->key ? a->key > b->key : a->seq > b->seq;
}

static void test_key(void)
{
    ok(hp_order_key(1, 0, 0) > hp_order_key(0, 9, 1000), "the device comes first");
    ok(hp_order_key(1, 2, 0) > hp_order_key(1, 1, 1000), "then the stream");
    ok(hp_order_key(1, 1, 5) > hp_order_key(1, 1, 4), "then the instance");
}

static void test_random(void)
{
    hp_events q = {0};
    hp_rng g = {hp_rng_key(7, 7), 0};
    bool ordered = true;
    int in = 0, out = 0;
    hp_event e, before = {.at_ns = -1};
    for (int i = 0; i < 20000; i++) {
        if (hp_rng_below(&g, 3)) {
            int64_t now = before.at_ns < 0 ? 0 : before.at_ns;
            hp_events_push(&q, (hp_event){.at_ns = now + hp_rng_below(&g, 50),
                                          .key = (uint64_t)hp_rng_below(&g, 8) << 40,
                                          .inst = in++});
        } else if (hp_events_pop(&q, &e)) {
            ordered = ordered && e.at_ns >= before.at_ns;
            before = e;
            out++;
        }
    }
    hp_event last = {.at_ns = -1};
    while (hp_events_pop(&q, &e)) {
        ordered = ordered && (last.at_ns < 0 || later(&e, &last));
        last = e;
        out++;
    }
    ok(ordered, "time never goes back, and what is left comes out in order");
    is_int(out, in, "every event comes out once");
    ok(!hp_events_pop(&q, &e), "then there is none");
    hp_events_fini(&q);
}

int main(void)
{
    test_key();
    test_random();
    return done_testing();
}

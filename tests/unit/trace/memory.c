/* memory.c -- live bytes of hand-made plans over hand-made times. */
#include "trace/memory.h"

#include "handplan.h"
#include "tap.h"

static void span(hp_span *s, int64_t start, int64_t end)
{
    *s = (hp_span){.ready_ns = start, .start_ns = start, .xfer_ns = start, .end_ns = end};
    s->state = HP_SPAN_DONE;
}

static int64_t live_at(const hp_memory_line *l, int64_t t)
{
    int64_t v = 0;
    for (int i = 0; i < l->n && l->point[i].t_ns <= t; i++)
        v = l->point[i].total;
    return v;
}

/* One stage: weights always, a gradient from its first backward on, an activation from F to B of its microbatch in two frames, a
 * workspace within F. Schedule F0 F1 B0 B1 O, each 10 ns. */
static void test_scopes(void)
{
    hp_plan *p = hand_plan(1, 1);
    hp_program *r = hand_program(p, 0, "dp=1", 0);
    int w = hand_buffer(p, r, "w", HP_B_PARAMS, HP_S_PERSIST, 1024);
    int g = hand_buffer(p, r, "g", HP_B_GRADS, HP_S_STEP, 512);
    int a = hand_buffer(p, r, "a", HP_B_ACTIVATIONS, HP_S_FRAME, 256);
    int t = hand_buffer(p, r, "tmp", HP_B_WORKSPACE, HP_S_RUN, 128);
    int f = hand_template(p, r, HP_TMPL_F), b = hand_template(p, r, HP_TMPL_B),
        o = hand_template(p, r, HP_TMPL_O);
    hand_task(p, r, f, "fwd", HP_TASK_OP, 0, 1, 1, w, t);
    hand_task(p, r, f, "act", HP_TASK_OP, 0, 1, 1, t, a);
    hand_task(p, r, b, "bwd", HP_TASK_OP, 0, 2, 1, w, a, g)->accumulate = true;
    hand_task(p, r, o, "adam", HP_TASK_OP, 0, 1, 1, g, w);
    hand_entry(r, f, 0, 0);
    hand_entry(r, f, 1, 1);
    hand_entry(r, b, 0, 0);
    hand_entry(r, b, 1, 1);
    hand_entry(r, o, -1, -1);
    hand_close(r);
    hp_expansion *x = hand_expand(p);
    is_int(x->n, 7, "seven instances");
    hp_span s[7];
    for (int i = 0; i < 7; i++)
        span(&s[i], 10 * i, 10 * i + 10);
    hp_memory_line l = {0};
    hp_memory_over_time(r, x, s, &l);
    is_int(live_at(&l, 0), 1024 + 128,
           "persistent bytes are always there, a workspace from its writer on");
    is_int(live_at(&l, 10), 1024 + 128 + 256, "an activation is born with its writer's start");
    is_int(live_at(&l, 20), 1024 + 256 + 128,
           "a workspace dies with its entry's last reader, and comes again in the next");
    is_int(live_at(&l, 30), 1024 + 256 + 256 + 128, "the second microbatch has a frame of its own");
    is_int(live_at(&l, 40), 1024 + 512 + 512, "a gradient is born in the first backward");
    is_int(live_at(&l, 50), 1024 + 256 + 512, "an activation dies with its backward");
    is_int(live_at(&l, 69), 1024 + 512, "the gradient lives to the optimizer");
    is_int(live_at(&l, 70), 1024, "then only what persists");
    is_int(l.point[l.peak].total, 1024 + 512 + 512, "the peak is the largest live sum");
    is_int(l.point[l.peak].kind[HP_B_ACTIVATIONS], 512, "... of which so much activations");
    is_int(l.peak_inst, 4, "... while B of microbatch 0 runs");
    ok(l.point[l.peak].total <= hp_program_arena(r), "the arena is no smaller than the peak");
    is_int(hp_memory_tier_bytes(r, HP_TIER_HBM), hp_program_arena(r), "hbm needs the arena");
    hp_memory_line_fini(&l);
    hand_free(p, x);
}

/* An in-place result takes over its input's bytes: they count once. */
static void test_in_place(void)
{
    hp_plan *p = hand_plan(1, 1);
    hp_program *r = hand_program(p, 0, "dp=1", 0);
    int a = hand_buffer(p, r, "a", HP_B_ACTIVATIONS, HP_S_FRAME, 256);
    int b = hand_buffer(p, r, "b", HP_B_ACTIVATIONS, HP_S_FRAME, 256);
    int c = hand_buffer(p, r, "c", HP_B_ACTIVATIONS, HP_S_FRAME, 64);
    r->buffer[b].offset = r->buffer[a].offset;
    r->buffer[b].alias = a;
    int f = hand_template(p, r, HP_TMPL_F);
    hand_task(p, r, f, "make", HP_TASK_OP, 0, 0, 1, a);
    hand_task(p, r, f, "over", HP_TASK_OP, 0, 1, 1, a, b);
    hand_task(p, r, f, "use", HP_TASK_OP, 0, 1, 1, b, c);
    hand_entry(r, f, 0, 0);
    hand_close(r);
    hp_expansion *x = hand_expand(p);
    hp_span s[3];
    for (int i = 0; i < 3; i++)
        span(&s[i], 10 * i, 10 * i + 10);
    hp_memory_line l = {0};
    hp_memory_over_time(r, x, s, &l);
    is_int(live_at(&l, 15), 256, "bytes written over in place count once");
    is_int(live_at(&l, 25), 256 + 64, "... and live on as the result");
    hp_memory_line_fini(&l);
    hand_free(p, x);
}

static void test_other_tier(void)
{
    hp_plan *p = hand_plan(1, 1);
    hp_program *r = hand_program(p, 0, "dp=1", 0);
    int a = hand_buffer(p, r, "a", HP_B_OPTIMIZER, HP_S_PERSIST, 256);
    r->buffer[a].tier = HP_TIER_HOST;
    r->buffer[a].offset = 64;
    r->scope_bytes[HP_S_PERSIST] = 0;
    hp_expansion x = {0};
    hp_memory_line l = {0};
    hp_memory_over_time(r, &x, NULL, &l);
    is_int(l.point[l.peak].total, 0, "what lies in the host's memory is not in hbm");
    is_int(hp_memory_tier_bytes(r, HP_TIER_HOST), 320, "... but needs the host's memory");
    hp_memory_line_fini(&l);
    hand_free(p, NULL);
}

int main(void)
{
    test_scopes();
    test_in_place();
    test_other_tier();
    return done_testing();
}

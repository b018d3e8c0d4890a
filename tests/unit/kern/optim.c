#include "kern/optim.h"

#include "unit/kern/kern_test.h"

static tensor positive(tensor v)
{
    for (int64_t i = 0; i < v.n; i++)
        hp_num_put(v.x, i, fabsf(hp_num_get(v.x, i)));
    return v;
}

/* p, m, v and the bf16 copy of one run. */
typedef struct state {
    tensor p, m, v, h;
} state;

static state copy(state s)
{
    return (state){same(s.p), same(s.m), same(s.v), same(s.h)};
}

static void steps(void)
{
    static const int64_t sizes[] = {0, 1, 31, 5000, 40003};
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 4; t++) {
            int64_t n = sizes[i];
            hp_optim o = {1e-2, 0.9, 0.95, 1e-8, 0.1, 0.5f, 1 + 20 * t};
            tensor g = draw(t & 1, n, 1);
            state ref = {draw(0, n, 1), draw(0, n, 0.1f), positive(draw(0, n, 0.1f)), blank(1, n)};
            state one = copy(ref), two = copy(ref);
            bool half = t & 2;
            hp_adamw_ref(n, &o, ref.p.x.p, g.x, ref.m.x.p, ref.v.x.p, half ? ref.h.x.p : NULL);
            hp_adamw(n, &o, one.p.x.p, g.x, one.m.x.p, one.v.x.p, half ? one.h.x.p : NULL, 1);
            hp_adamw(n, &o, two.p.x.p, g.x, two.m.x.p, two.v.x.p, half ? two.h.x.p : NULL, 2);
            judge(one.p, two.p, ref.p);
            judge(one.m, two.m, ref.m);
            judge(one.v, two.v, ref.v);
            judge(one.h, two.h, ref.h);
            hp_sgd_ref(n, &o, ref.p.x.p, g.x, half ? ref.h.x.p : NULL);
            one.p = same(ref.p), two.p = same(ref.p);
            hp_sgd_ref(n, &o, ref.p.x.p, g.x, half ? ref.h.x.p : NULL);
            hp_sgd(n, &o, one.p.x.p, g.x, half ? one.h.x.p : NULL, 1);
            hp_sgd(n, &o, two.p.x.p, g.x, half ? two.h.x.p : NULL, 2);
            judge(one.p, two.p, ref.p);
        }
    verdict("an optimizer step", "optim");
}

int main(void)
{
    each_level(steps);
    hp_optim o = {0.1, 0.9, 0.99, 0, 0, 1, 1};
    float p = 1, m = 0, v = 0, g = -3;
    hp_adamw(1, &o, &p, hp_num_f32(&g), &m, &v, NULL, 1);
    near((double)p, 1.1, 1e-6, "Adam's first step is lr against the gradient's sign");
    o.decay = 0.5;
    o.lr = 0.1;
    g = 2;
    p = 1;
    hp_sgd(1, &o, &p, hp_num_f32(&g), NULL, 1);
    near((double)p, 1 - 0.1 * 2 - 0.05, 1e-6, "SGD goes down the gradient and decays");
    return done_testing();
}

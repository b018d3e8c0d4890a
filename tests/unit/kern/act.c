#include "kern/act.h"

#include "unit/kern/kern_test.h"

static const int64_t sizes[] = {0, 1, 17, 4111, 40001};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Numbers from the middle and from far out, where exp over- and underflows. */
static tensor wide(int t, int64_t n)
{
    tensor x = draw(t, n, 2);
    for (int64_t i = 0; i < n; i += 5)
        hp_num_put(x.x, i, (float)(i % 401 - 200));
    return x;
}

static void functions(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int t = 0; t < 2; t++) {
            int64_t n = sizes[i];
            tensor x = wide(t, n), ref = blank(t, n), one = same(ref), two = same(ref);
            hp_silu_ref(n, x.x, ref.x);
            hp_silu(n, x.x, one.x, 1);
            hp_silu(n, x.x, two.x, 2);
            judge(one, two, ref);
            hp_gelu_ref(n, x.x, ref.x);
            hp_gelu(n, x.x, one.x, 1);
            hp_gelu(n, x.x, two.x, 2);
            judge(one, two, ref);
            tensor up = draw(t, n, 1);
            hp_swiglu_ref(n, x.x, up.x, ref.x);
            hp_swiglu(n, x.x, up.x, one.x, 1);
            hp_swiglu(n, x.x, up.x, two.x, 2);
            judge(one, two, ref);
        }
    verdict("silu, gelu or swiglu", "silu");
}

static void gradients(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int t = 0; t < 2; t++) {
            int64_t n = sizes[i];
            tensor x = wide(t, n), dy = draw(t, n, 1), up = draw(t, n, 1);
            tensor ref = blank(t, n), one = same(ref), two = same(ref);
            hp_silu_dx_ref(n, x.x, dy.x, ref.x);
            hp_silu_dx(n, x.x, dy.x, one.x, 1);
            hp_silu_dx(n, x.x, dy.x, two.x, 2);
            judge(one, two, ref);
            hp_gelu_dx_ref(n, x.x, dy.x, ref.x);
            hp_gelu_dx(n, x.x, dy.x, one.x, 1);
            hp_gelu_dx(n, x.x, dy.x, two.x, 2);
            judge(one, two, ref);
            tensor u_ref = blank(t, n), u_one = same(ref), u_two = same(ref);
            hp_swiglu_dx_ref(n, x.x, up.x, dy.x, ref.x, u_ref.x);
            hp_swiglu_dx(n, x.x, up.x, dy.x, one.x, u_one.x, 1);
            hp_swiglu_dx(n, x.x, up.x, dy.x, two.x, u_two.x, 2);
            judge(one, two, ref);
            judge(u_one, u_two, u_ref);
            hp_swiglu_dx(n, x.x, up.x, dy.x, hp_num_none(), two.x, 2);
            judge(two, two, u_ref);
        }
    verdict("the gradient of silu, gelu or swiglu", "silu");
}

typedef struct act_case {
    tensor x, up, y, dy;
    int which;
} act_case;

static double loss(void *arg)
{
    act_case *c = arg;
    if (c->which == 0)
        hp_silu_ref(c->x.n, c->x.x, c->y.x);
    else if (c->which == 1)
        hp_gelu_ref(c->x.n, c->x.x, c->y.x);
    else
        hp_swiglu_ref(c->x.n, c->x.x, c->up.x, c->y.x);
    return inner(c->y, c->dy);
}

static void slopes(void)
{
    enum { N = 60 };
    act_case c = {draw(0, N, 2), draw(0, N, 1), blank(0, N), draw(0, N, 1), 0};
    tensor dx = blank(0, N), du = blank(0, N);
    hp_silu_dx_ref(N, c.x.x, c.dy.x, dx.x);
    slope("silu's gradient", loss, &c, c.x, dx, 1e-2f, 2e-3);
    c.which = 1;
    hp_gelu_dx_ref(N, c.x.x, c.dy.x, dx.x);
    slope("gelu's gradient", loss, &c, c.x, dx, 1e-2f, 2e-3);
    c.which = 2;
    hp_swiglu_dx_ref(N, c.x.x, c.up.x, c.dy.x, dx.x, du.x);
    slope("swiglu's gradient by the gate", loss, &c, c.x, dx, 1e-2f, 2e-3);
    slope("swiglu's gradient by the other", loss, &c, c.up, du, 1e-2f, 2e-3);
    drop();
}

int main(void)
{
    each_level(functions);
    each_level(gradients);
    slopes();
    return done_testing();
}

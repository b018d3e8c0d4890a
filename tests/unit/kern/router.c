#include "kern/router.h"

#include "unit/kern/kern_test.h"

static const hp_router_shape shapes[] = {
    /* b, s, e, k, s_full, sigmoid, normalise, groups, of which, scale */
    {2, 30, 8, 2, 30, false, true, 1, 1, 1},       {1, 64, 8, 2, 128, false, false, 0, 0, 2},
    {2, 33, 64, 6, 33, true, true, 8, 3, 2.5f},    {3, 7, 5, 5, 7, true, false, 1, 1, 1},
    {1, 300, 256, 8, 300, true, true, 8, 4, 2.5f}, {2, 0, 8, 2, 9, false, true, 1, 1, 1},
    {0, 4, 8, 2, 4, false, true, 1, 1, 1},         {1, 9, 6, 3, 9, false, true, 6, 4, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int differing;

static void one_shape(const hp_router_shape *r, int t, bool biased)
{
    int64_t n = r->b * r->s;
    tensor x = draw(t, n * r->e, 1), bias = draw(0, r->e, 0.1f);
    tensor w = blank(0, n * r->k), w1 = same(w), w2 = same(w);
    tensor f = blank(0, r->b * r->e), f1 = same(f), f2 = same(f);
    tensor p = same(f), p1 = same(f), p2 = same(f);
    int32_t *idx = draw_ints(n * r->k, 0, 1), *i1 = draw_ints(n * r->k, 0, 1),
            *i2 = draw_ints(n * r->k, 0, 1);
    float *b = biased ? bias.x.p : NULL;
    hp_router_ref(r, x.x, b, idx, w.x, f.x.p, p.x.p);
    hp_router(r, x.x, b, i1, w1.x, f1.x.p, p1.x.p, 1);
    hp_router(r, x.x, b, i2, w2.x, f2.x.p, p2.x.p, 2);
    for (int64_t j = 0; j < n * r->k; j++)
        differing += idx[j] != i1[j] || idx[j] != i2[j];
    judge(w1, w2, w);
    judge(f1, f2, f);
    judge(p1, p2, p);
    tensor dw = draw(0, n * r->k, 1), dp = draw(0, r->b * r->e, 1);
    tensor dx = blank(t, n * r->e), d1 = same(dx), d2 = same(dx);
    hp_router_dx_ref(r, x.x, idx, dw.x, dp.x.p, dx.x);
    hp_router_dx(r, x.x, idx, dw.x, dp.x.p, d1.x, 1);
    hp_router_dx(r, x.x, idx, dw.x, dp.x.p, d2.x, 2);
    judge(d1, d2, dx);
}

static void all(void)
{
    differing = 0;
    for (int i = 0; i < SHAPES; i++)
        for (int v = 0; v < 4; v++)
            one_shape(&shapes[i], v & 1, v & 2);
    is_int(differing, 0, "the router at %s chooses as its reference does",
           hp_level_name(hp_level_now()));
    verdict("the router or its gradient", "router");
}

static void choices(void)
{
    hp_router_shape r = {1, 1, 6, 3, 1, false, false, 1, 1, 1};
    float x[6] = {1, 2, 2, 0, 2, 1}, w[3];
    int32_t idx[3];
    hp_router(&r, hp_num_f32(x), NULL, idx, hp_num_f32(w), NULL, NULL, 1);
    ok(idx[0] == 1 && idx[1] == 2 && idx[2] == 4, "ties go to the lower index");
    float bias[6] = {0, 0, 0, 5, 0, 0};
    hp_router(&r, hp_num_f32(x), bias, idx, hp_num_f32(w), NULL, NULL, 1);
    ok(idx[0] == 3 && (double)w[0] < 0.1, "a bias moves the choice, not the weight");
    hp_router_shape grouped = {1, 1, 6, 2, 1, true, true, 3, 1, 1};
    float y[6] = {3, -9, 1, 2, -1, 0}; /* groups of two: the middle one has the best pair */
    hp_router(&grouped, hp_num_f32(y), NULL, idx, hp_num_f32(w), NULL, NULL, 1);
    ok(idx[0] == 3 && idx[1] == 2, "only the best group's experts are chosen");
    near((double)(w[0] + w[1]), 1, 1e-6, "normalised weights sum to 1");
}

typedef struct router_case {
    hp_router_shape r;
    tensor x, w, p, dw, dp;
    int32_t *idx;
} router_case;

static double loss(void *arg)
{
    router_case *c = arg;
    hp_router_ref(&c->r, c->x.x, NULL, c->idx, c->w.x, NULL, c->p.x.p);
    return inner(c->w, c->dw) + inner(c->p, c->dp);
}

static void slopes(void)
{
    for (int v = 0; v < 4; v++) {
        router_case c = {.r = {2, 3, 6, 2, 3, v & 1, v & 2, 1, 1, 1.5f}};
        c.x = draw(0, 36, 2), c.w = blank(0, 12), c.p = blank(0, 12);
        c.dw = draw(0, 12, 1), c.dp = draw(0, 12, 1);
        c.idx = draw_ints(12, 0, 1);
        tensor dx = blank(0, 36);
        loss(&c);
        hp_router_dx_ref(&c.r, c.x.x, c.idx, c.dw.x, c.dp.x.p, dx.x);
        slope("the router's gradient", loss, &c, c.x, dx, 2e-3f, 5e-3);
        drop();
    }
}

int main(void)
{
    each_level(all);
    each_level(choices);
    slopes();
    return done_testing();
}

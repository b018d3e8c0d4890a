#include "kern/routed.h"

#include "unit/kern/kern_test.h"

/* k different experts a token, some of them dropped. */
static int32_t *choices(int64_t tokens, int64_t k, int64_t e)
{
    int32_t *idx = draw_ints(tokens * k, 0, e);
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t j = 0; j < k; j++) {
            idx[t * k + j] = (int32_t)((idx[t * k] + j) % e);
            if ((t + j) % 7 == 6)
                idx[t * k + j] = -1;
        }
    return idx;
}

static hp_route route(int64_t tokens, int64_t k, const int32_t *idx, int64_t lo, int64_t len)
{
    hp_route r;
    void *storage = keep(hp_xmalloc(hp_route_bytes(tokens, k, len)));
    hp_route_build(tokens, k, idx, lo, len, storage, &r);
    return r;
}

static void lists(void)
{
    enum { T = 50, K = 3, E = 8 };
    int32_t *idx = choices(T, K, E);
    hp_route r = route(T, K, idx, 2, 4);
    int64_t wrong = 0;
    is_int(r.rows, hp_route_rows(T, K, idx, 2, 4), "rows are counted alike");
    for (int64_t e = 0; e < 4; e++)
        for (int64_t i = r.off[e]; i < r.off[e + 1]; i++) {
            int64_t j = r.token[i] * K + r.slot[i];
            wrong += idx[j] != e + 2 || r.row[j] != i;
            wrong += i > r.off[e] && r.token[i] <= r.token[i - 1];
        }
    is_int(wrong, 0, "rows are sorted by expert and token and point back");
    int64_t elsewhere = 0;
    for (int64_t j = 0; j < T * K; j++)
        elsewhere += (idx[j] >= 2 && idx[j] < 6) != (r.row[j] >= 0);
    is_int(elsewhere, 0, "choices outside the range have no row");
    is_int(route(T, K, idx, 5, 0).rows, 0, "no experts, no rows");
    is_int(route(0, K, idx, 0, E).rows, 0, "no tokens, no rows");
    int32_t few[6] = {1, 0, 1, 1, -1, 1};
    int64_t count[2];
    hp_route_capacity(2, 3, 1, 2, 1, few, count);
    ok(few[0] == 1 && few[1] == 0 && few[2] == -1 && few[3] == 1 && few[5] == -1,
       "capacity drops the later choices of each sequence");
    drop();
}

static void moves(void)
{
    static const int64_t shapes[][5] = {/* tokens, k, lo, len, width */
                                        {0, 2, 0, 8, 16},
                                        {40, 2, 0, 8, 33},
                                        {40, 1, 3, 0, 8},
                                        {200, 3, 2, 5, 96},
                                        {17, 8, 0, 8, 130}};
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 2; t++) {
            const int64_t *s = shapes[i];
            hp_route r = route(s[0], s[1], choices(s[0], s[1], 8), s[2], s[3]);
            tensor x = draw(t, s[0] * s[4], 1), w = draw(0, s[0] * s[1], 1);
            tensor e_ref = blank(t, r.rows * s[4]), e1 = same(e_ref), e2 = same(e_ref);
            tensor ref = blank(t, x.n), one = same(ref), two = same(ref);
            hp_dispatch_ref(&r, s[4], x.x, e_ref.x);
            hp_dispatch(&r, s[4], x.x, e1.x, 1);
            hp_dispatch(&r, s[4], x.x, e2.x, 2);
            judge(e1, e2, e_ref);
            tensor ye = draw(t, e_ref.n, 1);
            hp_dispatch_dx_ref(&r, s[4], ye.x, ref.x);
            hp_dispatch_dx(&r, s[4], ye.x, one.x, 1);
            hp_dispatch_dx(&r, s[4], ye.x, two.x, 2);
            judge(one, two, ref);
            hp_combine_ref(&r, s[4], ye.x, w.x, ref.x);
            hp_combine(&r, s[4], ye.x, w.x, one.x, 1);
            hp_combine(&r, s[4], ye.x, w.x, two.x, 2);
            judge(one, two, ref);
            tensor w_ref = blank(0, w.n), w1 = same(w_ref), w2 = same(w_ref);
            hp_combine_dx_ref(&r, s[4], ye.x, w.x, x.x, e_ref.x, w_ref.x);
            hp_combine_dx(&r, s[4], ye.x, w.x, x.x, e1.x, w1.x, 1);
            hp_combine_dx(&r, s[4], ye.x, w.x, x.x, e2.x, w2.x, 2);
            judge(e1, e2, e_ref);
            judge(w1, w2, w_ref);
        }
    verdict("dispatch, combine or a gradient of theirs", "routed");
}

typedef struct combine_case {
    hp_route r;
    tensor ye, w, y, dy;
} combine_case;

static double loss(void *arg)
{
    combine_case *c = arg;
    hp_combine_ref(&c->r, 5, c->ye.x, c->w.x, c->y.x);
    return inner(c->y, c->dy);
}

static void slopes(void)
{
    combine_case c = {.r = route(9, 2, choices(9, 2, 8), 0, 8)};
    c.ye = draw(0, c.r.rows * 5, 1), c.w = draw(0, 18, 1);
    c.y = blank(0, 45), c.dy = draw(0, 45, 1);
    tensor dye = blank(0, c.ye.n), dw = blank(0, 18);
    hp_combine_dx_ref(&c.r, 5, c.ye.x, c.w.x, c.dy.x, dye.x, dw.x);
    slope("combine's gradient by the rows", loss, &c, c.ye, dye, 1e-2f, 1e-3);
    slope("combine's gradient by the weights", loss, &c, c.w, dw, 1e-2f, 1e-3);
    drop();
}

int main(void)
{
    lists();
    each_level(moves);
    slopes();
    return done_testing();
}

/* rmsnorm.h and layernorm.h: the same shapes, the same questions. */
#include "kern/layernorm.h"
#include "kern/rmsnorm.h"

#include "unit/kern/kern_test.h"

static const int64_t shapes[][2] = {{0, 8}, {1, 1}, {3, 17}, {65, 64}, {200, 130}, {5, 1030}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void rms_case(int64_t rows, int64_t width, int t, bool weighted)
{
    tensor x = draw(t, rows * width, 3), w = draw(0, width, 1), dy = draw(t, rows * width, 1);
    hp_num wx = weighted ? w.x : hp_num_none();
    tensor ref = blank(t, rows * width), one = same(ref), two = same(ref);
    tensor s_ref = blank(0, rows), s_one = same(s_ref), s_two = same(s_ref);
    hp_rmsnorm_ref(rows, width, 1e-5f, x.x, wx, ref.x, s_ref.x.p);
    hp_rmsnorm(rows, width, 1e-5f, x.x, wx, one.x, s_one.x.p, 1);
    hp_rmsnorm(rows, width, 1e-5f, x.x, wx, two.x, s_two.x.p, 2);
    judge(one, two, ref);
    judge(s_one, s_two, s_ref);
    hp_rmsnorm_dx_ref(rows, width, x.x, wx, s_ref.x.p, dy.x, ref.x);
    hp_rmsnorm_dx(rows, width, x.x, wx, s_ref.x.p, dy.x, one.x, 1);
    hp_rmsnorm_dx(rows, width, x.x, wx, s_ref.x.p, dy.x, two.x, 2);
    if (width > 1) /* of one column the gradient is 0 and all of it rounding */
        judge(one, two, ref);
    tensor d_one = same(w), d_two = same(w);
    hp_rmsnorm_dw_ref(rows, width, x.x, s_ref.x.p, dy.x, w.x, weighted);
    hp_rmsnorm_dw(rows, width, x.x, s_ref.x.p, dy.x, d_one.x, weighted, 1);
    hp_rmsnorm_dw(rows, width, x.x, s_ref.x.p, dy.x, d_two.x, weighted, 2);
    judge(d_one, d_two, w);
}

static void rms(void)
{
    for (int i = 0; i < SHAPES; i++)
        for (int t = 0; t < 4; t++)
            rms_case(shapes[i][0], shapes[i][1], t & 1, t & 2);
    verdict("rmsnorm", "rmsnorm");
}

static void layer_case(int64_t rows, int64_t width, int t, bool weighted)
{
    tensor x = draw(t, rows * width, 3), w = draw(0, width, 1), b = draw(0, width, 1);
    for (int64_t i = 0; i < x.n; i++)
        hp_num_put(x.x, i, hp_num_get(x.x, i) + 2);
    tensor dy = draw(t, rows * width, 1);
    hp_num wx = weighted ? w.x : hp_num_none(), bx = weighted ? b.x : hp_num_none();
    tensor ref = blank(t, rows * width), one = same(ref), two = same(ref);
    tensor m = blank(0, rows), m_one = same(m), m_two = same(m);
    tensor s = blank(0, rows), s_one = same(s), s_two = same(s);
    hp_layernorm_ref(rows, width, 1e-5f, x.x, wx, bx, ref.x, m.x.p, s.x.p);
    hp_layernorm(rows, width, 1e-5f, x.x, wx, bx, one.x, m_one.x.p, s_one.x.p, 1);
    hp_layernorm(rows, width, 1e-5f, x.x, wx, bx, two.x, m_two.x.p, s_two.x.p, 2);
    judge(one, two, ref);
    judge(m_one, m_two, m);
    judge(s_one, s_two, s);
    hp_layernorm_dx_ref(rows, width, x.x, wx, m.x.p, s.x.p, dy.x, ref.x);
    hp_layernorm_dx(rows, width, x.x, wx, m.x.p, s.x.p, dy.x, one.x, 1);
    hp_layernorm_dx(rows, width, x.x, wx, m.x.p, s.x.p, dy.x, two.x, 2);
    if (width > 1)
        judge(one, two, ref);
    tensor w1 = same(w), w2 = same(w), b1 = same(b), b2 = same(b);
    hp_layernorm_dw_ref(rows, width, x.x, m.x.p, s.x.p, dy.x, w.x, b.x, weighted);
    hp_layernorm_dw(rows, width, x.x, m.x.p, s.x.p, dy.x, w1.x, b1.x, weighted, 1);
    hp_layernorm_dw(rows, width, x.x, m.x.p, s.x.p, dy.x, w2.x, b2.x, weighted, 2);
    judge(w1, w2, w);
    judge(b1, b2, b);
}

static void layer(void)
{
    for (int i = 0; i < SHAPES; i++)
        for (int t = 0; t < 4; t++)
            layer_case(shapes[i][0], shapes[i][1], t & 1, t & 2);
    verdict("layernorm", "layernorm");
}

typedef struct norm_case {
    tensor x, w, b, y, dy, mean, rstd;
    bool layer;
} norm_case;

enum { ROWS = 3, WIDTH = 10 };

static double loss(void *arg)
{
    norm_case *c = arg;
    if (c->layer)
        hp_layernorm_ref(ROWS, WIDTH, 1e-5f, c->x.x, c->w.x, c->b.x, c->y.x, c->mean.x.p,
                         c->rstd.x.p);
    else
        hp_rmsnorm_ref(ROWS, WIDTH, 1e-5f, c->x.x, c->w.x, c->y.x, c->rstd.x.p);
    return inner(c->y, c->dy);
}

static void slopes(void)
{
    norm_case c = {
        draw(0, ROWS * WIDTH, 1), draw(0, WIDTH, 1), draw(0, WIDTH, 1), blank(0, ROWS * WIDTH),
        draw(0, ROWS * WIDTH, 1), blank(0, ROWS),    blank(0, ROWS),    false};
    tensor dx = blank(0, ROWS * WIDTH), dw = blank(0, WIDTH), db = blank(0, WIDTH);
    loss(&c);
    hp_rmsnorm_dx_ref(ROWS, WIDTH, c.x.x, c.w.x, c.rstd.x.p, c.dy.x, dx.x);
    hp_rmsnorm_dw_ref(ROWS, WIDTH, c.x.x, c.rstd.x.p, c.dy.x, dw.x, false);
    slope("rmsnorm's dx", loss, &c, c.x, dx, 1e-2f, 2e-3);
    slope("rmsnorm's dw", loss, &c, c.w, dw, 1e-2f, 2e-3);
    c.layer = true;
    loss(&c);
    hp_layernorm_dx_ref(ROWS, WIDTH, c.x.x, c.w.x, c.mean.x.p, c.rstd.x.p, c.dy.x, dx.x);
    hp_layernorm_dw_ref(ROWS, WIDTH, c.x.x, c.mean.x.p, c.rstd.x.p, c.dy.x, dw.x, db.x, false);
    slope("layernorm's dx", loss, &c, c.x, dx, 1e-2f, 2e-3);
    slope("layernorm's dw", loss, &c, c.w, dw, 1e-2f, 2e-3);
    slope("layernorm's db", loss, &c, c.b, db, 1e-2f, 2e-3);
    drop();
}

int main(void)
{
    each_level(rms);
    each_level(layer);
    slopes();
    return done_testing();
}

#include "kern/softmax.h"

#include "unit/kern/kern_test.h"

static const int64_t shapes[][2] = {{0, 8},   {3, 0},     {1, 1},   {3, 17},
                                    {65, 64}, {200, 130}, {5, 1030}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void rows(void)
{
    for (int i = 0; i < SHAPES; i++)
        for (int t = 0; t < 2; t++) {
            int64_t r = shapes[i][0], w = shapes[i][1];
            tensor x = draw(t, r * w, 3), dy = draw(t, r * w, 1);
            for (int64_t j = 0; j < w && r > 1; j++)
                hp_num_put(x.x, j, -INFINITY);
            tensor ref = blank(t, r * w), one = same(ref), two = same(ref);
            hp_softmax_ref(r, w, x.x, ref.x);
            hp_softmax(r, w, x.x, one.x, 1);
            hp_softmax(r, w, x.x, two.x, 2);
            judge(one, two, ref);
            tensor d_ref = blank(t, r * w), d_one = same(ref), d_two = same(ref);
            hp_softmax_dx_ref(r, w, ref.x, dy.x, d_ref.x);
            hp_softmax_dx(r, w, ref.x, dy.x, d_one.x, 1);
            hp_softmax_dx(r, w, ref.x, dy.x, d_two.x, 2);
            if (w != 1)
                judge(d_one, d_two, d_ref);
        }
    verdict("softmax", "softmax");
}

typedef struct softmax_case {
    tensor x, y, dy;
} softmax_case;

static double loss(void *arg)
{
    softmax_case *c = arg;
    hp_softmax_ref(3, 8, c->x.x, c->y.x);
    return inner(c->y, c->dy);
}

int main(void)
{
    each_level(rows);
    softmax_case c = {draw(0, 24, 1), blank(0, 24), draw(0, 24, 1)};
    tensor dx = blank(0, 24);
    loss(&c);
    hp_softmax_dx_ref(3, 8, c.y.x, c.dy.x, dx.x);
    slope("softmax's gradient", loss, &c, c.x, dx, 1e-2f, 2e-3);
    drop();
    return done_testing();
}

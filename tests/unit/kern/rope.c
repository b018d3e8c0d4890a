#include "kern/rope.h"

#include "unit/kern/kern_test.h"

static void rotations(void)
{
    static const int64_t shapes[][3] = {/* rows, heads, d */
                                        {0, 2, 8},
                                        {5, 1, 2},
                                        {40, 3, 64},
                                        {300, 2, 34},
                                        {4, 1, 520}};
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 4; t++) {
            int64_t rows = shapes[i][0], heads = shapes[i][1], d = shapes[i][2];
            int32_t *pos = draw_ints(rows, 0, t & 2 ? 200000 : 100);
            tensor x = draw(t & 1, rows * heads * d, 1);
            tensor ref = blank(t & 1, rows * heads * d), one = same(ref), two = same(ref);
            hp_rope_ref(rows, heads, d, pos, 500000, t & 2, x.x, ref.x);
            hp_rope(rows, heads, d, pos, 500000, t & 2, x.x, one.x, 1);
            hp_rope(rows, heads, d, pos, 500000, t & 2, x.x, two.x, 2);
            judge(one, two, ref);
        }
    verdict("rope", "rope");
}

static void back(void)
{
    int32_t pos[3] = {0, 7, 90001};
    tensor x = draw(0, 3 * 2 * 16, 1), y = same(x);
    hp_rope(3, 2, 16, pos, 1e4, false, y.x, y.x, 1);
    ok(error_of(y, x) > 0.1, "rope turns");
    hp_rope(3, 2, 16, pos, 1e4, true, y.x, y.x, 1);
    ok(error_of(y, x) < 1e-6, "and its inverse turns back, in place");
    /* d = 2, pos = 1: one turn by one radian. */
    float v[2] = {1, 0};
    int32_t once = 1;
    hp_rope(1, 1, 2, &once, 1e4, false, hp_num_f32(v), hp_num_f32(v), 1);
    near((double)v[0], cos(1), 1e-6, "position 1 turns the first pair by one radian");
    near((double)v[1], sin(1), 1e-6, "counter-clockwise");
    drop();
}

int main(void)
{
    each_level(rotations);
    each_level(back);
    return done_testing();
}

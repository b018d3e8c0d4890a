#include "kern/dropout.h"

#include "unit/kern/kern_test.h"

static int64_t size_of(const hp_dropout_at *at)
{
    int64_t n = 1;
    for (int d = 0; d < at->nd; d++)
        n *= at->len[d];
    return n;
}

static void boxes(void)
{
    static const hp_dropout_at at[] = {
        {9, 0.1f, 3, {0, 0, 0}, {4, 5, 300}, {4, 5, 300}},
        {9, 0.5f, 3, {1, 2, 7}, {2, 3, 270}, {4, 5, 300}},
        {9, 0.5f, 2, {1, 0}, {0, 7}, {3, 7}},
        {9, 0.0f, 1, {3}, {33}, {40}},
        {1, 0.3f, 2, {70000, 5}, {300, 100}, {100000, 1000000}},
        {9, 0.5f, 0, {0}, {0}, {0}},
    };
    for (int i = 0; i < 6; i++)
        for (int t = 0; t < 2; t++) {
            int64_t n = size_of(&at[i]);
            tensor x = draw(t, n, 1), ref = blank(t, n), one = same(ref), two = same(ref);
            hp_dropout_ref(&at[i], x.x, ref.x);
            hp_dropout(&at[i], x.x, one.x, 1);
            hp_dropout(&at[i], x.x, two.x, 2);
            judge(one, two, ref);
        }
    verdict("dropout of a box", "dropout");
}

static void addressed(void)
{
    hp_dropout_at whole = {5, 0.25f, 2, {0, 0}, {40, 60}, {40, 60}};
    hp_dropout_at part = {5, 0.25f, 2, {11, 20}, {9, 31}, {40, 60}};
    tensor x = blank(0, 2400), y = blank(0, 2400), z = blank(0, 9 * 31);
    for (int i = 0; i < 2400; i++)
        hp_num_put(x.x, i, 1);
    hp_dropout(&whole, x.x, y.x, 1);
    hp_dropout(&part, x.x, z.x, 1);
    int differ = 0, kept = 0;
    for (int r = 0; r < 9; r++)
        for (int c = 0; c < 31; c++)
            differ += hp_num_get(z.x, r * 31 + c) != hp_num_get(y.x, (11 + r) * 60 + 20 + c);
    for (int i = 0; i < 2400; i++)
        kept += hp_num_get(y.x, i) != 0;
    is_int(differ, 0, "a part drops what the whole drops there");
    near(kept / 2400.0, 0.75, 0.04, "and a quarter goes");
    near((double)hp_num_get(y.x, 0), hp_num_get(y.x, 0) != 0 ? 4.0 / 3 : 0, 1e-6,
         "what stays is scaled up");
    drop();
}

int main(void)
{
    each_level(boxes);
    each_level(addressed);
    return done_testing();
}

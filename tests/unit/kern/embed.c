#include "kern/embed.h"

#include "unit/kern/kern_test.h"

static void lookups(void)
{
    static const int64_t shapes[][4] = {/* n, width, lo, len */
                                        {0, 8, 0, 5},
                                        {7, 0, 0, 5},
                                        {9, 5, 3, 0},
                                        {300, 70, 10, 20},
                                        {50, 300, 0, 40}};
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 4; t++) {
            int64_t n = shapes[i][0], w = shapes[i][1], lo = shapes[i][2], len = shapes[i][3];
            int32_t *token = draw_ints(n, 0, 40);
            tensor table = draw(t & 1, len * w, 1);
            tensor ref = blank(t >> 1, n * w), one = same(ref), two = same(ref);
            hp_embed_ref(n, w, lo, len, token, table.x, ref.x);
            hp_embed(n, w, lo, len, token, table.x, one.x, 1);
            hp_embed(n, w, lo, len, token, table.x, two.x, 2);
            judge(one, two, ref);
            tensor dy = draw(t >> 1, n * w, 1), dw = draw(0, len * w, 1);
            tensor d_one = same(dw), d_two = same(dw);
            hp_embed_dw_ref(n, w, lo, len, token, dy.x, dw.x, t & 1);
            hp_embed_dw(n, w, lo, len, token, dy.x, d_one.x, t & 1, 1);
            hp_embed_dw(n, w, lo, len, token, dy.x, d_two.x, t & 1, 2);
            judge(d_one, d_two, dw);
        }
    verdict("a look-up or its gradient", "embed");
}

/* The parts of a split vocabulary add up to the whole. */
static void split(void)
{
    enum { N = 20, W = 6, V = 11 };
    int32_t *token = draw_ints(N, 0, V);
    tensor table = draw(0, V * W, 1), whole = blank(0, N * W), a = blank(0, N * W),
           b = blank(0, N * W);
    hp_embed(N, W, 0, V, token, table.x, whole.x, 1);
    hp_embed(N, W, 0, 4, token, table.x, a.x, 1);
    hp_embed(N, W, 4, V - 4, token, hp_num_at(table.x, 4 * W), b.x, 1);
    for (int i = 0; i < N * W; i++)
        hp_num_put(a.x, i, hp_num_get(a.x, i) + hp_num_get(b.x, i));
    ok(error_of(a, whole) == 0, "the parts of a split vocabulary add up");
    drop();
}

int main(void)
{
    each_level(lookups);
    split();
    return done_testing();
}

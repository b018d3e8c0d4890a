#include "kern/box.h"
#include "kern/xent.h"

#include "unit/kern/kern_test.h"

static void reductions(void)
{
    static const int64_t sizes[] = {0, 3, 33, 5001};
    for (int i = 0; i < 4; i++)
        for (int op = HP_ROP_SUM; op <= HP_ROP_LSE; op++)
            for (int t = 0; t < 2; t++)
                for (int n_in = 1; n_in <= 3; n_in += 2) {
                    int64_t n = sizes[i];
                    hp_num in[3];
                    for (int j = 0; j < 3; j++)
                        in[j] = draw(t, n, 1).x;
                    tensor ref = blank(t, n), one = same(ref), two = same(ref);
                    hp_reduce_flat_ref((hp_rop)op, n_in, in, n, ref.x);
                    hp_reduce_flat((hp_rop)op, n_in, in, n, one.x, 1);
                    hp_reduce_flat((hp_rop)op, n_in, in, n, two.x, 2);
                    judge(one, two, ref);
                }
    verdict("a reduction", "reduce");
}

static void meanings(void)
{
    float a[3] = {1, 0, -2}, b[3] = {3, 5, -1}, y[3];
    hp_num in[2] = {hp_num_f32(a), hp_num_f32(b)};
    hp_reduce_flat(HP_ROP_MAX, 2, in, 3, hp_num_f32(y), 1);
    ok(y[0] == 3 && y[1] == 5 && y[2] == -1, "max");
    hp_reduce_flat(HP_ROP_MIN, 2, in, 3, hp_num_f32(y), 1);
    ok(y[0] == 1 && y[1] == 0 && y[2] == -2, "min");
    hp_reduce_flat(HP_ROP_PROD, 2, in, 3, hp_num_f32(y), 1);
    ok(y[0] == 3 && y[1] == 0 && y[2] == 2, "prod");
    hp_reduce_flat(HP_ROP_ALL, 2, in, 3, hp_num_f32(y), 1);
    ok(y[0] == 1 && y[1] == 0 && y[2] == 1, "all");
    float s[3] = {1, 2, 0}, u[3] = {4, 1, 7}, want[3];
    hp_num triples[2] = {hp_num_f32(s), hp_num_f32(u)};
    hp_xent_merge(1, s, u, want);
    hp_reduce_flat(HP_ROP_LSE, 2, triples, 3, hp_num_f32(y), 1);
    ok(memcmp(y, want, sizeof y) == 0, "lse merges as cross-entropy's stats do");
    int32_t p[2] = {16777217, 4}, q[2] = {1, -4}, r[2];
    hp_num ints[2] = {{p, HP_NUM_I32}, {q, HP_NUM_I32}};
    hp_reduce_flat(HP_ROP_SUM, 2, ints, 2, (hp_num){r, HP_NUM_I32}, 1);
    ok(r[0] == 16777218 && r[1] == 0, "integers add exactly");
}

enum { D = 4 };

/* A box within [0, full) and its number of elements. */
typedef struct box {
    int64_t lo[D], hi[D];
} box;

static int64_t volume(const box *b, int nd)
{
    int64_t n = 1;
    for (int d = 0; d < nd; d++)
        n *= b->hi[d] - b->lo[d];
    return n;
}

/* The index in box `b` of a point, by the definition. */
static int64_t index_in(const box *b, int nd, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < nd; d++)
        i = i * (b->hi[d] - b->lo[d]) + at[d] - b->lo[d];
    return i;
}

/* A random box around `meet`, sometimes exactly it in a dimension. */
static box around(hp_rng *r, const box *meet, int nd)
{
    box b;
    for (int d = 0; d < nd; d++) {
        b.lo[d] = meet->lo[d] - hp_rng_below(r, 3);
        b.hi[d] = meet->hi[d] + hp_rng_below(r, 3);
        if (hp_rng_below(r, 2))
            b.lo[d] = meet->lo[d], b.hi[d] = meet->hi[d];
    }
    return b;
}

static bool step(const box *m, int nd, int64_t *at)
{
    for (int d = nd - 1; d >= 0; d--) {
        if (++at[d] < m->hi[d])
            return true;
        at[d] = m->lo[d];
    }
    return false;
}

/* Copies and reduces by hp_box_* and by walking every point; the rest of the target must stay. */
static int boxes_wrong(hp_rng *r, int t)
{
    int nd = (int)hp_rng_below(r, D + 1), wrong = 0;
    box meet, s[2], y;
    for (int d = 0; d < nd; d++) {
        meet.lo[d] = 3 + hp_rng_below(r, 4);
        meet.hi[d] = meet.lo[d] + hp_rng_below(r, 5);
    }
    s[0] = around(r, &meet, nd), s[1] = around(r, &meet, nd), y = around(r, &meet, nd);
    tensor a = draw(t, volume(&s[0], nd), 1), b = draw(t, volume(&s[1], nd), 1);
    tensor got = draw(t, volume(&y, nd), 1), sum = same(got), want = same(got), wants = same(got);
    hp_num in[2] = {a.x, b.x};
    const int64_t *lo[2] = {s[0].lo, s[1].lo}, *hi[2] = {s[0].hi, s[1].hi};
    hp_box_copy(nd, got.x.p, y.lo, y.hi, a.x.p, s[0].lo, s[0].hi, meet.lo, meet.hi,
                hp_num_bytes(t));
    hp_box_reduce(HP_ROP_SUM, nd, sum.x, y.lo, y.hi, 2, in, lo, hi, meet.lo, meet.hi);
    int64_t at[D];
    memcpy(at, meet.lo, sizeof at);
    if (volume(&meet, nd) > 0)
        do {
            int64_t i = index_in(&y, nd, at);
            float u = hp_num_get(a.x, index_in(&s[0], nd, at));
            float v = hp_num_get(b.x, index_in(&s[1], nd, at));
            hp_num_put(want.x, i, u);
            hp_num_put(wants.x, i, u + v);
        } while (step(&meet, nd, at));
    size_t bytes = (size_t)(got.n * hp_num_bytes(t));
    wrong += memcmp(got.x.p, want.x.p, bytes) != 0;
    wrong += memcmp(sum.x.p, wants.x.p, bytes) != 0;
    drop();
    return wrong;
}

static void permutes(void)
{
    static const int64_t len[4] = {3, 5, 2, 7};
    static const int perms[][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}};
    for (int p = 0; p < 4; p++)
        for (int t = 0; t < 2; t++) {
            tensor x = draw(t, 210, 1), y = blank(t, 210);
            hp_permute(4, len, perms[p], x.x.p, y.x.p, hp_num_bytes(t), 2);
            int wrong = 0;
            for (int64_t i = 0; i < 210; i++) {
                int64_t at[4], rest = i, j = 0;
                for (int d = 3; d >= 0; rest /= len[d--])
                    at[d] = rest % len[d];
                for (int d = 0; d < 4; d++)
                    j = j * len[perms[p][d]] + at[perms[p][d]];
                wrong += hp_num_get(x.x, i) != hp_num_get(y.x, j);
            }
            is_int(wrong, 0, "permutation %d in type %d", p, t);
            drop();
        }
}

int main(void)
{
    each_level(reductions);
    each_level(meanings);
    hp_rng r = {.stream = 3};
    int wrong = 0;
    for (int i = 0; i < 400; i++)
        wrong += boxes_wrong(&r, i % 2);
    is_int(wrong, 0, "400 random boxes are copied and summed point by point");
    permutes();
    return done_testing();
}

#include "kern/pointwise.h"

#include "unit/kern/kern_test.h"

static const int64_t sizes[] = {0, 1, 15, 16, 33, 4096, 40001};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void sums(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int n_in = 0; n_in <= 3; n_in++) {
            int t = (i + n_in) % 2;
            hp_num in[3];
            for (int j = 0; j < 3; j++)
                in[j] = draw(j % 2, sizes[i], 1).x;
            tensor ref = blank(t, sizes[i]), one = same(ref), two = same(ref);
            hp_add_ref(n_in, in, sizes[i], ref.x);
            hp_add(n_in, in, sizes[i], one.x, 1);
            hp_add(n_in, in, sizes[i], two.x, 2);
            judge(one, two, ref);
        }
    verdict("a sum", "add");
}

static void maps(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int t = 0; t < 4; t++) {
            int64_t n = sizes[i];
            tensor a = draw(t & 1, n, 1), b = draw(t >> 1, n, 1);
            tensor ref = blank(t & 1, n), one = same(ref), two = same(ref);
            hp_mul_ref(n, a.x, b.x, ref.x);
            hp_mul(n, a.x, b.x, one.x, 1);
            hp_mul(n, a.x, b.x, two.x, 2);
            judge(one, two, ref);
            hp_scale_ref(n, 0.3f, b.x, ref.x);
            hp_scale(n, 0.3f, b.x, one.x, 1);
            hp_scale(n, 0.3f, b.x, two.x, 2);
            judge(one, two, ref);
            hp_copy_ref(n, b.x, ref.x);
            hp_copy(n, b.x, one.x, 1);
            hp_copy(n, b.x, two.x, 2);
            judge(one, two, ref);
            hp_fill_ref(n, -1.5f, ref.x);
            hp_fill(n, -1.5f, one.x, 1);
            hp_fill(n, -1.5f, two.x, 2);
            judge(one, two, ref);
        }
    verdict("a product, scaling, copy or constant", "mul");
}

static void storage(void)
{
    ok(hp_f32_bf16(1.00390625f) == 0x3f80 && hp_f32_bf16(1.01171875f) == 0x3f82,
       "bf16 rounds ties to even");
    ok(isnan(hp_bf16_f32(hp_f32_bf16(NAN))) && isinf(hp_bf16_f32(hp_f32_bf16(3.4e38f))),
       "a NaN stays one and what is too large becomes infinite");
    tensor x = draw(HP_NUM_F32, 40, 1), y = blank(HP_NUM_BF16, 40);
    for (int i = 0; i < 40; i++) {
        uint32_t u = 0x7f800001u + ((uint32_t)i << 18);
        memcpy((float *)x.x.p + i, &u, 4);
    }
    hp_copy(40, x.x, y.x, 1);
    int lost = 0;
    for (int i = 0; i < 31; i++)
        lost += !isnan(hp_num_get(y.x, i));
    is_int(lost, 0, "also in vectors");
    int32_t big[3] = {16777217, -5, 7}, got[3];
    hp_copy(3, (hp_num){big, HP_NUM_I32}, (hp_num){got, HP_NUM_I32}, 2);
    is_int(got[0], 16777217, "integers are copied exactly");
    drop();
}

int main(void)
{
    each_level(sums);
    each_level(maps);
    each_level(storage);
    return done_testing();
}

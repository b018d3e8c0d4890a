#include "op/init.h"

#include "kern/num.h"

#include "tap.h"

enum { R = 40, C = 50 };

static float whole[R * C];

static void fill_whole(hp_init init, const char *name, uint64_t seed)
{
    hp_operand o = {.data = whole, .nd = 2, .len = {R, C}, .full = {R, C}};
    hp_init_fill(&o, name, init, 0.5f, seed);
}

static double mean_of(int power)
{
    double sum = 0;
    for (int i = 0; i < R * C; i++)
        sum += pow((double)whole[i], power);
    return sum / (R * C);
}

int main(void)
{
    fill_whole(HP_INIT_ONES, "w", 1);
    near(mean_of(1), 1, 0, "ones are ones");
    fill_whole(HP_INIT_ZEROS, "w", 1);
    near(mean_of(2), 0, 0, "zeros are zeros");
    fill_whole(HP_INIT_NORMAL, "w", 2);
    float other = whole[7];
    fill_whole(HP_INIT_NORMAL, "v", 1);
    float third = whole[7];
    fill_whole(HP_INIT_NORMAL, "w", 1);
    ok(whole[7] != other && whole[7] != third, "seed and name change what is drawn");
    near(mean_of(1), 0, 0.04, "normal numbers have mean 0");
    near(sqrt(mean_of(2)), 0.5, 0.02, "and the deviation that was asked");

    float part[R * C];
    uint16_t half[R * C];
    hp_operand o = {.data = part, .nd = 2, .lo = {11, 30}, .len = {5, 7}, .full = {R, C}}, h = o;
    h.data = half;
    h.dtype = HP_BF16;
    hp_init_fill(&o, "w", HP_INIT_NORMAL, 0.5f, 1);
    hp_init_fill(&h, "w", HP_INIT_NORMAL, 0.5f, 1);
    int wrong = 0;
    for (int r = 0; r < 5; r++)
        for (int c = 0; c < 7; c++) {
            float want = whole[(11 + r) * C + 30 + c];
            wrong += part[r * 7 + c] != want || half[r * 7 + c] != hp_f32_bf16(want);
        }
    is_int(wrong, 0, "a box has the numbers of the whole, in f32 and rounded in bf16");
    o.len[1] = 0;
    o.data = NULL;
    hp_init_fill(&o, "w", HP_INIT_NORMAL, 0.5f, 1);
    ok(true, "an empty box is nothing");
    return done_testing();
}

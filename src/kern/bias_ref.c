#include "kern/bias.h"

void hp_bias_ref(int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y)
{
    for (int64_t i = 0; i < rows * width; i++)
        hp_num_put(y, i, hp_num_get(x, i) + hp_num_get(b, i % width));
}

void hp_bias_dw_ref(int64_t rows, int64_t width, hp_num dy, hp_num db, bool accumulate)
{
    for (int64_t c = 0; c < width; c++) {
        double sum = accumulate ? (double)hp_num_get(db, c) : 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)hp_num_get(dy, r * width + c);
        hp_num_put(db, c, (float)sum);
    }
}

#include "kern/sumsq.h"

double hp_sumsq_ref(int64_t n, hp_num x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)hp_num_get(x, i) * (double)hp_num_get(x, i);
    return sum;
}

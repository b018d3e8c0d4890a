#include "kern/sumsq.h"

#include "kern/sumsq_simd.h"
#include "kern/team.h"

enum { PARTS = 64 };

double hp_sumsq(int64_t n, hp_num x, int threads)
{
    double (*block)(int64_t, hp_num) = HP_SIMD_PICK(hp_sumsq_block);
    double part[PARTS] = {0}, sum = 0;
    int64_t size = (n / PARTS / HP_TEAM_BLOCK + 1) * HP_TEAM_BLOCK;
    HP_TEAM_FOR(threads, n,
                for (int i = 0; i < PARTS; i++) if (i * size < n) part[i] =
                    block(hp_team_min(n - i * size, size), hp_num_at(x, i * size)));
    for (int i = 0; i < PARTS; i++)
        sum += part[i];
    return sum;
}

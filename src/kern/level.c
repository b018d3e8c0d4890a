#include "kern/level.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"generic", "v2", "v3", "v4"};

/* Written before main, and by tests between kernels. */
static hp_level chosen;

const char *hp_level_name(hp_level l)
{
    return names[l];
}

bool hp_level_has(hp_level l)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    switch (l) {
    case HP_LEVEL_V2:
        return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    case HP_LEVEL_V3:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
    case HP_LEVEL_V4:
        return hp_level_has(HP_LEVEL_V3) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    default:
        return false;
    }
#else
    return l == HP_LEVEL_GENERIC;
#endif
}

hp_level hp_level_now(void)
{
    return chosen;
}

__attribute__((constructor)) void hp_level_choose(void)
{
    const char *wanted = getenv("HPBENCH_ISA");
    chosen = HP_LEVEL_GENERIC;
    for (hp_level l = HP_LEVEL_GENERIC; l <= HP_LEVEL_V4; l++)
        if (hp_level_has(l) &&
            (chosen == HP_LEVEL_GENERIC || !wanted || strcmp(wanted, names[chosen])))
            chosen = l;
}

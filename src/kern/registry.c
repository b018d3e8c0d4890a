#include "kern/registry.h"

#include <string.h>

static const struct {
    const char *name;
    double tolerance;
} kernels[] = {
    {"gemm", 2e-5},      {"gemm_grouped", 2e-5},
    {"attention", 1e-5}, {"attention_merge", 2e-6},
    {"embed", 1e-6},     {"add", 0},
    {"mul", 0},          {"scale", 0},
    {"copy", 0},         {"fill", 0},
    {"silu", 2e-6},      {"gelu", 2e-6},
    {"swiglu", 2e-6},    {"bias", 1e-6},
    {"sumsq", 1e-6},     {"dropout", 1e-7},
    {"rmsnorm", 5e-6},   {"layernorm", 5e-6},
    {"rope", 1e-6},      {"softmax", 2e-6},
    {"xent", 2e-6},      {"router", 1e-5},
    {"routed", 1e-6},    {"optim", 1e-6},
    {"reduce", 0},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

#if defined(__x86_64__)
static const hp_level levels[] = {HP_LEVEL_V2, HP_LEVEL_V3, HP_LEVEL_V4};
#else
static const hp_level levels[] = {HP_LEVEL_GENERIC};
#endif
enum { LEVELS = sizeof levels / sizeof *levels };

#if defined(HP_GEMM_ONEDNN)
static const char library[] = "onednn";
#elif defined(HP_GEMM_OPENBLAS)
static const char library[] = "openblas";
#else
static const char library[] = "";
#endif

bool hp_kern_row_at(int i, hp_kern_row *row)
{
    int kernel = i / (1 + LEVELS), variant = i % (1 + LEVELS);
    if (i == KERNELS * (1 + LEVELS) && library[0]) {
        *row = (hp_kern_row){kernels[0].name, library, levels[0], kernels[0].tolerance};
        return true;
    }
    if (i < 0 || kernel >= KERNELS)
        return false;
    hp_level l = variant == 0 ? levels[0] : levels[variant - 1];
    *row = (hp_kern_row){kernels[kernel].name, variant == 0 ? "reference" : hp_level_name(l), l,
                         variant == 0 ? 0 : kernels[kernel].tolerance};
    return true;
}

double hp_kern_tolerance(const char *name)
{
    for (int i = 0; i < KERNELS; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return kernels[i].tolerance;
    return -1;
}

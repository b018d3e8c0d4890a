/* result.c -- a record without figures. */
#include "trace/result.h"

#include <math.h>
#include <stdlib.h>

const char *const hp_own_role_name[HP_OWN_ROLES] = {"dp", "tp", "pp", "cp", "ep", "offload"};
const char *const hp_mem_kind_name[HP_MEM_KINDS] = {
    "params", "grads", "optimizer", "activations", "logits", "workspace", "comm", "kv", "overhead"};

static void blank(double *v, int n)
{
    for (int i = 0; i < n; i++)
        v[i] = NAN;
}

hp_owned_time hp_owned_time_none(void)
{
    hp_owned_time t = {NAN, NAN, NAN, {0}, NAN, NAN, NAN, NAN};
    blank(t.exposed_s, HP_OWN_ROLES);
    return t;
}

hp_memory_figures hp_memory_figures_none(void)
{
    hp_memory_figures m = {NAN, NAN, NAN, NAN, NAN, false, NULL, NULL, {0}, {0}};
    blank(m.by_kind, HP_MEM_KINDS);
    blank(m.tier, 4);
    return m;
}

hp_result *hp_result_new(void)
{
    hp_result *r = hp_xcalloc(1, sizeof *r);
    double *figures[] = {&r->step_s,
                         &r->step_s_ci,
                         &r->tokens_per_s,
                         &r->tokens_per_s_per_device,
                         &r->masking_ratio,
                         &r->copy_masking_ratio,
                         &r->flops_model,
                         &r->flops_recompute,
                         &r->flops_replicated,
                         &r->flops_padding,
                         &r->flops_executed,
                         &r->mfu,
                         &r->mfu_full_attention,
                         &r->hfu,
                         &r->mfu_peak_tflops,
                         &r->band_low_s,
                         &r->band_high_s};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        *figures[i] = NAN;
    r->time = hp_owned_time_none();
    r->memory = hp_memory_figures_none();
    return r;
}

void hp_result_free(hp_result *r)
{
    if (!r)
        return;
    hp_arena_fini(&r->arena);
    free(r);
}

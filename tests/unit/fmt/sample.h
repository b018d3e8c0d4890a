/* sample.h -- a result record with something in every field, for the tests of formats. */
#ifndef HP_TESTS_FMT_SAMPLE_H
#define HP_TESTS_FMT_SAMPLE_H

#include "trace/result.h"

#include <math.h>

static inline hp_memory_figures sample_memory(void)
{
    hp_memory_figures m = {.peak_bytes = 5e7,
                           .arena_bytes = 5.25e7,
                           .reserved_est_bytes = 0,
                           .process_est_bytes = 6e7,
                           .capacity_bytes = 1.2e10,
                           .fits = true,
                           .fits_basis = "arena",
                           .peak_at = "layers.3.mlp.down/dx@7",
                           .tier = {5e7, 0, 0, 0}};
    for (int i = 0; i < HP_MEM_KINDS; i++)
        m.by_kind[i] = i < 5 ? 1e7 : 0;
    return m;
}

static inline hp_owned_time sample_time(void)
{
    return (hp_owned_time){.step_s = 0.05,
                           .compute_s = 0.03,
                           .overlapped_s = 0.01,
                           .exposed_s = {0.004, 0.002, 0, 0, 0, 0},
                           .bubble_s = 0.001,
                           .wait_s = 0.001,
                           .host_s = 0.0005,
                           .free_s = 0.0015};
}

static inline hp_result *sample_result(void)
{
    hp_result *r = hp_result_new();
    r->mode = "run";
    r->clock = "wall";
    r->model = "gpt2-small";
    r->cluster = "host:4";
    r->strategy_name = "shorthand";
    r->strategy_shorthand = "dp=2,tp=2";
    r->strategy_resolved = "mesh \"dp=2, tp=2\"\nsplit batch dp";
    r->strategy_hash = 0xFEDCBA9876543210u;
    r->profile_hash = 0x0123456789ABCDEFu;
    r->n_devices = 4;
    r->seed = 7;
    r->step_s = 0.05;
    r->step_s_ci = 0.001;
    r->tokens_per_s = 10240;
    r->tokens_per_s_per_device = 2560;
    r->time = sample_time();
    r->masking_ratio = 0.625;
    r->n_axes = 2;
    r->axis = hp_arena_alloc(&r->arena, 2 * sizeof *r->axis);
    r->axis[0] = (hp_axis_figures){"dp", 0.9, 0.011, 1.5e6};
    r->axis[1] = (hp_axis_figures){"tp", NAN, 0, 0};
    r->flops_model = 1.25e12;
    r->flops_recompute = 0;
    r->flops_replicated = 1e9;
    r->flops_padding = 0;
    r->flops_executed = 1.251e12;
    r->mfu = 0.31;
    r->mfu_full_attention = 0.33;
    r->hfu = 0.31;
    r->mfu_peak_tflops = 0.2;
    r->mfu_dtype = "f32";
    r->memory = sample_memory();
    r->n_levels = 1;
    r->bytes_by_level[0] = 1.5e6;
    r->n_classes = 2;
    r->cls = hp_arena_alloc(&r->arena, 2 * sizeof *r->cls);
    r->cls[0] = (hp_class_figures){"stage0", 2, 0, sample_time(), 0.625, sample_memory()};
    r->cls[1] = (hp_class_figures){"stage1", 2, 1, sample_time(), NAN, sample_memory()};
    r->n_steps = 20;
    r->loss = hp_arena_alloc(&r->arena, 20 * sizeof *r->loss);
    r->grad_norm = hp_arena_alloc(&r->arena, 20 * sizeof *r->loss);
    r->step_times = hp_arena_alloc(&r->arena, 20 * sizeof *r->loss);
    for (int i = 0; i < 20; i++) {
        r->loss[i] = 5.5 * exp(-0.1 * i);
        r->grad_norm[i] = 1.0 / (i + 1);
        r->step_times[i] = 0.05;
    }
    r->n_assumptions = 2;
    r->assumption = hp_arena_alloc(&r->arena, 2 * sizeof *r->assumption);
    r->assumption[0] = (hp_assumption){"dp", "2", "as said", false};
    r->assumption[1] =
        (hp_assumption){"cluster.level.node.latency", "1e-6", "a guess of a \"switch\"", true};
    r->n_warnings = 1;
    r->warning = hp_arena_alloc(&r->arena, sizeof *r->warning);
    r->warning[0] = "two devices share a core: wall times say little about overlap, so look at "
                    "--clock model instead of these";
    return r;
}

#endif

/* result.h -- the result record of a run or a prediction: what formats print, suites gate, the store keeps.
 *
 * One to one the JSON schema `hpbench.result.v1` (share/doc/cli.md). NAN = has no meaning here (printed null). Strings are owned by `arena`. Room: trace.
 */
#ifndef HP_TRACE_RESULT_H
#define HP_TRACE_RESULT_H

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_OWN_ROLES = 6 }; /* dp, tp, pp, cp, ep, offload */
extern const char *const hp_own_role_name[HP_OWN_ROLES];

/* hp_owned_time is the step of one class, divided among its owners: the fields add up to step_s. */
typedef struct hp_owned_time {
    double step_s, compute_s, overlapped_s, exposed_s[HP_OWN_ROLES], bubble_s, wait_s, host_s, free_s;
} hp_owned_time;

typedef struct hp_axis_figures {
    const char *axis; /* the user's name */
    double masking_ratio, comm_s, bytes; /* bytes sent a device a step */
} hp_axis_figures;

enum { HP_MEM_KINDS = 9 }; /* hp_bkind order, then overhead */
extern const char *const hp_mem_kind_name[HP_MEM_KINDS];

typedef struct hp_memory_figures {
    double peak_bytes, arena_bytes, reserved_est_bytes, process_est_bytes, capacity_bytes;
    bool fits;
    const char *fits_basis, *peak_at;
    double by_kind[HP_MEM_KINDS];
    double tier[4]; /* hbm, host, pool, file */
} hp_memory_figures;

typedef struct hp_class_figures {
    const char *name;
    int devices, stage;
    hp_owned_time time;
    double masking_ratio;
    hp_memory_figures memory;
} hp_class_figures;

typedef struct hp_assumption {
    const char *name, *value, *source;
    bool unverified;
} hp_assumption;

typedef struct hp_result {
    hp_arena arena;
    const char *mode, *clock, *grain, *model, *cluster; /* grain NULL for a run */
    const char *strategy_name, *strategy_shorthand, *strategy_resolved;
    uint64_t strategy_hash, profile_hash;
    int n_devices;
    uint64_t seed;
    double step_s, step_s_ci, tokens_per_s, tokens_per_s_per_device;
    hp_owned_time time;
    double masking_ratio, copy_masking_ratio;
    int n_axes;
    hp_axis_figures *axis;
    double flops_model, flops_recompute, flops_replicated, flops_padding, flops_executed;
    double mfu, mfu_full_attention, hfu, mfu_peak_tflops;
    const char *mfu_dtype;
    hp_memory_figures memory;
    int n_levels;
    double bytes_by_level[8];
    int n_classes;
    hp_class_figures *cls;
    int n_steps;
    double *loss, *grad_norm, *step_times;
    double band_low_s, band_high_s;
    const char *band_source;
    int n_assumptions;
    hp_assumption *assumption;
    int n_warnings;
    const char **warning;
    int constants_fitted;
} hp_result;

/* hp_owned_time_none and hp_memory_figures_none return figures that are all NAN. */
hp_owned_time hp_owned_time_none(void);
hp_memory_figures hp_memory_figures_none(void);

/* hp_result_new returns a record whose figures are all NAN; hp_result_free frees it. */
hp_result *hp_result_new(void);
void hp_result_free(hp_result *r);

#endif

/* json.c -- each part of the record has a writer and a reader that stand next to each other and
 * name the same keys. */
#include "fmt/json.h"

#include "base/version.h"
#include "fmt/jsonw.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

/* --- reading: one error is kept, the first; an absent or null key gives the value for "no
 * meaning" --- */

typedef struct reader {
    hp_result *r;
    hp_errmsg *e;
    hp_err err;
} reader;

static void wrong(reader *in, const char *key, const char *want)
{
    if (!in->err)
        in->err = hp_fail(in->e, HP_EINPUT, "key \"%s\" is not %s", key, want);
}

static double get_num(reader *in, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v))
        return NAN;
    if (!json_is_number(v))
        wrong(in, key, "a number");
    return json_number_value(v);
}

static int get_int(reader *in, const json_t *o, const char *key, int missing)
{
    double v = get_num(in, o, key);
    if (!isnan(v) && !(v >= -2147483648.0 && v <= 2147483647.0))
        wrong(in, key, "a whole number of 32 bits");
    return isnan(v) || in->err ? missing : (int)v;
}

static const char *get_str(reader *in, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v))
        return NULL;
    if (!json_is_string(v)) {
        wrong(in, key, "a string");
        return NULL;
    }
    return hp_arena_strdup(&in->r->arena, json_string_value(v));
}

static uint64_t get_hash(reader *in, const json_t *o, const char *key)
{
    const char *s = get_str(in, o, key);
    uint64_t h = 0;
    if (s && sscanf(s, "%16" SCNx64, &h) != 1)
        wrong(in, key, "a hash of 16 hexadecimal digits");
    return h;
}

static const json_t *get_of(reader *in, const json_t *o, const char *key, json_type type)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v))
        return NULL;
    if (json_typeof(v) == type)
        return v;
    wrong(in, key, type == JSON_ARRAY ? "a list" : "a map");
    return NULL;
}

/* Reads a list of numbers into an arena array; *n is its length, 0 when absent. */
static double *get_nums(reader *in, const json_t *o, const char *key, int *n)
{
    const json_t *list = get_of(in, o, key, JSON_ARRAY);
    *n = (int)json_array_size(list);
    double *v = hp_arena_alloc(&in->r->arena, sizeof *v * (size_t)(*n + 1));
    for (int i = 0; i < *n; i++) {
        const json_t *x = json_array_get(list, (size_t)i);
        if (!json_is_number(x) && !json_is_null(x))
            wrong(in, key, "a list of numbers");
        v[i] = json_is_number(x) ? json_number_value(x) : NAN;
    }
    return v;
}

/* --- time --- */

static void write_time(hp_jsonw *w, const hp_owned_time *t)
{
    hp_jsonw_open(w, "time", '{');
    hp_jsonw_num(w, "step_s", t->step_s);
    hp_jsonw_num(w, "compute_s", t->compute_s);
    hp_jsonw_num(w, "overlapped_s", t->overlapped_s);
    hp_jsonw_open_flat(w, "exposed_s", '{');
    for (int i = 0; i < HP_OWN_ROLES; i++)
        hp_jsonw_num(w, hp_own_role_name[i], t->exposed_s[i]);
    hp_jsonw_close(w);
    hp_jsonw_num(w, "bubble_s", t->bubble_s);
    hp_jsonw_num(w, "wait_s", t->wait_s);
    hp_jsonw_num(w, "host_s", t->host_s);
    hp_jsonw_num(w, "free_s", t->free_s);
    hp_jsonw_close(w);
}

static hp_owned_time read_time(reader *in, const json_t *o)
{
    const json_t *t = get_of(in, o, "time", JSON_OBJECT);
    hp_owned_time out = {.step_s = get_num(in, t, "step_s"),
                         .compute_s = get_num(in, t, "compute_s"),
                         .overlapped_s = get_num(in, t, "overlapped_s"),
                         .bubble_s = get_num(in, t, "bubble_s"),
                         .wait_s = get_num(in, t, "wait_s"),
                         .host_s = get_num(in, t, "host_s"),
                         .free_s = get_num(in, t, "free_s")};
    const json_t *x = get_of(in, t, "exposed_s", JSON_OBJECT);
    for (int i = 0; i < HP_OWN_ROLES; i++)
        out.exposed_s[i] = get_num(in, x, hp_own_role_name[i]);
    return out;
}

/* --- memory --- */

static const char *const tier_name[4] = {"hbm", "host", "pool", "file"};

static void write_memory(hp_jsonw *w, const hp_memory_figures *m)
{
    hp_jsonw_open(w, "memory", '{');
    hp_jsonw_num(w, "peak_bytes", m->peak_bytes);
    hp_jsonw_num(w, "arena_bytes", m->arena_bytes);
    hp_jsonw_num(w, "reserved_est_bytes", m->reserved_est_bytes);
    hp_jsonw_num(w, "process_est_bytes", m->process_est_bytes);
    hp_jsonw_num(w, "capacity_bytes", m->capacity_bytes);
    hp_jsonw_bool(w, "fits", m->fits);
    hp_jsonw_str(w, "fits_basis", m->fits_basis);
    hp_jsonw_str(w, "peak_at", m->peak_at);
    hp_jsonw_open(w, "by_kind", '{');
    for (int i = 0; i < HP_MEM_KINDS; i++)
        hp_jsonw_num(w, hp_mem_kind_name[i], m->by_kind[i]);
    hp_jsonw_close(w);
    hp_jsonw_open_flat(w, "tiers", '{');
    for (int i = 0; i < 4; i++)
        hp_jsonw_num(w, tier_name[i], m->tier[i]);
    hp_jsonw_close(w);
    hp_jsonw_close(w);
}

static hp_memory_figures read_memory(reader *in, const json_t *o)
{
    const json_t *m = get_of(in, o, "memory", JSON_OBJECT);
    hp_memory_figures out = {.peak_bytes = get_num(in, m, "peak_bytes"),
                             .arena_bytes = get_num(in, m, "arena_bytes"),
                             .reserved_est_bytes = get_num(in, m, "reserved_est_bytes"),
                             .process_est_bytes = get_num(in, m, "process_est_bytes"),
                             .capacity_bytes = get_num(in, m, "capacity_bytes"),
                             .fits = json_is_true(json_object_get(m, "fits")),
                             .fits_basis = get_str(in, m, "fits_basis"),
                             .peak_at = get_str(in, m, "peak_at")};
    const json_t *kinds = get_of(in, m, "by_kind", JSON_OBJECT);
    for (int i = 0; i < HP_MEM_KINDS; i++)
        out.by_kind[i] = get_num(in, kinds, hp_mem_kind_name[i]);
    const json_t *tiers = get_of(in, m, "tiers", JSON_OBJECT);
    for (int i = 0; i < 4; i++)
        out.tier[i] = get_num(in, tiers, tier_name[i]);
    return out;
}

/* --- axes: one record, three maps in the schema --- */

static void write_axis_map(hp_jsonw *w, const char *key, const hp_result *r, size_t field)
{
    hp_jsonw_open_flat(w, key, '{');
    for (int i = 0; i < r->n_axes; i++)
        hp_jsonw_num(w, r->axis[i].axis,
                     *(const double *)(const void *)((const char *)&r->axis[i] + field));
    hp_jsonw_close(w);
}

static void read_axes(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    const json_t *masking = get_of(in, o, "masking_by_axis", JSON_OBJECT);
    const json_t *comm_s = get_of(in, o, "comm_s_by_axis", JSON_OBJECT);
    const json_t *bytes =
        get_of(in, get_of(in, o, "comm", JSON_OBJECT), "bytes_by_axis", JSON_OBJECT);
    r->axis = hp_arena_alloc(&r->arena, sizeof *r->axis * (json_object_size(bytes) + 1));
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)bytes, name, v)
    {
        r->axis[r->n_axes++] = (hp_axis_figures){.axis = hp_arena_strdup(&r->arena, name),
                                                 .masking_ratio = get_num(in, masking, name),
                                                 .comm_s = get_num(in, comm_s, name),
                                                 .bytes = get_num(in, bytes, name)};
    }
}

/* --- classes --- */

static void write_classes(hp_jsonw *w, const hp_result *r)
{
    hp_jsonw_open(w, "classes", '[');
    for (int i = 0; i < r->n_classes; i++) {
        const hp_class_figures *c = &r->cls[i];
        hp_jsonw_open(w, NULL, '{');
        hp_jsonw_str(w, "name", c->name);
        hp_jsonw_int(w, "devices", c->devices);
        hp_jsonw_int(w, "stage", c->stage);
        write_time(w, &c->time);
        hp_jsonw_num(w, "masking_ratio", c->masking_ratio);
        write_memory(w, &c->memory);
        hp_jsonw_close(w);
    }
    hp_jsonw_close(w);
}

static void read_classes(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    const json_t *list = get_of(in, o, "classes", JSON_ARRAY);
    r->n_classes = (int)json_array_size(list);
    r->cls = hp_arena_alloc(&r->arena, sizeof *r->cls * (size_t)(r->n_classes + 1));
    for (int i = 0; i < r->n_classes; i++) {
        const json_t *c = json_array_get(list, (size_t)i);
        r->cls[i] = (hp_class_figures){.name = get_str(in, c, "name"),
                                       .devices = get_int(in, c, "devices", 0),
                                       .stage = get_int(in, c, "stage", 0),
                                       .time = read_time(in, c),
                                       .masking_ratio = get_num(in, c, "masking_ratio"),
                                       .memory = read_memory(in, c)};
    }
}

/* --- what was assumed and what is to be said --- */

static void write_remarks(hp_jsonw *w, const hp_result *r)
{
    hp_jsonw_open(w, "assumptions", '[');
    for (int i = 0; i < r->n_assumptions; i++) {
        const hp_assumption *a = &r->assumption[i];
        hp_jsonw_open_flat(w, NULL, '{');
        hp_jsonw_str(w, "name", a->name);
        hp_jsonw_str(w, "value", a->value);
        hp_jsonw_str(w, "source", a->source);
        hp_jsonw_bool(w, "unverified", a->unverified);
        hp_jsonw_close(w);
    }
    hp_jsonw_close(w);
    hp_jsonw_open(w, "warnings", '[');
    for (int i = 0; i < r->n_warnings; i++)
        hp_jsonw_str(w, NULL, r->warning[i]);
    hp_jsonw_close(w);
}

static void read_remarks(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    const json_t *list = get_of(in, o, "assumptions", JSON_ARRAY);
    r->n_assumptions = (int)json_array_size(list);
    r->assumption =
        hp_arena_alloc(&r->arena, sizeof *r->assumption * (size_t)(r->n_assumptions + 1));
    for (int i = 0; i < r->n_assumptions; i++) {
        const json_t *a = json_array_get(list, (size_t)i);
        r->assumption[i] =
            (hp_assumption){.name = get_str(in, a, "name"),
                            .value = get_str(in, a, "value"),
                            .source = get_str(in, a, "source"),
                            .unverified = json_is_true(json_object_get(a, "unverified"))};
    }
    list = get_of(in, o, "warnings", JSON_ARRAY);
    r->n_warnings = (int)json_array_size(list);
    r->warning = hp_arena_alloc(&r->arena, sizeof *r->warning * (size_t)(r->n_warnings + 1));
    for (int i = 0; i < r->n_warnings; i++) {
        const char *s = json_string_value(json_array_get(list, (size_t)i));
        if (!s)
            wrong(in, "warnings", "a list of strings");
        r->warning[i] = hp_arena_strdup(&r->arena, s ? s : "");
    }
}

/* --- the whole --- */

static void write_list(hp_jsonw *w, const char *key, bool has_meaning, int n, const double *v)
{
    if (!has_meaning) {
        hp_jsonw_null(w, key);
        return;
    }
    hp_jsonw_open_flat(w, key, '[');
    for (int i = 0; i < n; i++)
        hp_jsonw_num(w, NULL, v[i]);
    hp_jsonw_close(w);
}

static void write_head(hp_jsonw *w, const hp_result *r)
{
    hp_jsonw_str(w, "schema", HP_RESULT_SCHEMA);
    hp_jsonw_str(w, "mode", r->mode);
    hp_jsonw_str(w, "clock", r->clock);
    hp_jsonw_str(w, "grain", r->grain);
    hp_jsonw_str(w, "model", r->model);
    hp_jsonw_str(w, "cluster", r->cluster);
    hp_jsonw_open(w, "strategy", '{');
    hp_jsonw_str(w, "name", r->strategy_name);
    hp_jsonw_str(w, "shorthand", r->strategy_shorthand);
    hp_jsonw_str(w, "resolved", r->strategy_resolved);
    hp_jsonw_hash(w, "hash", r->strategy_hash);
    hp_jsonw_close(w);
    hp_jsonw_int(w, "n_devices", r->n_devices);
    hp_jsonw_int(w, "seed", (int64_t)r->seed);
    hp_jsonw_num(w, "step_s", r->step_s);
    hp_jsonw_num(w, "step_s_ci", r->step_s_ci);
    hp_jsonw_num(w, "tokens_per_s", r->tokens_per_s);
    hp_jsonw_num(w, "tokens_per_s_per_device", r->tokens_per_s_per_device);
}

static void write_flops(hp_jsonw *w, const hp_result *r)
{
    hp_jsonw_open(w, "flops", '{');
    hp_jsonw_num(w, "model", r->flops_model);
    hp_jsonw_num(w, "recompute", r->flops_recompute);
    hp_jsonw_num(w, "replicated", r->flops_replicated);
    hp_jsonw_num(w, "padding", r->flops_padding);
    hp_jsonw_num(w, "executed", r->flops_executed);
    hp_jsonw_close(w);
    hp_jsonw_num(w, "mfu", r->mfu);
    hp_jsonw_num(w, "mfu_full_attention", r->mfu_full_attention);
    hp_jsonw_num(w, "hfu", r->hfu);
    hp_jsonw_num(w, "mfu_peak_tflops", r->mfu_peak_tflops);
    hp_jsonw_str(w, "mfu_dtype", r->mfu_dtype);
}

/* What only one of the modes has. */
static void write_modes(hp_jsonw *w, const hp_result *r)
{
    bool run = r->mode && strcmp(r->mode, "run") == 0;
    write_list(w, "losses", run, r->n_steps, r->loss);
    write_list(w, "grad_norms", run && r->grad_norm, r->n_steps, r->grad_norm);
    write_list(w, "step_times_s", run && r->step_times, r->n_steps, r->step_times);
    if (isnan(r->band_low_s)) {
        hp_jsonw_null(w, "band");
    } else {
        hp_jsonw_open_flat(w, "band", '{');
        hp_jsonw_num(w, "low_s", r->band_low_s);
        hp_jsonw_num(w, "high_s", r->band_high_s);
        hp_jsonw_str(w, "source", r->band_source);
        hp_jsonw_close(w);
    }
    hp_jsonw_null(w, "serve");
    hp_jsonw_null(w, "job");
}

void hp_json_result(const hp_result *r, hp_str *out)
{
    hp_jsonw w = {.out = out};
    hp_jsonw_open(&w, NULL, '{');
    write_head(&w, r);
    write_time(&w, &r->time);
    hp_jsonw_num(&w, "masking_ratio", r->masking_ratio);
    write_axis_map(&w, "masking_by_axis", r, offsetof(hp_axis_figures, masking_ratio));
    hp_jsonw_num(&w, "copy_masking_ratio", r->copy_masking_ratio);
    write_axis_map(&w, "comm_s_by_axis", r, offsetof(hp_axis_figures, comm_s));
    write_flops(&w, r);
    write_memory(&w, &r->memory);
    hp_jsonw_open(&w, "comm", '{');
    write_axis_map(&w, "bytes_by_axis", r, offsetof(hp_axis_figures, bytes));
    write_list(&w, "bytes_by_level", true, r->n_levels, r->bytes_by_level);
    hp_jsonw_close(&w);
    write_classes(&w, r);
    write_modes(&w, r);
    write_remarks(&w, r);
    hp_jsonw_open(&w, "provenance", '{');
    hp_jsonw_str(&w, "tool", "hpbench " HP_VERSION);
    hp_jsonw_hash(&w, "profile_hash", r->profile_hash);
    hp_jsonw_hash(&w, "strategy_hash", r->strategy_hash);
    hp_jsonw_int(&w, "constants_fitted", r->constants_fitted);
    hp_jsonw_close(&w);
    hp_jsonw_close(&w);
}

static void read_head(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    r->mode = get_str(in, o, "mode");
    r->clock = get_str(in, o, "clock");
    r->grain = get_str(in, o, "grain");
    r->model = get_str(in, o, "model");
    r->cluster = get_str(in, o, "cluster");
    const json_t *s = get_of(in, o, "strategy", JSON_OBJECT);
    r->strategy_name = get_str(in, s, "name");
    r->strategy_shorthand = get_str(in, s, "shorthand");
    r->strategy_resolved = get_str(in, s, "resolved");
    r->strategy_hash = get_hash(in, s, "hash");
    r->n_devices = get_int(in, o, "n_devices", 0);
    r->seed = (uint64_t)json_integer_value(json_object_get(o, "seed"));
    r->step_s = get_num(in, o, "step_s");
    r->step_s_ci = get_num(in, o, "step_s_ci");
    r->tokens_per_s = get_num(in, o, "tokens_per_s");
    r->tokens_per_s_per_device = get_num(in, o, "tokens_per_s_per_device");
}

static void read_flops(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    const json_t *f = get_of(in, o, "flops", JSON_OBJECT);
    r->flops_model = get_num(in, f, "model");
    r->flops_recompute = get_num(in, f, "recompute");
    r->flops_replicated = get_num(in, f, "replicated");
    r->flops_padding = get_num(in, f, "padding");
    r->flops_executed = get_num(in, f, "executed");
    r->mfu = get_num(in, o, "mfu");
    r->mfu_full_attention = get_num(in, o, "mfu_full_attention");
    r->hfu = get_num(in, o, "hfu");
    r->mfu_peak_tflops = get_num(in, o, "mfu_peak_tflops");
    r->mfu_dtype = get_str(in, o, "mfu_dtype");
}

static void read_modes(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    int norms, times;
    r->loss = get_nums(in, o, "losses", &r->n_steps);
    r->grad_norm = get_nums(in, o, "grad_norms", &norms);
    r->step_times = get_nums(in, o, "step_times_s", &times);
    if (norms != r->n_steps)
        r->grad_norm = NULL;
    if (times != r->n_steps)
        r->step_times = NULL;
    const json_t *band = get_of(in, o, "band", JSON_OBJECT);
    r->band_low_s = get_num(in, band, "low_s");
    r->band_high_s = get_num(in, band, "high_s");
    r->band_source = get_str(in, band, "source");
}

static void read_result(reader *in, const json_t *o)
{
    hp_result *r = in->r;
    read_head(in, o);
    r->time = read_time(in, o);
    r->masking_ratio = get_num(in, o, "masking_ratio");
    r->copy_masking_ratio = get_num(in, o, "copy_masking_ratio");
    read_axes(in, o);
    read_flops(in, o);
    r->memory = read_memory(in, o);
    const double *level =
        get_nums(in, get_of(in, o, "comm", JSON_OBJECT), "bytes_by_level", &r->n_levels);
    if (r->n_levels > (int)(sizeof r->bytes_by_level / sizeof *r->bytes_by_level)) {
        wrong(in, "bytes_by_level", "a list of at most 8 numbers");
        r->n_levels = 0;
    }
    memcpy(r->bytes_by_level, level, sizeof *level * (size_t)r->n_levels);
    read_classes(in, o);
    read_modes(in, o);
    read_remarks(in, o);
    const json_t *p = get_of(in, o, "provenance", JSON_OBJECT);
    r->profile_hash = get_hash(in, p, "profile_hash");
    r->constants_fitted = get_int(in, p, "constants_fitted", 0);
}

hp_err hp_json_read_result(const char *text, hp_result **out, hp_errmsg *e)
{
    json_error_t at;
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &at);
    if (!o)
        return hp_fail(e, HP_EINPUT, "line %d: %s", at.line, at.text);
    const char *schema = json_string_value(json_object_get(o, "schema"));
    reader in = {.r = hp_result_new(), .e = e};
    if (!schema || strcmp(schema, HP_RESULT_SCHEMA) != 0)
        in.err = hp_fail(e, HP_EINPUT, "schema is %s, not \"%s\"", schema ? schema : "missing",
                         HP_RESULT_SCHEMA);
    else
        read_result(&in, o);
    json_decref(o);
    if (in.err)
        hp_result_free(in.r);
    else
        *out = in.r;
    return in.err;
}

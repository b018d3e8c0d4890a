/* The JSON record against an independent reader: every key of the schema, nulls, exact numbers, strings of any bytes. */
#include "fmt/json.h"

#include "fmt/jsonw.h"
#include "sample.h"

#include "tap.h"

#include <jansson.h>

static json_t *parsed(const char *text)
{
    json_error_t at;
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);
    if (!o)
        bail("valid JSON: line %d: %s in %s", at.line, at.text, text);
    return o;
}

/* "time.exposed_s.dp" */
static const json_t *at(const json_t *o, const char *path)
{
    char part[64];
    while (o && *path) {
        size_t n = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        o = json_object_get(o, part);
        path += path[n] ? n + 1 : n;
    }
    return o;
}

static const char *const keys[] = {"schema",
                                   "mode",
                                   "clock",
                                   "grain",
                                   "model",
                                   "cluster",
                                   "strategy.name",
                                   "strategy.shorthand",
                                   "strategy.resolved",
                                   "strategy.hash",
                                   "n_devices",
                                   "seed",
                                   "step_s",
                                   "step_s_ci",
                                   "tokens_per_s",
                                   "tokens_per_s_per_device",
                                   "time.step_s",
                                   "time.compute_s",
                                   "time.overlapped_s",
                                   "time.exposed_s.dp",
                                   "time.exposed_s.tp",
                                   "time.exposed_s.pp",
                                   "time.exposed_s.cp",
                                   "time.exposed_s.ep",
                                   "time.exposed_s.offload",
                                   "time.bubble_s",
                                   "time.wait_s",
                                   "time.host_s",
                                   "time.free_s",
                                   "masking_ratio",
                                   "masking_by_axis",
                                   "copy_masking_ratio",
                                   "comm_s_by_axis",
                                   "flops.model",
                                   "flops.recompute",
                                   "flops.replicated",
                                   "flops.padding",
                                   "flops.executed",
                                   "mfu",
                                   "mfu_full_attention",
                                   "hfu",
                                   "mfu_peak_tflops",
                                   "mfu_dtype",
                                   "memory.peak_bytes",
                                   "memory.arena_bytes",
                                   "memory.reserved_est_bytes",
                                   "memory.process_est_bytes",
                                   "memory.capacity_bytes",
                                   "memory.fits",
                                   "memory.fits_basis",
                                   "memory.peak_at",
                                   "memory.by_kind.params",
                                   "memory.by_kind.grads",
                                   "memory.by_kind.optimizer",
                                   "memory.by_kind.activations",
                                   "memory.by_kind.logits",
                                   "memory.by_kind.workspace",
                                   "memory.by_kind.comm",
                                   "memory.by_kind.kv",
                                   "memory.by_kind.overhead",
                                   "memory.tiers.hbm",
                                   "memory.tiers.host",
                                   "memory.tiers.pool",
                                   "memory.tiers.file",
                                   "comm.bytes_by_axis",
                                   "comm.bytes_by_level",
                                   "classes",
                                   "losses",
                                   "grad_norms",
                                   "band",
                                   "serve",
                                   "job",
                                   "assumptions",
                                   "warnings",
                                   "provenance.tool",
                                   "provenance.profile_hash",
                                   "provenance.strategy_hash",
                                   "provenance.constants_fitted"};
enum { N_KEYS = sizeof keys / sizeof *keys };

static void has_every_key(const hp_result *r, const char *what)
{
    hp_str text = {0};
    hp_json_result(r, &text);
    json_t *o = parsed(hp_str_text(&text));
    int missing = 0;
    for (int i = 0; i < N_KEYS; i++)
        if (!at(o, keys[i])) {
            missing++;
            diag("%s is missing", keys[i]);
        }
    is_int(missing, 0, "%s has every key of the schema", what);
    json_decref(o);
    hp_str_fini(&text);
}

static void test_keys(void)
{
    hp_result *empty = hp_result_new(), *full = sample_result();
    has_every_key(empty, "a record without any figure");
    has_every_key(full, "a full record");
    full->mode = "sim";
    full->grain = "task";
    has_every_key(full, "a prediction");
    hp_str text = {0};
    hp_json_result(full, &text);
    json_t *o = parsed(hp_str_text(&text));
    ok(json_is_null(at(o, "losses")) && json_is_null(at(o, "grad_norms")),
       "a prediction has null losses");
    json_decref(o);
    hp_str_fini(&text);
    hp_result_free(empty);
    hp_result_free(full);
}

static void test_values(void)
{
    hp_result *r = sample_result();
    hp_str text = {0};
    hp_json_result(r, &text);
    json_t *o = parsed(hp_str_text(&text));
    is_str(json_string_value(at(o, "schema")), "hpbench.result.v1", "the schema is named");
    is_str(json_string_value(at(o, "strategy.hash")), "fedcba9876543210",
           "a hash keeps all its bits");
    ok(json_real_value(at(o, "time.exposed_s.dp")) == 0.004, "numbers are exact");
    ok(json_is_null(at(o, "copy_masking_ratio")) && json_is_null(at(o, "masking_by_axis.tp")),
       "what has no meaning is null");
    is_int((long long)json_array_size(at(o, "losses")), 20, "every step's loss is there");
    is_int((long long)json_array_size(at(o, "classes")), 2, "every class is there");
    is_str(json_string_value(at(json_array_get(at(o, "classes"), 1), "name")), "stage1",
           "with its name");
    ok(json_is_true(at(json_array_get(at(o, "assumptions"), 1), "unverified")),
       "an assumption says that it is unverified");
    json_decref(o);
    hp_str_fini(&text);
    hp_result_free(r);
}

static void test_round_trip(void)
{
    hp_result *r = sample_result(), *back = NULL;
    hp_str text = {0}, again = {0};
    hp_errmsg e = {0};
    hp_json_result(r, &text);
    is_int(hp_json_read_result(hp_str_text(&text), &back, &e), HP_OK, "what was written is read");
    if (back) {
        hp_json_result(back, &again);
        is_str(hp_str_text(&again), hp_str_text(&text), "and written again, is the same");
    }
    hp_result_free(back);
    hp_str_fini(&text);
    hp_str_fini(&again);
    hp_result_free(r);

    r = hp_result_new();
    hp_json_result(r, &text);
    is_int(hp_json_read_result(hp_str_text(&text), &back, &e), HP_OK,
           "so is a record without any figure");
    hp_json_result(back, &again);
    is_str(hp_str_text(&again), hp_str_text(&text), "the same again");
    hp_result_free(back);
    hp_result_free(r);
    hp_str_fini(&text);
    hp_str_fini(&again);
}

static void refused(const char *text, const char *why, const char *name)
{
    hp_result *r = NULL;
    hp_errmsg e = {0};
    is_int(hp_json_read_result(text, &r, &e), HP_EINPUT, "%s is refused", name);
    ok(strstr(e.text, why) != NULL && r == NULL, "saying \"%s\": %s", why, e.text);
    hp_result_free(r);
}

static void test_bad_input(void)
{
    refused("{\"schema\": \"hpbench.result.v1\",\n\"mode\": \"ru", "line 2", "a truncated file");
    refused("", "line", "an empty file");
    refused("[]", "schema", "a list");
    refused("{\"schema\": \"hpbench.result.v9\"}", "v9", "another schema");
    refused("{\"schema\": \"hpbench.result.v1\", \"step_s\": \"fast\"}",
            "\"step_s\" is not a number", "a wrong type");
    refused("{\"schema\": \"hpbench.result.v1\", \"losses\": {}}", "\"losses\" is not a list",
            "a map for a list");
    refused("{\"schema\": \"hpbench.result.v1\", \"classes\": [7], \"warnings\": [1]}",
            "\"warnings\"", "a number among strings");
    refused("{\"schema\": \"hpbench.result.v1\", \"n_devices\": 1e300}", "n_devices",
            "a count beyond all counting");
    refused(
        "{\"schema\": \"hpbench.result.v1\", \"comm\": {\"bytes_by_level\": [1,2,3,4,5,6,7,8,9]}}",
        "bytes_by_level", "too long a list");
    hp_result *r = NULL;
    hp_errmsg e = {0};
    is_int(hp_json_read_result("{\"schema\": \"hpbench.result.v1\"}", &r, &e), HP_OK,
           "absent keys have no meaning");
    ok(r && isnan(r->step_s) && r->n_classes == 0, "and are read so");
    hp_result_free(r);
}

static void test_writer(void)
{
    static const double numbers[] = {
        0, -0.0, 0.1, 1.0 / 3, 1e-308, 1.7976931348623157e308, 12345678901234567e1, 5e-324, 2.5};
    hp_str text = {0};
    hp_jsonw w = {.out = &text};
    hp_jsonw_open_flat(&w, NULL, '[');
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hp_jsonw_num(&w, NULL, numbers[i]);
    hp_jsonw_num(&w, NULL, NAN);
    hp_jsonw_num(&w, NULL, INFINITY);
    hp_jsonw_close(&w);
    json_t *o = parsed(hp_str_text(&text));
    int wrong = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        wrong += json_number_value(json_array_get(o, i)) != numbers[i];
    is_int(wrong, 0, "numbers read back to the same bits");
    ok(json_is_null(json_array_get(o, 9)) && json_is_null(json_array_get(o, 10)),
       "NaN and infinity are null");
    ok(strstr(hp_str_text(&text), "0.1,") != NULL, "0.1 is written as 0.1");
    json_decref(o);
    hp_str_fini(&text);

    char all[256];
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    w = (hp_jsonw){.out = &text};
    hp_jsonw_open(&w, NULL, '{');
    hp_jsonw_str(&w, "bytes \"and\" more", all);
    hp_jsonw_str(&w, "text", "é 漢 😀 \xC0\xAF \xED\xA0\x80 \xF4\x90\x80\x80");
    hp_jsonw_open(&w, "empty", '[');
    hp_jsonw_close(&w);
    hp_jsonw_close(&w);
    o = parsed(hp_str_text(&text));
    const char *got = json_string_value(json_object_get(o, "bytes \"and\" more"));
    ok(got && memcmp(got, all, 127) == 0, "every byte below 128 survives");
    is_str(json_string_value(json_object_get(o, "text")), "é 漢 😀 �� ��� ����",
           "UTF-8 survives, what is none is replaced");
    json_decref(o);
    hp_str_fini(&text);
}

int main(void)
{
    test_keys();
    test_values();
    test_round_trip();
    test_bad_input();
    test_writer();
    return done_testing();
}

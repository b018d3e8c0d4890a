/* hfconfig.c -- a table of configuration classes, a table of key names, and the few rules that tables cannot say. */
#include "fmt/hfconfig.h"

#include "base/str.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 16 << 20, LONGEST_SEQ = 8192 };

/* What a configuration class means here: the family, and settings that hold unless the file says otherwise. */
typedef struct family_row {
    const char *model_type, *family, *settings;
} family_row;

static const family_row families[] = {
    {"baichuan", "llama", ""},
    {"bailing_moe", "mixtral", "score=sigmoid"},
    {"chatglm", "llama", "rotary=0.5"},
    {"cohere", "neox",
     "parallel=one norm,norm=layernorm without "
     "bias,act=swiglu,rotary=1,tied=true,qkv_bias=false,o_bias=false,mlp_bias=false"},
    {"deepseek_v2", "deepseek",
     "score=softmax,router_bias=false,groups=0,top_groups=0,route_scale=1"},
    {"deepseek_v3", "deepseek", ""},
    {"exaone", "llama", ""},
    {"gemma", "llama", "act=geglu,embed_scale=true,tied=true"},
    {"gemma2", "llama", "act=geglu,embed_scale=true,tied=true,post_norm=true"},
    {"gemma3_text", "llama", "act=geglu,embed_scale=true,tied=true,post_norm=true,qk_norm=head"},
    {"glm4_moe", "mixtral", "score=sigmoid,router_bias=true"},
    {"gpt2", "gpt2", ""},
    {"gpt_neox", "neox", ""},
    {"gpt_oss", "mixtral", "router_linear_bias=true"},
    {"kimi_k2", "deepseek", ""},
    {"llama", "llama", ""},
    {"llama4_text", "mixtral", "score=sigmoid,normalise=false"},
    {"llava", "llama", ""},
    {"mimo", "llama", ""},
    {"minimax_m2", "mixtral", "qk_norm=full"},
    {"mistral", "llama", ""},
    {"mixtral", "mixtral", ""},
    {"opt", "gpt2", ""},
    {"phi", "neox", "parallel=one norm,head_bias=true,rotary=0.5"},
    {"phi3", "llama", ""},
    {"phimoe", "mixtral", "norm=layernorm"},
    {"qwen2", "llama", "qkv_bias=true"},
    {"qwen2_vl", "llama", "qkv_bias=true"},
    {"qwen3", "llama", "qk_norm=head"},
    {"qwen3_moe", "mixtral", "qk_norm=head"},
    {"qwen3_vl_moe_text", "mixtral", "qk_norm=head"},
    {"qwen3_vl_text", "llama", "qk_norm=head"},
    {"xverse", "llama", ""},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* Where a setting of ours stands in a file; the first name that is there counts. */
typedef struct key_row {
    const char *ours, *theirs; /* names separated by blanks */
    bool needed;
} key_row;

static const key_row whole_numbers[] = {
    {"embed", "hidden_size n_embd d_model", true},
    {"layers", "num_hidden_layers n_layer num_layers", true},
    {"heads", "num_attention_heads n_head", true},
    {"vocab", "vocab_size padded_vocab_size", true},
};

static const key_row mixture_numbers[] = {
    {"experts", "num_local_experts n_routed_experts num_experts num_routed_experts", true},
    {"top", "num_experts_per_tok experts_per_token moe_topk", true},
};

typedef struct reader {
    const char *path;
    json_t *root, *at; /* the file, and the decoder's part of it */
    hp_hfconfig *out;
    hp_errmsg *e;
} reader;

/* --- values ------------------------------------------------------------------------------------------------ */

/* Finds the first of the names (separated by blanks) that is there and not null. */
static json_t *find(const reader *r, const char *names, char *found, size_t n)
{
    char list[256];
    snprintf(list, sizeof list, "%s", names);
    for (char *save, *name = strtok_r(list, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        json_t *v = json_object_get(r->at, name);
        if (!v && (strcmp(name, "tie_word_embeddings") == 0 || strcmp(name, "vocab_size") == 0))
            v = json_object_get(r->root, name);
        if (v && !json_is_null(v)) {
            snprintf(found, n, "%s", name);
            return v;
        }
    }
    return NULL;
}

static void set(reader *r, const char *key, const char *value)
{
    hp_hfconfig *c = r->out;
    int i = 0;
    while (i < c->n && strcmp(c->set[i].key, key) != 0)
        i++;
    if (i == HP_HF_MAX_KEYS)
        return;
    c->set[i].key = hp_arena_strdup(&c->arena, key);
    c->set[i].value = hp_arena_strdup(&c->arena, value);
    c->n += i == c->n;
}

static void set_number(reader *r, const char *key, double v)
{
    char buf[40];
    snprintf(buf, sizeof buf, v == floor(v) && fabs(v) < 1e15 ? "%.0f" : "%.17g", v);
    set(r, key, buf);
}

/* Sets *v to a number of the file, or leaves it: absent is fine, another type is not. */
static hp_err number(const reader *r, const char *names, double *v)
{
    char name[64];
    json_t *j = find(r, names, name, sizeof name);
    if (!j)
        return HP_OK;
    if (!json_is_number(j))
        return hp_fail(r->e, HP_EINPUT, "%s: %s must be a number", r->path, name);
    *v = json_number_value(j);
    return HP_OK;
}

static bool truth(const reader *r, const char *names, bool missing)
{
    char name[64];
    json_t *j = find(r, names, name, sizeof name);
    return j ? json_is_true(j) : missing;
}

static const char *text(const reader *r, const char *names)
{
    char name[64];
    json_t *j = find(r, names, name, sizeof name);
    return json_is_string(j) ? json_string_value(j) : "";
}

/* A whole number from `least` on; *v stays where the file is silent and it is not needed. */
static hp_err whole(const reader *r, const char *names, bool needed, double least, double *v)
{
    char name[64];
    if (!find(r, names, name, sizeof name))
        return needed ? hp_fail(r->e, HP_EINPUT, "%s: a %s decoder needs one of: %s", r->path,
                                r->out->model_type, names)
                      : HP_OK;
    hp_err err = number(r, names, v);
    if (!err && (*v < least || *v != floor(*v) || *v > 1e12))
        return hp_fail(r->e, HP_EINPUT, "%s: %s = %g is not a whole number from %g", r->path, name,
                       *v, least);
    return err;
}

static double have(const reader *r, const char *key)
{
    for (int i = 0; i < r->out->n; i++)
        if (strcmp(r->out->set[i].key, key) == 0)
            return strtod(r->out->set[i].value, NULL);
    return 0;
}

static hp_err whole_rows(reader *r, const key_row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = 0;
        hp_err err = whole(r, row[i].theirs, row[i].needed, 1, &v);
        if (err)
            return err;
        set_number(r, row[i].ours, v);
    }
    return HP_OK;
}

/* --- the parts of a decoder -------------------------------------------------------------------------------- */

static bool is(const reader *r, const char *model_type)
{
    return strcmp(r->out->model_type, model_type) == 0;
}

static bool in_family(const reader *r, const char *family)
{
    return strcmp(r->out->family, family) == 0;
}

static void preset(reader *r, const char *settings)
{
    char list[256];
    snprintf(list, sizeof list, "%s", settings);
    for (char *save, *pair = strtok_r(list, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(pair, '=');
        *eq = 0;
        set(r, pair, eq + 1);
    }
}

static hp_err read_heads(reader *r)
{
    double heads = have(r, "heads"), kv = heads, head = floor(have(r, "embed") / heads);
    hp_err err = whole(r, "num_key_value_heads multi_query_group_num num_kv_heads", false, 1, &kv);
    if (!err)
        err = whole(r, "head_dim kv_channels", false, 1, &head);
    if (err)
        return err;
    if (head < 1)
        return hp_fail(r->e, HP_EINPUT, "%s: %g heads do not fit a width of %g", r->path, heads,
                       have(r, "embed"));
    if (!in_family(r, "gpt2"))
        set_number(r, "kv_heads", kv);
    set_number(r, "head", head);
    return HP_OK;
}

static hp_err read_rotary(reader *r)
{
    double theta = 1e4, part = -1, turned = 0;
    hp_err err = number(r, "rope_theta rotary_emb_base", &theta);
    json_t *rope = json_object_get(r->at, "rope_parameters");
    json_t *inner = json_object_get(rope, "rope_theta");
    if (json_is_number(inner))
        theta = json_number_value(inner);
    if (!err)
        err = number(r, "partial_rotary_factor rotary_pct", &part);
    if (!err)
        err = number(r, "rotary_dim", &turned);
    if (!err && turned > 0)
        part = turned / have(r, "head");
    if (!err && (!(theta > 0) || part > 1))
        err = hp_fail(r->e, HP_EINPUT, "%s: rope_theta %g or rotary part %g is out of range",
                      r->path, theta, part);
    if (err || in_family(r, "gpt2"))
        return err;
    set_number(r, "rope_theta", theta);
    if (part >= 0)
        set_number(r, "rotary", part);
    return HP_OK;
}

static void read_biases(reader *r)
{
    bool all = truth(r, "attention_bias add_bias_linear use_bias", false);
    bool qkv_only = is(r, "glm4_moe") || is(r, "mimo");
    if (all || truth(r, "add_qkv_bias use_qkv_bias", false))
        set(r, "qkv_bias", "true");
    if (all && !qkv_only)
        set(r, "o_bias", "true");
    if (truth(r, "mlp_bias", false))
        set(r, "mlp_bias", "true");
    if (truth(r, "lm_head_bias", false))
        set(r, "head_bias", "true");
}

static hp_err read_activation(reader *r)
{
    const char *act = text(r, "hidden_activation hidden_act activation_function");
    bool smooth = strstr(act, "gelu") || strcmp(act, "relu") == 0;
    if (!*act || strcmp(act, "silu") == 0 || strcmp(act, "swiglu") == 0 ||
        strcmp(act, "swish") == 0)
        return HP_OK;
    return smooth ? HP_OK
                  : hp_fail(r->e, HP_EINPUT, "%s: activation %s is not silu, gelu or relu", r->path,
                            act);
}

static hp_err read_norm(reader *r)
{
    double eps = is(r, "gemma") || is(r, "gemma2") || is(r, "gemma3_text") ? 1e-6 : 1e-5,
           std = 0.02;
    hp_err err = number(
        r, "rms_norm_eps layer_norm_eps layer_norm_epsilon layernorm_epsilon norm_eps norm_epsilon",
        &eps);
    if (!err)
        err = number(r, "initializer_range init_std", &std);
    if (err)
        return err;
    set_number(r, "eps", eps);
    set_number(r, "std", std);
    if (truth(r, "use_qk_norm qk_layernorm", false) && !is(r, "llama4_text") &&
        !is(r, "minimax_m2"))
        set(r, "qk_norm", "head");
    if (is(r, "gpt_neox") && !truth(r, "use_parallel_residual", true))
        set(r, "parallel", "false");
    return HP_OK;
}

static hp_err read_sequence(reader *r)
{
    double seq = 2048;
    hp_err err = whole(r, "max_position_embeddings n_positions seq_length n_ctx", false, 1, &seq);
    if (err)
        return err;
    set_number(r, "seq", seq < LONGEST_SEQ ? seq : LONGEST_SEQ);
    if (in_family(r, "gpt2"))
        set_number(
            r, "positions",
            seq + (is(r, "opt") ? 2 : 0)); /* OPT's table begins with two rows that no token uses */
    return HP_OK;
}

static hp_err read_dense(reader *r)
{
    double ffn = 4 * have(r, "embed");
    hp_err err = whole(r,
                       is(r, "llama4_text") ? "intermediate_size_mlp intermediate_size"
                                            : "intermediate_size ffn_hidden_size ffn_dim n_inner",
                       !in_family(r, "gpt2"), 1, &ffn);
    if (!err)
        set_number(r, "ffn", ffn);
    return err;
}

/* The width of what every token goes through beside its experts. */
static hp_err read_shared(reader *r, double expert_ffn)
{
    double n = 0, width = 0;
    hp_err err = whole(r, "n_shared_experts num_shared_experts", false, 0, &n);
    if (!err)
        err = whole(r,
                    "moe_shared_expert_intermediate_size shared_expert_intermediate_size "
                    "shared_intermediate_size",
                    false, 0, &width);
    if (err)
        return err;
    if (is(r, "llama4_text"))
        n = 1;
    set_number(r, "shared_ffn", width > 0 ? width : n * expert_ffn);
    return HP_OK;
}

static hp_err read_routing(reader *r)
{
    double groups = 0, top_groups = 0, scale = -1, aux = 0;
    hp_err err = whole(r, "n_group", false, 0, &groups);
    if (!err)
        err = whole(r, "topk_group", false, 0, &top_groups);
    if (!err)
        err = number(r, "routed_scaling_factor", &scale);
    if (!err)
        err = number(r, "router_aux_loss_coef aux_loss_alpha", &aux);
    if (err)
        return err;
    set_number(r, "groups", groups > 1 ? groups : 0);
    set_number(r, "top_groups", groups > 1 ? top_groups : 0);
    set_number(r, "aux", aux);
    if (scale >= 0)
        set_number(r, "route_scale", scale);
    const char *score = text(r, "scoring_func score_function"), *method = text(r, "topk_method");
    if (*score && strcmp(score, "sigmoid") && strcmp(score, "softmax"))
        return hp_fail(r->e, HP_EINPUT, "%s: router scores by %s are neither softmax nor sigmoid",
                       r->path, score);
    if (*score)
        set(r, "score", score);
    if (strcmp(method, "noaux_tc") == 0 ||
        truth(r, "use_routing_bias moe_router_enable_expert_bias", false))
        set(r, "router_bias", "true");
    else if (*method)
        set(r, "router_bias", "false");
    char name[64];
    if (find(r, "norm_topk_prob", name, sizeof name))
        set(r, "normalise", truth(r, "norm_topk_prob", true) ? "true" : "false");
    return HP_OK;
}

/* A mixture in every layer behind the first few; other patterns would be another model. */
static hp_err check_pattern(const reader *r)
{
    double every = 1;
    hp_err err = number(r, "moe_layer_freq interleave_moe_layer_step decoder_sparse_step", &every);
    if (!err && every != 1)
        err = hp_fail(r->e, HP_EINPUT,
                      "%s: a mixture in every %g-th layer is a pattern that no family here has "
                      "(only: every layer)",
                      r->path, every);
    json_t *dense = json_object_get(r->at, "mlp_only_layers");
    if (!err && json_array_size(dense) > 0)
        err = hp_fail(r->e, HP_EINPUT, "%s: mlp_only_layers is a pattern that no family here has",
                      r->path);
    return err;
}

static hp_err read_mixture(reader *r)
{
    double expert_ffn = 0, dense = 0;
    hp_err err = check_pattern(r);
    if (!err)
        err = whole_rows(r, mixture_numbers, sizeof mixture_numbers / sizeof *mixture_numbers);
    if (!err)
        err = whole(r, "moe_intermediate_size intermediate_size", true, 1, &expert_ffn);
    if (!err)
        err = whole(r, "first_k_dense_replace", false, 0, &dense);
    if (!err)
        err = read_shared(r, expert_ffn);
    if (!err)
        err = read_routing(r);
    set_number(r, "expert_ffn", expert_ffn);
    set_number(r, "dense_layers", dense);
    return err;
}

static hp_err read_latent(reader *r)
{
    static const key_row rows[] = {{"kv_rank", "kv_lora_rank", true},
                                   {"nope", "qk_nope_head_dim", true},
                                   {"rope", "qk_rope_head_dim", true},
                                   {"v_head", "v_head_dim", true}};
    double q = 0;
    hp_err err = whole_rows(r, rows, sizeof rows / sizeof *rows);
    if (!err)
        err = whole(r, "q_lora_rank", false, 0, &q);
    set_number(r, "q_rank", q);
    return err;
}

/* --- a file ------------------------------------------------------------------------------------------------ */

/* The family's settings that hold for latent attention only have no place where heads are plain, and the other way round. */
static bool is_latent(const reader *r)
{
    json_t *rank = json_object_get(r->at, "kv_lora_rank");
    return in_family(r, "deepseek") && json_is_number(rank) && json_number_value(rank) > 0;
}

static hp_err read_decoder(reader *r)
{
    hp_err err = whole_rows(r, whole_numbers, sizeof whole_numbers / sizeof *whole_numbers);
    if (!err)
        err = read_activation(r);
    if (!err && in_family(r, "deepseek") && !is_latent(r))
        r->out->family = "mixtral";
    if (!err)
        err = in_family(r, "deepseek") ? read_latent(r) : read_heads(r);
    if (!err)
        err = read_norm(r);
    if (!err)
        err = read_rotary(r);
    if (!err)
        err = read_sequence(r);
    if (!err)
        err = read_dense(r);
    if (!err && (in_family(r, "mixtral") || in_family(r, "deepseek")))
        err = read_mixture(r);
    if (err)
        return err;
    char name[64];
    if (!in_family(r, "deepseek"))
        read_biases(r);
    if (find(r, "tie_word_embeddings", name, sizeof name))
        set(r, "tied", truth(r, "tie_word_embeddings", false) ? "true" : "false");
    return HP_OK;
}

/* The decoder of a configuration that holds several models. */
static json_t *decoder_of(json_t *root)
{
    static const char *const names[] = {"text_config", "language_config", "llm_config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *part = json_object_get(root, names[i]);
        if (json_is_object(part) && json_object_get(part, "hidden_size"))
            return part;
    }
    return root;
}

static hp_err find_family(reader *r, const family_row **row)
{
    const char *type = json_string_value(json_object_get(r->at, "model_type"));
    hp_str known = {0};
    for (int i = 0; i < N_FAMILIES; i++) {
        hp_str_add(&known, "%s%s", i ? " " : "", families[i].model_type);
        if (type && strcmp(type, families[i].model_type) == 0)
            *row = &families[i];
    }
    hp_err err = HP_OK;
    if (!type)
        err = hp_fail(r->e, HP_EINPUT, "%s: has no model_type; known are the decoders %s", r->path,
                      hp_str_text(&known));
    else if (!*row)
        err =
            hp_fail(r->e, HP_EINPUT, "%s: model_type %.60s is no decoder known here; known are %s",
                    r->path, type, hp_str_text(&known));
    hp_str_fini(&known);
    if (!err)
        r->out->model_type = hp_arena_strdup(&r->out->arena, type);
    return err;
}

static void set_name(reader *r)
{
    const char *slash = strrchr(r->path, '/'), *stem = slash ? slash + 1 : r->path;
    const char *dot = strrchr(stem, '.');
    bool part = r->at != r->root || json_object_get(r->root, "vision_config") ||
                json_object_get(r->root, "mm_vision_tower");
    hp_str name = {0};
    hp_str_put(&name, stem, dot ? (size_t)(dot - stem) : strlen(stem));
    hp_str_add(&name, "%s", part ? "-text" : "");
    set(r, "name", hp_str_text(&name));
    hp_str_fini(&name);
}

static hp_err load(const char *path, json_t **root, hp_errmsg *e)
{
    struct stat st;
    json_error_t why;
    if (stat(path, &st) != 0)
        return hp_fail(e, HP_EUSAGE, "%s: there is no such file", path);
    if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
        return hp_fail(e, HP_EINPUT, "%s: is not a plain file of at most %d bytes", path, MAX_FILE);
    *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!*root)
        return hp_fail(e, HP_EINPUT, "%s:%d:%d: not JSON: %s", path, why.line, why.column,
                       why.text);
    return json_is_object(*root)
               ? HP_OK
               : hp_fail(e, HP_EINPUT, "%s: a configuration is a JSON object", path);
}

hp_err hp_hfconfig_read(const char *path, hp_hfconfig *out, hp_errmsg *e)
{
    reader r = {.path = path, .out = out, .e = e};
    const family_row *row = NULL;
    hp_err err = load(path, &r.root, e);
    if (!err) {
        r.at = decoder_of(r.root);
        err = find_family(&r, &row);
    }
    if (!err) {
        out->family = row->family;
        set_name(&r);
        preset(&r, row->settings);
        err = read_decoder(&r);
    }
    json_decref(r.root);
    return err;
}

void hp_hfconfig_fini(hp_hfconfig *c)
{
    hp_arena_fini(&c->arena);
    c->n = 0;
}

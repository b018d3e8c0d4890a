/* Configurations: which family, which settings, and what a wrong file is told. */
#include "fmt/hfconfig.h"

#include "tap.h"

#include <unistd.h>

static hp_err read_text(const char *text, hp_hfconfig *c, hp_errmsg *e)
{
    char path[] = "/tmp/hp-config-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("no temporary file");
    close(fd);
    hp_err err = hp_hfconfig_read(path, c, e);
    unlink(path);
    return err;
}

static const char *value(const hp_hfconfig *c, const char *key)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->set[i].key, key) == 0)
            return c->set[i].value;
    return NULL;
}

static void refuse(const char *text, const char *says)
{
    hp_hfconfig c = {0};
    hp_errmsg e = {0};
    hp_err err = read_text(text, &c, &e);
    ok(err == HP_EINPUT && strstr(e.text, says), "%s", says);
    if (err != HP_EINPUT || !strstr(e.text, says))
        diag("code %d: %s", err, e.text);
    hp_hfconfig_fini(&c);
}

#define LLAMA                                                                                      \
    "\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"vocab_size\":100"

static void plain(void)
{
    hp_hfconfig c = {0};
    hp_errmsg e = {0};
    is_int(read_text("{" LLAMA
                     ",\"num_attention_heads\":4,\"intermediate_size\":128,\"rope_theta\":null}",
                     &c, &e),
           HP_OK, "a small Llama");
    is_str(c.family, "llama", "its family");
    is_str(value(&c, "kv_heads"), "4", "key/value heads that are not said are the heads");
    is_str(value(&c, "head"), "16", "the width of a head is derived");
    is_str(value(&c, "rope_theta"), "10000", "null is as good as silence");
    ok(!value(&c, "tied"), "silence about the tie leaves the family's");
    hp_hfconfig_fini(&c);
}

static void nested(void)
{
    hp_hfconfig c = {0};
    hp_errmsg e = {0};
    is_int(read_text(
               "{\"model_type\":\"some_vl\",\"tie_word_embeddings\":true,\"vision_config\":{},"
               "\"text_config\":{" LLAMA
               ",\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":128}}",
               &c, &e),
           HP_OK, "the text decoder of a nested configuration");
    is_str(value(&c, "kv_heads"), "2", "its own keys count");
    is_str(value(&c, "tied"), "true", "the tie is looked up outside too");
    ok(strstr(value(&c, "name"), "-text"), "and its name says that it is a part");
    hp_hfconfig_fini(&c);
}

int main(void)
{
    plain();
    nested();
    refuse("", "not JSON");
    refuse("{" LLAMA, "not JSON");
    refuse("{" LLAMA ",\"num_attention_heads\":4,\"intermediate_size\":Infinity}", "not JSON");
    refuse("[1,2]", "JSON object");
    refuse("{\"hidden_size\":4}", "has no model_type");
    refuse("{\"model_type\":\"mamba\"}",
           "model_type mamba is no decoder known here; known are baichuan");
    refuse("{" LLAMA ",\"intermediate_size\":128}", "needs one of: num_attention_heads");
    refuse("{" LLAMA ",\"num_attention_heads\":null,\"intermediate_size\":128}",
           "needs one of: num_attention_heads");
    refuse("{" LLAMA ",\"num_attention_heads\":\"4\",\"intermediate_size\":128}",
           "num_attention_heads must be a number");
    refuse("{" LLAMA ",\"num_attention_heads\":2.5,\"intermediate_size\":128}",
           "not a whole number");
    refuse("{" LLAMA ",\"num_attention_heads\":-1,\"intermediate_size\":128}",
           "not a whole number");
    refuse("{" LLAMA ",\"num_attention_heads\":65,\"intermediate_size\":128}",
           "heads do not fit a width");
    refuse("{" LLAMA
           ",\"num_attention_heads\":4,\"intermediate_size\":128,\"hidden_act\":\"tanh\"}",
           "activation tanh");
    refuse("{" LLAMA ",\"num_attention_heads\":4,\"intermediate_size\":128,\"rms_norm_eps\":true}",
           "rms_norm_eps must be a number");
    refuse("{\"model_type\":\"qwen3_moe\",\"hidden_size\":64,\"num_hidden_layers\":2,\"vocab_"
           "size\":100,\"num_attention_heads\":4,\"intermediate_size\":128,"
           "\"num_experts\":4,\"num_experts_per_tok\":2,\"decoder_sparse_step\":2}",
           "every 2-th layer");
    hp_hfconfig c = {0};
    hp_errmsg e = {0};
    is_int(hp_hfconfig_read("/nosuch/config.json", &c, &e), HP_EUSAGE,
           "a file that is not there is a usage error");
    is_int(hp_hfconfig_read("/tmp", &c, &e), HP_EINPUT, "a folder is no configuration");
    hp_hfconfig_fini(&c);
    return done_testing();
}

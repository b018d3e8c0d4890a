/* Public Hugging Face configurations give graphs with the published number of parameters. They lie outside the repository: the test
 * reads them in place and skips where they are not. Counts that no publication states exactly are the textbook formula of the architecture. */
#include "script/model.h"

#include "tap.h"

#include <unistd.h>

#define FOLDER "../shared/data/public/hf/"

static const struct {
    const char *file;
    long long params;
} decoders[] = {
    {"baichuan2-7b", 7505973248},
    {"bailing-moe", 999705328640},
    {"chatglm3-6b", 6243584000},
    {"command-r-35b", 34980831232},
    {"deepseek-v3", 671026419200},
    {"deepseek-vl2-tiny", 2934734080}, /* the language part, with its experts */
    {"exaone-7.8b", 7818448896},
    {"gemma-2-2b", 2614341888},
    {"gemma-3-text", 999885952},
    {"gemma-7b", 8537680896},
    {"glm-4.5-rtp", 352797829024},
    {"gpt-oss-20b",
     20908120128}, /* without the experts' biases and the attention sinks: 20,914,757,184 */
    {"gpt2-large", 774030080},
    {"kimi-k2.5", 1026408232448},
    {"llama-3-70b", 70553706496},
    {"llama-3.1-405b-fp8", 405853388800},
    {"llama-3.1-8b", 8030261248},
    {"llama-3.2-3b", 3212749824},
    {"llama-4-scout", 107769861120},
    {"llava-v1.5-7b", 6738415616},
    {"mimo-7b", 7622619136},
    {"minimax-m2-msmodeling", 228689764864},
    {"mistral-7b-v0.1", 7241732096},
    {"mixtral-8x7b", 46702792704},
    {"opt-125m", 125239296},
    {"phi-3-mini-128k", 3821079552},
    {"phi-mini-moe", 7647632704},
    {"pythia-1b", 1011781632},
    {"qwen2-7b", 7615616512},
    {"qwen2-vl-7b", 7615616512},
    {"qwen2.5-72b", 72706203648},
    {"qwen3-235b-a22b", 235093634560},
    {"qwen3-8b", 8190735360},
    {"qwen3-vl-235b", 235093634560},
    {"smollm-1.7b", 1711376384},
    {"tiny-random-phi", 46282 + 32 * 1024 + 1024}, /* the file's 46,282 and a head with its bias */
    {"xverse-7b", 7299846144},
};

static const struct {
    const char *file, *says;
} others[] = {
    {"bge-large-bert", "model_type bert"},
    {"deepseek-v4-flash", "model_type deepseek_v4"},
    {"gemma-4-26b-a4b", "model_type gemma4_text"},
    {"nemotron-3-nano-30b", "model_type nemotron_h"},
    {"openmoe-8b", "has no model_type"},
    {"qwen3-next-80b-a3b", "model_type qwen3_next"},
    {"t5-v1.1-xxl", "model_type t5"},
    {"whisper-base", "model_type whisper"},
};

static const char *path_of(const char *file)
{
    static char path[256];
    snprintf(path, sizeof path, FOLDER "%s.json", file);
    return path;
}

int main(void)
{
    int n = sizeof decoders / sizeof *decoders, m = sizeof others / sizeof *others;
    if (access(FOLDER, R_OK) != 0) {
        skip(n + m, "the public configurations are not beside the repository");
        return done_testing();
    }
    for (int i = 0; i < n; i++) {
        hp_graph *g = NULL;
        hp_errmsg e = {0};
        if (hp_script_model(path_of(decoders[i].file), 0, NULL, &g, &e))
            diag("%s", e.text);
        is_int(g ? hp_graph_params(g) : -1, decoders[i].params, "%s has its parameters",
               decoders[i].file);
        hp_graph_free(g);
    }
    for (int i = 0; i < m; i++) {
        hp_graph *g = NULL;
        hp_errmsg e = {0};
        hp_err err = hp_script_model(path_of(others[i].file), 0, NULL, &g, &e);
        ok(err == HP_EINPUT && strstr(e.text, others[i].says) && strstr(e.text, "llama"),
           "%s is no decoder known here, and is told which are", others[i].file);
    }
    return done_testing();
}

/* Models from scripts: parameter counts, named dimensions, overrides, and what a wrong script is told. */
#include "script/model.h"

#include "script/source.h"
#include "tap.h"

#include <unistd.h>

static hp_graph *model(const char *name, int n, const hp_override *over)
{
    hp_graph *g;
    hp_errmsg e = {0};
    if (!hp_script_model(name, n, over, &g, &e))
        return g;
    diag("%s: %s", name, e.text);
    return NULL;
}

/* Sources: Radford et al. 2019; arXiv 2407.21783, 2401.04088, 2412.19437 (671,026,419,200 with 58 x 256 router biases). */
static void counts(void)
{
    static const struct {
        const char *name;
        long long params;
        int layers;
    } known[] = {{"gpt2", 124439808, 12},           {"llama3-8b", 8030261248, 32},
                 {"llama3-70b", 70553706496, 80},   {"llama3-405b", 405853388800, 126},
                 {"mixtral-8x7b", 46702792704, 32}, {"deepseek-v3", 671026419200, 61}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hp_graph *g = model(known[i].name, 0, NULL);
        is_int(g ? hp_graph_params(g) : -1, known[i].params,
               "%s has its published number of parameters", known[i].name);
        is_int(g ? g->n_layers : -1, known[i].layers, "%s has its layers", known[i].name);
        hp_graph_free(g);
    }
}

static int dim_size(const hp_graph *g, const char *name)
{
    for (int i = 0; i < g->n_dims; i++)
        if (strcmp(g->dim[i].name, name) == 0)
            return (int)g->dim[i].size;
    return -1;
}

static int tensor(const hp_graph *g, const char *name)
{
    return hp_map_get(&g->tensor_id, name, -1);
}

/* Everything else in the house counts on these names. */
static void names(const hp_graph *g)
{
    static const char *const wanted[] = {"tokens",
                                         "targets",
                                         "positions",
                                         "targets.all",
                                         "embed.w",
                                         "layers.0.norm1.w",
                                         "layers.3.attn.q.w",
                                         "layers.3.attn.core",
                                         "layers.3.mlp.down",
                                         "norm",
                                         "head",
                                         "loss",
                                         "grad:layers.3.attn.q.w"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted - 1; i++)
        ok(tensor(g, wanted[i]) >= 0, "llama-small has %s", wanted[i]);
    int resid = 0;
    for (int i = 0; i < g->n_tensors; i++)
        resid += g->tensor[i].kind == HP_T_ACT && g->tensor[i].alias &&
                 strcmp(g->tensor[i].alias, "layers.2.resid") == 0;
    is_int(resid, 4, "both sums of a layer and what is added to them answer to resid");
    is_int(g->loss, tensor(g, "loss"), "the loss is named");
    is_int(g->tensor[g->loss].nd, 0, "and is one number");
}

static void small(void)
{
    hp_graph *g = model("llama-small", 0, NULL);
    if (!g)
        bail("llama-small does not build");
    names(g);
    is_int(dim_size(g, "kv_heads"), 4, "heads are key/value heads");
    is_int(dim_size(g, "group"), 2, "and their query heads");
    is_int(dim_size(g, "batch"), 0, "batch is free");
    const hp_tensor *q = &g->tensor[tensor(g, "layers.0.attn.q")];
    is_int(q->nd, 5, "queries are batch seq kv_heads group head");
    int bwd = 0, wgrad = 0, init = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        bwd += g->node[i].phase == HP_P_BWD;
        wgrad += g->node[i].phase == HP_P_WGRAD;
        init += g->node[i].phase == HP_P_INIT;
    }
    ok(bwd > 0 && wgrad > 0, "the backward is in the graph");
    is_int(init, 2, "valid targets are counted once a step, and seed the backward");
    near(g->train.lr, 1e-3, 0, "training settings have defaults");
    near(g->tensor[tensor(g, "layers.0.attn.o.w")].init_std, 0.02 / sqrt(8.0), 1e-7,
         "what writes into the residual stream starts smaller");
    ok(g->tensor[tensor(g, "layers.0.attn.o.w")].decay && !g->tensor[tensor(g, "norm.w")].decay,
       "weights decay, norms do not");
    hp_graph_free(g);
}

static void families(void)
{
    char **list;
    int n;
    hp_errmsg e;
    hp_script_list("models", &list, &n, &e);
    ok(n >= 14, "models are listed");
    for (int i = 0; i < n; i++) {
        hp_override o[] = {{"model.seq", "32"}, {"model.layers", "2"}};
        hp_graph *g = model(list[i], 2, o);
        ok(g && g->n_layers == 2 && dim_size(g, "seq") == 32,
           "%s builds with two layers and 32 tokens", list[i]);
        hp_graph_free(g);
    }
    hp_script_list_free(list, n);
}

static void mixture(void)
{
    hp_graph *g = model("moe-small", 0, NULL);
    if (!g)
        bail("moe-small does not build");
    ok(tensor(g, "layers.0.moe.router.w") >= 0 && tensor(g, "layers.0.moe.shared.down.w") >= 0,
       "router and shared expert are modules");
    const hp_tensor *w = &g->tensor[tensor(g, "layers.0.moe.experts.gate.w")];
    is_str(g->dim[w->dim[0]].name, "experts", "expert weights are split by experts");
    const hp_tensor *r = &g->tensor[tensor(g, "layers.0.moe.router.w")];
    is_str(g->dim[r->dim[1]].name, "gate", "the router's own dimension has another name");
    ok(tensor(g, "layers.0.moe.router.aux") >= 0 && tensor(g, "loss.ce") >= 0,
       "the balance loss is part of the loss");
    hp_graph_free(g);
    g = model("mla-small", 0, NULL);
    ok(g && tensor(g, "layers.0.mlp.down.w") >= 0 && tensor(g, "layers.1.moe.experts.down.w") >= 0,
       "the first layer of mla-small is dense");
    ok(g && g->tensor[tensor(g, "layers.1.moe.router.bias")].kind == HP_T_BUFFER,
       "the router's bias has no gradient");
    hp_graph_free(g);
}

static void packed(void)
{
    hp_override o = {"model.packed", "true"};
    hp_graph *g = model("llama-small", 1, &o);
    ok(g && tensor(g, "docs") >= 0, "packed documents bring an input of their own");
    hp_graph_free(g);
}

/* V05: 128,256 padded for TP8 in units of 64 is 128,512; the loss knows the true size. */
static void padding(void)
{
    hp_override o[] = {{"model.vocab", "33"}, {"model.vocab_pad", "128"}};
    hp_graph *g = model("llama-small", 2, o);
    if (!g)
        bail("padding does not build");
    is_int(dim_size(g, "vocab"), 128, "V05 N01: the vocabulary is padded to the unit");
    const hp_node *stats = NULL;
    for (int i = 0; i < g->n_nodes; i++)
        if (strcmp(g->node[i].name, "loss.stats") == 0)
            stats = &g->node[i];
    near(stats ? hp_attr_get(stats->attr, stats->n_attrs, "valid", 0) : -1, 33, 0,
         "N01: the softmax knows how many are real");
    hp_graph_free(g);
    hp_override big[] = {{"model.vocab_pad", "512"}, {"model.layers", "1"}};
    g = model("llama3-8b", 2, big);
    is_int(g ? dim_size(g, "vocab") : -1, 128512, "V05: 128,256 in units of 64 x 8 is 128,512");
    hp_graph_free(g);
}

static void refuse(const char *name, int n, const hp_override *over, hp_err code, const char *says)
{
    hp_graph *g;
    hp_errmsg e = {0};
    hp_err err = hp_script_model(name, n, over, &g, &e);
    ok(err == code && strstr(e.text, says), "%s: %s", over ? over->key : name, says);
    if (err != code || !strstr(e.text, says))
        diag("code %d: %s", err, e.text);
    if (!err)
        hp_graph_free(g);
}

static void refusals(void)
{
    hp_override o = {"model.seqq", "12"};
    refuse("gpt2", 1, &o, HP_EUSAGE, "the nearest is 'seq'");
    o = (hp_override){"model.seq", "abc"};
    refuse("gpt2", 1, &o, HP_EUSAGE, "must be a number");
    o = (hp_override){"model.seq", "2048"};
    refuse("gpt2", 1, &o, HP_EINPUT, "longer than the table of 1024 positions");
    o = (hp_override){"model.heads", "3"};
    refuse("llama-small", 1, &o, HP_EINPUT, "not a multiple of kv_heads = 4");
    o = (hp_override){"model.embed", "0"};
    refuse("llama-small", 1, &o, HP_EINPUT, "not a whole number from 1");
    o = (hp_override){"model.embed", "1e99"};
    refuse("llama-small", 1, &o, HP_EINPUT, "not a whole number from 1");
    refuse("gpt-2", 0, NULL, HP_EUSAGE, "the nearest is 'gpt2'");
    refuse("/nosuch/model.lua", 0, NULL, HP_EUSAGE, "cannot be opened");
    hp_errmsg e;
    hp_override keys[] = {{"model.seq", "1"}, {"modell.seq", "1"}};
    is_int(hp_script_overrides(1, keys, &e), HP_OK,
           "keys of model, cluster and strategy are overrides");
    is_int(hp_script_overrides(2, keys, &e), HP_EUSAGE, "others are none");
    hp_graph *g = model("GPT2-Small", 0, NULL);
    ok(g != NULL, "names match without case");
    hp_graph_free(g);
}

/* Writes a script beside the test and builds it. */
static void script(const char *text, hp_err code, const char *says)
{
    char path[] = "/tmp/hp-model-XXXXXX.lua";
    int fd = mkstemps(path, 4);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("no temporary file");
    close(fd);
    refuse(path, 0, NULL, code, says);
    unlink(path);
}

#define HEAD                                                                                       \
    "local c = override { embed = 8, vocab = 16, seq = 4 }\ndims(c, 'embed vocab seq', { batch = " \
    "free })\n"

static void scripts(void)
{
    script("return 1", HP_EINPUT, "must return model(...)");
    script("return family 'lama' {}", HP_EINPUT, "the nearest is 'llama'");
    script("return family 'llama' { wide = 3 }", HP_EINPUT, "unknown key 'wide'");
    script(HEAD "return model('m', function(t) return embedding('e', t, 'vocab -> embedd') end)",
           HP_EINPUT, "unknown dimension 'embedd'; the nearest is 'embed'");
    script(HEAD "return model('m', function(t) return embedding('e', t, 'vocab -> embed') end)",
           HP_EINPUT, "the loss must be one number");
    script(HEAD "return model('m', function(t)\n local x = embedding('e', t, 'vocab -> embed')\n "
                "local y = linear('l', x, 'vocab -> embed') end)",
           HP_EINPUT, ".lua:5: linear l: contracts 'vocab'");
    script(HEAD "return model('m', function(t)\n local x = embedding('e', t, 'vocab -> embed')\n "
                "local y = x + t end)",
           HP_EINPUT, ".lua:5: ");
    script(HEAD "return model('m', function(t)\n local x = embedding('e', t, 'vocab -> embed')\n "
                "local y = embedding('e', t, 'vocab -> embed') end)",
           HP_EINPUT, "two tensors would be called e.w");
    script(HEAD "train { lr = 'x' }", HP_EINPUT, "is not a number");
    script(HEAD "train { rate = 1 }", HP_EINPUT, "unknown key 'rate'");
    script(HEAD "return model('m', function(t) while true do end end)", HP_EINPUT,
           "spent its instructions");
}

int main(void)
{
    counts();
    small();
    families();
    mixture();
    packed();
    padding();
    refusals();
    scripts();
    return done_testing();
}

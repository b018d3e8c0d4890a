/* Strategies from scripts and from shorthand lists reach the same normal form; wrong keys are named with the nearest right one. */
#include "script/strategy.h"

#include "base/paths.h"
#include "script/cluster.h"
#include "script/model.h"
#include "script/source.h"
#include "tap.h"

#include <unistd.h>

static hp_graph *dense, *moe;
static hp_cluster *eight;

static char *compile(const char *text, const hp_graph *g, int n, const hp_override *over)
{
    hp_strategy *s;
    hp_errmsg e = {0};
    hp_str t = {0};
    if (hp_script_strategy(text, g, eight, n, over, &s, &e)) {
        hp_str_add(&t, "exit %d: %s", e.code, e.text);
    } else {
        hp_strategy_print(s, &t);
        hp_strategy_free(s);
    }
    return hp_str_take(&t);
}

static void says(const char *text, const hp_graph *g, const char *line)
{
    char *got = compile(text, g, 0, NULL);
    ok(strstr(got, line) != NULL, "%s: %s", text, line);
    if (!strstr(got, line))
        diag("%s", got);
    free(got);
}

static char *file_with(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/hp-strategy-XXXXXX.lua");
    int fd = mkstemps(path, 4);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("no temporary file");
    close(fd);
    return path;
}

static void script_says(const char *text, const char *line)
{
    char *path = file_with(text), *got = compile(path, dense, 0, NULL);
    ok(strstr(got, line) != NULL, "%s", line);
    if (!strstr(got, line))
        diag("%s", got);
    unlink(path);
    free(got);
}

static void shorthand(void)
{
    says("dp=4,tp=2", dense, "mesh dp=4, tp=2\n");
    says("tp=2", dense, "mesh dp=*, tp=2\n");
    says("tp=2", dense,
         "split heads = tp\nsplit kv_heads = tp\nsplit ffn = tp\nsplit vocab = tp\nsplit batch = "
         "dp\n");
    says("dp=8", dense, "mesh dp=8\nsplit batch = dp\nstates.like megatron\n");
    says("tp=2,sp", dense,
         "layout layers.*.resid seq = tp\nlayout layers.*.norm* seq = tp\nlayout norm seq = "
         "tp\nlayout embed.out seq = tp\n");
    says("tp=2,cp=2,sp", dense, "layout layers.*.resid seq = cp+tp\n");
    says("zero=1", dense, "states.like megatron\nstates.optimizer dp\nstates.after_forward");
    says("zero=2", dense, "states.like megatron\nstates.grads dp\nstates.optimizer dp\n");
    says("zero=3", dense,
         "states.like megatron\nstates.params dp\nstates.grads dp\nstates.optimizer dp\n");
    says("zero=1,cp=2", dense, "states.optimizer dp+cp\n");
    says("fsdp=4", dense,
         "mesh rep=*, fsdp=4\nsplit batch = rep+fsdp\nstates.like fsdp2\nstates.params fsdp\n");
    says("fsdp=4", dense, "states.reduce.between rep\n");
    says("dp=8,fsdp=4", dense, "mesh rep=2, fsdp=4\n");
    says("cp=4", dense, "split seq = cp\n");
    says("cp=4", dense, "cp.outer ring\n");
    says("cp=4,zigzag", dense, "split seq = cp zigzag\n");
    says("cp=1,cp_kind=ulysses,zigzag,pp=1,stages=even,tp=1,sp", dense, "mesh dp=*\nsplit batch = dp\n");
    says("cp=4,cp_kind=allgather", dense, "cp.outer gather\n");
    says("cp=4,cp_kind=ulysses", dense,
         "split heads = cp\nsplit kv_heads = cp\nsplit seq = cp\nsplit batch = dp\nparam_split "
         "none\n");
    says("cp=2,tp=2,cp_kind=ulysses", dense, "split heads = tp+cp\n");
    says("ep=4", moe, "mesh dp=*\nmesh.moe edp=*, ep=4\n");
    says("ep=4", moe,
         "layout **.moe.experts experts = moe.ep\nlayout **.moe.experts ffn = whole\n");
    says("ep=2,etp=2,tp=2", moe, "mesh.moe edp=*, ep=2, etp=2\n");
    says("ep=2,etp=2,tp=2", moe, "layout **.moe.experts expert_ffn = moe.etp\n");
    says("ep=4,zero=1", moe, "states **.moe.experts optimizer = moe.edp\n");
    says("tp=2", moe, "split ffn = tp\nsplit expert_ffn = tp\nsplit shared_ffn = tp\n");
    says("pp=2,vpp=2", dense,
         "pipeline.over pp\npipeline.schedule interleaved\npipeline.vpp 2\npipeline.stages even\n");
    says("pp=2,schedule=zbh1,stages=1+3", dense, "pipeline.schedule zbh1\npipeline.stages 1+3\n");
    says("pp=2,tp=2,order=tp-dp-cp-pp", dense, "mesh pp=2, dp=*, tp=2\n");
    says("pp=2,tp=2,order=dp-tp-cp-pp", dense, "mesh pp=2, tp=2, dp=*\n");
    says("mbs=2,gbs=32,accum=", dense, "batch.global 32\nbatch.micro 2\n");
    says("recompute=full", dense, "recompute layers.* what = inside\n");
    says("recompute=full:block:2", dense, "recompute layers[0:2] what = inside\n");
    says("recompute=selective", dense, "recompute **.core what = inside\n");
    says("recompute=selective:mlp+layernorm", dense,
         "recompute layers.*.mlp what = inside\nrecompute layers.*.norm* what = discard\n");
    says("overlap=dp,zero=3", dense, "overlap.grads 1\noverlap.params 1\noverlap.params.ahead 1\n");
    says("offload=auto", dense, "offload ** want = auto\n");
    says("cap=1.25,imbalance=1.5", moe, "moe.routing 1.25\nmoe.headroom 2\nmoe.imbalance 1.5\n");
    says("dtype=bf16,uneven", dense, "uneven 1\ndtype bf16\n");
    says("tp=1,dp=8", dense, "mesh dp=8\nsplit batch = dp\n");
    says(" dp=8 , zero=1 ", dense, "mesh dp=8\n");
}

static void wrong_shorthand(void)
{
    says("dp=4,mbss=2", dense,
         "exit 2: strategy 'dp=4,mbss=2': unknown key 'mbss'; the nearest is 'mbs'");
    says("zero=4", dense, "exit 2: strategy 'zero=4': zero=4 is none of 0, 1, 2, 3");
    says("dp=two", dense, "exit 2:");
    says("dp=0", dense, "exit 2:");
    says("mbs", dense, "exit 2: strategy 'mbs': mbs needs a value");
    says("dp=", dense, "exit 2:");
    says("dp=2,dp=4", dense, "is said twice");
    says("sp", dense, "exit 2: strategy 'sp': sp says something about tp; say tp= too");
    says("zigzag", dense, "exit 2:");
    says("vpp=2", dense, "exit 2:");
    says("schedule=1f2b,pp=2", dense, "the nearest is '1f1b'");
    says("order=tp-dp,pp=2", dense, "order leaves");
    says("recompute=fully", dense, "the nearest is 'full'");
    says("cp=2,cp_kind=rings", dense, "the nearest is 'ring'");
    says("dtype=fp64", dense, "exit 2:");
    says("nosuch", dense, "exit 2:");
    says("", dense, "mesh dp=*\n");
}

static void infeasible(void)
{
    says("dp=4", dense,
         "exit 4: strategy 'dp=4': pp x dp x cp x tp = 4, but there are 8 devices; nearest legal: "
         "dp=8");
    says(
        "tp=3", dense,
        "exit 4: strategy 'tp=3': pp x cp x tp = 3 does not divide 8 devices; nearest legal: tp=2");
    says("ep=4,dp=1", moe, "nearest legal: ep=4,dp=8");
    says("ep=3", moe,
         "exit 4: strategy 'ep=3': ep x etp = 3 does not divide the 8 devices of a stage");
    says("fsdp=3", dense,
         "exit 4: strategy 'fsdp=3': fsdp=3 does not divide dp=8; nearest legal: fsdp=2");
    says("ep=4", dense, "exit 4: strategy 'ep=4': ep: the model has no experts");
}

/* A shorthand and the script that says the same have one hash. */
static void same_form(void)
{
    static const char text[] =
        "return strategy { batch = {}, states = { like = 'megatron' }, mesh = 'dp=*, tp=2',\n"
        "split = { vocab = 'tp', ffn = 'tp', kv_heads = 'tp', heads = 'tp', batch = 'dp' } }";
    hp_strategy *a, *b;
    hp_errmsg e;
    char *path = file_with(text);
    if (hp_script_strategy("tp=2", dense, eight, 0, NULL, &a, &e) ||
        hp_script_strategy(path, dense, eight, 0, NULL, &b, &e))
        bail("%s", e.text);
    ok(hp_strategy_hash(a) == hp_strategy_hash(b),
       "a shorthand and a script that say the same are equal");
    is_str(a->shorthand, "tp=2", "a shorthand is kept as typed");
    ok(!b->shorthand && strncmp(b->name, "hp-strategy-", 12) == 0,
       "a script is named after its file");
    hp_strategy_free(a);
    hp_strategy_free(b);
    unlink(path);
}

static void scripts(void)
{
    script_says("return strategy { mesh = 'dp=*', splitt = {} }",
                ".lua:1: strategy: unknown key 'splitt'; the nearest is 'split'");
    script_says("return strategy {\n mesh = 'dp=*',\n states = { optimiser = 'dp' } }",
                "states: unknown key 'optimiser'; the nearest is 'optimizer'");
    script_says("return strategy { mesh = 'dp=*', layout = { pattern = 'x' } }",
                "unknown key 'pattern'; it is a list");
    script_says("return strategy { mesh = 'dp=*', split = { hheads = 'dp' } }",
                "the model has no dimension 'hheads'; the nearest is 'heads'");
    script_says("return strategy { split = {} }", "mesh must be a text");
    script_says("return {}", "must return strategy { ... }");
    script_says("local x = model.kv_headz", "model has no 'kv_headz'; the nearest is 'kv_heads'");
    script_says("local x = cluster.level('nod')",
                "cluster has no level 'nod'; the nearest is 'node'");
    script_says("return strategy { mesh = 'dp=*, tp=' .. largest_divisor(model.kv_heads, { at_most "
                "= cluster.size }) }",
                "mesh dp=*, tp=4\n");
    script_says(
        "return strategy { mesh = 'dp=*', split = { { 'batch', 'dp' }, { 'heads', 'dp' } } }",
        "split batch = dp\nsplit heads = dp\n");
    script_says("return strategy { mesh = 'dp=*', split = { seq = { 'dp', order = 'zigzag' } } }",
                "split seq = dp zigzag\n");
    script_says(
        "return strategy { mesh = 'dp=*', layout = { { 'layers.*.norm*.w', { store = whole } } } }",
        "layout layers.*.norm*.w store = whole\n");
    script_says("return strategy { mesh = 'dp=*', layout = { { 'a', { seq = 'dp' } }, { 'a', { seq "
                "= whole } } } }",
                "layout a seq = dp\nlayout a seq = whole\n");
    script_says("return strategy { mesh = 'dp=*', states = { { '**.experts', optimizer = 'dp' }, "
                "after_forward = 'shard:8' } }",
                "states **.experts optimizer = dp\nstates.after_forward shard:8\n");
    script_says("return strategy { mesh = 'dp=*', states = { after_forward = 'free!' } }",
                "is none of free, keep, shard:N");
    script_says("return strategy { mesh = 'dp=*', recompute = { { 'layers.*', 'inside' }, { "
                "'layers[0::4]', 'none' } } }",
                "recompute layers.* what = inside\nrecompute layers[0::4] what = none\n");
    script_says(
        "return strategy { mesh = 'dp=*', overlap = { grads = { bucket = '128MiB' }, params = { "
        "ahead = 2, limit = '4GiB' }, tp = { chunks = 4 } } }",
        "overlap.grads 1\noverlap.grads.bucket 134217728\noverlap.params 1\noverlap.params.ahead "
        "2\noverlap.params.limit 4294967296\noverlap.tp.chunks 4\n");
    script_says("return strategy { mesh = 'dp=*', pipeline = { over = 'pp', stages = { 'embed "
                "layers[0:2]', 'layers[2:4] norm head loss' } } }",
                "pipeline.stage embed layers[0:2]\npipeline.stage layers[2:4] norm head loss\n");
    script_says(
        "return strategy { mesh = 'dp=*', pipeline = { stages = balance { by = 'time' } } }",
        "pipeline.stages balance\n");
    script_says("return strategy { mesh = 'dp=*', pipeline = { schedule = function() end } }",
                "a file in share/schedules");
    script_says("return strategy { mesh = 'dp=*', memory = { hbm = '40GiB', spare = '2GiB' }, loss "
                "= { chunk = 4096 } }",
                "memory.hbm 42949672960\nother memory spare = 2GiB\nother loss chunk = 4096\n");
    script_says(
        "return strategy { mesh = 'dp=*', cut = { heads = 'balanced', vocab = '100+156' } }",
        "cut heads cut = balanced\ncut vocab cut = 100+156\n");
    script_says("return strategy { mesh = 'dp=*', dtype = { params = 'fp8', kv = 'bf16', compute = "
                "'bf16' } }",
                "dtype bf16\n");
    script_says("return strategy { mesh = 'dp=*', offload = { { 'optim:**', to = 'host', step = "
                "'device' }, plan = { least = 'exposed' } } }",
                "offload optim:** to = host\noffload optim:** step = device\nother offload "
                "plan.least = exposed\n");
    script_says("return strategy { mesh = 'dp=*', batch = { micro = 1.5 } }", "not a whole number");
    script_says("return strategy { mesh = 'dp=*', batch = { global = -1 } }", "not a whole number");
}

static void overrides(void)
{
    hp_override o[] = {
        {"strategy.batch.micro", "4"}, {"strategy.uneven", "true"}, {"model.seq", "9"}};
    char *got = compile("dp=8", dense, 3, o);
    ok(strstr(got, "batch.micro 4\n") && strstr(got, "uneven 1\n"),
       "-o changes keys of a strategy");
    free(got);
    hp_override bad = {"strategy.batch.mikro", "4"};
    got = compile("dp=8", dense, 1, &bad);
    ok(strstr(got, "exit 2:") && strstr(got, "the nearest is 'micro'"),
       "an unknown one is named with the nearest");
    free(got);
    bad.key = "strategy.meshh";
    got = compile("dp=8", dense, 1, &bad);
    ok(strstr(got, "exit 2:") && strstr(got, "the nearest is 'mesh'"), "at the top too");
    free(got);
}

static void shipped(void)
{
    char **list;
    int n;
    hp_errmsg e;
    hp_script_list("share/strategies", &list, &n, &e);
    ok(n >= 15, "strategies are listed");
    for (int i = 0; i < n; i++) {
        char *got = compile(list[i], moe, 0, NULL), *data, *about;
        ok(strncmp(got, "exit", 4) != 0, "share/strategies/%s.lua compiles", list[i]);
        if (strncmp(got, "exit", 4) == 0)
            diag("%s", got);
        free(got);
        hp_str path = {0};
        hp_paths_data(&data, &e);
        hp_str_add(&path, "%s/share/strategies/%s.lua", data, list[i]);
        about = hp_script_about(hp_str_text(&path));
        ok(strlen(about) > 10, "and says what it is: %s", about);
        free(about);
        free(data);
        hp_str_fini(&path);
    }
    hp_script_list_free(list, n);
}

static void clusters(void)
{
    char *path = file_with(
        "return cluster { source = 'a test', count = 16, { 'peak.bf16', '100T' }, { 'hbm.bytes', "
        "'16GiB' },\n"
        "{ 'hbm.bandwidth', '1TB/s' }, level 'node' { size = 4, bandwidth = '100GB/s' },\n"
        "level 'fabric' { size = 'all', bandwidth = '10GB/s', latency = '5us' } }");
    hp_cluster *c;
    hp_errmsg e = {0};
    hp_override o = {"cluster.hbm_bytes", "8GiB"};
    hp_err err = hp_script_cluster(path, 1, &o, &c, &e);
    is_int(err, HP_OK, "a cluster file %s", e.text);
    if (!err) {
        is_int(c->n_devices, 16, "says its own count");
        is_int(hp_cluster_level(c, "node")->size, 4, "and its levels");
        is_int((long long)c->budget_bytes, 8LL << 30, "overrides come after it");
        hp_cluster_free(c);
    }
    char with_count[80];
    snprintf(with_count, sizeof with_count, "%s:8", path);
    err = hp_script_cluster(with_count, 0, NULL, &c, &e);
    is_int(err ? -1 : c->n_devices, 8, "a count behind the path wins");
    if (!err)
        hp_cluster_free(c);
    unlink(path);
    path = file_with("return cluster { { 'peak.bf61', '1T' } }");
    ok(hp_script_cluster(path, 0, NULL, &c, &e) == HP_EINPUT && strstr(e.text, ".lua:1: "),
       "an unknown figure is named at the script's line");
    unlink(path);
    ok(hp_script_cluster("nosuch:4", 0, NULL, &c, &e) == HP_EUSAGE,
       "an unknown cluster is a usage error");
    ok(hp_script_cluster("/nosuch.lua:4", 0, NULL, &c, &e) == HP_EUSAGE,
       "and so is a file that is not there");
}

int main(void)
{
    hp_errmsg e = {0};
    hp_override few = {"model.layers", "2"};
    if (hp_script_model("llama-small", 1, &few, &dense, &e) ||
        hp_script_model("moe-small", 1, &few, &moe, &e) ||
        hp_script_cluster("ideal:8", 0, NULL, &eight, &e))
        bail("%s", e.text);
    shorthand();
    wrong_shorthand();
    infeasible();
    same_form();
    scripts();
    overrides();
    shipped();
    clusters();
    char *got;
    hp_graph *g = dense;
    got = compile("tp", NULL, 0, NULL);
    ok(strstr(got, "no model was given"), "a script that looks at a model needs one");
    free(got);
    got = compile("TP-SP", g, 0, NULL);
    ok(strncmp(got, "exit", 4) != 0, "names match without case");
    free(got);
    hp_graph_free(dense);
    hp_graph_free(moe);
    hp_cluster_free(eight);
    return done_testing();
}

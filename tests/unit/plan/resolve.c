/* Refusals: before anything is planned, with the right exit status, naming what is wrong, the
 * sizes and what would be legal. */
#include "planned.h"

static const char *const sizes = "model.layers=4 model.seq=16";

/* A script's refusal: files are exit 3 where a word is wrong, 4 where sizes are. */
static void script_refused(const char *id, const char *model, const char *cluster, const char *text,
                           hp_err code, const char *words)
{
    hp_str s = {0};
    hp_str_add(&s, "return strategy { %s }\n", text);
    const char *path = script_of(hp_str_text(&s));
    planned p = plan_of(model, sizes, cluster, path);
    char list[512];
    bool all = p.err == code;
    snprintf(list, sizeof list, "%s", words);
    for (char *save, *w = strtok_r(list, "|", &save); w; w = strtok_r(NULL, "|", &save))
        all = all && strstr(p.e.text, w);
    ok(all, "%s: exit %d, naming %s", id, code, words) || (diag("exit %d: %s", p.err, p.e.text), 0);
    planned_free(&p);
    unlink(path);
    hp_str_fini(&s);
}

static void dense(const char *id, const char *cluster, const char *text, hp_err code,
                  const char *words)
{
    script_refused(id, "llama-small", cluster, text, code, words);
}

static void meshes(void)
{
    dense("an axis without a size", "ideal:4", "mesh = 'dp'", HP_EINPUT,
          "mesh \"dp\"|axis 1|name=size or name=*");
    dense("an axis of size 0", "ideal:4", "mesh = 'dp=0'", HP_EINPUT, "axis 1|sizes from 1");
    dense("what follows an axis", "ideal:4", "mesh = 'dp=2 x, tp=2'", HP_EINPUT, "axis 1");
    dense("an axis twice", "ideal:4", "mesh = 'dp=2, dp=2'", HP_EINPUT, "names axis dp twice");
    dense("two stars", "ideal:4", "mesh = 'dp=*, tp=*'", HP_EINPUT, "more than one `*`");
    dense("13 axes", "ideal:1", "mesh = 'a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1'",
          HP_EINPUT, "more than 12 axes");
    dense("fixed axes that do not divide", "ideal:8", "mesh = 'dp=*, tp=3'", HP_EINFEASIBLE,
          "fixed axes make 3|8 devices of ideal:8|nearest legal product: 2");
    dense("another number of devices", "ideal:8", "mesh = 'dp=2, tp=2'", HP_EINFEASIBLE,
          "makes 4 devices|ideal:8 has 8|nearest legal: dp=4");
    dense("a number of devices that none makes", "ideal:8", "mesh = 'dp=2, tp=3'", HP_EINFEASIBLE,
          "makes 6 devices|nearest legal product: 4");
    dense("a pipeline axis further in", "ideal:4",
          "mesh = 'tp=2, pp=2', pipeline = { over = 'pp' }, batch = { global = 4 }", HP_EINFEASIBLE,
          "pp must be the outermost|pp=2, ...");
    dense("a view with another pipeline", "ideal:8",
          "mesh = 'pp=2, dp=4', views = { moe = 'pp=4, ep=2' }, pipeline = { over = 'pp' }",
          HP_EINFEASIBLE, "view moe has pp=4|first has pp=2|equal groups");
    dense("views without a common refinement", "ideal:6",
          "mesh = 'dp=2, tp=3', views = { moe = 'edp=3, ep=2' }", HP_EINFEASIBLE, "edp");
}

static void axes(void)
{
    dense("an unknown axis", "ideal:4", "mesh = 'dp=2, tp=2', split = { ffn = 'tq' }", HP_EINPUT,
          "unknown axis \"tq\"|nearest: tp");
    dense("devices twice", "ideal:4", "mesh = 'dp=2, tp=2', split = { ffn = 'tp+tp' }", HP_EINPUT,
          "tp");
    dense("a view's axis over the same devices", "ideal:4",
          "mesh = 'dp=2, tp=2', views = { moe = 'edp=2, ep=2' }, split = { ffn = 'tp+moe.ep' }",
          HP_EINPUT, "names devices of axis moe.ep twice");
    dense("an unknown axis in states", "ideal:4", "mesh = 'dp=4', states = { optimizer = 'pd' }",
          HP_EINPUT, "states of|unknown axis \"pd\"|nearest: dp");
    dense("an unknown dimension", "ideal:4", "mesh = 'dp=4', split = { fnn = 'dp' }", HP_EINPUT,
          "fnn|ffn");
    dense("an unknown name in layout", "ideal:4",
          "mesh = 'dp=4', layout = { { 'layers.*.resit', { seq = 'dp' } } }", HP_EINPUT,
          "layout: \"layers.*.resit\" matches nothing|nearest name: layers");
    dense("an unknown name in states", "ideal:4",
          "mesh = 'dp=4', states = { { 'haed', optimizer = 'dp' } }", HP_EINPUT,
          "states: \"haed\" matches nothing|head");
    dense("an unknown name in recompute", "ideal:4",
          "mesh = 'dp=4', recompute = { { 'layer.*', 'inside' } }", HP_EINPUT,
          "recompute: \"layer.*\" matches nothing");
    dense("an unknown recomputation", "ideal:4",
          "mesh = 'dp=4', recompute = { { 'layers.*', 'insade' } }", HP_EINPUT,
          "recompute of layers.*|insade|inside, discard, per-child");
    dense("an unknown ring", "ideal:4",
          "mesh = 'cp=4', split = { seq = 'cp' }, cp = { outer = 'rong' }", HP_EINPUT,
          "cp.outer|rong|nearest: ring");
    dense("an unknown order", "ideal:4",
          "mesh = 'cp=4', split = { seq = { 'cp', order = 'zagzig' } }", HP_EINPUT,
          "zagzig|zigzag");
}

static void sizes_of_splits(void)
{
    dense(
        "a width", "ideal:5", "mesh = 'tp=5', split = { ffn = 'tp' }", HP_EINFEASIBLE,
        "layers.0.mlp.gate.w|dimension ffn (688)|tp (5 parts)|nearest legal: 4 or 8 parts|uneven");
    dense("two axes on one dimension", "ideal:6", "mesh = 'a=2, b=3', split = { ffn = 'a+b' }",
          HP_EINFEASIBLE, "dimension ffn (688)|a+b (6 parts)|4 or 8 parts");
    dense("a vocabulary", "ideal:3", "mesh = 'tp=3', split = { vocab = 'tp' }", HP_EINFEASIBLE,
          "embed.w|vocab (256)|3 parts|padded to 258 (-o model.vocab_pad=3)");
    dense("a sequence", "ideal:3", "mesh = 'cp=3', split = { seq = 'cp' }", HP_EINFEASIBLE,
          "seq (16)|cp (3 parts)|a sequence of 15 or 18");
    dense("heads", "ideal:3", "mesh = 'tp=3', split = { heads = 'tp', kv_heads = 'tp' }",
          HP_EINFEASIBLE,
          "layers.0.attn.q.w|4 key/value heads|tp (3 parts)|8 query heads|nearest legal: 2 or 4 "
          "parts");
    dense("a layout's own words", "ideal:3",
          "mesh = 'tp=3', layout = { { 'layers.*.mlp.gate', { ffn = 'tp' } } }", HP_EINFEASIBLE,
          "layers.0.mlp.gate|ffn (688)");
    dense("a global batch", "ideal:4",
          "mesh = 'dp=4', split = { batch = 'dp' }, batch = { global = 10, micro = 2 }",
          HP_EINFEASIBLE,
          "global batch 10|microbatch 2 x data-parallel size 4 = 8|Megatron's and DeepSpeed's "
          "rule|nearest legal: 8 or 16");
    dense("a batch and its accumulation", "ideal:4",
          "mesh = 'dp=4', split = { batch = 'dp' }, batch = { global = 16, micro = 2, accum = 3 }",
          HP_EINFEASIBLE, "global batch 16|makes 2 microbatches|accum says 3");
    script_refused("experts", "moe-small", "ideal:3",
                   "mesh = 'ep=3', split = { batch = 'ep' }, layout = { { '**.moe.experts', { "
                   "experts = 'ep' } } }",
                   HP_EINFEASIBLE, "experts (8)|ep (3 parts)|nearest legal: 2 or 4 parts");
}

static void cuts(void)
{
    dense("a cut of nothing", "ideal:4", "mesh = 'tp=4', cut = { fnn = 'balanced' }", HP_EINPUT,
          "fnn");
    dense("a cut that is none", "ideal:4",
          "mesh = 'tp=4', split = { ffn = 'tp' }, cut = { ffn = 'half' }", HP_EINPUT,
          "cut of ffn|half|chunk, balanced nor sizes");
    dense("sizes that do not add up", "ideal:2",
          "mesh = 'tp=2', split = { ffn = 'tp' }, cut = { ffn = '300+300' }", HP_EINFEASIBLE,
          "cut of ffn|300+300|adds up to 600|has 688");
}

static void stages(void)
{
    const char *pipe = "mesh = 'pp=2', batch = { global = 2 }, pipeline = { over = 'pp', stages = ";
    static const struct {
        const char *id, *stages, *words;
        hp_err code;
    } c[] = {
        {"a list of another length", "{ 'embed layers[0:4] norm head loss' }", "1 entries|pp=2",
         HP_EINFEASIBLE},
        {"a module on two stages", "{ 'embed layers[0:3]', 'layers[2:4] norm head loss' }",
         "module layers.2|two stages, 0 and 1", HP_EINFEASIBLE},
        {"a module on none", "{ 'embed layers[0:2]', 'layers[3:4] norm head loss' }",
         "module layers.2|no stage", HP_EINFEASIBLE},
        {"a module that is none", "{ 'embed layers[0:2]', 'layers[2:4] norm haed loss' }",
         "haed|names no module|nearest: head", HP_EINPUT},
        {"counts that are none", "'2+x'", "2+x|numbers of layers joined by +", HP_EINPUT},
        {"counts of another number of stages", "'1+1+2'", "name 3 stages|has 2", HP_EINFEASIBLE},
        {"counts that do not sum", "'1+2'", "place 3 layers|has 4|nearest legal: 1+3",
         HP_EINFEASIBLE}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s }", pipe, c[i].stages);
        dense(c[i].id, "ideal:2", text, c[i].code, c[i].words);
    }
    refused("layers that do not divide", "llama-small", sizes, "ideal:3", "pp=3,gbs=3",
            HP_EINFEASIBLE,
            "4 layers|3 virtual stages|1 would be dropped|nearest legal: pp=2 or "
            "4|stages=2+1+1|uneven");
    refused("more stages than layers", "llama-small", sizes, "ideal:8", "pp=8,gbs=8",
            HP_EINFEASIBLE, "4 layers are fewer than the 8 virtual stages|nearest legal: 4");
}

/* A shorthand's wrong words are usage (2), the same in a file content (3). */
static void codes(void)
{
    refused("a shorthand's wrong word", "llama-small", sizes, "ideal:2", "dp=2,cap=zwei", HP_EUSAGE,
            "cap=zwei");
    refused("a shorthand's degree", "llama-small", sizes, "ideal:2", "tp=3", HP_EINFEASIBLE,
            "does not divide 2 devices|nearest legal");
}

static void said(void)
{
    planned p = must_plan("llama-small", "model.layers=2 model.seq=16 model.kv_heads=2", "ideal:8",
                          "tp=4,mbs=2");
    const char *text = hp_str_text(&p.c.built.resolved);
    static const char *const lines[] = {
        "mesh dp=2,tp=4 (derived from 8 devices)\n",
        "kv_heads.copies 2 (tp=4 over 2 key/value heads",
        "batch.micro 2 (given)\n",
        "batch.global 4 (derived: microbatch x data-parallel size x accumulation)\n",
        "microbatches 1 (derived)\n",
        "layers.1.attn.q stage 0 chunk 0\n",
        "store ",
        "compute ",
        "accumulate ",
        "optimizer "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ok(strstr(text, lines[i]) != NULL, "the resolved strategy says %.40s", lines[i]) ||
            (diag("%.400s", text), 0);
    planned_free(&p);
}

int main(void)
{
    meshes();
    axes();
    sizes_of_splits();
    cuts();
    stages();
    codes();
    said();
    return done_testing();
}

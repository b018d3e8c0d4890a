/* nasty.c -- the cases that broke prototypes, by name, from the words of a strategy to numbers equal to one device's.
 *
 * Layouts alone, redistributions and golden plans have tests of their own (tests/unit/shard, tests/unit/plan/golden.c, tests/cases); here each case runs. All models are tiny, with
 * biases and norms that begin as random numbers, since zeros and ones hide mistakes; two steps run, the second is compared.
 */
#include "planned.h"

#include "plan/text.h"

#define TINY "model.layers=2 model.embed=12 model.ffn=10 model.vocab=11 model.heads=4 model.kv_heads=2 model.head=4 model.seq=8 model.std=0.3 "
#define MOE                                                                                                                                          \
    "model.layers=1 model.embed=12 model.vocab=11 model.heads=4 model.kv_heads=2 model.head=4 model.seq=8 model.std=0.3 model.experts=5 model.top=2 " \
    "model.expert_ffn=6 model.shared_ffn=5 model.aux=0.5 "
#define TP "heads = \"tp\", kv_heads = \"tp\", ffn = \"tp\", vocab = \"tp\""
#define SP "layout = { { \"layers.*.resid\", { seq = \"cp+tp\" } }, { \"layers.*.norm*\", { seq = \"cp+tp\" } }, { \"norm\", { seq = \"cp+tp\" } } }"
#define ROOM "moe = { headroom = 100 }"

typedef struct nasty {
    const char *name, *model, *over, *cluster, *strategy;
    double ignore;
    int documents;
} nasty;

static const nasty cases[] = {
    {"5 x 3 on 2 x 2: both axes on one dimension", "llama", TINY "model.ffn=5 model.heads=3 model.kv_heads=3", "ideal:4",
     "mesh = \"a=2, b=2\", split = { ffn = \"a+b\", heads = \"a+b\", kv_heads = \"a+b\" }, uneven = true", 0, 0},
    {"5 x 3 on 2 x 2: the same, reversed", "llama", TINY "model.ffn=5 model.heads=3 model.kv_heads=3", "ideal:4",
     "mesh = \"a=2, b=2\", split = { ffn = \"b+a\", heads = \"b+a\", kv_heads = \"b+a\", vocab = \"a+b\" }, uneven = true", 0, 0},
    {"6 rows on 4", "llama", TINY "model.ffn=6", "ideal:4", "mesh = \"tp=4\", split = { ffn = \"tp\" }, uneven = true", 0, 0},
    {"B=2 on dp=3", "llama", TINY, "ideal:3", "mesh = \"dp=3\", split = { batch = \"dp\" }, batch = { global = 2 }, states = { optimizer = \"dp\" }, uneven = true", 0,
     0},
    {"B=7 in 1 microbatch on dp=2 x dp2=2", "llama", TINY, "ideal:4",
     "mesh = \"dp=2, dp2=2\", split = { batch = \"dp+dp2\" }, batch = { micro = 2, global = 7, accum = 1 }, uneven = true", 0, 0},
    {"V=7 on 9", "llama", TINY "model.vocab=7", "ideal:9",
     "mesh = \"tp=9\", split = { vocab = \"tp\" }, states = { params = \"tp\", grads = \"tp\", optimizer = \"tp\" }, uneven = true", 0, 0},
    {"same dimension, axes reversed between two tensors", "llama", TINY, "ideal:6",
     "mesh = \"a=2, b=3\", split = { seq = \"a+b\" }, layout = { { \"layers.*.resid\", { seq = \"b+a\" } } }, cp = { outer = \"gather\" }, uneven = true", 0, 0},
    {"partial over c becomes [c a b]", "llama", TINY, "ideal:12",
     "mesh = \"a=2, b=2, c=3\", split = { vocab = \"c\" }, layout = { { \"embed.out\", { seq = \"c+a+b\" } }, { \"layers.*.resid\", { seq = \"c+a+b\" } } }, uneven = true",
     0, 0},
    {"norm weight gradient under sp x dp x cp, ZeRO-2, m=4", "llama", TINY, "ideal:8",
     "mesh = \"dp=2, cp=2, tp=2\", split = { batch = \"dp\", seq = \"cp\", " TP " }, " SP
     ", states = { grads = \"dp+cp\", optimizer = \"dp+cp\" }, batch = { accum = 4 }, uneven = true",
     0, 0},
    {"HSDP, m=4", "llama", TINY, "ideal:4",
     "mesh = \"rep=2, fsdp=2\", split = { batch = \"rep+fsdp\" }, states = { params = \"fsdp\", grads = \"fsdp\", optimizer = \"fsdp\", reduce = { between = \"rep\" } }, "
     "batch = { accum = 4 }",
     0, 0},
    {"tied embedding over three stages, ZeRO-3, split vocabulary", "llama", TINY "model.tied=true model.layers=3", "ideal:12",
     "mesh = \"pp=3, dp=2, tp=2\", split = { batch = \"dp\", " TP " }, states = { params = \"dp\", grads = \"dp\", optimizer = \"dp\" }, batch = { accum = 4 }, uneven = true",
     0, 0},
    {"tied embedding whose head stands on the same stage in another chunk", "llama", TINY "model.tied=true model.layers=4", "ideal:4",
     "mesh = \"pp=2, dp=2\", split = { batch = \"dp\" }, pipeline = { over = \"pp\", schedule = \"interleaved\", vpp = 2, stages = { \"embed layers[0:1]\", \"layers[1:2]\", "
     "\"layers[2:4] norm head loss\", \"\" } }, batch = { accum = 4 }",
     0, 0},
    {"3 kv heads on tp=2", "llama", TINY "model.heads=6 model.kv_heads=3", "ideal:2", "mesh = \"tp=2\", split = { " TP " }, uneven = true", 0, 0},
    {"tp > kv", "llama", TINY "model.heads=8 model.kv_heads=2", "ideal:8", "mesh = \"dp=2, tp=4\", split = { batch = \"dp\", " TP " }, uneven = true", 0, 0},
    {"one kv head", "llama", TINY "model.heads=4 model.kv_heads=1", "ideal:4", "mesh = \"tp=4\", split = { " TP " }, uneven = true", 0, 0},
    {"5 experts on 3 ranks", "mixtral", MOE, "ideal:3", "mesh = \"dp=3\", split = { batch = \"dp\", experts = \"dp\" }, " ROOM ", uneven = true", 0, 0},
    {"an expert and a rank without tokens", "mixtral", MOE "model.top=1 model.seq=3 model.experts=9", "ideal:9",
     "mesh = \"ep=9\", split = { experts = \"ep\" }, " ROOM, 0, 0},
    {"all tokens to one expert", "mixtral", MOE "model.top=1 model.router_bias=true", "ideal:4",
     "mesh = \"dp=4\", split = { batch = \"dp\", experts = \"dp\" }, " ROOM ", uneven = true", 0, 0},
    {"experts of tokens whose batch and sequence are split by different axes", "mixtral", MOE, "ideal:4",
     "mesh = \"dp=2, cp=2\", split = { batch = \"dp\", seq = \"cp\" }, views = { moe = \"edp=1, ep=4\" }, layout = { { \"**.moe.experts\", { experts = \"moe.ep\" } } }, " ROOM
     ", cp = { outer = \"gather\" }, uneven = true",
     0, 0},
    {"the expert axis is not the last", "mixtral", MOE "model.experts=4", "ideal:4",
     "mesh = \"dp=4\", split = { batch = \"dp\" }, views = { moe = \"ep=2, edp=2\" }, layout = { { \"**.moe.experts\", { experts = \"moe.ep\" } } }, "
     "states = { optimizer = \"dp\", { \"**.moe.experts\", optimizer = \"moe.edp\" } }, " ROOM,
     0, 0},
    {"ETP and sp", "mixtral", MOE "model.experts=4", "ideal:4",
     "mesh = \"dp=2, tp=2\", split = { batch = \"dp\", " TP " }, views = { moe = \"edp=1, ep=2, etp=2\" }, "
     "layout = { { \"**.moe.experts\", { experts = \"moe.ep\", ffn = \"moe.etp\" } }, { \"layers.*.resid\", { seq = \"tp\" } }, { \"layers.*.norm*\", { seq = \"tp\" } } }, " ROOM
     ", uneven = true",
     0, 0},
    {"recomputed dispatch", "mixtral", MOE, "ideal:3",
     "mesh = \"dp=3\", split = { batch = \"dp\", experts = \"dp\" }, recompute = { { \"**.moe\", \"inside\" } }, " ROOM ", batch = { accum = 2 }, uneven = true", 0, 0},
    {"dropped tokens under experts and sequence split", "mixtral", MOE "model.capacity=1", "ideal:4",
     "mesh = \"dp=2, cp=2\", split = { batch = \"dp\", seq = \"cp\", experts = \"dp+cp\" }, cp = { outer = \"gather\" }, " ROOM ", uneven = true", 0, 0},
    {"choices that travelled split by their own dimension", "mixtral", MOE "model.seq=13 model.experts=6 model.shared_ffn=0 model.groups=2 model.top_groups=1 model.score=sigmoid",
     "h100-sxm:6",
     "mesh = \"ux=3, cp=2\", views = { moe = \"edp=3, ep=2\" }, split = { seq = \"cp+ux\", kv_heads = \"ux\", heads = \"ux\" }, "
     "layout = { { \"layers.*.resid\", { batch = \"cp\" } }, { \"**.moe.experts\", { experts = \"moe.ep\", ffn = whole } } }, "
     "states = { params = \"ux+cp\", grads = \"ux+cp\", optimizer = \"ux+cp\" }, cp = { outer = \"ring\" }, " ROOM ", batch = { accum = 2 }, uneven = true",
     0, 0},
    {"experts on part of an axis whose parts do not nest", "mixtral", MOE "model.experts=4", "host:12",
     "mesh = \"dp=3, wx=4\", views = { moe = \"edp=6, ep=2\" }, split = { batch = \"dp+wx\" }, layout = { { \"**.moe.experts\", { experts = \"moe.ep\" } } }, "
     "cut = { batch = \"1+9+2\" }, " ROOM ", uneven = true",
     0, 0},
    {"ZeRO-3 and recompute", "llama", TINY "model.layers=3", "ideal:3",
     "mesh = \"dp=3\", split = { batch = \"dp\" }, states = { params = \"dp\", grads = \"dp\", optimizer = \"dp\" }, recompute = { { \"layers.*\", \"inside\" } }, "
     "overlap = { params = { ahead = 2 }, grads = { bucket = 1 } }, batch = { accum = 2 }, uneven = true",
     0, 0},
    {"one microbatch through 1F1B", "llama", TINY "model.layers=4", "ideal:4", "mesh = \"pp=4\", pipeline = { over = \"pp\", schedule = \"1f1b\" }", 0, 0},
    {"more microbatches than stages through 1F1B", "llama", TINY "model.layers=3", "ideal:3",
     "mesh = \"pp=3\", pipeline = { over = \"pp\", schedule = \"1f1b\" }, batch = { accum = 7 }", 0, 0},
    {"stages without a layer, two chunks each", "llama", TINY, "ideal:4",
     "mesh = \"pp=4\", pipeline = { over = \"pp\", schedule = \"interleaved\", vpp = 2, stages = { \"embed\", \"\", \"layers[0:1]\", \"\", \"\", \"\", \"layers[1:2]\", \"norm head "
     "loss\" } }, batch = { accum = 4 }",
     0, 0},
    {"clipping active with mixed layouts", "mixtral", MOE "model.clip=0.01 model.tied=true", "ideal:8",
     "mesh = \"dp=2, cp=2, tp=2\", split = { batch = \"dp\", seq = \"cp\", experts = \"dp\", " TP " }, states = { optimizer = \"cp\", { \"embed\", optimizer = \"dp+cp\", grads = "
     "\"dp\" } }, cp = { outer = \"gather\" }, " ROOM ", uneven = true",
     0, 0},
    {"key bias under Adam", "gpt2", "model.layers=2 model.embed=12 model.ffn=10 model.vocab=11 model.heads=3 model.head=4 model.seq=8 model.positions=8 model.std=0.1", "ideal:4",
     "mesh = \"dp=2, tp=2\", split = { batch = \"dp\", " TP " }, states = { optimizer = \"dp\" }, uneven = true", 0, 0},
    {"a blocked dimension of activations split", "llama", TINY, "ideal:2", "mesh = \"tp=2\", split = { head = \"tp\" }", 0, 0},
    {"axes of size 1", "llama", TINY, "ideal:2",
     "mesh = \"dp=1, cp=1, tp=2, x=1\", split = { batch = \"dp+x\", seq = \"cp\", " TP " }, states = { params = \"dp+x\", grads = \"dp\", optimizer = \"dp+cp\" }, "
     "cp = { outer = \"ring\" }, uneven = true",
     0, 0},
    {"ring of three with uneven blocks, documents and ignored tokens", "llama", TINY "model.seq=10 model.packed=true", "ideal:3",
     "mesh = \"cp=3\", split = { seq = \"cp\" }, cp = { outer = \"ring\" }, uneven = true", 0.5, 3},
    {"Ulysses inside a ring, one rank without heads", "llama", TINY "model.heads=3 model.kv_heads=3", "ideal:8",
     "mesh = \"r=2, u=4\", split = { heads = \"u\", kv_heads = \"u\", seq = \"r+u\" }, param_split = {}, cp = { outer = \"ring\" }, uneven = true", 0, 0},
};

static const char *scripted(const char *body)
{
    char text[4096];
    snprintf(text, sizeof text, "return strategy { %s }\n", body);
    return script_of(text);
}

/* Values that begin as zeros or ones hide mistakes. A bias of the router is so large that it alone chooses. */
static void unsettle(hp_graph *g)
{
    for (int t = 0; t < g->n_tensors; t++) {
        hp_tensor *x = &g->tensor[t];
        if ((x->kind != HP_T_PARAM && x->kind != HP_T_BUFFER) || x->init == HP_INIT_NORMAL)
            continue;
        x->init_std = x->kind == HP_T_BUFFER ? 50 : x->init == HP_INIT_ONES ? 0.8f : 0.3f;
        x->init = HP_INIT_NORMAL;
    }
}

/* Plans a case with such initial values; hp_case_load plans before they can be changed. */
static planned tried(const char *model, const char *over, const char *cluster, const char *body)
{
    const char *path = scripted(body);
    planned p = plan_of(model, over, cluster, path);
    unlink(path);
    if (p.err)
        return p;
    unsettle(p.c.graph);
    p.c.graph->train.eps = 1e-3;
    hp_built_fini(&p.c.built);
    p.err = hp_build(p.c.graph, p.c.cluster, p.c.strategy, &p.c.built, &p.e);
    p.plan = p.c.built.plan;
    return p;
}

static bool same_numbers(const planned *p, hp_check_options o, const char *name, hp_check_report *r)
{
    hp_errmsg e = {0};
    o.poison = true;
    o.steps = 2;
    hp_err err = hp_check(p->c.graph, p->plan, &o, r, &e);
    ok(!err && r->ok, "%s", name);
    if (err)
        diag("exit %d: %s", err, e.text);
    else if (!r->ok)
        diag("loss %g, gradients %g (%s), parameters %g, first apart %s of %s", r->err_loss, r->err_grads, r->worst_tensor, r->err_params, r->div_tensor, r->div_op);
    return !err && r->ok;
}

static void run_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const nasty *c = &cases[i];
        hp_check_report r;
        planned p = tried(c->model, c->over, c->cluster, c->strategy);
        if (p.err)
            ok(false, "%s", c->name), diag("exit %d: %s", p.err, p.e.text);
        else
            same_numbers(&p, (hp_check_options){.seed = 3, .ignore = c->ignore, .documents = c->documents}, c->name, &r);
        planned_free(&p);
    }
}

/* --- targets ------------------------------------------------------------------------------------------------------------ */

/* Counts the targets that count in sequences [first, first + n) and positions [lo, hi) of step `step`. */
static int valid_in(const planned *p, uint64_t seed, double ignore, int64_t step, int64_t micro, int64_t lo, int64_t hi)
{
    int64_t batch = p->plan->batch, seq = p->plan->seq;
    int32_t t[512];
    int n = 0;
    hp_corpus c;
    hp_errmsg e;
    hp_operand o = {.data = t, .dtype = HP_I32, .nd = 2, .len = {batch, seq}, .full = {batch, seq}};
    if (hp_corpus_open(&c, NULL, &(hp_data_options){.seed = seed, .vocab = p->plan->vocab, .ignore = ignore}, &e) ||
        hp_corpus_fill(&c, "targets", step, micro, &o, &e))
        bail("%s", e.text);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t s = lo; s < hi; s++)
            n += t[b * seq + s] >= 0;
    hp_corpus_fini(&c);
    return n;
}

/* One valid token in all of the second step; or microbatch 1, or the last third of all sequences, without any. */
static void few_targets(void)
{
    planned p = tried("llama", TINY "model.seq=9", "ideal:6",
                      "mesh = \"dp=2, cp=3\", split = { batch = \"dp\", seq = \"cp\", vocab = \"dp\" }, batch = { accum = 2 }, uneven = true");
    if (p.err)
        bail("%s", p.e.text);
    const double ignore = 0.9;
    const char *name[] = {"one valid token in the batch", "a microbatch without a valid token", "a context-parallel rank without a valid token"};
    for (int kind = 0; kind < 3; kind++) {
        hp_check_report r;
        uint64_t seed = 1;
        for (;; seed++) {
            int a = valid_in(&p, seed, ignore, 1, 0, 0, 9), b = valid_in(&p, seed, ignore, 1, 1, 0, 9), all = a + b;
            int last = valid_in(&p, seed, ignore, 1, 0, 6, 9) + valid_in(&p, seed, ignore, 1, 1, 6, 9);
            if (kind == 0 ? all == 1 : kind == 1 ? a > 1 && b == 0 : all > 2 && last == 0)
                break;
        }
        same_numbers(&p, (hp_check_options){.seed = seed, .ignore = ignore}, name[kind], &r);
    }
    planned_free(&p);
}

/* --- choices -------------------------------------------------------------------------------------------------------------- */

/* Equal logits everywhere: every choice is a tie, resolved alike by every split. */
static void near_ties(void)
{
    planned p = tried("mixtral", MOE "model.shared_ffn=0", "ideal:4",
                      "mesh = \"dp=2, tp=2\", split = { batch = \"dp\", seq = \"tp\", experts = \"dp\", heads = \"tp\", kv_heads = \"tp\" }, " ROOM ", uneven = true");
    if (p.err) {
        ok(false, "top-k near ties");
        diag("%s", p.e.text);
        return;
    }
    for (int t = 0; t < p.c.graph->n_tensors; t++)
        if (strstr(p.c.graph->tensor[t].name, "router.w"))
            p.c.graph->tensor[t].init_std = 1e-9f;
    hp_built_fini(&p.c.built);
    hp_check_report r;
    if (hp_build(p.c.graph, p.c.cluster, p.c.strategy, &p.c.built, &p.e))
        bail("%s", p.e.text);
    p.plan = p.c.built.plan;
    same_numbers(&p, (hp_check_options){.seed = 3}, "top-k near ties", &r);
    is_int(r.routing_misses, 0, "top-k near ties: none at a clear margin");
    planned_free(&p);
}

/* --- counts ---------------------------------------------------------------------------------------------------------------- */

/* Three partial terms with three readers: attention and mlp side by side leave one reduction a layer forward. */
static void one_reduction(void)
{
    int n[2];
    for (int i = 0; i < 2; i++) {
        const char *over = i ? "model.layers=2 model.parallel=one" : "model.layers=1 model.parallel=one";
        planned p = must_plan("llama-small", over, "ideal:2", "tp=2");
        n[i] = traffic_of(&p, 0, "F", "tp", HP_COLL_ALL_REDUCE).n;
        planned_free(&p);
    }
    is_int(n[1] - n[0], 1, "add of three partials with three consumers: one reduction");
}

static void replicas_once_a_step(void)
{
    const char *body = "mesh = \"rep=2, fsdp=2\", split = { batch = \"rep+fsdp\" }, states = { params = \"fsdp\", grads = \"fsdp\", optimizer = \"fsdp\", reduce = { between = "
                       "\"rep\" } }, batch = { accum = %d }";
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text, body, i ? 4 : 1);
        planned p = tried("llama", TINY, "ideal:4", text);
        if (p.err)
            bail("%s", p.e.text);
        bytes[i] = traffic_of(&p, 0, "BO", "rep", HP_COLL_ALL_REDUCE).bytes;
        planned_free(&p);
    }
    ok(bytes[0] > 0 && bytes[0] == bytes[1], "HSDP m=4: the replicas' all-reduce is once a step (%.0f bytes)", bytes[0]);
}

/* --- refusals and orders ----------------------------------------------------------------------------------------------------- */

static void refusals(void)
{
    const char *twice = scripted("mesh = \"tp=2\", split = { ffn = \"tp+tp\" }");
    refused("a rule naming an axis twice", "llama", TINY, "ideal:2", twice, HP_EINPUT, "tp");
    unlink(twice);
    const char *norm = scripted("mesh = \"tp=2\", layout = { { \"layers.0.norm1.w\", { embed = \"tp\" } } }");
    refused("a blocked dimension of a parameter split", "llama", TINY, "ideal:2", norm, HP_EINFEASIBLE, "layers.0.norm1|embed|tp");
    unlink(norm);
}

static void orders(void)
{
    static const char *const lists[] = {"{ \"heads\", \"a\" }, { \"kv_heads\", \"a\" }, { \"seq\", \"a+b\" }, { \"batch\", \"b\" }",
                                        "{ \"seq\", \"a+b\" }, { \"heads\", \"a\" }, { \"kv_heads\", \"a\" }, { \"batch\", \"b\" }",
                                        "{ \"batch\", \"b\" }, { \"seq\", \"a+b\" }, { \"heads\", \"a\" }, { \"kv_heads\", \"a\" }"};
    hp_str plan[3] = {{0}};
    double loss[3];
    for (int i = 0; i < 3; i++) {
        char text[512], name[64];
        hp_check_report r;
        snprintf(text, sizeof text, "mesh = \"a=2, b=2\", split = { %s }, param_split = {}, uneven = true", lists[i]);
        planned p = tried("llama", TINY, "h100-sxm:4", text);
        snprintf(name, sizeof name, "rule orders permuted: order %d", i + 1);
        if (p.err)
            ok(false, "%s", name), diag("%s", p.e.text);
        else if (same_numbers(&p, (hp_check_options){.seed = 3}, name, &r)) {
            loss[i] = r.loss;
            hp_plan_print(p.plan, &plan[i]);
            near(loss[i], loss[0], 1e-5 * loss[0], "%s: the same loss", name);
        }
        planned_free(&p);
    }
    char *body[3];
    for (int i = 0; i < 3; i++) {
        body[i] = strstr(hp_str_text(&plan[i]), "\nprogram");
        body[i] = body[i] ? body[i] : "";
    }
    ok(strcmp(body[0], body[1]), "rule orders permuted: the plans differ");
    for (int i = 0; i < 3; i++)
        hp_str_fini(&plan[i]);
}

int main(void)
{
    run_cases();
    few_targets();
    near_ties();
    one_reduction();
    replicas_once_a_step();
    refusals();
    orders();
    return done_testing();
}

/* What forward keeps for backward under each way of recomputation, and what backward runs again. */
#include "planned.h"

static planned ruled(const char *model, const char *rules)
{
    hp_str s = {0};
    hp_str_add(&s,
               "return strategy { mesh = 'dp=*', split = { batch = 'dp' }, recompute = { %s } }\n",
               rules);
    const char *path = script_of(hp_str_text(&s));
    planned p = must_plan(model, "model.layers=4 model.seq=16", "ideal:1", path);
    unlink(path);
    hp_str_fini(&s);
    return p;
}

/* The names of what layer `n` keeps, without its statistics, in order. */
static char *kept_by(const planned *p, int n)
{
    const hp_program *g = &p->plan->program[0];
    char prefix[16];
    hp_str s = {0};
    snprintf(prefix, sizeof prefix, "layers.%d.", n);
    for (int i = 0; i < g->n_buffers; i++) {
        const hp_buffer *b = &g->buffer[i];
        bool statistic = strstr(b->name, ".rstd") || strstr(b->name, ".lse");
        if (b->scope == HP_S_FRAME && b->alias < 0 && !strncmp(b->name, prefix, strlen(prefix)) &&
            !statistic)
            hp_str_add(&s, "%s%s", *hp_str_text(&s) ? " " : "", b->name + strlen(prefix));
    }
    return hp_str_take(&s);
}

static void keeps(const planned *p, int layer, const char *want, const char *name)
{
    char *got = kept_by(p, layer);
    is_str(got, want, "%s: what layer %d keeps", name, layer);
    free(got);
}

static int again(const planned *p, const char *begins)
{
    const hp_program *g = &p->plan->program[0];
    int n = 0;
    for (int k = 0; k < g->n_templates; k++)
        for (int j = 0; j < g->tmpl[k].n_tasks; j++)
            n += g->tmpl[k].task[j].recompute &&
                 !strncmp(g->tmpl[k].task[j].name, begins, strlen(begins));
    return n;
}

static const char all[] =
    "norm1 attn.v attn.q.rope attn.k.rope attn.core add norm2 mlp.gate mlp.up mlp.act add2";

static void ways(void)
{
    static const struct {
        const char *name, *rules, *kept;
        int again; /* operations of layer 1 that run again */
    } c[] = {
        {"none", "", all, 0},
        {"whole layers", "{ 'layers.*', 'inside' }", "add2", 13},
        {"a checkpoint a child", "{ 'layers.*', 'per-child' }", "norm1 add norm2 add2", 11},
        {"the mlp", "{ 'layers.*.mlp', 'inside' }",
         "norm1 attn.v attn.q.rope attn.k.rope attn.core add norm2 add2", 3},
        {"norms", "{ 'layers.*.norm*', 'inside' }", all, 2},
        {"norms with their results", "{ 'layers.*.norm*', 'discard' }",
         "attn.v attn.q.rope attn.k.rope attn.core add mlp.gate mlp.up mlp.act add2", 2},
        {"the gate's product", "{ '**', 'swiglu' }",
         "norm1 attn.v attn.q.rope attn.k.rope attn.core add norm2 mlp.gate mlp.up add2", 1},
        {"two operations", "{ '**', { 'swiglu', 'rmsnorm' } }",
         "attn.v attn.q.rope attn.k.rope attn.core add mlp.gate mlp.up add2", 3},
        {"attention, which is fused, saves nothing (M05)", "{ '**.core', 'inside' }", all, 1},
        {"attention with its result", "{ '**.core', 'discard' }",
         "norm1 attn.v attn.q.rope attn.k.rope add norm2 mlp.gate mlp.up mlp.act add2", 1},
        {"norms with their results and the mlp",
         "{ 'layers.*.norm*', 'discard' }, { 'layers.*.mlp', 'inside' }",
         "attn.v attn.q.rope attn.k.rope attn.core add add2", 5},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        planned p = ruled("llama-small", c[i].rules);
        keeps(&p, 1, c[i].kept, c[i].name);
        is_int(again(&p, "layers.1."), c[i].again, "%s: %d operations of a layer run again",
               c[i].name, c[i].again);
        proved(&p, 0, c[i].name);
        planned_free(&p);
    }
}

static void which_layers(void)
{
    planned p = ruled("llama-small", "{ 'layers.*', 'inside' }, { 'layers[0::2]', 'none' }");
    keeps(&p, 0, all, "the last rule that matches wins");
    keeps(&p, 1, "add2", "the last rule that matches wins");
    planned_free(&p);
    p = ruled("llama-small", "{ 'layers[0:2]', 'inside' }");
    keeps(&p, 1, "add2", "the first two layers");
    keeps(&p, 2, all, "the first two layers");
    planned_free(&p);
    p = ruled("llama-small", "{ 'layers.*', 'uniform:2' }");
    keeps(&p, 0, "", "groups of two layers");
    keeps(&p, 1, "add2", "groups of two layers");
    proved(&p, 0, "groups of two layers");
    planned_free(&p);
}

/* Choices of experts are integers: always kept, never made again. */
static void routing(void)
{
    planned p = ruled("moe-small", "{ 'layers.*', 'inside' }");
    const hp_program *g = &p.plan->program[0];
    int kept = 0;
    for (int i = 0; i < g->n_buffers; i++)
        kept += g->buffer[i].scope == HP_S_FRAME && g->buffer[i].dtype == HP_I32 &&
                strstr(g->buffer[i].name, "router.choice");
    is_int(kept, 4, "the choices of 4 routers are kept");
    proved(&p, 0, "experts in recomputed layers");
    planned_free(&p);
    p = must_plan("moe-small", "model.layers=1 model.seq=16", "ideal:2",
                  "ep=2,recompute=selective:moe_act+layernorm");
    is_int(again(&p, "layers.0.moe.experts.act"), 1,
           "an activation is found by what its result answers to");
    proved(&p, 0, "the experts' activation made anew");
    planned_free(&p);
    p = must_plan("mla-small", "model.layers=2 model.seq=16", "ideal:2",
                  "ep=2,recompute=selective:mla_up_proj+moe_act+shared_experts");
    ok(again(&p, "layers.1.mla.up") >= 7,
       "queries, keys and values come up from their latents again");
    keeps(&p, 1,
          "norm1 mla.q_down mla.q_norm mla.kv_down mla.kv_norm mla.k_rope.rope mla.core add norm2 "
          "moe.router moe.router.choice moe.router.choice.weights "
          "moe.router.choice~2 moe.dispatch~2 moe.experts.gate moe.experts.up moe.experts.down~2 "
          "add2",
          "latents and what experts read");
    proved(&p, 0, "latent attention made anew");
    planned_free(&p);
}

static int64_t frame(const char *strategy)
{
    planned p =
        must_plan("llama-small", "model.layers=4 model.seq=64 model.vocab=64", "ideal:2", strategy);
    int64_t bytes = p.plan->program[0].scope_bytes[HP_S_FRAME];
    planned_free(&p);
    return bytes;
}

int main(void)
{
    ways();
    which_layers();
    routing();
    ok(frame("tp=2") > frame("tp=2,recompute=selective:mlp") &&
           frame("tp=2,recompute=selective:mlp") > frame("tp=2,recompute=full") &&
           frame("tp=2,recompute=full") > frame("tp=2,sp,recompute=full"),
       "frames shrink from nothing to the mlp, whole layers, and with the sequence split");
    return done_testing();
}

/* Goldens: which gradient nodes there are, in which order, what they read and what they are called. */
#include "base/str.h"

#include "unit/op/cases.h"

/* "phase name(op): inputs -> outputs" of all nodes after the forward. */
static const char *backward_text(const hp_graph *g, hp_str *s)
{
    static const char *const phase[] = {"I", "F", "B", "W"};
    for (int k = 0; k < g->n_nodes; k++) {
        const hp_node *n = &g->node[k];
        if (n->fwd < 0 && strcmp(n->name, "loss/one"))
            continue;
        hp_str_add(s, "%s %s(%s):", phase[n->phase], n->name, g->ops[n->kind]->name);
        for (int i = 0; i < n->n_in + n->n_out; i++)
            hp_str_add(s, "%s %s", i == n->n_in ? " ->" : "",
                       n->arg[i] < 0 ? "-" : g->tensor[n->arg[i]].name);
        hp_str_add(s, "\n");
    }
    return hp_str_text(s);
}

static hp_graph *decoder(bool freeze)
{
    tg t = start("decoder");
    dim(&t, "batch", 2), dim(&t, "seq", 4), dim(&t, "micro", 1), dim(&t, "embed", 6),
        dim(&t, "ffn", 8), dim(&t, "vocab", 9);
    int tokens = input(&t, "tokens", HP_I32, "batch seq"),
        targets = input(&t, "targets", HP_I32, "batch seq");
    int all = input(&t, "targets.all", HP_I32, "micro batch seq"),
        table = param(&t, "embed.w", "vocab embed");
    int seed = node(&t, "recip", "seed", IN(node(&t, "count", "count", IN(all), NONE)), NONE);
    int x = node(&t, "embedding", "embed", IN(tokens, table), NONE);
    int n = node(&t, "rmsnorm", "norm", IN(x, param(&t, "norm.w", "embed")), NONE);
    int gate = node(&t, "linear", "gate", IN(n, param(&t, "gate.w", "embed ffn")), NONE);
    int up = node(&t, "linear", "up", IN(n, param(&t, "up.w", "embed ffn")), NONE);
    int down = node(
        &t, "linear", "down",
        IN(node(&t, "swiglu", "act", IN(gate, up), NONE), param(&t, "down.w", "ffn embed")), NONE);
    int y = node(&t, "add", "resid", IN(x, down), NONE);
    node(&t, "silu", "unused", IN(y), NONE);
    int logits = node(&t, "linear", "head", IN(y, table), AT({"transpose", 1}));
    t.loss[t.n_losses++] =
        node(&t, "ce_loss", "loss",
             IN(node(&t, "ce_stats", "stats", IN(logits, targets), NONE), targets, seed), NONE);
    t.g->tensor[named(&t, "up.w")].frozen = freeze;
    t.g->tensor[table].frozen = freeze;
    return finish(&t);
}

static void check_decoder(void)
{
    hp_graph *g = decoder(false);
    hp_str s = {0};
    is_str(backward_text(g, &s),
           "B stats/dx(ce_dx): head stats targets seed -> grad:head\n"
           "B head/dx(linear): grad:head embed.w -> grad:resid\n"
           "W head/dw(linear_dw): resid grad:head -> head/dw\n"
           "B down/dx(linear): grad:resid down.w -> grad:act\n"
           "W down/dw(linear_dw): act grad:resid -> grad:down.w\n"
           "B act/dx(swiglu_dx): gate up grad:act -> grad:gate grad:up\n"
           "B up/dx(linear): grad:up up.w -> up/dx\n"
           "W up/dw(linear_dw): norm grad:up -> grad:up.w\n"
           "B gate/dx(linear): grad:gate gate.w -> gate/dx\n"
           "W gate/dw(linear_dw): norm grad:gate -> grad:gate.w\n"
           "B norm/dsum(add): up/dx gate/dx -> grad:norm\n"
           "B norm/dx(rmsnorm_dx): embed norm.w norm.rstd grad:norm -> norm/dx\n"
           "W norm/dw(rmsnorm_dw): embed norm.rstd grad:norm -> grad:norm.w\n"
           "B embed/dsum(add): grad:resid norm/dx -> grad:embed\n"
           "W embed/dw(embedding_dw): tokens grad:embed -> embed/dw\n",
           "the backward of a decoder");
    int dw = hp_map_get(&g->tensor_id, "head/dw", -1),
        sum = hp_map_get(&g->tensor_id, "grad:norm", -1);
    is_str(g->tensor[g->tensor[dw].of].name, "embed.w",
           "a tied table has one weight gradient a use");
    is_int(g->tensor[dw].kind, HP_T_WGRAD, "of kind WGRAD");
    is_str(g->tensor[g->tensor[sum].of].name, "norm",
           "a sum is the gradient of what has several consumers");
    is_str(g->node[g->node[g->tensor[sum].producer].fwd].name, "norm",
           "and belongs to its producer");
    is_int(g->tensor[sum].kind, HP_T_GRAD, "of kind GRAD");
    is_str(g->tensor[g->loss].name, "loss", "the loss is named");
    const char *saved[] = {"head", "stats", "targets", "seed",      "act",   "resid",
                           "gate", "up",    "norm",    "norm.rstd", "embed", "tokens"};
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
        ok(g->tensor[hp_map_get(&g->tensor_id, saved[i], -1)].saved, "%s is saved for the backward",
           saved[i]);
    const char *lost[] = {"down", "loss", "count", "unused", "grad:act"};
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        ok(!g->tensor[hp_map_get(&g->tensor_id, lost[i], -1)].saved, "%s is not", lost[i]);
    hp_str_fini(&s);
    hp_graph_free(g);
}

static void check_frozen(void)
{
    hp_graph *g = decoder(true);
    hp_str s = {0};
    is_str(backward_text(g, &s),
           "B stats/dx(ce_dx): head stats targets seed -> grad:head\n"
           "B head/dx(linear): grad:head embed.w -> grad:resid\n"
           "B down/dx(linear): grad:resid down.w -> grad:act\n"
           "W down/dw(linear_dw): act grad:resid -> grad:down.w\n"
           "B act/dx(swiglu_dx): gate up grad:act -> grad:gate grad:up\n"
           "B up/dx(linear): grad:up up.w -> up/dx\n"
           "B gate/dx(linear): grad:gate gate.w -> gate/dx\n"
           "W gate/dw(linear_dw): norm grad:gate -> grad:gate.w\n"
           "B norm/dsum(add): up/dx gate/dx -> grad:norm\n"
           "W norm/dw(rmsnorm_dw): embed norm.rstd grad:norm -> grad:norm.w\n",
           "frozen parameters get no gradient, nor does what depends on them alone");
    hp_str_fini(&s);
    hp_graph_free(g);
}

/* A sum of losses hands the constant 1 on; another factor makes a tensor of it. */
static void check_loss_terms(void)
{
    tg t = start("terms");
    dim(&t, "b", 2), dim(&t, "v", 3);
    int targets = input(&t, "targets", HP_I32, "b"),
        seed = node(&t, "fill", "seed", NONE, AT({"value", 1}));
    int stats = node(&t, "ce_stats", "stats",
                     IN(node(&t, "silu", "x", IN(var(&t, "p", "b v")), NONE), targets), NONE);
    int a = node(&t, "ce_loss", "a", IN(stats, targets, seed), NONE);
    t.loss[t.n_losses++] = a;
    t.loss[t.n_losses++] =
        node(&t, "scale", "half", IN(node(&t, "ce_loss", "c", IN(stats, targets, seed), NONE)),
             AT({"by", 0.5}));
    finish(&t);
    hp_str s = {0};
    is_str(backward_text(t.g, &s),
           "I loss/one(fill): -> loss/one\n"
           "I half/dx(scale): loss/one -> grad:c\n"
           "I c/seed(mul): seed grad:c -> c/seed\n"
           "I stats/dsum(add): c/seed seed -> grad:stats\n"
           "B stats/dx(ce_dx): x stats targets grad:stats -> grad:x\n"
           "B x/dx(silu_dx): p grad:x -> grad:p\n"
           "W p/db(mulsum): p.one grad:p -> grad:p.p\n",
           "factors of losses are computed once a step");
    hp_str_fini(&s);
    hp_graph_free(t.g);
}

static void check_refusals(void)
{
    hp_errmsg e;
    tg t = start("refused");
    dim(&t, "b", 2), dim(&t, "h", 3);
    int p = param(&t, "p", "b h"), x = node(&t, "silu", "x", IN(p), NONE), d;
    is_int(hp_graph_autodiff(t.g, x, &e), HP_EINPUT, "a loss must be a scalar");
    is_int(hp_graph_autodiff(t.g, -1, &e), HP_EINPUT, "a loss must be there");
    probe(&t, x);
    is_int(hp_graph_autodiff(t.g, t.loss[0], &e), HP_EINPUT,
           "a parameter is only trained where it has a weight gradient");
    ok(strstr(e.text, "x (silu)") && strstr(e.text, " p "),
       "and the node and the parameter are named: %s", e.text);
    hp_graph_free(t.g);

    t = start("no gradient");
    dim(&t, "b", 2), d = dim(&t, "h", 3);
    (void)d;
    probe(&t, node(&t, "softmax_dx", "y", IN(var(&t, "a", "b h"), var(&t, "c", "b h")), NONE));
    is_int(hp_graph_autodiff(t.g, t.loss[0], &e), HP_EINPUT,
           "an operation without gradient on the way is refused");
    ok(strstr(e.text, "softmax_dx has no gradient") != NULL, "by name: %s", e.text);
    hp_graph_free(t.g);

    hp_graph *g = decoder(false);
    is_int(hp_graph_autodiff(g, g->loss, &e), HP_EINPUT, "a graph is differentiated once");
    hp_graph_free(g);
}

/* Eleven consumers: more than one sum takes. */
static void check_many(void)
{
    tg t = start("many");
    dim(&t, "b", 2);
    int x = var(&t, "x", "b");
    for (int i = 0; i < 11; i++) {
        char name[16];
        snprintf(name, sizeof name, "use%d", i);
        probe(&t, node(&t, "scale", name, IN(x), AT({"by", 1})));
    }
    finish(&t);
    int whole = hp_map_get(&t.g->tensor_id, "grad:x", -1),
        first = hp_map_get(&t.g->tensor_id, "x/dsum", -1);
    ok(first >= 0 && t.g->node[t.g->tensor[first].producer].n_in == 8,
       "a sum has at most eight terms");
    ok(whole >= 0 && t.g->node[t.g->tensor[whole].producer].n_in == 4,
       "the next one takes the rest");
    hp_graph_free(t.g);
}

int main(void)
{
    check_decoder();
    check_frozen();
    check_loss_terms();
    check_refusals();
    check_many();
    return done_testing();
}

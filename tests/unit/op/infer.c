/* What operations refuse, each with the node, what it got and what would be legal. */
#include "cases.h"

static tg t;

static void refuses(const char *op, const int *in, size_t n_in, const hp_attr *attr, size_t n_attr,
                    const char *says)
{
    hp_errmsg e = {0};
    int node;
    int before = t.g->n_nodes;
    hp_err err = hp_graph_add(t.g, op, "n", (int)n_in, in, (int)n_attr, attr, &node, &e);
    ok(err == HP_EINPUT && t.g->n_nodes == before && strstr(e.text, "n: ") == e.text &&
           strstr(e.text, says),
       "%s refuses: %s", op, err ? e.text : "nothing");
}

int main(void)
{
    t = start("refusals");
    int d2 = dim(&t, "b", 2), d3 = dim(&t, "s", 3), d4 = dim(&t, "h", 4), d5 = dim(&t, "e", 5);
    int x = input(&t, "x", HP_F32, "b s h"), ids = input(&t, "ids", HP_I32, "b s"),
        w = param(&t, "w", "h e"), v = param(&t, "v", "h");
    int k4 = input(&t, "k4", HP_F32, "b s s h"), logits = input(&t, "logits", HP_F32, "b s e"),
        three = input(&t, "three", HP_F32, "b s s");
    dim(&t, "top", 2), dim(&t, "lots", 9);
    int router =
        node(&t, "router", "r", IN(logits), AT({"d", hp_map_get(&t.g->dim_id, "top", -1)}));
    int xe = node(&t, "dispatch", "xe", IN(x, router), AT({"d", d5}));
    refuses("linear", IN(x), NONE, "takes 2 to 2 inputs, not 1");
    refuses("linear", IN(x, -1), NONE, "needs its input 1");
    refuses("linear", IN(ids, w), NONE, "must hold real numbers");
    refuses("linear", IN(x, v), NONE, "do not divide into contracted ones and outputs");
    refuses("linear", IN(xe, w), NONE, "can only pass grouped and elementwise operations");
    refuses("embedding", IN(x, w), NONE, "must hold integers");
    refuses("embedding", IN(ids, v), NONE, "vocabulary width");
    refuses("add", IN(x, v), NONE, "must have the shape of input 0");
    refuses("add", IN(xe, k4), NONE, "must follow the same router");
    refuses("bias", IN(v, w), NONE, "must have the last dimensions of input 0");
    refuses("mul", IN(x, w), NONE, "not among those of the other operand");
    refuses("rmsnorm", IN(x, w), NONE, "must have the dimensions width");
    refuses("rope", IN(three, ids), NONE, "must be even");
    refuses("rope", IN(x, v), NONE, "must hold integers");
    refuses("attention", IN(x, k4, k4, ids, ids), NONE, "batch seq heads (group) head");
    refuses("attention", IN(k4, k4, k4, ids, ids, ids), NONE, "or for neither");
    refuses("reshape", IN(x), AT({"d0", d2}, {"d1", d5}), "has not the elements of n[b=2 e=5]");
    refuses("reshape", IN(x), AT({"d0", 77}), "the number of a dimension of this graph");
    refuses("transpose", IN(x), AT({"p0", 0}, {"p1", 0}, {"p2", 1}),
            "an order of all its dimensions");
    refuses("split", IN(x), AT({"d0", d3}), "do not add up");
    refuses("concat", IN(x, x), AT({"d", d5}), "longer than the result");
    refuses("concat", IN(x, k4), NONE, "needs the attribute d");
    refuses("slice", IN(x), AT({"d", d3}, {"at", 2}), "beyond its last dimension");
    refuses("dropout", IN(x), AT({"p", 1}), "at least 0 and below 1");
    refuses("ce_stats", IN(logits, x), NONE, "of the logits but the last");
    refuses("ce_loss", IN(logits, ids, x), NONE, "of a scalar");
    refuses("router", IN(logits), AT({"d", hp_map_get(&t.g->dim_id, "lots", -1)}),
            "9 choices of 5 experts");
    refuses("router", IN(logits), AT({"d", d2}, {"groups", 2}), "groups");
    refuses("grouped", IN(xe, w, router), NONE, "experts in out");
    refuses("grouped", IN(k4, w, router), NONE, "do not follow the choices");
    (void)d4;
    hp_graph_free(t.g);
    return done_testing();
}

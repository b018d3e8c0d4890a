/* V01 and V06: heads over tensor parallelism and over Ulysses.
 *
 * V01: torchtitan issue 2574, transformers issue 48307. Legal: n_kv % tp == 0, or tp % n_kv == 0
 * with tp / n_kv copies of keys and values (parameters, activations and the reduction of their
 * gradients), and always n_q % tp == 0. V06: verl issue 1226: q % sp == 0 and (kv % sp == 0 or sp %
 * kv == 0).
 */
#include "planned.h"

static int64_t over_ranks(const planned *p, const char *buffer)
{
    const hp_program *g = &p->plan->program[0];
    int64_t sum = 0;
    int id = (int)(buffer_of(p, 0, buffer) - g->buffer);
    for (int r = 0; r < g->mesh.n_ranks; r++)
        sum += hp_buffer_rank_bytes(g, id, r);
    return sum;
}

/* Keys and values lie `copies` times over the tp ranks, and their gradients are added up over
 * the copies. */
static void replicated(const char *what, int heads, int kv, int tp, int copies)
{
    char over[256], cluster[32], strategy[32], id[96];
    snprintf(id, sizeof id, "V01 %s", what);
    snprintf(
        over, sizeof over,
        "model.layers=1 model.seq=8 model.ffn=64 model.heads=%d model.kv_heads=%d model.head=16",
        heads, kv);
    snprintf(cluster, sizeof cluster, "ideal:%d", tp);
    snprintf(strategy, sizeof strategy, "tp=%d", tp);
    planned p = must_plan("llama-small", over, cluster, strategy);
    int64_t weight = (int64_t)256 * kv * 16 * 4, activation = (int64_t)8 * kv * 16 * 4;
    is_int(over_ranks(&p, "layers.0.attn.k.w"), copies * weight, "%s: %d copies of the key weights",
           id, copies);
    is_int(over_ranks(&p, "layers.0.attn.q.w"), (int64_t)256 * heads * 16 * 4,
           "%s: one of the query weights", id);
    is_int(over_ranks(&p, "layers.0.attn.k.w:acc") + over_ranks(&p, "layers.0.attn.v.w:acc"),
           2 * copies * weight, "%s: as many gradients", id);
    is_int(over_ranks(&p, "layers.0.attn.v"), copies * activation, "%s: as many values", id);
    const hp_program *g = &p.plan->program[0];
    static const char *const reduced[] = {"grad:layers.0.attn.v>all-reduce",
                                          "grad:layers.0.attn.k.rope>all-reduce"};
    for (int i = 0; i < 2; i++) {
        const hp_task *t = task_of(&p, 0, reduced[i]);
        ok(t && hp_mesh_group_size(&g->mesh, t->atoms) == copies, "%s: %s goes over the %d copies",
           id, reduced[i], copies);
    }
    proved(&p, 0, id);
    planned_free(&p);
}

static void tensor_parallel(void)
{
    replicated("(a) 4 key/value heads on tp=8", 32, 4, 8, 2);
    replicated("(b) 2 key/value heads on tp=4", 8, 2, 4, 2);
    replicated("(d) 8 key/value heads on tp=16", 32, 8, 16, 2);
    refused("V01 (c)", "llama-small", "model.layers=1 model.seq=8 model.heads=40 model.kv_heads=10",
            "ideal:4", "tp=4", HP_EINFEASIBLE,
            "layers.0.attn.q.w|10 key/value heads|tp (4 parts)|40 query heads|nearest legal: 2 or "
            "5 parts");
    runs_right("V01 (c)", "llama-small",
               "model.layers=1 model.seq=8 model.heads=40 model.kv_heads=10", "ideal:4",
               "tp=4,uneven");
}

/* 28 heads with as many keys: tp may be any divisor and nothing else. */
static void divisors(void)
{
    static const int legal[] = {1, 2, 4, 7, 14, 28};
    for (int tp = 1; tp <= 28; tp++) {
        bool want = false;
        char cluster[32], text[128];
        for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
            want = want || legal[i] == tp;
        snprintf(cluster, sizeof cluster, "ideal:%d", tp);
        snprintf(text, sizeof text,
                 "return strategy { mesh = 'tp=%d', split = { heads = 'tp', kv_heads = 'tp' } }",
                 tp);
        const char *script = script_of(text);
        planned p =
            plan_of("llama-small", "model.layers=1 model.seq=8 model.heads=28 model.kv_heads=28",
                    cluster, script);
        ok(p.err == (want ? HP_OK : HP_EINFEASIBLE), "V01: 28 heads on tp=%d are %s", tp,
           want ? "legal" : "refused") ||
            (diag("exit %d: %s", p.err, p.e.text), 0);
        planned_free(&p);
        unlink(script);
    }
}

static void ulysses(void)
{
    static const struct {
        int sp;
        const char *near; /* NULL: legal */
    } c[] = {{1, NULL},
             {2, NULL},
             {4, NULL},
             {8, NULL},
             {40, NULL},
             {5, "4 or 8 parts"},
             {10, "8 or 40 parts"},
             {20, "8 or 40 parts"}};
    const char *over = "model.layers=1 model.seq=40 model.heads=40 model.kv_heads=8 model.head=4 "
                       "model.embed=32 model.ffn=32";
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char cluster[32], strategy[64], words[160];
        snprintf(cluster, sizeof cluster, "ideal:%d", c[i].sp);
        snprintf(strategy, sizeof strategy, "dp=1,cp=%d,cp_kind=ulysses", c[i].sp);
        snprintf(words, sizeof words,
                 "layers.0.attn.q|8 key/value heads|cp (%d parts)|40 query heads|nearest legal: %s",
                 c[i].sp, c[i].near ? c[i].near : "");
        if (c[i].near)
            refused("V06", "llama-small", over, cluster, strategy, HP_EINFEASIBLE, words);
        else
            runs_right("V06", "llama-small", over, cluster, strategy);
    }
}

/* 12 heads on 4 are 3, 3, 3, 3; 7 on 4 and 20 on 8 are legal only where uneven splits are asked
 * for. */
static void uneven_ulysses(void)
{
    planned p =
        must_plan("llama-small", "model.layers=1 model.seq=8 model.heads=12 model.kv_heads=12",
                  "ideal:4", "cp=4,cp_kind=ulysses,uneven");
    const hp_program *g = &p.plan->program[0];
    int split = 0, threes = 0;
    for (int i = 0; i < g->n_buffers; i++)
        if (g->buffer[i].tensor && !strcmp(g->buffer[i].tensor, "layers.0.attn.core") &&
            g->buffer[i].layout.n[2]) {
            split++;
            for (int r = 0; r < 4; r++) {
                hp_box b = hp_buffer_box(g, i, r);
                threes += b.hi[2] - b.lo[2] == 3;
            }
        }
    ok(split && threes == 4 * split, "V06: 12 heads on sp=4 are 3, 3, 3, 3");
    planned_free(&p);
    static const struct {
        int heads, sp;
        const char *near;
    } c[] = {{7, 4, "1 or 7 parts"}, {20, 8, "5 or 10 parts"}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char over[160], cluster[32], even[64], uneven[64], words[80];
        snprintf(over, sizeof over,
                 "model.layers=1 model.seq=8 model.heads=%d model.kv_heads=%d model.head=4 "
                 "model.embed=32",
                 c[i].heads, c[i].heads);
        snprintf(cluster, sizeof cluster, "ideal:%d", c[i].sp);
        snprintf(even, sizeof even, "cp=%d,cp_kind=ulysses", c[i].sp);
        snprintf(uneven, sizeof uneven, "%s,uneven", even);
        snprintf(words, sizeof words, "nearest legal: %s|uneven", c[i].near);
        refused("V06", "llama-small", over, cluster, even, HP_EINFEASIBLE, words);
        runs_right("V06", "llama-small", over, cluster, uneven);
    }
}

int main(void)
{
    tensor_parallel();
    divisors();
    ulysses();
    uneven_ulysses();
    return done_testing();
}

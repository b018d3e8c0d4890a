/* V03: context parallelism in head and tail pairs together with sequence parallelism.
 *
 * NeMo-RL PR 3563: S % (2c) == 0 and (S/c) % t == 0, so S is a multiple of c lcm(2, t): 8 for c2
 * t4, 12 for c2 t3, 32 for c4 t8. Not lcm(2c, t), not 2ct.
 */
#include "planned.h"

static const struct {
    int c, t, unit;
} known[] = {{2, 4, 8}, {2, 3, 12}, {4, 8, 32}};

static planned plan_seq(int c, int t, int seq, const char *more)
{
    char over[256], cluster[32], strategy[96];
    snprintf(over, sizeof over,
             "model.layers=1 model.seq=%d model.heads=%d model.kv_heads=%d model.head=4 "
             "model.embed=32 model.ffn=%d model.vocab=%d",
             seq, t, t, 8 * t, 16 * t);
    snprintf(cluster, sizeof cluster, "ideal:%d", c * t);
    snprintf(strategy, sizeof strategy, "cp=%d,tp=%d,sp,zigzag%s", c, t, more);
    return plan_of("llama-small", over, cluster, strategy);
}

/* Exactly the multiples of the unit are legal. */
static void multiples(int c, int t, int unit)
{
    int wrong = 0;
    for (int seq = 1; seq <= 3 * unit; seq++) {
        planned p = plan_seq(c, t, seq, "");
        wrong += p.err != (seq % unit ? HP_EINFEASIBLE : HP_OK);
        planned_free(&p);
    }
    is_int(wrong, 0, "V03: cp=%d, tp=%d with sp: legal are the multiples of %d and no others", c, t,
           unit);
}

static void names(int c, int t, int seq, const char *words)
{
    planned p = plan_seq(c, t, seq, "");
    ok(p.err == HP_EINFEASIBLE && strstr(p.e.text, words) && strstr(p.e.text, "seq"),
       "V03: cp=%d, tp=%d, seq %d: %s", c, t, seq, words) ||
        (diag("exit %d: %s", p.err, p.e.text), 0);
    planned_free(&p);
}

static void runs(int c, int t, int seq, const char *more)
{
    char name[64];
    planned p = plan_seq(c, t, seq, more);
    snprintf(name, sizeof name, "V03: cp=%d, tp=%d, seq %d%s", c, t, seq, more);
    if (p.err)
        ok(false, "%s: %s", name, p.e.text);
    else
        proved(&p, 0, name);
    planned_free(&p);
}

int main(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        multiples(known[i].c, known[i].t, known[i].unit);
    names(2, 4, 12, "a sequence of 8 or 16");
    names(2, 3, 16, "a sequence of 12 or 24");
    names(2, 3, 6, "nearest legal: 12 or 24");
    names(4, 8, 40, "a sequence of 32 or 64");
    runs(2, 4, 8, "");
    runs(2, 3, 12, "");
    runs(2, 4, 12, ",uneven");
    runs(2, 3, 7, ",uneven");
    return done_testing();
}

/* A plan over its budget is refused with the moment, the five largest tensors of it and a
 * change; the change fits when it is made. */
#include "planned.h"

#define MODEL "llama-small"
#define SIZES "model.layers=4 model.seq=64"

static planned budgeted(const char *strategy, int64_t budget)
{
    char over[128];
    snprintf(over, sizeof over, SIZES " cluster.hbm_bytes=%lld", (long long)budget);
    return plan_of(MODEL, over, "ideal:4", strategy);
}

static int64_t arena_of(const char *strategy)
{
    planned p = must_plan(MODEL, SIZES, "ideal:4", strategy);
    int64_t arena = hp_program_arena(&p.plan->program[0]);
    planned_free(&p);
    return arena;
}

/* Keys of a suggestion laid over a shorthand: "zero=2,recompute=full and half the microbatch
 * (mbs)". */
static void apply(const char *strategy, const char *suggestion, char *out, size_t n)
{
    int mbs = atoi(strstr(strategy, "mbs=") + 4);
    char keys[128] = "";
    const char *zero = strstr(suggestion, "zero=");
    if (zero)
        snprintf(keys, sizeof keys, ",zero=%c", zero[5]);
    if (strstr(suggestion, "recompute=full"))
        strcat(keys, ",recompute=full");
    if (strstr(suggestion, "half the microbatch"))
        mbs /= 2;
    snprintf(out, n, "dp=4,mbs=%d,gbs=16%s", mbs, keys);
}

static void suggestions(void)
{
    const char *strategy = "dp=4,mbs=4,gbs=16";
    int64_t most = arena_of(strategy);
    int wrong = 0, tried = 0, none = 0;
    char before[256] = "";
    for (int64_t percent = 98; percent >= 4; percent -= 2) {
        planned p = budgeted(strategy, most * percent / 100);
        const char *says = strstr(p.e.text, "cheapest change that fits: ");
        if (p.err != HP_EINFEASIBLE) {
            wrong++;
        } else if (says) {
            char changed[256];
            apply(strategy, says, changed, sizeof changed);
            planned q = budgeted(changed, most * percent / 100);
            tried++;
            ok(q.err == HP_OK, "at %lld %% of its memory %s fits", (long long)percent, changed) ||
                (diag("%s", q.e.text), 0);
            if (strcmp(before, changed))
                note("from %lld %% on: %s", (long long)percent, changed);
            snprintf(before, sizeof before, "%s", changed);
            planned_free(&q);
        } else {
            none += strstr(p.e.text, "use more devices, or split the model") != NULL;
        }
        planned_free(&p);
    }
    is_int(wrong, 0, "whatever is over its budget is refused with exit 4");
    ok(tried > 10 && none > 1, "changes are found, and where none helps it is said");
}

static void the_moment(void)
{
    planned p = budgeted("dp=4,mbs=4", arena_of("dp=4,mbs=4") / 2);
    const char *at = strstr(p.e.text, "peak at "), *largest = strstr(p.e.text, "largest then: ");
    ok(strstr(p.e.text, "a device of stage0 needs") && at && largest,
       "the refusal names need, budget, moment and tensors") ||
        (diag("%s", p.e.text), 0);
    int named = 1;
    for (const char *c = largest; c && *c && *c != ';'; c++)
        named += *c == ',';
    is_int(named, 5, "five tensors");
    char moment[128] = "";
    if (at)
        snprintf(moment, sizeof moment, "%.*s", (int)strcspn(at + 8, ";"), at + 8);
    planned q = must_plan(MODEL, SIZES, "ideal:4", "dp=4,mbs=4");
    ok(task_of(&q, 0, moment) != NULL, "the moment is a task of the plan: %s", moment);
    int found = 0;
    for (int i = 0; largest && i < q.plan->program[0].n_buffers; i++) {
        char word[160];
        snprintf(word, sizeof word, " %s ", q.plan->program[0].buffer[i].name);
        const char *hit = strstr(largest, word);
        found += hit && hit < strchr(largest, ';');
    }
    is_int(found, 5, "and the tensors are buffers of it");
    planned_free(&q);
    planned_free(&p);
}

static void within(void)
{
    int64_t arena = arena_of("zero=1");
    planned p = budgeted("zero=1", arena), q = budgeted("zero=1", arena - 64);
    ok(p.err == HP_OK && q.err == HP_EINFEASIBLE, "the budget is met to the byte");
    planned_free(&p);
    planned_free(&q);
}

int main(void)
{
    suggestions();
    the_moment();
    within();
    return done_testing();
}

/* Reports: every transfer with its reason, sums that agree with the plan's own figures. */
#include "planned.h"

static char *report(const planned *p, void (*print)(const hp_plan *, hp_str *))
{
    hp_str s = {0};
    print(p->plan, &s);
    return hp_str_take(&s);
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void why(const planned *p)
{
    char *text = report(p, hp_report_why);
    int transfers = 0, unexplained = 0;
    for (int i = 0; i < p->plan->n_programs; i++)
        for (int k = 0; k < p->plan->program[i].n_templates; k++)
            for (int j = 0; j < p->plan->program[i].tmpl[k].n_tasks; j++) {
                const hp_task *t = &p->plan->program[i].tmpl[k].task[j];
                bool moves = (t->kind == HP_TASK_COLL && t->coll != HP_COLL_SLICE) ||
                             t->kind == HP_TASK_SEND || t->kind == HP_TASK_COPY;
                transfers += moves;
                unexplained += moves && (!t->why || !*t->why || !strstr(text, t->name));
            }
    is_int(unexplained, 0, "every transfer has a reason and stands in the report");
    is_int(lines_of(text), transfers, "one line each");
    ok(strstr(text, "layers.0.attn.o>all-reduce: layers.0.attn.o from [batch:dp partial:sum(tp)] "
                    "to [batch:dp] for layers.0.add\n") != NULL,
       "with tensor, from, to and consumer") ||
        (diag("%.600s", text), 0);
    free(text);
}

static void comm(const planned *p)
{
    char *text = report(p, hp_report_comm);
    static const struct {
        const char *axis;
        hp_coll kind;
    } c[] = {{"tp", HP_COLL_ALL_REDUCE},
             {"dp", HP_COLL_REDUCE_SCATTER},
             {"dp", HP_COLL_ALL_GATHER},
             {"dp", HP_COLL_ALL_REDUCE}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char want[160];
        traffic t = traffic_of(p, 0, "IFBO", c[i].axis, c[i].kind);
        snprintf(want, sizeof want, "%-8s %-10s %-14s %8d %14.0f\n", "stage0", c[i].axis,
                 hp_coll_name(c[i].kind), t.n, t.bytes);
        ok(t.n > 0 && strstr(text, want), "the sum of %s over %s: %d a step, %.0f bytes",
           hp_coll_name(c[i].kind), c[i].axis, t.n, t.bytes) ||
            (diag("%s", text), 0);
    }
    free(text);
}

static void memory(const planned *p)
{
    char *text = report(p, hp_report_memory), bytes[32], want[160];
    const hp_program *g = &p->plan->program[0];
    snprintf(want, sizeof want, "stage0: arena %s of ",
             hp_format_bytes((double)hp_program_arena(g), bytes, sizeof bytes));
    ok(strstr(text, want) != NULL, "the arena: %s", want);
    for (int s = 0; s < HP_S_SCOPES; s++) {
        snprintf(want, sizeof want, "%10s  %s",
                 hp_format_bytes((double)g->scope_bytes[s], bytes, sizeof bytes),
                 hp_scope_name((hp_scope)s));
        ok(strstr(text, want) != NULL, "scope %s", hp_scope_name((hp_scope)s));
    }
    snprintf(want, sizeof want, "%10s  optimizer held all step\n",
             hp_format_bytes((double)held_bytes(p, 0, HP_B_OPTIMIZER, HP_S_PERSIST), bytes,
                             sizeof bytes));
    ok(strstr(text, want) != NULL, "the optimizer's states");
    const char *largest = strstr(text, " largest buffers\n");
    int64_t most = 0;
    for (int i = 0; i < g->n_buffers; i++)
        most = g->buffer[i].bytes > most ? g->buffer[i].bytes : most;
    snprintf(want, sizeof want, " largest buffers\n  %10s ",
             hp_format_bytes((double)most, bytes, sizeof bytes));
    ok(largest && !strncmp(largest, want, strlen(want)), "the largest buffer first") ||
        (diag("%s", text), 0);
    free(text);
}

static void groups(void)
{
    planned p =
        must_plan("llama-small", "model.layers=2 model.seq=16", "ideal:8", "pp=2,dp=2,tp=2,gbs=4");
    char *text = report(&p, hp_report_groups);
    is_str(text,
           "stage0 dp=2: [0 2] [1 3]\nstage0 tp=2: [0 1] [2 3]\nstage1 dp=2: [4 6] [5 7]\nstage1 "
           "tp=2: [4 5] [6 7]\n",
           "groups by device numbers, inner neighbours next to each other");
    free(text);
    planned_free(&p);
}

static void runs(void)
{
    planned p = must_plan("llama-small", "model.layers=2 model.seq=16", "ideal:1", "accum=5");
    const hp_program *g = &p.plan->program[0];
    int wrong = 0;
    for (int k = 0; k < g->n_templates; k++)
        for (int j = 0; j < g->tmpl[k].n_tasks; j++) {
            const hp_task *t = &g->tmpl[k].task[j];
            bool micro = g->tmpl[k].kind == HP_TMPL_F || g->tmpl[k].kind == HP_TMPL_B;
            int want = !micro || t->when == HP_W_FIRST || t->when == HP_W_LAST ? 1
                       : t->when == HP_W_REST                                  ? 4
                                                                               : 5;
            wrong += hp_task_runs(g, k, t) != want;
        }
    is_int(wrong, 0, "tasks run once a step, once a microbatch, or in all but the first");
    planned_free(&p);
}

int main(void)
{
    planned p = must_plan("llama-small", "model.layers=2 model.seq=16", "ideal:4",
                          "dp=2,tp=2,zero=1,accum=2");
    why(&p);
    comm(&p);
    memory(&p);
    planned_free(&p);
    groups();
    runs();
    return done_testing();
}

/* The order of a stage's microbatches against the published schedules, and the frames they hold
 * against closed forms. */
#include "planned.h"

static planned piped(const char *strategy, int pp)
{
    char cluster[16];
    snprintf(cluster, sizeof cluster, "ideal:%d", pp);
    return must_plan("llama-small",
                     "model.layers=16 model.seq=8 model.embed=16 model.head=2 model.ffn=16",
                     cluster, strategy);
}

/* "F0 F1 B0 ..." or, with chunks, "F0.1" for microbatch 0 of chunk 1; I and O left out. */
static char *order_of(const planned *p, int stage, bool chunks)
{
    static const char letter[] = "IFBWO";
    const hp_program *g = &p->plan->program[stage];
    hp_str s = {0};
    for (int i = 0; i < g->n_entries; i++) {
        const hp_entry *e = &g->entry[i];
        const hp_template *t = &g->tmpl[e->tmpl];
        if (t->kind == HP_TMPL_I || t->kind == HP_TMPL_O)
            continue;
        hp_str_add(&s, "%s%c%d", *hp_str_text(&s) ? " " : "", letter[t->kind], e->micro);
        if (chunks)
            hp_str_add(&s, ".%d", t->chunk);
    }
    return hp_str_take(&s);
}

static void runs_as(const planned *p, int stage, bool chunks, const char *want, const char *name)
{
    char *got = order_of(p, stage, chunks);
    is_str(got, want, "%s, stage %d", name, stage);
    free(got);
}

/* PipeDream-Flush (Narayanan et al., ICML 2021, figure 2; SC 2021, figure 3). */
static void one_f_one_b(void)
{
    planned p = piped("pp=4,gbs=8", 4);
    runs_as(&p, 0, false, "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7", "1f1b");
    runs_as(&p, 1, false, "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7", "1f1b");
    runs_as(&p, 2, false, "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7", "1f1b");
    runs_as(&p, 3, false, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7", "1f1b");
    planned_free(&p);
}

/* GPipe (Huang et al., 2019): all forwards, then all backwards. */
static void gpipe(void)
{
    planned p = piped("pp=2,gbs=3,schedule=gpipe", 2);
    for (int i = 0; i < 2; i++)
        runs_as(&p, i, false, "F0 F1 F2 B0 B1 B2", "gpipe");
    planned_free(&p);
}

/* Interleaved 1F1B (SC 2021, figure 4): (p - r - 1) 2 + (v - 1) p chunk forwards ahead, groups
 * of p microbatches. */
static void interleaved(void)
{
    planned p = piped("pp=2,vpp=2,gbs=4", 2);
    runs_as(&p, 0, true,
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0",
            "interleaved");
    runs_as(&p, 1, true,
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0",
            "interleaved");
    planned_free(&p);
}

/* --- frames ---------------------------------------------------------------------------------- */

/* A frame is held from F to its B, and by no other microbatch in between; returns the most that
 * are held at once. */
static int frames_held(const hp_program *g, int *wrong)
{
    int owner[256], held = 0, most = 0;
    memset(owner, 0xff, sizeof owner);
    for (int i = 0; i < g->n_entries; i++) {
        const hp_entry *e = &g->entry[i];
        const hp_template *t = &g->tmpl[e->tmpl];
        int who = t->chunk * 1000 + e->micro;
        if (t->kind == HP_TMPL_F) {
            *wrong += e->frame < 0 || e->frame >= g->n_frames || owner[e->frame] >= 0;
            owner[e->frame] = who;
            held++;
        } else if (t->kind == HP_TMPL_B) {
            *wrong += owner[e->frame] != who;
            owner[e->frame] = -1;
            held--;
        } else {
            *wrong += e->frame != -1;
        }
        most = held > most ? held : most;
    }
    *wrong += held;
    return most;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void holds(const char *strategy, int pp, int stage, int want, const planned *p)
{
    int wrong = 0, most = frames_held(&p->plan->program[stage], &wrong);
    is_int(most, want, "%s with pp=%d: stage %d has %d in flight", strategy, pp, stage, want);
    ok(!wrong && p->plan->program[stage].n_frames == most,
       "and as many frames, each with one owner at a time");
}

static void in_flight(void)
{
    static const int micros[] = {1, 2, 3, 4, 8};
    for (int pp = 1; pp <= 8; pp *= 2)
        for (size_t k = 0; k < sizeof micros / sizeof *micros; k++) {
            char strategy[64];
            int m = micros[k];
            snprintf(strategy, sizeof strategy, "pp=%d,gbs=%d", pp, m);
            planned p = piped(strategy, pp);
            for (int r = 0; r < pp; r++)
                holds(strategy, pp, r, least(pp - r, m), &p);
            planned_free(&p);
            if (pp == 1)
                continue;
            snprintf(strategy, sizeof strategy, "pp=%d,gbs=%d,schedule=gpipe", pp, m);
            p = piped(strategy, pp);
            for (int r = 0; r < pp; r++)
                holds(strategy, pp, r, m, &p);
            planned_free(&p);
        }
    for (int pp = 2; pp <= 4; pp *= 2)
        for (int v = 2; v <= 4; v += 2)
            for (int m = pp; m <= 3 * pp; m += pp) {
                char strategy[64];
                snprintf(strategy, sizeof strategy, "pp=%d,vpp=%d,gbs=%d", pp, v, m);
                planned p = piped(strategy, pp);
                for (int r = 0; r < pp; r++)
                    holds(strategy, pp, r, least((pp - r - 1) * 2 + (v - 1) * pp + 1, m * v), &p);
                planned_free(&p);
            }
}

static void ends(void)
{
    planned p = piped("pp=2,vpp=2,gbs=4", 2);
    int wrong = 0;
    for (int s = 0; s < 2; s++) {
        const hp_program *g = &p.plan->program[s];
        for (int t = 0; t < g->n_templates; t++) {
            int first = 0, last = 0, n = 0;
            for (int i = 0; i < g->n_entries; i++)
                if (g->entry[i].tmpl == t) {
                    first += g->entry[i].first && !n;
                    n++;
                    last += g->entry[i].last;
                }
            wrong += n && (first != 1 || last != 1);
        }
    }
    is_int(wrong, 0, "every template has one first and one last instance a step");
    planned_free(&p);
}

int main(void)
{
    one_f_one_b();
    gpipe();
    interleaved();
    in_flight();
    ends();
    const char *over = "model.layers=16 model.seq=8";
    refused("interleaved", "llama-small", over, "ideal:4", "pp=4,vpp=2,gbs=6", HP_EINFEASIBLE,
            "groups of pp=4|there are 6|nearest legal: 4 or 8");
    refused("a schedule that is not built", "llama-small", over, "ideal:2",
            "pp=2,schedule=zbh1,gbs=4", HP_EUSAGE, "zbh1|known: gpipe, 1f1b, interleaved");
    return done_testing();
}

/* Static addresses: what lives at the same time never shares bytes, what is dead gives its bytes
 * on, aliases lie where their targets lie. */
#include "plan/lower.h"
#include "planned.h"

#include "base/rng.h"

enum { N_BUFFERS = 24, N_TASKS = 20 };

typedef struct made {
    hp_buffer buffer[N_BUFFERS];
    hp_task task[2][N_TASKS];
    int operand[2][N_TASKS][4];
    hp_template tmpl[2];
    hp_program p;
} made;

/* A program of one F and one B whose tasks name random buffers: the first half run buffers of
 * one template each, the rest frame buffers. */
static void make_random(made *m, uint64_t seed)
{
    hp_rng r = {.stream = seed};
    memset(m, 0, sizeof *m);
    m->p = (hp_program){.n_buffers = N_BUFFERS,
                        .buffer = m->buffer,
                        .n_templates = 2,
                        .tmpl = m->tmpl,
                        .n_frames = 1};
    for (int i = 0; i < N_BUFFERS; i++) {
        hp_scope scope = i < N_BUFFERS / 2 ? HP_S_RUN : HP_S_FRAME;
        m->buffer[i] = (hp_buffer){.scope = scope,
                                   .route = -1,
                                   .alias = -1,
                                   .bytes = 64 * (int64_t)(1 + hp_rng_below(&r, 9))};
    }
    for (int t = 0; t < 2; t++) {
        m->tmpl[t] = (hp_template){
            .kind = t ? HP_TMPL_B : HP_TMPL_F, .n_tasks = N_TASKS, .task = m->task[t]};
        for (int i = 0; i < N_TASKS; i++) {
            m->task[t][i] =
                (hp_task){.kind = HP_TASK_OP, .n_in = 3, .n_out = 1, .buf = m->operand[t][i]};
            for (int k = 0; k < 4; k++) {
                int b = (int)hp_rng_below(&r, N_BUFFERS + 6);
                bool other =
                    b < N_BUFFERS / 2 && b % 2 != t; /* run buffers belong to one template */
                m->operand[t][i][k] = b >= N_BUFFERS || other ? -1 : b;
            }
        }
    }
}

/* First and last place, F then B, at which a buffer is named; false when never. */
static bool life_of(const hp_program *p, int buffer, int *birth, int *death)
{
    int at = 0;
    *birth = -1;
    for (int t = 0; t < p->n_templates; t++)
        for (int i = 0; i < p->tmpl[t].n_tasks; i++, at++)
            for (int k = 0; k < p->tmpl[t].task[i].n_in + p->tmpl[t].task[i].n_out; k++)
                if (p->tmpl[t].task[i].buf[k] == buffer) {
                    *birth = *birth < 0 ? at : *birth;
                    *death = at;
                }
    return *birth >= 0;
}

static int64_t live_peak(const hp_program *p, hp_scope scope)
{
    int64_t most = 0;
    for (int at = 0; at < 2 * N_TASKS; at++) {
        int64_t sum = 0;
        for (int b = 0; b < p->n_buffers; b++) {
            int birth, death = 0;
            bool named = life_of(p, b, &birth, &death);
            sum += p->buffer[b].scope == scope && named && birth <= at && at <= death
                       ? p->buffer[b].bytes
                       : 0;
        }
        most = sum > most ? sum : most;
    }
    return most;
}

static void random_programs(void)
{
    int clashes = 0, outside = 0, wasteful = 0, low = 0;
    double over = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        made m;
        make_random(&m, seed);
        low_addresses(&m.p);
        for (int a = 0; a < N_BUFFERS; a++) {
            const hp_buffer *x = &m.buffer[a];
            int xb, xd = 0;
            if (!life_of(&m.p, a, &xb, &xd))
                continue;
            outside +=
                x->offset < 0 || x->offset % 64 || x->offset + x->bytes > m.p.scope_bytes[x->scope];
            for (int b = 0; b < a; b++) {
                const hp_buffer *y = &m.buffer[b];
                int yb, yd = 0;
                if (x->scope != y->scope || !life_of(&m.p, b, &yb, &yd) || xd < yb || yd < xb)
                    continue;
                clashes += x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
            }
        }
        for (int s = HP_S_FRAME; s <= HP_S_RUN; s++) {
            int64_t peak = live_peak(&m.p, (hp_scope)s);
            low += m.p.scope_bytes[s] < peak;
            wasteful += m.p.scope_bytes[s] > 2 * peak;
            over += (double)m.p.scope_bytes[s] / (double)peak / 400;
        }
    }
    is_int(clashes, 0, "of 200 random programs no two buffers share bytes while both live");
    is_int(outside, 0, "all lie aligned and within their scope");
    is_int(low, 0, "a scope is no smaller than what lives at once");
    is_int(wasteful, 0, "and never twice as large");
    ok(over < 1.12, "on average less than 12 %% larger") || (diag("%.3f", over), 0);
}

/* A chain a -> b -> c: c takes a's place; an alias takes its target's and keeps it alive. */
static void by_hand(void)
{
    hp_buffer buffer[4];
    int operand[3][2] = {{0, 1}, {1, 2}, {3, 2}};
    hp_task task[3];
    for (int i = 0; i < 4; i++)
        buffer[i] = (hp_buffer){.scope = HP_S_RUN, .route = -1, .alias = -1, .bytes = 64};
    for (int i = 0; i < 3; i++)
        task[i] = (hp_task){.kind = HP_TASK_OP, .n_in = 1, .n_out = 1, .buf = operand[i]};
    hp_template t = {.kind = HP_TMPL_F, .n_tasks = 2, .task = task};
    hp_program p = {.n_buffers = 4, .buffer = buffer, .n_templates = 1, .tmpl = &t};
    low_addresses(&p);
    is_int(buffer[2].offset, buffer[0].offset, "a value takes the place of one that is dead");
    is_int(p.scope_bytes[HP_S_RUN], 128, "three values in a chain need room for two");
    buffer[3].alias = 0;
    t.n_tasks = 3;
    low_addresses(&p);
    is_int(buffer[3].offset, buffer[0].offset, "an in-place result lies on its input");
    ok(buffer[2].offset != buffer[0].offset && p.scope_bytes[HP_S_RUN] == 192,
       "and keeps the input's bytes");
}

/* What a message carries away must not be written over while it is on its way: frame buffers
 * that are sent live to the frame's end. */
static void sent(void)
{
    planned p = must_plan("llama-small", "model.layers=4 model.seq=16", "ideal:2", "pp=2,gbs=2");
    const hp_program *g = &p.plan->program[0];
    int sends = 0, shared = 0;
    for (int k = 0; k < g->n_templates; k++)
        for (int j = 0; j < g->tmpl[k].n_tasks; j++) {
            const hp_task *t = &g->tmpl[k].task[j];
            if (t->kind != HP_TASK_SEND || g->buffer[t->buf[0]].scope != HP_S_FRAME)
                continue;
            const hp_buffer *x = &g->buffer[t->buf[0]];
            sends++;
            for (int b = 0; b < g->n_buffers; b++) {
                int birth, death;
                const hp_buffer *y = &g->buffer[b];
                bool later =
                    b != t->buf[0] && y->scope == HP_S_FRAME && life_of(g, b, &birth, &death);
                shared += later && y->offset < x->offset + x->bytes &&
                          x->offset < y->offset + y->bytes && birth > j;
            }
        }
    ok(sends > 0 && !shared, "nothing takes the place of a message within its frame");
    planned_free(&p);
}

/* The buffers of one template of a real plan: none shares bytes with another that lives, aliases
 * excepted. */
static void real_plans(void)
{
    static const char *const ways[] = {"tp=4,sp,recompute=full", "zero=3,accum=2", "cp=4",
                                       "pp=2,tp=2,gbs=4", "zero=1"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        planned p = must_plan("llama-small", "model.layers=2 model.seq=16", "ideal:4", ways[w]);
        const hp_program *g = &p.plan->program[0];
        int clashes = 0;
        for (int k = 0; k < g->n_templates; k++) {
            hp_program one = *g;
            one.n_templates = 1;
            one.tmpl = &g->tmpl[k];
            for (int a = 0; a < g->n_buffers; a++)
                for (int b = 0, ab, ad, bb, bd; b < a; b++) {
                    const hp_buffer *x = &g->buffer[a], *y = &g->buffer[b];
                    bool runs = x->scope == HP_S_RUN && y->scope == HP_S_RUN && x->alias < 0 &&
                                y->alias < 0;
                    if (!runs || x->offset >= y->offset + y->bytes ||
                        y->offset >= x->offset + x->bytes)
                        continue;
                    clashes += life_of(&one, a, &ab, &ad) && life_of(&one, b, &bb, &bd) &&
                               ab <= bd && bb <= ad;
                }
        }
        is_int(clashes, 0, "%s: no two living buffers of a template share bytes", ways[w]);
        planned_free(&p);
    }
}

int main(void)
{
    random_programs();
    by_hand();
    sent();
    real_plans();
    return done_testing();
}

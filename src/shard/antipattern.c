/* antipattern.c -- looks at who reads what each collective makes. */
#include "shard/antipattern.h"

#include <stdlib.h>

typedef struct finds {
    hp_antipattern *a;
    int n, cap;
} finds;

static void add(finds *f, hp_antipattern_kind kind, int tensor, int step, int other)
{
    f->a = hp_grow(f->a, &f->cap, f->n + 1, sizeof *f->a);
    f->a[f->n++] = (hp_antipattern){kind, tensor, step, other};
}

static bool is_move(const hp_step *s, hp_coll kind)
{
    return s->node < 0 && s->move.kind == kind;
}

/* Whether a step reads a copy: a move its source, a node any operand that it does not make. */
static bool reads(const hp_placement *p, int step, int copy)
{
    const hp_step *s = &p->step[step];
    if (s->node < 0)
        return s->copy[0] == copy;
    for (int i = 0; i < HP_MAX_OPERANDS; i++)
        if (s->copy[i] == copy && p->copy[copy].step != step)
            return true;
    return false;
}

/* The first slice over some of the axes that reads what `step` made; -1 when there is none, or anything else reads it too. */
static int only_sliced(const hp_placement *p, int step)
{
    const hp_step *s = &p->step[step];
    int found = -1;
    for (int i = step + 1; i < p->n_steps; i++) {
        if (!reads(p, i, s->copy[1]))
            continue;
        if (!is_move(&p->step[i], HP_COLL_SLICE) || !(p->step[i].move.atoms & s->move.atoms))
            return -1;
        found = found < 0 ? i : found;
    }
    return found;
}

/* A later all-gather of the same tensor to the same layout in the same phase; -1 when there is none. */
static int gathered_again(const hp_placement *p, int step)
{
    const hp_step *s = &p->step[step];
    for (int i = step + 1; i < p->n_steps; i++) {
        const hp_step *t = &p->step[i];
        if (is_move(t, HP_COLL_ALL_GATHER) && t->phase == s->phase &&
            p->copy[t->copy[1]].tensor == p->copy[s->copy[1]].tensor &&
            hp_layout_equal(&t->move.to, &s->move.to))
            return i;
    }
    return -1;
}

int hp_antipattern_find(const hp_placement *p, hp_antipattern **out)
{
    finds f = {0};
    for (int i = 0; i < p->n_steps; i++) {
        const hp_step *s = &p->step[i];
        bool gather = is_move(s, HP_COLL_ALL_GATHER), reduce = is_move(s, HP_COLL_ALL_REDUCE);
        if (!gather && !reduce)
            continue;
        int tensor = p->copy[s->copy[1]].tensor, sliced = only_sliced(p, i),
            again = gather ? gathered_again(p, i) : -1;
        if (sliced >= 0)
            add(&f, gather ? HP_ANTI_GATHER_SLICE : HP_ANTI_ALL_REDUCE, tensor, i, sliced);
        if (again >= 0)
            add(&f, HP_ANTI_GATHER_TWICE, tensor, i, again);
    }
    *out = f.a;
    return f.n;
}

void hp_antipattern_print(const hp_graph *g, const hp_mesh *m, const hp_placement *p,
                          const hp_antipattern *a, hp_str *out)
{
    static const char *const what[] = {
        [HP_ANTI_GATHER_SLICE] =
            "is gathered and then only sliced: an all-to-all or nothing would do",
        [HP_ANTI_GATHER_TWICE] = "is gathered twice in one phase: keep the first result",
        [HP_ANTI_ALL_REDUCE] = "is all-reduced and then only sliced: a reduce-scatter would do",
    };
    const hp_step *s = &p->step[a->step], *t = &p->step[a->other];
    char axes[64];
    hp_str_add(out, "\"%s\" %s (over \"%s\", step %d for \"%s\", step %d for \"%s\")",
               g->tensor[a->tensor].name, what[a->kind],
               hp_mesh_name(m, s->move.atoms, axes, sizeof axes), a->step,
               g->node[s->consumer].name, a->other, g->node[t->consumer].name);
}

/* schedule.c -- the order of template instances on a stage, and the frames they use.
 *
 * gpipe: all forwards, then all backwards. 1f1b: p - rank - 1 forwards ahead, then in turn (PipeDream-Flush; Narayanan et al., SC 2021). interleaved: v chunks a stage
 * in groups of p microbatches, (p - rank - 1) 2 + (v - 1) p chunk forwards ahead (same paper). A frame is taken at F and given back at B; F takes the lowest free one.
 */
#include "plan/lower.h"

#include <stdlib.h>
#include <string.h>

typedef struct order {
    lowering *w;
    int n, cap;
    int cap_frames;
    bool *busy;
    int *frame; /* by chunk * micro + mb */
} order;

static int find_template(const lowering *w, hp_tmpl_kind kind, int chunk)
{
    for (int i = 0; i < w->n_tmpl; i++)
        if (w->tmpl[i]->kind == kind && w->tmpl[i]->chunk == chunk)
            return i;
    return -1;
}

static void add(order *o, hp_tmpl_kind kind, int chunk, int micro)
{
    hp_program *p = o->w->p;
    int m = (int)o->w->r->micro, frame = -1;
    if (kind == HP_TMPL_F) {
        for (frame = 0; frame < p->n_frames && o->busy[frame]; frame++)
            continue;
        o->busy = hp_grow(o->busy, &o->cap_frames, frame + 1, sizeof *o->busy);
        o->busy[frame] = true;
        p->n_frames = frame < p->n_frames ? p->n_frames : frame + 1;
        o->frame[chunk * m + micro] = frame;
    } else if (kind == HP_TMPL_B) {
        frame = o->frame[chunk * m + micro];
        o->busy[frame] = false;
    }
    p->entry = hp_grow(p->entry, &o->cap, o->n + 1, sizeof *p->entry);
    p->entry[o->n++] = (hp_entry){.tmpl = find_template(o->w, kind, chunk), .micro = micro, .frame = frame};
}

static void gpipe(order *o)
{
    int m = (int)o->w->r->micro, v = o->w->r->vpp;
    for (int c = 0; c < v; c++)
        for (int i = 0; i < m; i++)
            add(o, HP_TMPL_F, c, i);
    for (int c = v - 1; c >= 0; c--)
        for (int i = 0; i < m; i++)
            add(o, HP_TMPL_B, c, i);
}

static void one_f_one_b(order *o)
{
    int m = (int)o->w->r->micro, p = o->w->r->pp, rank = o->w->p->stage;
    int warm = p - rank - 1 < m ? p - rank - 1 : m, f = 0;
    while (f < warm)
        add(o, HP_TMPL_F, 0, f++);
    for (int b = 0; b < m; b++) {
        if (f < m)
            add(o, HP_TMPL_F, 0, f++);
        add(o, HP_TMPL_B, 0, b);
    }
}

/* The k-th chunk forward (or backward) of a stage: groups of p microbatches, chunk after chunk. */
static void interleaved_at(const order *o, hp_tmpl_kind kind, int k, int *chunk, int *micro)
{
    int p = o->w->r->pp, v = o->w->r->vpp, in_group = k % (p * v);
    *chunk = in_group / p;
    if (kind == HP_TMPL_B)
        *chunk = v - 1 - *chunk;
    *micro = k / (p * v) * p + in_group % p;
}

static void interleaved(order *o)
{
    int m = (int)o->w->r->micro, p = o->w->r->pp, v = o->w->r->vpp, rank = o->w->p->stage, all = m * v;
    int warm = (p - rank - 1) * 2 + (v - 1) * p, f = 0, chunk, micro;
    warm = warm < all ? warm : all;
    for (; f < warm; f++) {
        interleaved_at(o, HP_TMPL_F, f, &chunk, &micro);
        add(o, HP_TMPL_F, chunk, micro);
    }
    for (int b = 0; b < all; b++) {
        if (f < all) {
            interleaved_at(o, HP_TMPL_F, f++, &chunk, &micro);
            add(o, HP_TMPL_F, chunk, micro);
        }
        interleaved_at(o, HP_TMPL_B, b, &chunk, &micro);
        add(o, HP_TMPL_B, chunk, micro);
    }
}

static void mark_ends(hp_program *p)
{
    for (int i = 0; i < p->n_entries; i++) {
        bool before = false, after = false;
        for (int k = 0; k < p->n_entries; k++) {
            before = before || (k < i && p->entry[k].tmpl == p->entry[i].tmpl);
            after = after || (k > i && p->entry[k].tmpl == p->entry[i].tmpl);
        }
        p->entry[i].first = !before;
        p->entry[i].last = !after;
    }
}

hp_err low_schedule(lowering *w)
{
    const char *name = w->r->s->pipeline.schedule;
    int v = w->r->vpp;
    if (!name || w->r->pp == 1)
        name = v > 1 ? "interleaved" : "1f1b";
    if (!strcmp(name, "1f1b") && v > 1)
        name = "interleaved";
    static const char *const known[] = {"gpipe", "1f1b", "interleaved"};
    bool ok = false;
    for (int i = 0; i < 3; i++)
        ok = ok || !strcmp(name, known[i]);
    if (!ok)
        return hp_fail(w->e, hp_resolve_bad(w->r), "unknown schedule \"%s\"; known: gpipe, 1f1b, interleaved", name);
    if (!strcmp(name, "interleaved") && v > 1 && w->r->micro % w->r->pp)
        return hp_fail(w->e, HP_EINFEASIBLE, "the interleaved schedule needs microbatches in groups of pp=%d, there are %lld; nearest legal: %lld or %lld", w->r->pp,
                       (long long)w->r->micro, (long long)(w->r->micro / w->r->pp * w->r->pp), (long long)((w->r->micro / w->r->pp + 1) * w->r->pp));
    order o = {.w = w, .frame = hp_xcalloc((size_t)w->r->micro * (size_t)v, sizeof(int))};
    if (w->tmpl[0]->n)
        add(&o, HP_TMPL_I, 0, -1);
    if (!strcmp(name, "gpipe"))
        gpipe(&o);
    else if (v > 1)
        interleaved(&o);
    else
        one_f_one_b(&o);
    add(&o, HP_TMPL_O, 0, -1);
    w->p->n_entries = o.n;
    mark_ends(w->p);
    free(o.busy);
    free(o.frame);
    return HP_OK;
}

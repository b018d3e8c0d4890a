/* known.c -- lists searched from the front: distinct entries are few, tasks many. */
#include "exec/known.h"

#include <stdlib.h>
#include <string.h>

typedef struct known_flow {
    int side;
    uint32_t atoms;
    const hp_buffer *from, *to; /* the first that were met */
    hp_flow *flow;
} known_flow;

typedef struct known_groups {
    int side;
    hp_groups *groups;
} known_groups;

struct hp_known {
    int n_flows, cap_flows, n_groups, cap_groups, n_messages, cap_messages;
    known_flow *flow;
    known_groups *groups;
    hp_messages **messages;
};

hp_known *hp_known_new(void)
{
    return hp_xcalloc(1, sizeof(hp_known));
}

void hp_known_free(hp_known *k)
{
    if (!k)
        return;
    for (int i = 0; i < k->n_flows; i++)
        hp_flow_free(k->flow[i].flow);
    for (int i = 0; i < k->n_groups; i++) {
        hp_groups_fini(k->groups[i].groups);
        free(k->groups[i].groups);
    }
    for (int i = 0; i < k->n_messages; i++) {
        free(k->messages[i]->move);
        free(k->messages[i]->n_from);
        free(k->messages[i]->n_to);
        free(k->messages[i]);
    }
    free(k->flow);
    free(k->groups);
    free(k->messages);
    free(k);
}

static bool same_shape(const hp_shape *a, const hp_shape *b)
{
    if (a->nd != b->nd)
        return false;
    for (int d = 0; d < a->nd; d++)
        if (a->size[d] != b->size[d] || a->cut[d] != b->cut[d])
            return false;
    return true;
}

static bool same_lie(const hp_buffer *a, const hp_buffer *b)
{
    return hp_layout_equal(&a->layout, &b->layout) && a->turn == b->turn &&
           (a->turn == 0 || a->turn_atoms == b->turn_atoms) && same_shape(&a->shape, &b->shape);
}

static hp_err make_flow(const hp_side *s, uint32_t atoms, int from, int to, hp_flow **out,
                        hp_errmsg *e)
{
    hp_box *box = hp_xmalloc(2 * (size_t)s->n_ranks * sizeof *box);
    for (int r = 0; r < s->n_ranks; r++) {
        box[r] = *hp_box_of(s, r, from);
        box[s->n_ranks + r] = *hp_box_of(s, r, to);
    }
    hp_err rc = hp_flow_new(&s->p->mesh, atoms, &s->p->buffer[from].layout,
                            &s->p->buffer[to].layout, box, box + s->n_ranks, out, e);
    free(box);
    return rc;
}

hp_err hp_known_flow(hp_known *k, const hp_side *s, uint32_t atoms, int from, int to, hp_flow **out,
                     hp_errmsg *e)
{
    for (int i = 0; i < k->n_flows; i++) {
        const known_flow *f = &k->flow[i];
        if (f->side == s->index && f->atoms == atoms && same_lie(f->from, &s->p->buffer[from]) &&
            same_lie(f->to, &s->p->buffer[to])) {
            *out = f->flow;
            return HP_OK;
        }
    }
    hp_err rc = make_flow(s, atoms, from, to, out, e);
    if (rc)
        return rc;
    k->flow = hp_grow(k->flow, &k->cap_flows, k->n_flows + 1, sizeof *k->flow);
    k->flow[k->n_flows++] =
        (known_flow){s->index, atoms, &s->p->buffer[from], &s->p->buffer[to], *out};
    return HP_OK;
}

const hp_groups *hp_known_groups(hp_known *k, const hp_side *s, uint32_t atoms)
{
    for (int i = 0; i < k->n_groups; i++)
        if (k->groups[i].side == s->index && k->groups[i].groups->atoms == atoms)
            return k->groups[i].groups;
    k->groups = hp_grow(k->groups, &k->cap_groups, k->n_groups + 1, sizeof *k->groups);
    hp_groups *g = hp_xmalloc(sizeof *g);
    hp_groups_init(g, &s->p->mesh, atoms);
    k->groups[k->n_groups++] = (known_groups){s->index, g};
    return g;
}

static void count_peers(hp_messages *m, int n_senders, int n_receivers)
{
    m->n_to = hp_xcalloc((size_t)n_senders, sizeof *m->n_to);
    m->n_from = hp_xcalloc((size_t)n_receivers, sizeof *m->n_from);
    for (int i = 0; i < m->n; i++) {
        if (i > 0 && m->move[i].src == m->move[i - 1].src && m->move[i].dst == m->move[i - 1].dst)
            continue;
        m->n_to[m->move[i].src]++;
        m->n_from[m->move[i].dst]++;
    }
}

hp_err hp_known_messages(hp_known *k, const hp_side *a, int task, const hp_side *b, int to_task,
                         const hp_messages **out, hp_errmsg *e)
{
    for (int i = 0; i < k->n_messages; i++) {
        const hp_messages *m = k->messages[i];
        if (m->program == a->index && m->task == task && m->to_program == b->index &&
            m->to_task == to_task) {
            *out = m;
            return HP_OK;
        }
    }
    const hp_buffer *from = &a->p->buffer[a->info[task].task->buf[0]],
                    *to = &b->p->buffer[b->info[to_task].task->buf[0]];
    hp_messages *m = hp_xcalloc(1, sizeof *m);
    *m = (hp_messages){
        .program = a->index, .task = task, .to_program = b->index, .to_task = to_task};
    hp_err rc = hp_redist_cross(&a->p->mesh, &from->layout, &b->p->mesh, &to->layout, &from->shape,
                                &m->move, &m->n, e);
    if (rc) {
        free(m);
        return rc;
    }
    count_peers(m, a->n_ranks, b->n_ranks);
    k->messages = hp_grow(k->messages, &k->cap_messages, k->n_messages + 1, sizeof *k->messages);
    k->messages[k->n_messages++] = m;
    *out = m;
    return HP_OK;
}

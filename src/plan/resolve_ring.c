/* resolve_ring.c -- context parallel as a ring: which axes, and which labels of attention go together.
 *
 * The axes are those that split `seq`; where `heads` takes one of them first (Ulysses inside), placement has it on the heads and the ring is what is left.
 */
#include "plan/resolve.h"

#include <string.h>

static void mark_attention(hp_resolved *r)
{
    const hp_graph *g = r->g;
    r->ring_from = hp_arena_alloc(&r->arena, (size_t)g->n_nodes);
    r->ring_to = hp_arena_alloc(&r->arena, (size_t)g->n_nodes);
    for (int i = 0; i < g->n_nodes; i++) {
        const hp_node *n = &g->node[i];
        const char *op = g->ops[n->kind]->name;
        bool attention = !strcmp(op, "attention") || !strcmp(op, "attention_dx");
        r->ring_from[i] = attention ? n->label[3][1] : -1; /* operands 3 and 4: positions of queries and of keys, [batch seq] */
        r->ring_to[i] = attention ? n->label[4][1] : -1;
    }
}

hp_err hp_resolve_ring(hp_resolved *r, hp_errmsg *e)
{
    static const char *const known[] = {"ring", "gather"};
    const char *outer = r->s->cp.outer;
    if (!outer || !strcmp(outer, "gather"))
        return HP_OK;
    if (strcmp(outer, "ring"))
        return hp_fail(e, hp_resolve_bad(r), "cp.outer: \"%s\" is neither ring nor gather; nearest: %s", outer, hp_near(outer, known, 2));
    for (int i = 0; i < r->s->split.n; i++) {
        uint8_t atom[HP_MAX_ATOMS];
        int n;
        if (strcmp(r->s->split.rule[i].dim, "seq"))
            continue;
        hp_err err = hp_resolve_atoms(r, r->s->split.rule[i].axes, atom, &n, e);
        if (err)
            return err;
        for (int k = 0; k < n; k++)
            r->ring |= 1u << atom[k];
    }
    if (r->ring)
        mark_attention(r);
    return HP_OK;
}

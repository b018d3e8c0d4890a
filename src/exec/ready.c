/* ready.c -- a binary heap; equal keys are ordered by program, rank and instance, so that the order is total. */
#include "exec/ready.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void hp_ready_init(hp_ready *q, int cap)
{
    *q = (hp_ready){.at = hp_xmalloc((size_t)(cap + 1) * sizeof *q->at), .cap = cap};
}

void hp_ready_fini(hp_ready *q)
{
    free(q->at);
    *q = (hp_ready){0};
}

static bool before(const hp_work *a, const hp_work *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    if (a->program != b->program)
        return a->program < b->program;
    return a->rank != b->rank ? a->rank < b->rank : a->inst < b->inst;
}

void hp_ready_push(hp_ready *q, hp_work w)
{
    assert(q->n < q->cap);
    int i = q->n++;
    while (i > 0 && before(&w, &q->at[(i - 1) / 2])) {
        q->at[i] = q->at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->at[i] = w;
}

hp_work hp_ready_pop(hp_ready *q)
{
    assert(q->n > 0);
    hp_work least = q->at[0], last = q->at[--q->n];
    int i = 0;
    for (int k = 1; k < q->n; k = 2 * i + 1) {
        if (k + 1 < q->n && before(&q->at[k + 1], &q->at[k]))
            k++;
        if (!before(&q->at[k], &last))
            break;
        q->at[i] = q->at[k];
        i = k;
    }
    q->at[i] = last;
    return least;
}

/* events.c -- a binary heap in an array: no child comes before its parent. */
#include "sim/events.h"
#include "base/mem.h"

#include <stdlib.h>

uint64_t hp_order_key(int device, int stream, int inst)
{
    return (uint64_t)(uint32_t)device << 40 | (uint64_t)(stream & 0xff) << 32 | (uint32_t)inst;
}

static bool before(const hp_event *a, const hp_event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (a->key != b->key)
        return a->key < b->key;
    return a->seq < b->seq;
}

void hp_events_push(hp_events *q, hp_event e)
{
    q->event = hp_grow(q->event, &q->cap, q->n + 1, sizeof *q->event);
    e.seq = q->pushed++;
    int i = q->n++;
    while (i > 0 && before(&e, &q->event[(i - 1) / 2])) {
        q->event[i] = q->event[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->event[i] = e;
}

bool hp_events_pop(hp_events *q, hp_event *e)
{
    if (q->n == 0)
        return false;
    *e = q->event[0];
    hp_event last = q->event[--q->n];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= q->n)
            break;
        if (child + 1 < q->n && before(&q->event[child + 1], &q->event[child]))
            child++;
        if (!before(&q->event[child], &last))
            break;
        q->event[i] = q->event[child];
        i = child;
    }
    q->event[i] = last;
    return true;
}

void hp_events_fini(hp_events *q)
{
    free(q->event);
    *q = (hp_events){0};
}

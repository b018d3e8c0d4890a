/* ready.h -- a heap of things to do: ready work by priority, deadlines by time. Its room is fixed beforehand, so that a step allocates nothing.
 * Not thread-safe: the scheduler's lock is held. Room: exec. */
#ifndef HP_EXEC_READY_H
#define HP_EXEC_READY_H

#include <stdbool.h>
#include <stdint.h>

/* hp_work names what is to be done: a task instance of a rank, or that rank's share of a collective. Least key first. */
typedef struct hp_work {
    int64_t key;
    int program, rank, inst;
    bool comm; /* a transfer */
} hp_work;

typedef struct hp_ready {
    hp_work *at;
    int n, cap;
} hp_ready;

/* hp_ready_init gives the queue room for `cap` entries; hp_ready_fini frees it. */
void hp_ready_init(hp_ready *q, int cap);
void hp_ready_fini(hp_ready *q);

/* hp_ready_push adds an entry; there must be room. hp_ready_pop takes the least; the queue must not be empty. */
void hp_ready_push(hp_ready *q, hp_work w);
hp_work hp_ready_pop(hp_ready *q);

#endif

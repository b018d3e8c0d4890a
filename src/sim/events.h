/* events.h -- pending events of one simulation, in a total order.
 *
 * Order: time, then key (device, stream, instance: see hp_order_key), then the order of pushing, so
 * that a simulation is the same every time and on every machine. push and pop are O(log n). An
 * event that has lost its meaning stays and is known by its version (the owner's business). Not
 * thread-safe: one owner a queue. Room: sim; uses base only.
 */
#ifndef HP_SIM_EVENTS_H
#define HP_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_event {
    int64_t at_ns;
    uint64_t key;
    uint32_t seq;  /* set by push */
    int what;      /* the owner's: kind of event */
    int row, inst; /* the owner's: whom it concerns */
    uint32_t version;
} hp_event;

/* hp_events is a queue of them. Zeroed struct = empty. */
typedef struct hp_events {
    int n, cap;
    uint32_t pushed;
    hp_event *event;
} hp_events;

/* hp_order_key packs what orders events of one instant: device first, then stream, then instance
 * (program order). */
uint64_t hp_order_key(int device, int stream, int inst);

/* hp_events_push adds an event. */
void hp_events_push(hp_events *q, hp_event e);

/* hp_events_pop takes the first event into *e; false when there is none. */
bool hp_events_pop(hp_events *q, hp_event *e);

/* hp_events_fini frees the queue; it is empty again. */
void hp_events_fini(hp_events *q);

#endif

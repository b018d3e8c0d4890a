/* ports.h -- transfers that are under way, and how those on one port share its bandwidth.
 *
 * A port is a place a row has at a level. A transfer on several ports goes at 1 / (the largest
 * number of transfers on one of its ports) of its own rate. A transfer that never shares ends after
 * exactly its duration; one that does is cut at every change, and its end rounded up to a
 * nanosecond. Room: sim.
 */
#ifndef HP_SIM_PORTS_H
#define HP_SIM_PORTS_H

#include "sim/events.h"

typedef struct hp_port_list {
    int n, cap;
    int *transfer;
} hp_port_list;

typedef struct hp_transfer {
    bool active;
    int program, inst, index; /* the owner's: which collective (group) or message (row) */
    int n_ports, cap_ports;
    int *port;
    int sharing;      /* the largest number of transfers on one of its ports */
    double left_ns;   /* at full rate */
    int64_t since_ns; /* when left_ns was true */
    uint32_t version; /* of the one event that counts */
    uint64_t key;
} hp_transfer;

typedef struct hp_ports {
    int n_ports;
    hp_port_list *on;
    int n, cap;
    hp_transfer *transfer;
    int n_free, cap_free;
    int *free_id;
    int n_touched, cap_touched;
    int *touched;
} hp_ports;

void hp_ports_init(hp_ports *p, int n_ports);
void hp_ports_fini(hp_ports *p);

/* hp_ports_begin starts a transfer of `ns` on `n` ports (none: it shares nothing; one that is named
 * twice carries it twice, as for two ranks that fetch from one) and pushes the event `what` of its
 * end, whose `row` is the transfer's number; events of others that it slows are pushed anew. */
int hp_ports_begin(hp_ports *p, hp_events *q, int64_t now, int64_t ns, int n, const int *port,
                   uint64_t key, int what);

/* hp_ports_ends says whether an event is the end of a transfer that is under way; if so the
 * transfer is over, its ports are free and others go on faster. *out is a copy of what it was. */
bool hp_ports_ends(hp_ports *p, hp_events *q, const hp_event *e, hp_transfer *out);

#endif

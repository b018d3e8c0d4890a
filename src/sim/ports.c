/* ports.c -- every change of a port's list makes the transfers on it ask again how many they share
 * with. */
#include "sim/ports.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void hp_ports_init(hp_ports *p, int n_ports)
{
    *p = (hp_ports){.n_ports = n_ports, .on = hp_xcalloc((size_t)n_ports, sizeof *p->on)};
}

void hp_ports_fini(hp_ports *p)
{
    for (int i = 0; i < p->n_ports; i++)
        free(p->on[i].transfer);
    for (int i = 0; i < p->n; i++)
        free(p->transfer[i].port);
    free(p->on);
    free(p->transfer);
    free(p->free_id);
    free(p->touched);
    *p = (hp_ports){0};
}

static int new_transfer(hp_ports *p)
{
    if (p->n_free > 0)
        return p->free_id[--p->n_free];
    p->transfer = hp_grow(p->transfer, &p->cap, p->n + 1, sizeof *p->transfer);
    p->transfer[p->n] = (hp_transfer){0};
    return p->n++;
}

static void schedule(hp_ports *p, hp_events *q, int id, int64_t now, int what)
{
    hp_transfer *t = &p->transfer[id];
    int64_t at = now + (int64_t)ceil(t->left_ns * t->sharing - 1e-6);
    hp_events_push(
        q,
        (hp_event){.at_ns = at, .key = t->key, .what = what, .row = id, .version = ++t->version});
}

/* How many share the busiest of a transfer's ports, itself included. */
static int busiest(const hp_ports *p, const hp_transfer *t)
{
    int most = 1;
    for (int i = 0; i < t->n_ports; i++)
        most = p->on[t->port[i]].n > most ? p->on[t->port[i]].n : most;
    return most;
}

static void update(hp_ports *p, hp_events *q, int id, int64_t now, int what)
{
    hp_transfer *t = &p->transfer[id];
    int sharing = busiest(p, t);
    if (sharing == t->sharing)
        return;
    t->left_ns -= (double)(now - t->since_ns) / t->sharing;
    t->left_ns = t->left_ns > 0 ? t->left_ns : 0;
    t->since_ns = now;
    t->sharing = sharing;
    schedule(p, q, id, now, what);
}

/* Lists who is on the ports of `t`, each once and in order of number. */
static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void touch_ports(hp_ports *p, const hp_transfer *t)
{
    p->n_touched = 0;
    for (int i = 0; i < t->n_ports; i++) {
        const hp_port_list *l = &p->on[t->port[i]];
        p->touched = hp_grow(p->touched, &p->cap_touched, p->n_touched + l->n, sizeof(int));
        if (l->n)
            memcpy(p->touched + p->n_touched, l->transfer, (size_t)l->n * sizeof(int));
        p->n_touched += l->n;
    }
    if (p->n_touched > 1)
        qsort(p->touched, (size_t)p->n_touched, sizeof(int), by_number);
}

static void update_touched(hp_ports *p, hp_events *q, int64_t now, int what)
{
    for (int i = 0; i < p->n_touched; i++)
        if (i == 0 || p->touched[i] != p->touched[i - 1])
            update(p, q, p->touched[i], now, what);
}

int hp_ports_begin(hp_ports *p, hp_events *q, int64_t now, int64_t ns, int n, const int *port,
                   uint64_t key, int what)
{
    int id = new_transfer(p);
    hp_transfer *t = &p->transfer[id];
    t->active = true;
    t->port = hp_grow(t->port, &t->cap_ports, n, sizeof(int));
    t->n_ports = n;
    t->left_ns = (double)ns;
    t->since_ns = now;
    t->key = key;
    for (int i = 0; i < n; i++) {
        hp_port_list *l = &p->on[port[i]];
        t->port[i] = port[i];
        l->transfer = hp_grow(l->transfer, &l->cap, l->n + 1, sizeof(int));
        l->transfer[l->n++] = id;
    }
    t->sharing = busiest(p, t);
    schedule(p, q, id, now, what);
    touch_ports(p, t);
    update_touched(p, q, now, what);
    return id;
}

static void leave(hp_ports *p, int id)
{
    const hp_transfer *t = &p->transfer[id];
    for (int i = 0; i < t->n_ports; i++) {
        hp_port_list *l = &p->on[t->port[i]];
        int k = 0;
        while (l->transfer[k] != id)
            k++;
        l->transfer[k] = l->transfer[--l->n];
    }
}

bool hp_ports_ends(hp_ports *p, hp_events *q, const hp_event *e, hp_transfer *out)
{
    hp_transfer *t = &p->transfer[e->row];
    if (!t->active || t->version != e->version)
        return false;
    t->active = false;
    leave(p, e->row);
    touch_ports(p, t);
    *out = *t;
    p->free_id = hp_grow(p->free_id, &p->cap_free, p->n_free + 1, sizeof(int));
    p->free_id[p->n_free++] = e->row;
    update_touched(p, q, e->at_ns, e->what);
    return true;
}

/* collective.c -- one function an algorithm, each returning seconds or INFINITY where it is not
 * legal; the cheapest wins, the first of equals.
 *
 * A group is seen as its *legs*: the levels with links where it has more than one member, inner to
 * outer. With s members on a leg and `below` members inside each of them, every one of the `below`
 * has a port of its own into the leg.
 */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

typedef struct leg {
    const hp_level *level;
    int index;
    int s, below; /* members on this leg; group members inside each */
    int outside;  /* units of this leg that the group uses in all */
    int places;   /* what a whole unit of the leg connects: units of the next inner leg */
} leg;

typedef struct legs {
    int n;
    leg leg[HP_MAX_LEVELS];
    const int *axis; /* torus coordinates used */
} legs;

static const char *const xfer_name[HP_X_KINDS] = {"all-gather", "reduce-scatter", "all-reduce",
                                                  "all-to-all", "permute",        "send-recv"};

const char *hp_xfer_name(hp_xfer x)
{
    return xfer_name[x];
}

int hp_xfer_find(const char *name)
{
    for (int i = 0; i < HP_X_KINDS; i++)
        if (strcmp(xfer_name[i], name) == 0)
            return i;
    return -1;
}

static int places_of(const hp_cluster *c, int l)
{
    int i = l - 1;
    while (i >= 0 && c->level[i].topology == HP_TOPO_PART)
        i--;
    int places = c->level[l].full_size / (i < 0 ? 1 : c->level[i].full_size);
    return places > 1 ? places : 1;
}

static legs legs_of(const hp_cluster *c, const hp_group *g)
{
    legs out = {.axis = g->axis};
    int s = 1, below = 1;
    for (int l = 0; l < c->n_levels; l++) {
        s *= g->span[l] > 1 ? g->span[l] : 1;
        if (s == 1 || c->level[l].topology == HP_TOPO_PART)
            continue;
        out.leg[out.n++] = (leg){&c->level[l], l, s, below, 1, places_of(c, l)};
        below *= s;
        s = 1;
    }
    for (int i = out.n - 2; i >= 0; i--)
        out.leg[i].outside = out.leg[i + 1].outside * out.leg[i + 1].s;
    return out;
}

/* --- one leg's links
 * ----------------------------------------------------------------------------------- */

/* Share of a torus' links that a group drives at once: its axes, closed ones in full and lines by
 * half (the ends of a line send one way only). */
static double torus_share(const hp_level *l, const int *axis)
{
    double share = 0;
    for (int i = 0; i < l->n_dims; i++)
        if (axis[i] > 1)
            share += l->wrap[i] && axis[i] == l->dims[i] ? 1 : 0.5;
    return share > 0 ? share / l->n_dims : 0.5 / l->n_dims;
}

/* Bytes/s that a member can move on the leg's wires with every peer of the group at work. */
static double wire(const leg *g, const int *axis)
{
    const hp_level *l = g->level;
    switch (l->topology) {
    case HP_TOPO_MESH:
        return l->bandwidth * (g->s < g->places ? (double)(g->s - 1) / (g->places - 1) : 1);
    case HP_TOPO_RING:
        return l->bandwidth * (g->s == g->places ? 1 : 0.5);
    case HP_TOPO_TORUS:
        return l->bandwidth * torus_share(l, axis);
    default:
        return l->bandwidth;
    }
}

/* Fraction of the wires that messages of `whole` bytes reach. A measured curve of all-reduces in
 * the switch may exceed what other collectives can have. */
static double achieved(const hp_level *l, double whole, bool in_switch)
{
    double f = hp_curve_at(&l->curve, whole, l->efficiency);
    return l->reduce_gain > 0 && !in_switch ? fmin(f, l->efficiency) : f;
}

/* A curve was measured with the latency in it. */
static double latency(const hp_level *l)
{
    return l->curve.n ? 0 : l->latency;
}

/* Latency of the steps of a ring or of a torus' rings over one leg. */
static double ring_latency(const leg *g, const int *axis)
{
    if (g->level->topology == HP_TOPO_MESH)
        return latency(g->level);
    if (g->level->topology != HP_TOPO_TORUS)
        return (g->s - 1) * latency(g->level);
    double hops = 0;
    for (int i = 0; i < g->level->n_dims; i++)
        hops += axis[i] > 1 ? (g->level->wrap[i] ? axis[i] / 2 : axis[i] - 1) : 0;
    return hops * latency(g->level);
}

/* --- algorithms: `whole` bytes of the gathered or reduced value, `passes` 1 or 2 (all-reduce)
 * ------------------ */

typedef struct job {
    const hp_cluster *c;
    hp_xfer kind;
    legs legs;
    int n;
    double sent, whole;
    int passes;
} job;

/* One ring through all members (as many in parallel as a unit has ports): the slowest leg bounds
 * it. */
static hp_xfer_cost ring(const job *j)
{
    hp_xfer_cost r = {0, "ring", -1};
    double slowest = INFINITY, lat = 0;
    for (int i = 0; i < j->legs.n; i++) {
        const leg *g = &j->legs.leg[i];
        double bw = wire(g, j->legs.axis) * g->below * achieved(g->level, j->whole, false);
        if (bw < slowest) {
            slowest = bw;
            r.level = g->index;
        }
        lat += ring_latency(g, j->legs.axis) * g->outside;
    }
    bool torus = j->legs.n == 1 && j->legs.leg[0].level->topology == HP_TOPO_TORUS;
    bool mesh = j->legs.n == 1 && j->legs.leg[0].level->topology == HP_TOPO_MESH;
    r.algorithm = torus ? "torus" : mesh ? "direct" : "ring";
    r.seconds = j->sent / slowest + j->passes * lat;
    return r;
}

/* Inside first, then each member across with its part. */
static hp_xfer_cost hierarchical(const job *j)
{
    hp_xfer_cost r = {0, "hierarchical", -1};
    double most = -1;
    for (int i = 0; i < j->legs.n; i++) {
        const leg *g = &j->legs.leg[i];
        double part = j->whole / g->below,
               bw = wire(g, j->legs.axis) * achieved(g->level, part, false);
        double t = j->passes * ((g->s - 1.0) / g->s * part / bw + ring_latency(g, j->legs.axis));
        r.seconds += t;
        if (t > most) {
            most = t;
            r.level = g->index;
        }
    }
    if (j->legs.n < 2)
        r.seconds = INFINITY;
    return r;
}

/* Double binary tree (Sanders, Speck, Traff 2009; NCCL 2.4): everyone sends the whole up and
 * down. */
static hp_xfer_cost tree(const job *j)
{
    hp_xfer_cost r = {INFINITY, "tree", -1};
    if (j->kind != HP_X_ALL_REDUCE)
        return r;
    double slowest = INFINITY, lat = 0;
    for (int i = 0; i < j->legs.n; i++) {
        const leg *g = &j->legs.leg[i];
        if (g->level->topology != HP_TOPO_SWITCH)
            return r;
        double bw = wire(g, j->legs.axis) * g->below * achieved(g->level, j->whole, false);
        if (bw < slowest) {
            slowest = bw;
            r.level = g->index;
        }
        lat += ceil(log2(g->s)) * latency(g->level);
    }
    r.seconds = 2 * j->whole / slowest + 2 * lat;
    return r;
}

/* The switch reduces: only within one level that can. */
static hp_xfer_cost in_switch(const job *j)
{
    hp_xfer_cost r = {INFINITY, "in-switch", -1};
    const leg *g = &j->legs.leg[0];
    if (j->kind != HP_X_ALL_REDUCE || j->legs.n != 1 || !(g->level->reduce_gain > 0))
        return r;
    double gain = g->level->curve.n ? 1 : g->level->reduce_gain;
    double bw = wire(g, j->legs.axis) * achieved(g->level, j->whole, true) * gain;
    r.seconds = j->sent / bw + 2 * latency(g->level);
    r.level = g->index;
    return r;
}

/* Each member's bytes to peers that it meets on a leg use its port there; ports work at once. On a
 * torus every byte travels a quarter of a closed axis (half of a line) on average, over that axis'
 * links. */
static double leg_all_to_all(const leg *g, const int *axis, double local, int n)
{
    const hp_level *l = g->level;
    double bytes = local / n * (g->below * (double)g->s - g->below);
    if (l->topology != HP_TOPO_TORUS)
        return bytes / (wire(g, axis) * achieved(l, local, false));
    double most = 0, per_axis = l->bandwidth / l->n_dims * achieved(l, local, false);
    for (int i = 0; i < l->n_dims; i++) {
        double hops = axis[i] > 1 ? axis[i] / (l->wrap[i] && axis[i] == l->dims[i] ? 4.0 : 2.0) : 0;
        most = fmax(most, local * hops / per_axis);
    }
    return most;
}

static hp_xfer_cost all_to_all(const job *j)
{
    hp_xfer_cost r = {-1, "direct", -1};
    double lat = 0;
    for (int i = 0; i < j->legs.n; i++) {
        const leg *g = &j->legs.leg[i];
        double t = leg_all_to_all(g, j->legs.axis, j->whole, j->n);
        if (t > r.seconds) {
            r.seconds = t;
            r.level = g->index;
        }
        lat = fmax(lat, latency(g->level));
    }
    r.seconds += lat;
    return r;
}

/* A message between two places of the group's outermost leg: one link of a mesh, one way of one
 * axis of a torus. */
static double one_link(const hp_level *l, int places)
{
    switch (l->topology) {
    case HP_TOPO_MESH:
        return places > 1 ? l->bandwidth / (places - 1) : l->bandwidth;
    case HP_TOPO_RING:
        return l->bandwidth / 2;
    case HP_TOPO_TORUS:
        return l->bandwidth / (2.0 * l->n_dims);
    default:
        return l->bandwidth;
    }
}

static hp_xfer_cost message(const hp_cluster *c, int index, double bytes)
{
    const hp_level *l = &c->level[index];
    hp_xfer_cost r = {0, "send", index};
    r.seconds = l->latency + bytes / (one_link(l, places_of(c, index)) * l->efficiency);
    return r;
}

static hp_xfer_cost cheapest(const job *j)
{
    hp_xfer_cost (*const algorithm[])(const job *) = {in_switch, ring, hierarchical, tree};
    hp_xfer_cost best = {INFINITY, "ring", -1};
    for (size_t i = 0; i < sizeof algorithm / sizeof algorithm[0]; i++) {
        hp_xfer_cost r = algorithm[i](j);
        if (r.seconds < best.seconds)
            best = r;
    }
    return best;
}

hp_xfer_cost hp_cost_collective(const hp_cluster *c, hp_xfer kind, const hp_group *g, double bytes)
{
    hp_xfer_cost nothing = {0, "none", -1};
    job j = {.c = c, .kind = kind, .legs = legs_of(c, g), .n = g->n, .sent = bytes};
    if (g->n < 2 || j.legs.n == 0)
        return nothing;
    j.passes = kind == HP_X_ALL_REDUCE ? 2 : 1;
    j.whole = bytes * g->n / (g->n - 1.0) / j.passes;
    if (kind == HP_X_PERMUTE || kind == HP_X_SEND) {
        return message(c, j.legs.leg[j.legs.n - 1].index, bytes);
    }
    return kind == HP_X_ALL_TO_ALL ? all_to_all(&j) : cheapest(&j);
}

hp_xfer_cost hp_cost_send(const hp_cluster *c, int from, int to, double bytes)
{
    hp_xfer_cost nothing = {0, "none", -1};
    if (from == to)
        return nothing;
    int first = from < to ? from : to;
    int l = hp_cluster_level_of(c, first, from + to - 2 * first, 2);
    return message(c, l, bytes);
}

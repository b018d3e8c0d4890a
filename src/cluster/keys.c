/* keys.c -- every key of a cluster with its unit and its place, in one table each for devices and
 * levels. */
#include "cluster/cluster.h"
#include "cluster/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct key {
    const char *name;
    hp_unit unit;
    size_t at; /* of a double in hp_cluster or hp_level */
} key;

#define AT(field) offsetof(hp_cluster, device.field)

static const key device_keys[] = {
    {"peak.f32", HP_UNIT_FLOPS, AT(peak[HP_RATE_F32])},
    {"peak.tf32", HP_UNIT_FLOPS, AT(peak[HP_RATE_TF32])},
    {"peak.bf16", HP_UNIT_FLOPS, AT(peak[HP_RATE_BF16])},
    {"peak.fp8", HP_UNIT_FLOPS, AT(peak[HP_RATE_FP8])},
    {"peak.fp4", HP_UNIT_FLOPS, AT(peak[HP_RATE_FP4])},
    {"gemm.efficiency", HP_UNIT_FRACTION, AT(gemm_efficiency)},
    {"hbm.bytes", HP_UNIT_BYTES, AT(hbm_bytes)},
    {"hbm.bandwidth", HP_UNIT_BYTES_S, AT(hbm_bandwidth)},
    {"hbm.efficiency", HP_UNIT_FRACTION, AT(hbm_efficiency)},
    {"launch", HP_UNIT_SECONDS, AT(launch)},
    {"host.launch", HP_UNIT_SECONDS, AT(host_launch)},
    {"host.bandwidth", HP_UNIT_BYTES_S, AT(host_bandwidth)},
    {"host.latency", HP_UNIT_SECONDS, AT(host_latency)},
    {"host.efficiency", HP_UNIT_FRACTION, AT(host_efficiency)},
    {"host.bytes", HP_UNIT_BYTES, AT(host_bytes)},
    {"pool.bytes", HP_UNIT_BYTES, AT(pool_bytes)},
    {"pool.bandwidth", HP_UNIT_BYTES_S, AT(pool_bandwidth)},
    {"hbm_bytes", HP_UNIT_BYTES, offsetof(hp_cluster, budget_bytes)},
};

static const key level_keys[] = {
    {"bandwidth", HP_UNIT_BYTES_S, offsetof(hp_level, bandwidth)},
    {"latency", HP_UNIT_SECONDS, offsetof(hp_level, latency)},
    {"efficiency", HP_UNIT_FRACTION, offsetof(hp_level, efficiency)},
    {"reduce_gain", HP_UNIT_NUMBER, offsetof(hp_level, reduce_gain)},
};

enum {
    N_DEVICE_KEYS = sizeof device_keys / sizeof device_keys[0],
    N_LEVEL_KEYS = sizeof level_keys / sizeof level_keys[0]
};

/* Keys with a form of their own; only for the search of near names. */
static const char *const other_keys[] = {
    "vendor",
    "dies",
    "gemm.curve.bf16",
    "gemm.curve.f32",
    "gemm.curve.fp8",
    "hbm.curve",
    "link.bandwidth",
    "link.latency",
    "slow",
    "level.node.size",
    "level.node.bandwidth",
    "level.node.latency",
    "level.node.topology",
    "level.node.efficiency",
    "level.node.busbw",
    "level.node.wrap",
    "level.node.axes",
    "level.node.reduce_gain",
};

static hp_err unknown_key(const char *name, hp_errmsg *e)
{
    enum { N_OTHER = sizeof other_keys / sizeof other_keys[0] };
    const char *all[N_DEVICE_KEYS + N_OTHER];
    for (int i = 0; i < N_DEVICE_KEYS; i++)
        all[i] = device_keys[i].name;
    memcpy(all + N_DEVICE_KEYS, other_keys, sizeof other_keys);
    return hp_fail(e, HP_EINPUT, "a cluster has no key \"%s\": the nearest is \"%s\"", name,
                   hp_near(name, all, N_DEVICE_KEYS + N_OTHER));
}

static hp_err put_double(void *base, const key *k, const char *value, hp_errmsg *e)
{
    double v;
    hp_err err = hp_quantity_parse(value, k->unit, &v, e);
    if (!err)
        memcpy((char *)base + k->at, &v, sizeof v);
    return err;
}

static hp_err parse_int(const char *value, int least, int *out, hp_errmsg *e)
{
    double v;
    hp_err err = hp_quantity_parse(value, HP_UNIT_COUNT, &v, e);
    if (err)
        return err;
    if (v < least)
        return hp_fail(e, HP_EINPUT, "\"%s\" is too small: at least %d", value, least);
    *out = (int)v;
    return HP_OK;
}

/* Reads one "x:y" of a curve. */
static hp_err parse_point(const char *word, hp_unit ux, hp_unit uy, double *x, double *y,
                          hp_errmsg *e)
{
    char left[64];
    const char *colon = strchr(word, ':');
    if (!colon || (size_t)(colon - word) >= sizeof left)
        return hp_fail(e, HP_EINPUT, "\"%s\" is no point of a curve: write SIZE:FIGURE", word);
    snprintf(left, sizeof left, "%.*s", (int)(colon - word), word);
    hp_err err = hp_quantity_parse(left, ux, x, e);
    return err ? err : hp_quantity_parse(colon + 1, uy, y, e);
}

/* Reads "x:y x:y ..." with x ascending and all figures positive; y is divided by `whole`. */
static hp_err parse_curve(const char *value, hp_unit ux, hp_unit uy, double whole, hp_curve *out,
                          hp_errmsg *e)
{
    hp_curve c = {0};
    char *copy = hp_xstrdup(value), *save = NULL;
    hp_err err = HP_OK;
    for (char *w = strtok_r(copy, " \t\n", &save); w && !err; w = strtok_r(NULL, " \t\n", &save)) {
        double x, y;
        if (c.n == HP_MAX_CURVE) {
            err = hp_fail(e, HP_EINPUT, "a curve has at most %d points", HP_MAX_CURVE);
        } else if (!(err = parse_point(w, ux, uy, &x, &y, e))) {
            if (x <= 0 || y <= 0 || (c.n && x <= c.x[c.n - 1]))
                err = hp_fail(e, HP_EINPUT,
                              "point \"%s\" of a curve: sizes ascend, all figures are positive", w);
            c.x[c.n] = x;
            c.y[c.n++] = y / whole;
        }
    }
    free(copy);
    if (!err)
        *out = c;
    return err;
}

static hp_level *find_level(hp_cluster *c, const char *name)
{
    for (int i = 0; i < c->n_levels; i++)
        if (strcmp(c->level[i].name, name) == 0)
            return &c->level[i];
    return NULL;
}

static hp_err unknown_level(const hp_cluster *c, const char *name, hp_errmsg *e)
{
    hp_str list = {0};
    for (int i = 0; i < c->n_levels; i++)
        hp_str_add(&list, "%s%s", i ? ", " : "", c->level[i].name);
    hp_err err = hp_fail(
        e, HP_EINPUT, "cluster %s has no level \"%s\": it has %s (a new one starts with its size)",
        c->name, name, c->n_levels ? hp_str_text(&list) : "none");
    hp_str_fini(&list);
    return err;
}

/* "all" is 0: closed by hp_cluster_finish. */
static hp_err set_level_size(hp_cluster *c, hp_level *l, const char *name, const char *value,
                             hp_errmsg *e)
{
    int size = 0;
    if (strcmp(value, "all") != 0) {
        hp_err err = parse_int(value, 1, &size, e);
        if (err)
            return err;
    }
    if (!l && c->n_levels == HP_MAX_LEVELS)
        return hp_fail(e, HP_EINPUT, "a cluster has at most %d levels", HP_MAX_LEVELS);
    if (!l) {
        l = &c->level[c->n_levels++];
        *l = (hp_level){.name = hp_arena_strdup(&c->arena, name), .efficiency = 1};
    }
    l->size = size;
    return HP_OK;
}

static hp_err set_busbw(hp_level *l, const char *value, hp_errmsg *e)
{
    if (!(l->bandwidth > 0))
        return hp_fail(e, HP_EINPUT, "busbw of level %s needs its bandwidth first", l->name);
    return parse_curve(value, HP_UNIT_BYTES, HP_UNIT_BYTES_S, l->bandwidth, &l->curve, e);
}

/* "always", "never", "16" (an axis that is a multiple of it), "all 4" (all axes at once). */
static hp_err set_wrap(hp_level *l, const char *value, hp_errmsg *e)
{
    bool all = strncmp(value, "all ", 4) == 0;
    int at = 0;
    if (strcmp(value, "always") == 0)
        at = 0;
    else if (strcmp(value, "never") == 0)
        at = -1;
    else if (parse_int(all ? value + 4 : value, 1, &at, e))
        return hp_fail(e, HP_EINPUT, "\"%s\" is no wrap: write always, never, 16 or \"all 4\"",
                       value);
    l->wrap_at = at;
    l->wrap_all = all;
    return HP_OK;
}

static hp_err set_topology(hp_level *l, const char *value, hp_errmsg *e)
{
    int t = hp_topology_find(value);
    if (t < 0)
        return hp_fail(e, HP_EINPUT, "\"%s\" is no topology: switch, mesh, ring, torus or part",
                       value);
    l->topology = (hp_topology)t;
    return HP_OK;
}

static hp_err set_axes(hp_level *l, const char *value, hp_errmsg *e)
{
    int n = 0;
    hp_err err = parse_int(value, 1, &n, e);
    if (err)
        return err;
    if (n > HP_MAX_TORUS)
        return hp_fail(e, HP_EINPUT, "a torus has at most %d axes, not %d", HP_MAX_TORUS, n);
    l->n_dims = n;
    return HP_OK;
}

static hp_err set_level(hp_cluster *c, const char *name, const char *what, const char *value,
                        hp_errmsg *e)
{
    hp_level *l = find_level(c, name);
    if (strcmp(what, "size") == 0)
        return set_level_size(c, l, name, value, e);
    if (!l)
        return unknown_level(c, name, e);
    for (int i = 0; i < N_LEVEL_KEYS; i++)
        if (strcmp(level_keys[i].name, what) == 0)
            return put_double(l, &level_keys[i], value, e);
    if (strcmp(what, "topology") == 0)
        return set_topology(l, value, e);
    if (strcmp(what, "busbw") == 0)
        return set_busbw(l, value, e);
    if (strcmp(what, "wrap") == 0)
        return set_wrap(l, value, e);
    if (strcmp(what, "axes") == 0)
        return set_axes(l, value, e);
    return hp_fail(e, HP_EINPUT,
                   "a level has no \"%s\": size, bandwidth, latency, efficiency, busbw, topology, "
                   "axes, wrap, reduce_gain",
                   what);
}

static hp_err set_level_key(hp_cluster *c, const char *rest, const char *value, hp_errmsg *e)
{
    const char *dot = strchr(rest, '.');
    char name[32];
    if (!dot || dot == rest || (size_t)(dot - rest) >= sizeof name)
        return hp_fail(e, HP_EINPUT, "level keys are level.NAME.KEY, not \"level.%s\"", rest);
    snprintf(name, sizeof name, "%.*s", (int)(dot - rest), rest);
    return set_level(c, name, dot + 1, value, e);
}

/* link.bandwidth and link.latency hold for every level; exec paces its links to them. */
static hp_err set_link(hp_cluster *c, const char *what, const char *value, hp_errmsg *e)
{
    hp_err err = HP_OK;
    for (int i = 0; i < c->n_levels && !err; i++) {
        err = set_level(c, c->level[i].name, what, value, e);
        c->level[i].curve.n = 0;
    }
    c->paced = c->paced || !err;
    return err;
}

/* "rank=17,factor=1.3", braces allowed, several separated by ';'. */
static hp_err set_slow(hp_cluster *c, const char *value, hp_errmsg *e)
{
    c->n_slow = 0;
    for (const char *s = value; *s;) {
        hp_slow w = {-1, 0};
        int used = 0;
        if (sscanf(s, " {rank=%d , factor=%lf } %n", &w.rank, &w.factor, &used) < 2 || !used)
            sscanf(s, " rank=%d , factor=%lf %n", &w.rank, &w.factor, &used);
        if (!used || w.rank < 0 || !(w.factor > 0 && w.factor < 1e6) || c->n_slow == HP_MAX_SLOW)
            return hp_fail(e, HP_EINPUT,
                           "\"%s\" names no slow device: write rank=17,factor=1.3 (several with ;, "
                           "at most %d)",
                           s, HP_MAX_SLOW);
        c->slow[c->n_slow++] = w;
        s += used;
        s += strspn(s, "; ");
    }
    return HP_OK;
}

static hp_err set_gemm_curve(hp_cluster *c, const char *rate, const char *value, hp_errmsg *e)
{
    int r = hp_rate_find(rate);
    if (r < 0)
        return hp_fail(e, HP_EINPUT, "gemm.curve.%s: rates are f32, tf32, bf16, fp8, fp4", rate);
    if (!(c->device.peak[r] > 0))
        return hp_fail(e, HP_EINPUT, "gemm.curve.%s needs peak.%s first", rate, rate);
    return parse_curve(value, HP_UNIT_NUMBER, HP_UNIT_FLOPS, c->device.peak[r],
                       &c->device.gemm_curve[r], e);
}

static hp_err set_text(hp_cluster *c, const char **to, const char *value)
{
    *to = hp_arena_strdup(&c->arena, value);
    return HP_OK;
}

static hp_err set_key(hp_cluster *c, const char *name, const char *value, hp_errmsg *e)
{
    for (int i = 0; i < N_DEVICE_KEYS; i++)
        if (strcmp(device_keys[i].name, name) == 0)
            return put_double(c, &device_keys[i], value, e);
    if (strncmp(name, "level.", 6) == 0)
        return set_level_key(c, name + 6, value, e);
    if (strncmp(name, "gemm.curve.", 11) == 0)
        return set_gemm_curve(c, name + 11, value, e);
    if (strcmp(name, "hbm.curve") == 0)
        return parse_curve(value, HP_UNIT_BYTES, HP_UNIT_FRACTION, 1, &c->device.hbm_curve, e);
    if (strcmp(name, "link.bandwidth") == 0 || strcmp(name, "link.latency") == 0)
        return set_link(c, name + 5, value, e);
    if (strcmp(name, "slow") == 0)
        return set_slow(c, value, e);
    if (strcmp(name, "dies") == 0)
        return parse_int(value, 1, &c->dies, e);
    if (strcmp(name, "vendor") == 0)
        return set_text(c, &c->device.vendor, value);
    return unknown_key(name, e);
}

/* A later figure of the same name takes the place of the earlier one. */
static void note_key(hp_cluster *c, const char *name, const char *value, const char *source,
                     bool unverified)
{
    int i = 0;
    while (i < c->n_notes && strcmp(c->note[i].name, name) != 0)
        i++;
    if (i == c->n_notes) {
        c->note = hp_grow(c->note, &c->cap_notes, c->n_notes + 1, sizeof *c->note);
        c->n_notes++;
    }
    c->note[i] =
        (hp_cluster_note){hp_arena_strdup(&c->arena, name), hp_arena_strdup(&c->arena, value),
                          hp_arena_strdup(&c->arena, source ? source : "set by hand"), unverified};
}

hp_err hp_cluster_set(hp_cluster *c, const char *name, const char *value, const char *source,
                      bool unverified, hp_errmsg *e)
{
    hp_err err = set_key(c, name, value, e);
    if (err)
        return hp_fail_at(e, "cluster.%s", name);
    note_key(c, name, value, source, unverified);
    return HP_OK;
}

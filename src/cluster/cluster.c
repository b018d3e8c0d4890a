/* cluster.c -- names, the two clusters that need no profile, closing the levels, canonical text. */
#include "cluster/cluster.h"
#include "base/rng.h"
#include "cluster/host.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_name(const char *const *name, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name[i], s) == 0)
            return i;
    return -1;
}

static const char *const rate_name[HP_RATES] = {"f32", "tf32", "bf16", "fp8", "fp4"};

const char *hp_rate_name(hp_rate r)
{
    return rate_name[r];
}

int hp_rate_find(const char *name)
{
    return find_name(rate_name, HP_RATES, name);
}

enum { N_TOPOLOGIES = HP_TOPO_PART + 1 };
static const char *const topology_name[N_TOPOLOGIES] = {"switch", "mesh", "ring", "torus", "part"};

const char *hp_topology_name(hp_topology t)
{
    return topology_name[t];
}

int hp_topology_find(const char *name)
{
    return find_name(topology_name, N_TOPOLOGIES, name);
}

double hp_curve_at(const hp_curve *c, double x, double missing)
{
    if (c->n == 0)
        return missing;
    if (x <= c->x[0])
        return c->y[0];
    int i = 1;
    while (i < c->n && c->x[i] < x)
        i++;
    if (i == c->n)
        return c->y[c->n - 1];
    double t = log(x / c->x[i - 1]) / log(c->x[i] / c->x[i - 1]);
    return c->y[i - 1] * pow(c->y[i] / c->y[i - 1], t);
}

hp_cluster *hp_cluster_new(const char *name)
{
    hp_cluster *c = hp_xcalloc(1, sizeof *c);
    c->name = c->device.name = hp_arena_strdup(&c->arena, name);
    c->device.vendor = "";
    c->dies = 1;
    c->device.gemm_efficiency = c->device.hbm_efficiency = c->device.host_efficiency = 1;
    return c;
}

void hp_cluster_free(hp_cluster *c)
{
    if (!c)
        return;
    free(c->note);
    hp_arena_fini(&c->arena);
    free(c);
}

const hp_level *hp_cluster_level(const hp_cluster *c, const char *name)
{
    for (int i = 0; i < c->n_levels; i++)
        if (strcmp(c->level[i].name, name) == 0)
            return &c->level[i];
    return NULL;
}

double hp_cluster_peak(const hp_cluster *c, hp_rate r, hp_rate *used)
{
    while (r > HP_RATE_F32 && !(c->device.peak[r] > 0))
        r--;
    if (r == HP_RATE_F32 &&
        !(c->device.peak[r] > 0)) /* a matrix unit alone: its narrowest-loss type */
        while (r < HP_RATE_FP4 && !(c->device.peak[r] > 0))
            r++;
    if (used)
        *used = r;
    return c->device.peak[r];
}

double hp_cluster_slowness(const hp_cluster *c, int device)
{
    for (int i = 0; i < c->n_slow; i++)
        if (c->slow[i].rank == device)
            return c->slow[i].factor;
    return 1;
}

char *hp_cluster_plain_name(const char *name, char *buf, size_t n)
{
    static const char *const vendor[] = {"nvidia", "amd",   "google", "huawei",
                                         "ascend", "intel", "habana"};
    snprintf(buf, n, "%s", name);
    for (char *p = buf; *p; p++)
        *p = (char)(*p == '_' || *p == ' ' ? '-' : tolower((unsigned char)*p));
    for (size_t i = 0; i < sizeof vendor / sizeof vendor[0]; i++) {
        size_t k = strlen(vendor[i]);
        if (strncmp(buf, vendor[i], k) != 0 || buf[k] == '\0')
            continue;
        char *rest = buf + k + strspn(buf + k, "-");
        memmove(buf, rest, strlen(rest) + 1);
    }
    return buf;
}

/* --- closing
 * ----------------------------------------------------------------------------------------- */

/* Reads "512" or "8x8x8" into dims; returns how many factors, 0 when it is neither. */
static int parse_count(const char *s, int *dims)
{
    int n = 0;
    for (;;) {
        char *end;
        long v = strtol(s, &end, 10);
        if (!isdigit((unsigned char)*s) || v < 1 || v > 10000000 || n == HP_MAX_TORUS)
            return 0;
        dims[n++] = (int)v;
        if (*end == '\0')
            return n;
        if (*end != 'x')
            return 0;
        s = end + 1;
    }
}

/* Returns how many chips "512" or "8x8x8" are, 0 when it is no count or too large to be one. */
static int count_chips(const char *s, int *dims, int *n)
{
    enum { MOST = 10000000 };
    long long chips = 1;
    *n = parse_count(s, dims);
    for (int i = 0; i < *n; i++) {
        chips *= dims[i];
        if (chips > MOST)
            return 0;
    }
    return *n ? (int)chips : 0;
}

static hp_err no_count(const char *count, const char *name, hp_errmsg *e)
{
    return hp_fail(e, HP_EUSAGE,
                   "\"%s\" is no number of %s: write a count as 512 or 8x8x8 (at most 10000000)",
                   count, name);
}

/* Cuts `count` into n factors as near to each other as can be, ascending. */
static void even_dims(int count, int n, int *dims)
{
    for (int i = 0; i < n; i++) {
        int left = n - i, best = 1;
        int at_most = (int)floor(pow(count, 1.0 / left) + 1e-9);
        for (int f = 1; f <= at_most; f++)
            if (count % f == 0)
                best = f;
        dims[i] = left == 1 ? count : best;
        count /= dims[i];
    }
}

static hp_err torus_dims(const hp_cluster *c, hp_level *l, const int *dims, int n, int positions,
                         hp_errmsg *e)
{
    if (l->n_dims == 0)
        l->n_dims = n > 1 ? n : HP_MAX_TORUS;
    if (n <= 1) {
        even_dims(positions, l->n_dims, l->dims);
        return HP_OK;
    }
    if (n != l->n_dims)
        return hp_fail(e, HP_EUSAGE, "%s is a torus of %d axes: write %s, or a plain count",
                       c->name, l->n_dims,
                       l->n_dims == 2   ? "AxB"
                       : l->n_dims == 1 ? "A"
                                        : "AxBxC");
    memcpy(l->dims, dims, (size_t)n * sizeof *dims);
    return HP_OK;
}

static void close_axes(hp_level *l)
{
    bool whole = true;
    for (int i = 0; i < l->n_dims; i++) {
        bool fits = l->wrap_at == 0 || (l->wrap_at > 0 && l->dims[i] % l->wrap_at == 0);
        l->wrap[i] = fits && l->dims[i] > 1;
        whole = whole && fits;
    }
    if (l->wrap_all && !whole)
        memset(l->wrap, 0, sizeof l->wrap);
}

/* Levels beyond the first with links that holds all devices have no meaning. */
static void drop_outer(hp_cluster *c)
{
    for (int i = 0; i < c->n_levels; i++) {
        hp_level *l = &c->level[i];
        if (l->topology != HP_TOPO_PART && (l->size == 0 || l->size >= c->n_devices)) {
            c->n_levels = i + 1;
            return;
        }
    }
}

static hp_err close_levels(hp_cluster *c, const int *dims, int n, hp_errmsg *e)
{
    drop_outer(c);
    int inner = 1; /* devices of one position of a torus */
    for (int i = 0; i < c->n_levels; i++) {
        hp_level *l = &c->level[i];
        if (l->size == 0)
            l->size = i && l[-1].size > c->n_devices ? l[-1].size : c->n_devices;
        l->full_size = l->size;
        if (i && l->size < c->level[i - 1].size)
            return hp_fail(e, HP_EINPUT,
                           "level %s of %s has %d devices, fewer than %s inside it (%d)", l->name,
                           c->name, l->size, l[-1].name, l[-1].size);
        if (l->topology == HP_TOPO_TORUS) {
            int positions = (l->size < c->n_devices ? l->size : c->n_devices) / inner;
            hp_err err = torus_dims(c, l, dims, n, positions, e);
            if (err)
                return err;
            close_axes(l);
        }
        if (l->topology != HP_TOPO_PART)
            inner = l->size;
    }
    for (int i = 0; i < c->n_levels; i++)
        if (c->level[i].size > c->n_devices)
            c->level[i].size = c->n_devices;
    return HP_OK;
}

static hp_err check_complete(const hp_cluster *c, hp_errmsg *e)
{
    const hp_level *last = c->n_levels ? &c->level[c->n_levels - 1] : NULL;
    if (!hp_cluster_level(c, "node"))
        return hp_fail(e, HP_EINPUT, "cluster %s has no level \"node\": set level.node.size",
                       c->name);
    if (last->size < c->n_devices || last->topology == HP_TOPO_PART)
        return hp_fail(e, HP_EINFEASIBLE, "%s has at most %d devices (level %s), not %d", c->name,
                       last->full_size, last->name, c->n_devices);
    if (!(hp_cluster_peak(c, HP_RATE_BF16, NULL) > 0))
        return hp_fail(e, HP_EINPUT, "cluster %s has no peak: set peak.f32 or peak.bf16", c->name);
    if (!(c->device.hbm_bytes > 0) || !(c->device.hbm_bandwidth > 0))
        return hp_fail(e, HP_EINPUT, "cluster %s needs hbm.bytes and hbm.bandwidth", c->name);
    for (int i = 0; i < c->n_levels; i++)
        if (c->level[i].topology != HP_TOPO_PART && !(c->level[i].bandwidth > 0) &&
            c->n_devices > 1)
            return hp_fail(e, HP_EINPUT, "level %s of %s needs a bandwidth", c->level[i].name,
                           c->name);
    for (int i = 0; i < c->n_slow; i++)
        if (c->slow[i].rank >= c->n_devices)
            return hp_fail(e, HP_EINPUT, "cluster.slow: device %d of %d is none", c->slow[i].rank,
                           c->n_devices);
    return HP_OK;
}

/* "tpu-v5p:8x8x8" keeps its factors for people; n_devices counts dies. */
hp_err hp_cluster_finish(hp_cluster *c, const char *count, hp_errmsg *e)
{
    int dims[HP_MAX_TORUS], n, chips = count_chips(count, dims, &n);
    if (chips < 1 || (long long)chips * c->dies > 10000000)
        return no_count(count, c->name, e);
    c->n_devices = chips * c->dies;
    c->spec = hp_arena_printf(&c->arena, "%s:%s", c->name, count);
    hp_err err = close_levels(c, dims, n, e);
    if (!err && !(c->budget_bytes > 0))
        c->budget_bytes = c->device.hbm_bytes;
    return err ? err : check_complete(c, e);
}

/* --- ideal and host
 * ------------------------------------------------------------------------------------ */

typedef struct figure {
    const char *key, *value;
} figure;

static hp_err set_all(hp_cluster *c, const figure *f, const char *source, bool unverified,
                      hp_errmsg *e)
{
    for (; f->key; f++) {
        hp_err err = hp_cluster_set(c, f->key, f->value, source, unverified, e);
        if (err)
            return err;
    }
    return HP_OK;
}

static hp_err fill_ideal(hp_cluster *c, hp_errmsg *e)
{
    static const figure f[] = {{"peak.f32", "1P"},
                               {"peak.tf32", "1P"},
                               {"peak.bf16", "1P"},
                               {"peak.fp8", "1P"},
                               {"peak.fp4", "1P"},
                               {"hbm.bytes", "80GiB"},
                               {"hbm.bandwidth", "1TB/s"},
                               {"host.bandwidth", "100GB/s"},
                               {"host.bytes", "1TiB"},
                               {"level.node.size", "8"},
                               {"level.node.topology", "part"},
                               {"level.fabric.size", "all"},
                               {"level.fabric.bandwidth", "100GB/s"},
                               {NULL, NULL}};
    c->is_ideal = true;
    return set_all(c, f, "definition of ideal", false, e);
}

static hp_err set_number(hp_cluster *c, const char *key, double v, const char *source,
                         bool unverified, hp_errmsg *e)
{
    char text[64];
    snprintf(text, sizeof text, "%.6g", v);
    return hp_cluster_set(c, key, text, source, unverified, e);
}

/* Two FMA units of f32_lanes a core; 13.5 GB/s of memory and 10 GB/s of copies a core are what one
 * core of a server of this decade does. N devices share the cores. */
static hp_err fill_host(hp_cluster *c, int n, hp_errmsg *e)
{
    hp_host h;
    hp_host_read(&h);
    double share = (double)h.n_cores / n, core = h.hz * h.f32_lanes * 4;
    const char *guess =
        hp_arena_printf(&c->arena, "estimate from clock and lanes of %s; not calibrated", h.cpu);
    const figure f[] = {
        {"launch", "2us"}, {"level.node.size", "all"}, {"level.node.latency", "2us"}, {NULL, NULL}};
    c->is_host = true;
    hp_err err = set_number(c, "peak.f32", core * share, guess, true, e);
    err = err ? err : set_number(c, "peak.bf16", core * share, guess, true, e);
    err = err ? err : set_number(c, "gemm.efficiency", 0.7, guess, true, e);
    err = err ? err : set_number(c, "hbm.bandwidth", 13.5e9 * share, guess, true, e);
    err = err ? err
              : set_number(c, "hbm.bytes", (double)h.memory_bytes / n,
                           "/proc/meminfo, shared by the devices", false, e);
    err = err ? err
              : set_number(c, "hbm_bytes", floor(0.8 * (double)h.memory_bytes / n),
                           "0.8 of the memory over the devices", false, e);
    err = err ? err : set_number(c, "host.bandwidth", 10e9 * share, guess, true, e);
    err = err ? err
              : set_number(c, "host.bytes", (double)h.memory_bytes / n,
                           "/proc/meminfo, shared by the devices", false, e);
    err = err ? err : set_all(c, f, guess, true, e);
    return err ? err : set_number(c, "level.node.bandwidth", 10e9 * share, guess, true, e);
}

/* --- NAME:COUNT
 * ------------------------------------------------------------------------------------------ */

static hp_err fill(hp_cluster *c, const char *name, const char *count, hp_profile_fn *load,
                   void *ctx, hp_errmsg *e)
{
    int dims[HP_MAX_TORUS], n, devices = count_chips(count, dims, &n);
    if (devices < 1)
        return no_count(count, name, e);
    if (strcmp(name, "ideal") == 0)
        return fill_ideal(c, e);
    if (strcmp(name, "host") == 0)
        return fill_host(c, devices, e);
    if (!load)
        return hp_fail(e, HP_EUSAGE, "no cluster is called \"%s\": ideal and host are known here",
                       name);
    return load(ctx, name, c, e);
}

hp_err hp_cluster_parse(const char *spec, int n_over, const hp_override *over, hp_profile_fn *load,
                        void *ctx, hp_cluster **out, hp_errmsg *e)
{
    const char *colon = strrchr(spec, ':');
    char raw[64], name[64];
    if (!colon || colon == spec || (size_t)(colon - spec) >= sizeof raw)
        return hp_fail(e, HP_EUSAGE,
                       "cluster \"%s\": write NAME:COUNT, as host:8, h100-sxm:512 or tpu-v5p:8x8x8",
                       spec);
    snprintf(raw, sizeof raw, "%.*s", (int)(colon - spec), spec);
    hp_cluster_plain_name(raw, name, sizeof name);
    hp_cluster *c = hp_cluster_new(name);
    hp_err err = fill(c, name, colon + 1, load, ctx, e);
    for (int i = 0; i < n_over && !err; i++)
        err = hp_cluster_set(c, over[i].key, over[i].value, "set on the command line", false, e);
    if (!err)
        err = hp_cluster_finish(c, colon + 1, e);
    if (err) {
        hp_cluster_free(c);
        return err;
    }
    *out = c;
    return HP_OK;
}

/* --- text
 * ------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hp_cluster_note *)a)->name, ((const hp_cluster_note *)b)->name);
}

void hp_cluster_print(const hp_cluster *c, hp_str *out)
{
    size_t n = (size_t)c->n_notes;
    hp_cluster_note *sorted = hp_xmalloc(n * sizeof *sorted);
    if (n)
        memcpy(sorted, c->note, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_name);
    hp_str_add(out, "cluster %s\n", c->spec ? c->spec : c->name);
    for (size_t i = 0; i < n; i++)
        hp_str_add(out, "%s %s\n", sorted[i].name, sorted[i].value);
    free(sorted);
}

uint64_t hp_cluster_hash(const hp_cluster *c)
{
    hp_str s = {0};
    hp_cluster_print(c, &s);
    uint64_t h = hp_hash_str(hp_str_text(&s));
    hp_str_fini(&s);
    return h;
}

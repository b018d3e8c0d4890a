/* cluster.h -- the machine that a plan is made for: one kind of device, many of it, links by level.
 *
 * A cluster is filled key by key with text (hp_cluster_set), by C for `ideal` and `host` and by
 * script for the profiles in share/hardware, then closed by hp_cluster_finish; after that it is
 * read only. Every figure that is set leaves an entry in the list of assumptions with its source,
 * so that a prediction can say what it stands on.
 *
 * Devices are numbered from 0. Levels go from inner to outer; a level has `size` devices in each
 * unit, unit u holds devices u size .. (u+1) size - 1, and its bandwidth is what one device can
 * send into it, one way, while it receives as much. A level of topology `part` only groups (a TPU's
 * host): traffic between its devices uses the links of the next level out. The last level holds all
 * devices. There is always a level called `node`.
 *
 * Units: seconds, bytes, bytes/s, FLOP/s. Keys and values: share/doc/hardware.md. Room: cluster;
 * uses base.
 */
#ifndef HP_CLUSTER_CLUSTER_H
#define HP_CLUSTER_CLUSTER_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_MAX_LEVELS = 8, HP_MAX_CURVE = 24, HP_MAX_TORUS = 3, HP_MAX_SLOW = 64 };

/* Arithmetic that has a peak of its own. */
typedef enum hp_rate {
    HP_RATE_F32,
    HP_RATE_TF32,
    HP_RATE_BF16,
    HP_RATE_FP8,
    HP_RATE_FP4,
    HP_RATES
} hp_rate;

/* hp_rate_name returns "f32", "tf32", "bf16", "fp8", "fp4"; hp_rate_find the inverse, -1 when
 * unknown. */
const char *hp_rate_name(hp_rate r);
int hp_rate_find(const char *name);

/* hp_curve is a measured figure against size: n points with x ascending; between them straight in
 * log x and log y, flat outside. n = 0: nothing was measured. */
typedef struct hp_curve {
    int n;
    double x[HP_MAX_CURVE], y[HP_MAX_CURVE];
} hp_curve;

/* hp_curve_at returns the curve's value at x, `missing` when it has no points. */
double hp_curve_at(const hp_curve *c, double x, double missing);

typedef enum hp_topology {
    HP_TOPO_SWITCH, /* every pair at full bandwidth */
    HP_TOPO_MESH,   /* full mesh: the bandwidth is spread over the size-1 peers */
    HP_TOPO_RING,   /* a ring: half of the bandwidth goes each way */
    HP_TOPO_TORUS,  /* `dims`, the bandwidth spread evenly over the axes and both directions */
    HP_TOPO_PART    /* grouping without links of its own */
} hp_topology;

/* hp_topology_name returns "switch", "mesh", "ring", "torus", "part"; hp_topology_find the inverse,
 * -1 when unknown. */
const char *hp_topology_name(hp_topology t);
int hp_topology_find(const char *name);

typedef struct hp_level {
    const char *name;  /* "die", "package", "node", "supernode", "pod", "fabric" */
    int size;          /* devices in a unit, at most the cluster's */
    int full_size;     /* devices that a complete unit of the real machine has */
    double bandwidth;  /* bytes/s one way of a device at this level */
    double latency;    /* seconds a step of an algorithm */
    double efficiency; /* achieved fraction of the bandwidth for large messages */
    hp_curve curve;    /* achieved fraction against message bytes; wins over `efficiency` */
    hp_topology topology;
    bool reduces;       /* the switch itself can reduce (NVLS, SHARP) */
    double reduce_gain; /* all-reduce bus bandwidth over the ring's where `reduces` */
    int n_dims,
        dims[HP_MAX_TORUS];  /* torus: outer to inner, the last is the fastest in device numbers */
    bool wrap[HP_MAX_TORUS]; /* the axis closes to a ring */
    int wrap_at;   /* an axis wraps when its size is a multiple of this; 0: always, -1: never */
    bool wrap_all; /* ... and only when all axes are (TPU v4, v5p: whole 4x4x4 cubes) */
} hp_level;

typedef struct hp_device {
    const char *name, *vendor;
    double peak[HP_RATES];         /* FLOP/s, dense; 0: this kind has none */
    double gemm_efficiency;        /* achieved fraction of the peak on large matrices */
    hp_curve gemm_curve[HP_RATES]; /* fraction of the peak against cbrt(m n k); wins */
    double hbm_bytes;              /* visible capacity */
    double hbm_bandwidth;
    double hbm_efficiency;
    hp_curve hbm_curve;    /* achieved fraction against bytes */
    double launch;         /* seconds from the start of an operation to its first work */
    double host_launch;    /* seconds of the host a launched operation */
    double host_bandwidth; /* link to the host's memory, one way */
    double host_latency;
    double host_efficiency;
    double host_bytes;                 /* host memory a device may use */
    double pool_bytes, pool_bandwidth; /* pooled memory behind the fabric, 0 = none */
} hp_device;

typedef struct hp_cluster_note {
    const char *name, *value, *source;
    bool unverified;
} hp_cluster_note;

/* hp_slow makes one device slower: its compute takes `factor` times as long. */
typedef struct hp_slow {
    int rank;
    double factor;
} hp_slow;

typedef struct hp_cluster {
    hp_arena arena;   /* owns all strings */
    const char *name; /* "h100-sxm" */
    const char *spec; /* "h100-sxm:512" */
    int n_devices;
    int dies; /* devices a counted chip has: 910c-npu:384 is 768 devices */
    hp_device device;
    int n_levels;
    hp_level level[HP_MAX_LEVELS];
    bool is_host;        /* virtual devices of this machine */
    bool is_ideal;       /* no losses: closed forms hold exactly */
    bool paced;          /* link.bandwidth or link.latency was asked for: exec paces its links */
    double budget_bytes; /* of a device's memory: what plans are judged by */
    int n_slow;
    hp_slow slow[HP_MAX_SLOW];
    int n_notes, cap_notes;
    hp_cluster_note *note;
} hp_cluster;

/* hp_override is one `-o cluster.KEY=VALUE` without the "cluster.". */
typedef struct hp_override {
    const char *key, *value;
} hp_override;

/* hp_profile_fn fills a new cluster from the profile called `name` (script reads
 * share/hardware/NAME.lua); HP_EUSAGE with near names when there is none. */
typedef hp_err hp_profile_fn(void *ctx, const char *name, hp_cluster *c, hp_errmsg *e);

/* hp_cluster_new returns an empty cluster of devices called `name`; hp_cluster_free frees it, NULL
 * is nothing. */
hp_cluster *hp_cluster_new(const char *name);
void hp_cluster_free(hp_cluster *c);

/* hp_cluster_set gives `key` the value that the text says, and notes it with its source (may be
 * NULL: "set by hand"). HP_EINPUT for an unknown key (with the nearest known one) or a value that
 * can't be read (with what would be legal). */
hp_err hp_cluster_set(hp_cluster *c, const char *key, const char *value, const char *source,
                      bool unverified, hp_errmsg *e);

/* hp_cluster_finish gives the filled cluster its size, "512" or "8x8x8" chips, closes the outermost
 * level over all devices and derives what was not said. HP_EUSAGE for a count that is none,
 * HP_EINPUT names a figure that every cluster needs and this one lacks. */
hp_err hp_cluster_finish(hp_cluster *c, const char *count, hp_errmsg *e);

/* hp_cluster_parse makes a cluster from "NAME:COUNT" and overrides. `ideal` and `host` are known
 * here, all other names go to `load` (may be NULL), in lower case and without the vendor.
 * HP_EUSAGE: not of this form, unknown name; HP_EINPUT: bad override. The caller frees *out. */
hp_err hp_cluster_parse(const char *spec, int n_over, const hp_override *over, hp_profile_fn *load,
                        void *ctx, hp_cluster **out, hp_errmsg *e);

/* hp_cluster_plain_name writes a device name as files have it: lower case, no vendor
 * ("Ascend910C-die" -> "910c-die"); returns buf. */
char *hp_cluster_plain_name(const char *name, char *buf, size_t n);

/* hp_cluster_level returns the level called `name`, NULL when there is none. */
const hp_level *hp_cluster_level(const hp_cluster *c, const char *name);

/* hp_cluster_peak returns FLOP/s for a rate; where the device has none, the next wider one's (fp4
 * -> fp8 -> bf16 -> tf32 -> f32), and *used (may be NULL) is the one that was taken. */
double hp_cluster_peak(const hp_cluster *c, hp_rate r, hp_rate *used);

/* hp_cluster_slowness returns the factor of a device's compute time, 1 unless it is a straggler. */
double hp_cluster_slowness(const hp_cluster *c, int device);

/* hp_cluster_print appends every figure as sorted "key value" lines; hp_cluster_hash hashes that
 * text. */
void hp_cluster_print(const hp_cluster *c, hp_str *out);
uint64_t hp_cluster_hash(const hp_cluster *c);

/* --- groups of devices on levels
 * ------------------------------------------------------------------------- */

/* hp_group says how n devices lie on the levels: span[l] is how many units of level l-1 (devices
 * for l = 0) it uses within one unit of level l, at most over the units; the product over all
 * levels is n where the group is regular. */
typedef struct hp_group {
    int n;
    int outer; /* innermost level with links that holds them all; -1: one device */
    int span[HP_MAX_LEVELS];
    int axis[HP_MAX_TORUS]; /* torus: how many coordinates of each axis it uses within one torus */
} hp_group;

/* hp_cluster_group describes a list of distinct devices (any order). */
hp_group hp_cluster_group(const hp_cluster *c, const int *device, int n);

/* hp_cluster_group_strided describes first, first + stride, ... (count of them). */
hp_group hp_cluster_group_strided(const hp_cluster *c, int first, int stride, int count);

/* hp_cluster_level_of returns the innermost level with links that has all of first, first + stride,
 * ... in one unit; -1 for one device. */
int hp_cluster_level_of(const hp_cluster *c, int first, int stride, int count);

#endif

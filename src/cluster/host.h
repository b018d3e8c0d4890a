/* host.h -- facts about the machine we run on: cores and caches from hwloc, memory from the kernel.
 *
 * hwloc's memory sizes are wrong in some containers, so memory is the smaller of /proc/meminfo's
 * MemTotal and the control group's limit. Rates are not measured here: they are estimates from
 * clock and instruction set, until `hpbench calibrate` has measured. Room: cluster; uses base.
 */
#ifndef HP_CLUSTER_HOST_H
#define HP_CLUSTER_HOST_H

#include <stdint.h>

typedef struct hp_host {
    char cpu[96];           /* model name, "unknown" when the kernel doesn't say */
    int n_cores, n_threads; /* allowed to this process: cores, and hardware threads */
    int n_nodes;            /* NUMA nodes */
    int64_t memory_bytes, available_bytes;
    int64_t l2_bytes, l3_bytes; /* of one core; of one L3; 0 when unknown */
    double hz;                  /* clock, 2e9 when unknown */
    int f32_lanes;              /* SIMD lanes of f32: 16, 8 or 4 */
} hp_host;

/* hp_host_read fills *h; what can't be found out keeps a stated default. */
void hp_host_read(hp_host *h);

#endif

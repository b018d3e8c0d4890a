/* pin.c -- threads that a team starts later inherit the binding, so a part must hold the whole team. */
#include "exec/pin.h"

#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>

int hp_pin_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void hp_pin_thread(int i, int n)
{
    hwloc_topology_t topo;
    hwloc_cpuset_t *part = calloc((size_t)n, sizeof *part);
    if (!part || hwloc_topology_init(&topo) != 0) {
        free(part);
        return;
    }
    if (hwloc_topology_load(topo) == 0) {
        hwloc_obj_t root = hwloc_get_root_obj(topo);
        if (hwloc_distrib(topo, &root, 1, part, (unsigned)n, INT_MAX, 0) == 0) {
            hwloc_set_cpubind(topo, part[i], HWLOC_CPUBIND_THREAD);
            for (int k = 0; k < n; k++)
                hwloc_bitmap_free(part[k]);
        }
    }
    hwloc_topology_destroy(topo);
    free(part);
}

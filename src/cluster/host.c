/* host.c -- every reader copes with a file or a line that isn't there. */
#include "cluster/host.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the text after ':' of the first line that starts with `key`, in `buf`; NULL when there is
 * none. */
static char *line_of(const char *path, const char *key, char *buf, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    char *found = NULL, *line = NULL;
    size_t cap = 0, k = strlen(key);
    while (!found && getline(&line, &cap, f) > 0) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, k) != 0 || !colon)
            continue;
        const char *v = colon + 1 + strspn(colon + 1, " \t");
        snprintf(buf, n, "%.*s", (int)strcspn(v, "\n"), v);
        found = buf;
    }
    free(line);
    fclose(f);
    return found;
}

static int64_t kib_of(const char *key)
{
    char buf[64];
    return line_of("/proc/meminfo", key, buf, sizeof buf) ? strtoll(buf, NULL, 10) * 1024 : 0;
}

/* Returns the limit a control group sets, 0 when there is none. */
static int64_t group_limit(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    long long v = 0;
    if (fscanf(f, "%lld", &v) != 1)
        v = 0;
    fclose(f);
    return v;
}

static void read_memory(hp_host *h)
{
    static const char *const limit[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    h->memory_bytes = kib_of("MemTotal");
    h->available_bytes = kib_of("MemAvailable");
    for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++) {
        int64_t v = group_limit(limit[i]);
        if (v > 0 && v < h->memory_bytes)
            h->memory_bytes = v;
    }
    if (h->available_bytes > h->memory_bytes)
        h->available_bytes = h->memory_bytes;
}

static void read_cpu(hp_host *h)
{
    char buf[4096];
    if (line_of("/proc/cpuinfo", "model name", buf, sizeof buf))
        snprintf(h->cpu, sizeof h->cpu, "%s", buf);
    if (line_of("/proc/cpuinfo", "cpu MHz", buf, sizeof buf) && atof(buf) > 0)
        h->hz = atof(buf) * 1e6;
    if (line_of("/proc/cpuinfo", "flags", buf, sizeof buf))
        h->f32_lanes = strstr(buf, " avx512f") ? 16 : strstr(buf, " avx2") ? 8 : 4;
}

static int64_t cache_bytes(hwloc_topology_t t, hwloc_obj_type_t type)
{
    hwloc_obj_t o = hwloc_get_obj_by_type(t, type, 0);
    return o ? (int64_t)o->attr->cache.size : 0;
}

static void read_topology(hp_host *h)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0)
        return;
    if (hwloc_topology_load(t) == 0) {
        int cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
        int threads = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
        int nodes = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
        h->n_threads = threads > 0 ? threads : 1;
        h->n_cores = cores > 0 ? cores : h->n_threads;
        h->n_nodes = nodes > 0 ? nodes : 1;
        h->l2_bytes = cache_bytes(t, HWLOC_OBJ_L2CACHE);
        h->l3_bytes = cache_bytes(t, HWLOC_OBJ_L3CACHE);
    }
    hwloc_topology_destroy(t);
}

void hp_host_read(hp_host *h)
{
    *h = (hp_host){
        .cpu = "unknown", .n_cores = 1, .n_threads = 1, .n_nodes = 1, .hz = 2e9, .f32_lanes = 4};
    read_memory(h);
    read_cpu(h);
    read_topology(h);
}

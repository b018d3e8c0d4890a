/* memory.c -- the guard lies behind the rounded end, the bytes begin at a page. */
#include "exec/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

hp_err hp_memory_map(hp_memory *m, int64_t bytes, hp_errmsg *e)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = ((size_t)bytes + page - 1) / page * page;
    *m = (hp_memory){0};
    if (bytes == 0)
        return HP_OK;
    char *at = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return hp_fail(e, HP_EINTERNAL, "the machine refuses %lld bytes for a device: %s",
                       (long long)bytes, strerror(errno));
    mprotect(at + body, page, PROT_NONE);
    *m = (hp_memory){at, bytes, body + page};
    memset(at, 0, body);
    return HP_OK;
}

void hp_memory_unmap(hp_memory *m)
{
    if (m->base)
        munmap(m->base, m->mapped);
    *m = (hp_memory){0};
}

int64_t hp_memory_available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[256];
    long long kib = -1;
    while (f && kib < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld", &kib) != 1)
            kib = -1;
    if (f)
        fclose(f);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}

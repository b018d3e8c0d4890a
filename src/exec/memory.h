/* memory.h -- the memory of virtual devices: one mapping each, exactly as large as the plan says, with a guard page behind it. Room: exec. */
#ifndef HP_EXEC_MEMORY_H
#define HP_EXEC_MEMORY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

typedef struct hp_memory {
    char *base; /* NULL when there are no bytes */
    int64_t bytes;
    size_t mapped;
} hp_memory;

/* hp_memory_map maps `bytes` of zeros (rounded up to pages) and touches all of them, so that no step pays for it. HP_EINTERNAL when refused. */
hp_err hp_memory_map(hp_memory *m, int64_t bytes, hp_errmsg *e);

/* hp_memory_unmap gives it back; zeroed is nothing. */
void hp_memory_unmap(hp_memory *m);

/* hp_memory_available returns the bytes this machine could give now without swapping, by the kernel's own estimate; -1 when unknown. */
int64_t hp_memory_available(void);

#endif

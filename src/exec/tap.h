/* tap.h -- outputs that a child keeps for its parent, one record behind the other in a file in memory. Room: exec. */
#ifndef HP_EXEC_TAP_H
#define HP_EXEC_TAP_H

#include "exec/exec.h"

#include <pthread.h>

/* hp_tap_writer appends the outputs of tasks that match `glob` to fd. */
typedef struct hp_tap_writer {
    pthread_mutex_t lock;
    int fd;
    const char *glob;
} hp_tap_writer;

/* hp_tap_write is a tap hook; ctx is the writer. */
void hp_tap_write(void *ctx, const hp_exec_tap *t);

/* hp_tap_read reads the record at *cursor of `bytes` mapped bytes and moves on; false at the end or at a record cut short. */
bool hp_tap_read(const hp_plan *p, const hp_expansion *x, char *map, int64_t bytes, int64_t *cursor,
                 hp_exec_tap *t);

#endif

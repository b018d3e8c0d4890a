/* tap.c -- a record is a head and the operand's bytes, rounded up to 64 so that data stays aligned. */
#include "exec/tap.h"

#include <string.h>
#include <unistd.h>

typedef struct head {
    int64_t bytes;   /* of the data */
    hp_exec_tap tap; /* pointers are the writer's */
} head;

enum { HEAD = (sizeof(head) + 63) / 64 * 64 };

static int64_t padded(int64_t n)
{
    return (n + 63) / 64 * 64;
}

static int64_t data_bytes(const hp_operand *o, bool routed)
{
    int64_t n = o->data ? (routed ? o->rows : 1) : 0;
    for (int d = routed ? o->nd - 1 : 0; d < o->nd; d++)
        n *= o->len[d];
    return n * hp_dtype_bytes(o->dtype);
}

/* Writes all or gives up: a parent finds a short record and stops there. */
static void put(int fd, const void *data, int64_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t k = write(fd, at, (size_t)n);
        if (k <= 0)
            return;
        at += k;
        n -= k;
    }
}

void hp_tap_write(void *ctx, const hp_exec_tap *t)
{
    static const char zeros[64];
    hp_tap_writer *w = ctx;
    if (!hp_glob_match(w->glob, t->task->name))
        return;
    char first[HEAD] = {0};
    head h = {data_bytes(&t->operand, t->routed), *t};
    memcpy(first, &h, sizeof h);
    pthread_mutex_lock(&w->lock);
    put(w->fd, first, HEAD);
    if (h.bytes > 0)
        put(w->fd, t->operand.data, h.bytes);
    put(w->fd, zeros, padded(h.bytes) - h.bytes);
    pthread_mutex_unlock(&w->lock);
}

bool hp_tap_read(const hp_plan *p, const hp_expansion *x, char *map, int64_t bytes, int64_t *cursor,
                 hp_exec_tap *t)
{
    head h;
    if (bytes - *cursor < HEAD)
        return false;
    memcpy(&h, map + *cursor, sizeof h);
    bool right = h.bytes >= 0 && h.bytes <= bytes - *cursor - HEAD && h.tap.program >= 0 &&
                 h.tap.program < p->n_programs && h.tap.inst >= 0 &&
                 h.tap.inst < x[h.tap.program].n;
    if (!right)
        return false;
    const hp_program *g = &p->program[h.tap.program];
    *t = h.tap;
    t->task = hp_inst_task(g, &x[t->program].inst[t->inst]);
    t->entry = hp_inst_entry(g, &x[t->program].inst[t->inst]);
    t->operand.data = h.bytes > 0 ? map + *cursor + HEAD : NULL;
    *cursor += HEAD + padded(h.bytes);
    return true;
}

/* memory.c -- static addresses: first fit over lifetimes.
 *
 * A run buffer lives from the first to the last task of its template that names it; a frame buffer from F's first task to B's last, in the order F then
 * B, and to the frame's end when it is sent (the message may still be on its way); persist and step buffers live for ever. Two buffers share bytes only when one's life ends before the other's begins in program order; what runs on other streams is held
 * to that by the edges of expand.c. An alias lies where its target lies and extends its life.
 */
#include "plan/lower.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct life {
    int buffer, birth, death;
    int64_t bytes;
} life;

typedef struct space {
    int64_t lo, hi;
    int death;
} space;

/* Collects the lives of one scope's buffers over the tasks of up to two templates in turn. */
static int lives(const hp_program *p, hp_scope scope, const hp_template *const *t, int n_tmpl, life *out, int *slot)
{
    int n = 0, at = 0;
    for (int k = 0; k < n_tmpl; k++)
        for (int i = 0; i < t[k]->n_tasks; i++, at++) {
            const hp_task *task = &t[k]->task[i];
            for (int j = 0; j < task->n_in + task->n_out; j++)
                for (int b = task->buf[j]; b >= 0; b = p->buffer[b].route) {
                    int r = hp_buffer_root(p, b);
                    if (p->buffer[r].scope != scope || p->buffer[r].tier != HP_TIER_HBM)
                        continue;
                    if (slot[r] < 0) {
                        slot[r] = n;
                        out[n++] = (life){.buffer = r, .birth = at, .death = at, .bytes = p->buffer[r].bytes};
                    }
                    bool sent = scope == HP_S_FRAME && task->kind == HP_TASK_SEND;
                    out[slot[r]].death = sent || out[slot[r]].death == INT_MAX ? INT_MAX : at;
                }
        }
    for (int i = 0; i < n; i++)
        slot[out[i].buffer] = -1;
    return n;
}

static int by_birth(const void *a, const void *b)
{
    const life *x = a, *y = b;
    if (x->birth != y->birth)
        return x->birth < y->birth ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->buffer - y->buffer;
}

/* Gives every life the lowest address that is free from its birth on; returns the top. */
static int64_t first_fit(hp_program *p, life *l, int n)
{
    space *live = hp_xmalloc((size_t)(n + 1) * sizeof *live);
    int n_live = 0;
    int64_t top = 0;
    qsort(l, (size_t)n, sizeof *l, by_birth);
    for (int i = 0; i < n; i++) {
        int kept = 0;
        for (int k = 0; k < n_live; k++)
            if (live[k].death >= l[i].birth)
                live[kept++] = live[k];
        n_live = kept;
        int64_t at = 0;
        int k = 0;
        while (k < n_live && live[k].lo - at < l[i].bytes)
            at = live[k++].hi;
        memmove(live + k + 1, live + k, (size_t)(n_live - k) * sizeof *live);
        live[k] = (space){at, at + l[i].bytes, l[i].death};
        n_live++;
        p->buffer[l[i].buffer].offset = at;
        top = at + l[i].bytes > top ? at + l[i].bytes : top;
    }
    free(live);
    return top;
}

static void lay_for_good(hp_program *p, hp_scope scope)
{
    for (int i = 0; i < p->n_buffers; i++) {
        hp_buffer *b = &p->buffer[i];
        if (b->alias >= 0 || b->scope != scope)
            continue;
        int64_t *top = b->tier == HP_TIER_HBM ? &p->scope_bytes[scope] : &p->host_bytes;
        b->offset = *top;
        *top += b->bytes;
    }
}

void low_addresses(hp_program *p)
{
    life *l = hp_xmalloc((size_t)(p->n_buffers + 1) * sizeof *l);
    int *slot = hp_xmalloc((size_t)(p->n_buffers + 1) * sizeof *slot);
    memset(slot, 0xff, (size_t)(p->n_buffers + 1) * sizeof *slot);
    memset(p->scope_bytes, 0, sizeof p->scope_bytes);
    lay_for_good(p, HP_S_PERSIST);
    lay_for_good(p, HP_S_STEP);
    for (int i = 0; i < p->n_templates; i++) {
        const hp_template *t[2] = {&p->tmpl[i], NULL};
        int64_t top = first_fit(p, l, lives(p, HP_S_RUN, t, 1, l, slot));
        if (top > p->scope_bytes[HP_S_RUN])
            p->scope_bytes[HP_S_RUN] = top;
        if (t[0]->kind != HP_TMPL_F)
            continue;
        for (int k = 0; k < p->n_templates; k++)
            if (p->tmpl[k].kind == HP_TMPL_B && p->tmpl[k].chunk == t[0]->chunk)
                t[1] = &p->tmpl[k];
        top = first_fit(p, l, lives(p, HP_S_FRAME, t, t[1] ? 2 : 1, l, slot));
        if (top > p->scope_bytes[HP_S_FRAME])
            p->scope_bytes[HP_S_FRAME] = top;
    }
    for (int i = 0; i < p->n_buffers; i++)
        p->buffer[i].offset = p->buffer[hp_buffer_root(p, i)].offset;
    free(l);
    free(slot);
}

/* segment.c -- layout of the mapping: head, metrics, spans of all slots, durations of all slots. Both ends compute it from the plan's expansion. */
#include "exec/segment.h"

#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t magic = 0x68706265786563ull; /* "hpbexec" */

enum { MAX_SLOT_BYTES = 256 << 20 }; /* of the ring; long steps keep fewer slots */

static int64_t aligned(int64_t n)
{
    return (n + 63) / 64 * 64;
}

static int64_t slot_bytes(int64_t spans)
{
    return spans * (int64_t)(sizeof(hp_span) + sizeof(int64_t));
}

static hp_segment *shape(const hp_plan *p, const hp_expansion *x)
{
    hp_segment *s = hp_xcalloc(1, sizeof *s);
    size_t n = (size_t)p->n_programs;
    s->fd = -1;
    s->n_programs = p->n_programs;
    s->n_inst = hp_xcalloc(n + 1, sizeof *s->n_inst);
    s->n_ranks = hp_xcalloc(n + 1, sizeof *s->n_ranks);
    s->first = hp_xcalloc(n + 1, sizeof *s->first);
    for (size_t i = 0; i < n; i++) {
        s->n_inst[i] = x[i].n;
        s->n_ranks[i] = p->program[i].mesh.n_ranks;
        s->first[i + 1] = s->first[i] + (int64_t)s->n_inst[i] * s->n_ranks[i];
    }
    return s;
}

static int ring_size(int64_t spans)
{
    int ring = HP_SEGMENT_RING;
    while (ring > 2 && slot_bytes(spans) * (ring + 1) > MAX_SLOT_BYTES)
        ring--;
    return ring;
}

static int64_t total_bytes(const hp_segment *s, int64_t steps, int ring)
{
    return aligned((int64_t)sizeof(hp_segment_head)) +
           aligned(steps * (int64_t)sizeof(hp_exec_metrics)) +
           aligned(slot_bytes(s->first[s->n_programs]) * (ring + 1));
}

static void place(hp_segment *s, void *map)
{
    int64_t spans = s->first[s->n_programs];
    char *at = map;
    s->head = map;
    at += aligned((int64_t)sizeof(hp_segment_head));
    s->metrics = (hp_exec_metrics *)(void *)at;
    at += aligned(s->head->max_steps * (int64_t)sizeof(hp_exec_metrics));
    s->span = (hp_span *)(void *)at;
    s->busy_ns = (int64_t *)(void *)(s->span + spans * (s->head->ring + 1));
}

static hp_err map_new(hp_segment *s, int64_t bytes, bool shared, void **map, hp_errmsg *e)
{
    if (shared) {
        s->fd = memfd_create("hpbench-segment", MFD_CLOEXEC);
        if (s->fd < 0 || ftruncate(s->fd, bytes) != 0)
            return hp_fail(e, HP_EINTERNAL, "no shared memory of %lld bytes for a run: %s",
                           (long long)bytes, strerror(errno));
    }
    *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, s->fd, 0);
    return *map == MAP_FAILED
               ? hp_fail(e, HP_EINTERNAL, "no memory of %lld bytes for a run's trace: %s",
                         (long long)bytes, strerror(errno))
               : HP_OK;
}

hp_err hp_segment_new(const hp_plan *p, const hp_expansion *x, int64_t steps, bool shared,
                      hp_segment **out, hp_errmsg *e)
{
    hp_segment *s = shape(p, x);
    int ring = ring_size(s->first[s->n_programs]);
    int64_t bytes = total_bytes(s, steps, ring);
    void *map;
    hp_err rc = map_new(s, bytes, shared, &map, e);
    if (rc) {
        hp_segment_free(s);
        return rc;
    }
    hp_segment_head *h = map;
    h->magic = magic;
    h->bytes = bytes;
    h->max_steps = steps;
    h->n_programs = p->n_programs;
    h->ring = ring;
    for (int i = 0; i <= HP_SEGMENT_RING; i++)
        h->slot[i].step = -1;
    place(s, map);
    *out = s;
    return HP_OK;
}

hp_err hp_segment_open(const hp_plan *p, const hp_expansion *x, int fd, hp_segment **out,
                       hp_errmsg *e)
{
    hp_segment *s = shape(p, x);
    s->fd = fd;
    hp_segment_head h;
    bool right = pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h && h.magic == magic &&
                 h.n_programs == p->n_programs && h.ring >= 1 && h.ring <= HP_SEGMENT_RING &&
                 h.bytes == total_bytes(s, h.max_steps, h.ring) &&
                 lseek(fd, 0, SEEK_END) == h.bytes;
    void *map =
        right ? mmap(NULL, (size_t)h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map == MAP_FAILED) {
        hp_segment_free(s);
        return hp_fail(e, HP_EINTERNAL, "the run's segment does not fit its plan");
    }
    place(s, map);
    *out = s;
    return HP_OK;
}

void hp_segment_free(hp_segment *s)
{
    if (!s)
        return;
    if (s->head)
        munmap(s->head, (size_t)s->head->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s->n_inst);
    free(s->n_ranks);
    free(s->first);
    free(s);
}

static hp_span *slot_spans(const hp_segment *s, int slot)
{
    return s->span + (slot == HP_SEGMENT_RING ? s->head->ring : slot) * s->first[s->n_programs];
}

static int64_t *slot_busy(const hp_segment *s, int slot)
{
    return s->busy_ns + (slot == HP_SEGMENT_RING ? s->head->ring : slot) * s->first[s->n_programs];
}

int hp_segment_begin(hp_segment *s, int64_t index, int64_t step, int64_t start_ns)
{
    int slot = (int)(index % s->head->ring);
    atomic_store_explicit(&s->head->slot[slot].step, -1, memory_order_release);
    hp_span *span = slot_spans(s, slot);
    for (int64_t i = 0; i < s->first[s->n_programs]; i++) {
        atomic_store_explicit(&span[i].state, 0, memory_order_relaxed);
        span[i].ready_ns = span[i].start_ns = span[i].xfer_ns = span[i].end_ns = span[i].bytes = 0;
    }
    memset(slot_busy(s, slot), 0, (size_t)s->first[s->n_programs] * sizeof(int64_t));
    s->head->slot[slot].start_ns = start_ns;
    atomic_store_explicit(&s->head->slot[slot].step_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&s->head->slot[slot].step, step, memory_order_release);
    return slot;
}

/* The slot's contents become the slowest step's. */
static void keep_slowest(hp_segment *s, int slot, int64_t step_ns)
{
    int64_t n = s->first[s->n_programs];
    hp_segment_head *h = s->head;
    atomic_store_explicit(&h->slot[HP_SEGMENT_RING].step, -1, memory_order_release);
    hp_span *to = slot_spans(s, HP_SEGMENT_RING);
    const hp_span *from = slot_spans(s, slot);
    for (int64_t i = 0; i < n; i++) {
        to[i] = (hp_span){from[i].ready_ns, from[i].start_ns, from[i].xfer_ns,
                          from[i].end_ns,   from[i].bytes,    0};
        atomic_store_explicit(&to[i].state,
                              atomic_load_explicit(&from[i].state, memory_order_relaxed),
                              memory_order_relaxed);
    }
    memcpy(slot_busy(s, HP_SEGMENT_RING), slot_busy(s, slot), (size_t)n * sizeof(int64_t));
    h->slot[HP_SEGMENT_RING].start_ns = h->slot[slot].start_ns;
    atomic_store_explicit(&h->slot[HP_SEGMENT_RING].step_ns, step_ns, memory_order_relaxed);
    atomic_store_explicit(&h->slot[HP_SEGMENT_RING].step, atomic_load(&h->slot[slot].step),
                          memory_order_release);
}

void hp_segment_end(hp_segment *s, int slot, int64_t step_ns)
{
    hp_segment_head *h = s->head;
    int64_t done = atomic_load(&h->steps_done);
    bool slower = step_ns > atomic_load(&h->slot[HP_SEGMENT_RING].step_ns);
    if (done <= 1 ||
        slower) /* the first step pays for everybody's warming up: it is the slowest only as long as it is alone */
        keep_slowest(s, slot, step_ns);
    atomic_store_explicit(&h->slot[slot].step_ns, step_ns, memory_order_release);
    atomic_store_explicit(&h->steps_done, done + 1, memory_order_release);
}

static int64_t index_of(const hp_segment *s, int program, int rank, int inst)
{
    return s->first[program] + (int64_t)rank * s->n_inst[program] + inst;
}

hp_span *hp_segment_span(const hp_segment *s, int slot, int program, int rank, int inst)
{
    return slot_spans(s, slot) + index_of(s, program, rank, inst);
}

int64_t *hp_segment_busy(const hp_segment *s, int slot, int program, int rank, int inst)
{
    return slot_busy(s, slot) + index_of(s, program, rank, inst);
}

/* The slot with the greatest step number among those that run (complete = false) or have ended. */
static int latest(const hp_segment *s, bool complete)
{
    int best = -1;
    int64_t most = -1;
    for (int i = 0; i < s->head->ring; i++) {
        int64_t step = atomic_load_explicit(&s->head->slot[i].step, memory_order_acquire);
        bool ended = atomic_load_explicit(&s->head->slot[i].step_ns, memory_order_acquire) > 0;
        if (step > most && ended == complete) {
            most = step;
            best = i;
        }
    }
    return best;
}

int hp_segment_newest(const hp_segment *s)
{
    return latest(s, true);
}

int hp_segment_current(const hp_segment *s)
{
    return latest(s, false);
}

int hp_segment_slowest(const hp_segment *s)
{
    return atomic_load_explicit(&s->head->slot[HP_SEGMENT_RING].step, memory_order_acquire) >= 0
               ? HP_SEGMENT_RING
               : -1;
}

bool hp_segment_holds(const hp_segment *s, int slot, int64_t step)
{
    return atomic_load_explicit(&s->head->slot[slot].step, memory_order_acquire) == step;
}

void hp_segment_trace(const hp_segment *s, int slot, hp_step_trace *t)
{
    *t = (hp_step_trace){
        .step = atomic_load_explicit(&s->head->slot[slot].step, memory_order_acquire),
        .step_ns = atomic_load_explicit(&s->head->slot[slot].step_ns, memory_order_acquire),
        .n_programs = s->n_programs,
        .n_inst = s->n_inst,
        .span = hp_xmalloc((size_t)(s->n_programs + 1) * sizeof *t->span)};
    for (int i = 0; i < s->n_programs; i++)
        t->span[i] = slot_spans(s, slot) + s->first[i];
}

void hp_segment_trace_fini(hp_step_trace *t)
{
    free(t->span);
    *t = (hp_step_trace){0};
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void hp_segment_durations(const hp_segment *s, int program, int64_t *out)
{
    int slots[HP_SEGMENT_RING], n = 0;
    bool alone = atomic_load(&s->head->steps_done) <= 1;
    int64_t first = s->metrics[0].step;
    for (int i = 0; i < s->head->ring; i++) {
        int64_t step = atomic_load_explicit(&s->head->slot[i].step, memory_order_acquire);
        if (step >= 0 && atomic_load(&s->head->slot[i].step_ns) > 0 && (alone || step != first))
            slots[n++] = i;
    }
    for (int64_t k = 0; k < (int64_t)s->n_inst[program] * s->n_ranks[program]; k++) {
        int64_t v[HP_SEGMENT_RING];
        for (int i = 0; i < n; i++)
            v[i] = slot_busy(s, slots[i])[s->first[program] + k];
        qsort(v, (size_t)n, sizeof *v, by_value);
        out[k] = n > 0 ? v[n / 2] : 0;
    }
}

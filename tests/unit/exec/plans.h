/* plans.h -- small plans written by hand, and runs whose task outputs are kept. */
#ifndef HP_TESTS_EXEC_PLANS_H
#define HP_TESTS_EXEC_PLANS_H

#include "base/map.h"
#include "base/rng.h"
#include "exec/run.h"
#include "plan/text.h"
#include "tap.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A plan being written: buffers get their offsets one after another. */
typedef struct draft {
    hp_str head, body;
    int64_t at[HP_S_SCOPES];
    int frames;
    char name[32];
    hp_str text;
} draft;

static __attribute__((unused)) void begin(draft *d, const char *name, int first, int ranks,
                                          const char *atoms, int frames)
{
    if (!d->text.len)
        hp_str_add(&d->text,
                   "hpbench-plan 1\nmodel t cluster host strategy t hash 0000000000000001\n");
    hp_str_add(&d->body, "mesh first %d ranks %d atoms %s\naxis tp \"\" tp size %d atoms 0\n",
               first, ranks, atoms, ranks);
    hp_str_add(&d->body, "stream compute compute -\nstream tp transfer tp\nstream pp transfer "
                         "pp\nstream back transfer pp\n");
    d->frames = frames;
    snprintf(d->name, sizeof d->name, "%s", name);
    memset(d->at, 0, sizeof d->at);
}

/* Adds a buffer at `offset`, or behind the others of its scope (-1); `rest` is all from init on. */
static __attribute__((unused)) void buffer_at(draft *d, const char *name, const char *tensor,
                                              const char *type, const char *scope, int64_t elements,
                                              int64_t offset, const char *rest)
{
    int s = hp_scope_find(scope);
    int64_t bytes = (elements * 4 + 63) / 64 * 64;
    if (offset < 0) {
        offset = d->at[s];
        d->at[s] += bytes;
    }
    hp_str_add(&d->body, "buffer %s %s %s activations %s hbm bytes %lld at %lld %s\n", name, tensor,
               type, scope, (long long)bytes, (long long)offset, rest);
}

static __attribute__((unused)) void buffer(draft *d, const char *name, const char *scope,
                                           int64_t elements, const char *rest)
{
    buffer_at(d, name, name, "f32", scope, elements, -1, rest);
}

/* Ends a program whose tasks and entries are `lines`. */
static __attribute__((unused)) void end(draft *d, const char *lines)
{
    hp_str_add(&d->text, "program %s stage 0 frames %d host 0 scopes %lld %lld %lld %lld\n%s%s",
               d->name, d->frames, (long long)d->at[0], (long long)d->at[1], (long long)d->at[2],
               (long long)d->at[3], hp_str_text(&d->body), lines);
    hp_str_fini(&d->body);
}

static __attribute__((unused)) hp_plan *parsed(draft *d)
{
    hp_plan *p = NULL;
    hp_errmsg e = {0};
    hp_str_add(&d->text, "end\n");
    if (hp_plan_parse(d->text.s, &p, &e))
        bail("%s", e.text);
    hp_str_fini(&d->text);
    return p;
}

/* What a run left: the outputs of all tasks by "task.output@micro/program.rank". */
typedef struct record {
    pthread_mutex_t lock;
    hp_map at;
    int n, cap;
    struct kept {
        float *v; /* the bytes, as floats whatever they are */
        int64_t n;
        int64_t lo[HP_MAX_DIMS], len[HP_MAX_DIMS];
        int nd;
    } * kept;
    void (*touch)(const hp_exec_tap *t);
} record;

static __attribute__((unused)) int64_t elements(const hp_operand *o, bool routed)
{
    int64_t n = routed ? o->rows : 1;
    for (int d = routed ? o->nd - 1 : 0; d < o->nd; d++)
        n *= o->len[d];
    return n;
}

static __attribute__((unused)) void keep_output(void *ctx, const hp_exec_tap *t)
{
    record *r = ctx;
    char key[200];
    if (r->touch)
        r->touch(t);
    snprintf(key, sizeof key, "%s.%d@%d/%d.%d", t->task->name, t->output, t->entry->micro,
             t->program, t->rank);
    pthread_mutex_lock(&r->lock);
    struct kept k = {.nd = t->operand.nd,
                     .n = t->operand.data ? elements(&t->operand, t->routed) : 0};
    memcpy(k.lo, t->operand.lo, sizeof k.lo);
    memcpy(k.len, t->operand.len, sizeof k.len);
    k.v = malloc((size_t)k.n * sizeof(float) + 1);
    if (k.n)
        memcpy(k.v, t->operand.data, (size_t)k.n * sizeof(float));
    r->kept = hp_grow(r->kept, &r->cap, r->n + 1, sizeof *r->kept);
    int old = hp_map_get(&r->at, key, -1);
    if (old >= 0) { /* a later step */
        free(r->kept[old].v);
        r->kept[old] = k;
    } else {
        hp_map_put(&r->at, key, r->n);
        r->kept[r->n++] = k;
    }
    pthread_mutex_unlock(&r->lock);
}

static __attribute__((unused)) void forget(record *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->kept[i].v);
    free(r->kept);
    hp_map_fini(&r->at);
    *r = (record){.lock = PTHREAD_MUTEX_INITIALIZER};
}

static __attribute__((unused)) const struct kept *kept(const record *r, const char *fmt, ...)
{
    static const struct kept nothing;
    char key[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(key, sizeof key, fmt, ap);
    va_end(ap);
    int i = hp_map_get(&r->at, key, -1);
    if (i < 0)
        diag("nothing was kept of %s", key);
    return i < 0 ? &nothing : &r->kept[i];
}

static __attribute__((unused)) bool same(const struct kept *a, const struct kept *b)
{
    return a->n == b->n && memcmp(a->v, b->v, (size_t)a->n * sizeof(float)) == 0;
}

/* Both records hold the same bits for the same keys. */
static __attribute__((unused)) bool equal_records(const record *a, const record *b)
{
    int hash = a->n == b->n;
    for (int i = 0; i < a->n && hash; i++) {
        bool found = false;
        for (int k = 0; k < b->n && !found; k++)
            found = same(&a->kept[i], &b->kept[k]);
        hash = found;
    }
    return hash;
}

/* The value that input `name` has at a global index. */
static __attribute__((unused)) float input_value(const char *name, int64_t step, int64_t micro,
                                                 int64_t global)
{
    uint32_t h = 2166136261u ^ (uint32_t)(step * 31 + micro * 7 + global * 2654435761ll);
    for (; *name; name++)
        h = (h ^ (uint32_t)(unsigned char)*name) * 16777619u;
    return (float)(h >> 8) / (float)(1 << 24) - 0.5f;
}

static __attribute__((unused)) hp_err load_input(void *ctx, const char *name, int64_t step,
                                                 int64_t micro, const hp_operand *o, hp_errmsg *e)
{
    (void)ctx, (void)e;
    for (int64_t i = 0; i < elements(o, false); i++) {
        int64_t rest = i, at[HP_MAX_DIMS], global = 0;
        for (int d = o->nd - 1; d >= 0; d--) {
            at[d] = o->lo[d] + rest % o->len[d];
            rest /= o->len[d];
        }
        for (int d = 0; d < o->nd; d++)
            global = global * o->full[d] + at[d];
        float v = input_value(name, step, micro, global);
        if (o->dtype == HP_I32)
            ((int32_t *)o->data)[i] = (int32_t)((v + 0.5f) * 8);
        else
            ((float *)o->data)[i] = v;
    }
    return HP_OK;
}

/* Runs with `workers` on that many cores, keeping all outputs in *r (emptied first). */
static __attribute__((unused)) hp_err run_plan(const hp_plan *p, hp_exec_options o, int workers,
                                               record *r, hp_exec_report *rep, hp_errmsg *e)
{
    void (*touch)(const hp_exec_tap *t) = r->touch;
    forget(r);
    r->touch = touch;
    hp_exec_hooks h = {.ctx = r, .load = load_input, .tap = keep_output};
    o.workers = o.cores = workers;
    return hp_exec_run(p, &o, &h, rep, e);
}

#endif

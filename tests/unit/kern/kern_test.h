/* kern_test.h -- what the tests of kernels share: drawn tensors, levels, and verdicts.
 *
 * A test draws inputs, runs the reference and the fast kernel with one thread and with two, and asks
 * `judge` about each output; `verdict` then says for all shapes at once whether the error stayed within
 * tolerance and whether the two teams agree bit for bit. Tensors are heap blocks of their exact size, so
 * that AddressSanitizer sees every step outside.
 */
#ifndef HP_TESTS_KERN_TEST_H
#define HP_TESTS_KERN_TEST_H

#include "base/mem.h"
#include "base/rng.h"
#include "kern/level.h"
#include "kern/num.h"
#include "kern/registry.h"

#include "tap.h"

typedef struct tensor {
    hp_num x;
    int64_t n;
} tensor;

static struct {
    void *block[4096];
    int n;
    uint64_t draws;
} pool;

static void *keep(void *p)
{
    if (pool.n == 4096)
        bail("a test draws too many tensors");
    return pool.block[pool.n++] = p;
}

/* drop frees every tensor drawn so far. */
static __attribute__((unused)) void drop(void)
{
    while (pool.n > 0)
        free(pool.block[--pool.n]);
}

/* blank returns n elements of type t filled with a pattern that no kernel writes. */
static __attribute__((unused)) tensor blank(int t, int64_t n)
{
    size_t bytes = (size_t)(n * hp_num_bytes(t));
    tensor r = {{keep(hp_xmalloc(bytes > 0 ? bytes : 1)), t}, n};
    memset(r.x.p, 0x7b, bytes);
    return r;
}

/* draw returns n normal numbers times `scale`. */
static __attribute__((unused)) tensor draw(int t, int64_t n, float scale)
{
    tensor r = blank(t, n);
    uint64_t stream = hp_rng_key(1, ++pool.draws);
    for (int64_t i = 0; i < n; i++)
        hp_num_put(r.x, i, scale * hp_rng_normal(stream, (uint64_t)i));
    return r;
}

/* same returns a copy. */
static __attribute__((unused)) tensor same(tensor a)
{
    tensor r = blank(a.x.t, a.n);
    memcpy(r.x.p, a.x.p, (size_t)(a.n * hp_num_bytes(a.x.t)));
    return r;
}

/* draw_ints returns n integers in [lo, hi). */
static __attribute__((unused)) int32_t *draw_ints(int64_t n, int64_t lo, int64_t hi)
{
    hp_rng r = {.stream = hp_rng_key(2, ++pool.draws)};
    int32_t *p = keep(hp_xmalloc((size_t)(n > 0 ? n : 1) * sizeof *p));
    for (int64_t i = 0; i < n; i++)
        p[i] = (int32_t)(lo + hp_rng_below(&r, hi - lo));
    return p;
}

/* error is max |a - b| / max |b|; infinite where only one is finite. */
static __attribute__((unused)) double error_of(tensor a, tensor b)
{
    double most = 0, top = 1e-30;
    for (int64_t i = 0; i < a.n; i++) {
        double x = (double)hp_num_get(a.x, i), y = (double)hp_num_get(b.x, i);
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        most = fmax(most, fabs(x - y));
    }
    for (int64_t i = 0; i < b.n; i++)
        if (isfinite(hp_num_get(b.x, i)))
            top = fmax(top, fabs((double)hp_num_get(b.x, i)));
    return most / top;
}

static struct {
    double worst, worst16;
    int cases, teams_differ;
} so_far;

/* judge compares the outputs of one and two threads with each other and with the reference. */
static __attribute__((unused)) void judge(tensor one, tensor two, tensor ref)
{
    double e = error_of(one, ref),
           *worst = one.x.t == HP_NUM_BF16 ? &so_far.worst16 : &so_far.worst;
    *worst = e > *worst ? e : *worst;
    so_far.cases++;
    so_far.teams_differ += memcmp(one.x.p, two.x.p, (size_t)(one.n * hp_num_bytes(one.x.t))) != 0;
    if (!isfinite(e))
        note("an infinite error");
}

/* verdict ends a run of judged cases of kernel `name`, whose row has the tolerance. bf16 results may be off by a rounding: 2^-7 of the largest. */
static __attribute__((unused)) void verdict(const char *what, const char *name)
{
    double tolerance = hp_kern_tolerance(name);
    const char *level = hp_level_name(hp_level_now());
    if (!ok(so_far.cases > 0 && so_far.worst <= tolerance && so_far.worst16 <= 0x1p-7,
            "%s at %s agrees with its reference", what, level))
        diag("%d cases, worst error %.3g of %.3g, in bf16 %.3g", so_far.cases, so_far.worst,
             tolerance, so_far.worst16);
    note("%s: worst error %.3g, bf16 %.3g", what, so_far.worst, so_far.worst16);
    if (!ok(so_far.teams_differ == 0, "%s at %s gives the same bits with two threads", what, level))
        diag("%d of %d cases differ", so_far.teams_differ, so_far.cases);
    memset(&so_far, 0, sizeof so_far);
    drop();
}

/* each_level runs `test` at every level of this machine. */
static __attribute__((unused)) void each_level(void (*test)(void))
{
    for (hp_level l = HP_LEVEL_GENERIC; l <= HP_LEVEL_V4; l++) {
        if (!hp_level_has(l))
            continue;
        setenv("HPBENCH_ISA", hp_level_name(l), 1);
        hp_level_choose();
        test();
    }
    unsetenv("HPBENCH_ISA");
    hp_level_choose();
}

/* slope checks gradient dx of `loss` by x against central differences at some 12 places; x is float. */
static __attribute__((unused)) void slope(const char *what, double (*loss)(void *), void *arg,
                                          tensor x, tensor dx, float h, double tolerance)
{
    double worst = 0, top = 1e-30;
    float *p = x.x.p;
    for (int64_t i = 0; i < dx.n; i++)
        top = fmax(top, fabs((double)hp_num_get(dx.x, i)));
    for (int64_t i = 0; i < x.n; i += x.n / 12 + 1) {
        float was = p[i];
        p[i] = was + h;
        double up = loss(arg);
        p[i] = was - h;
        double down = loss(arg);
        p[i] = was;
        double got = (up - down) / ((double)(was + h) - (double)(was - h));
        worst = fmax(worst, fabs(got - (double)hp_num_get(dx.x, i)));
    }
    if (!ok(worst <= tolerance * top, "%s is the slope of its reference", what))
        diag("off by %.3g of %.3g", worst, top);
}

/* inner is the sum of a[i] b[i]: a scalar loss from an output and fixed weights. */
static __attribute__((unused)) double inner(tensor a, tensor b)
{
    double sum = 0;
    for (int64_t i = 0; i < a.n; i++)
        sum += (double)hp_num_get(a.x, i) * (double)hp_num_get(b.x, i);
    return sum;
}

#endif

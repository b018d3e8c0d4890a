/* kern.c -- the table behind kern.sh: each kernel's best rate of several short runs. */
#include "kern/act.h"
#include "kern/attention.h"
#include "kern/bias.h"
#include "kern/box.h"
#include "kern/dropout.h"
#include "kern/embed.h"
#include "kern/gemm.h"
#include "kern/layernorm.h"
#include "kern/level.h"
#include "kern/optim.h"
#include "kern/pointwise.h"
#include "kern/rmsnorm.h"
#include "kern/rope.h"
#include "kern/softmax.h"
#include "kern/sumsq.h"
#include "kern/xent.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 256, WIDTH = 768, FFN = 3072, VOCAB = 50304, BIG = 16 << 20, VL = 16 };

static int threads;
static double seconds;

/* What all kernels work on: large enough for each, touched before timing. */
static float *buf[5];
static uint16_t *half[3];
static int32_t *ints;
static void *scratch;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The shortest time of one call over five runs of `seconds`. */
static double best(void (*fn)(const int64_t *), const int64_t *arg)
{
    double least = 1e30;
    fn(arg);
    for (int run = 0; run < 5; run++) {
        double start = now(), took;
        int calls = 0;
        do {
            fn(arg);
            calls++;
            took = now() - start;
        } while (took < seconds);
        least = took / calls < least ? took / calls : least;
    }
    return least;
}

static void row(const char *name, const char *shape, double flops, double bytes,
                void (*fn)(const int64_t *), const int64_t *arg)
{
    double t = best(fn, arg);
    printf("%-18s %-24s %9.1f us", name, shape, t * 1e6);
    if (flops > 0)
        printf(" %8.1f GFLOP/s", flops / t / 1e9);
    else
        printf(" %16s", "");
    printf(" %8.1f GB/s\n", bytes / t / 1e9);
    fflush(stdout);
}

/* 24 independent chains of multiply-adds a thread; arg[0]: how many steps. */
static void fma_peak(const int64_t *arg)
{
    typedef float vf __attribute__((vector_size(4 * VL)));
#pragma omp parallel num_threads(threads)
    {
        vf x[24], a = (vf){0} + 1.0000001f, b = (vf){0} + 1e-9f;
        for (int i = 0; i < 24; i++)
            x[i] = (vf){0} + (float)i;
        for (int64_t n = 0; n < arg[0]; n++)
#pragma GCC unroll 24
            for (int i = 0; i < 24; i++)
                x[i] = x[i] * a + b;
        for (int i = 1; i < 24; i++)
            x[0] += x[i];
        if (x[0][0] == 12345.0f)
            puts("");
    }
}

static void triad(const int64_t *arg)
{
    float *a = buf[0], *b = buf[1], *c = buf[2];
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (int64_t i = 0; i < arg[0]; i++)
        a[i] = b[i] + 3.0f * c[i];
}

static void peaks(void)
{
    int64_t steps = 200000, n = BIG;
    row("multiply-add", "in registers", 2.0 * 24 * VL * (double)steps * threads, 0, fma_peak,
        &steps);
    row("triad", "3 x 64 MiB", 0, 12.0 * (double)n, triad, &n);
}

static hp_num f(int i)
{
    return hp_num_f32(buf[i]);
}

static hp_num h(int i)
{
    return hp_num_bf16(half[i]);
}

/* arg: m, n, k, B transposed, A transposed, bf16. */
static void gemm(const int64_t *g)
{
    hp_gemm(g[4], g[3], g[0], g[1], g[2], g[5] ? h(0) : f(0), g[5] ? h(1) : f(1),
            g[5] ? h(2) : f(2), false, threads);
}

static void gemms(void)
{
    static const int64_t shape[][6] = {
        {ROWS, WIDTH, WIDTH, 1, 0, 0}, {ROWS, FFN, WIDTH, 1, 0, 0},   {ROWS, WIDTH, FFN, 0, 0, 0},
        {FFN, WIDTH, ROWS, 0, 1, 0},   {ROWS, VOCAB, WIDTH, 1, 0, 0}, {ROWS, 256, 256, 1, 0, 0},
        {ROWS, FFN, WIDTH, 1, 0, 1},   {FFN, WIDTH, ROWS, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        const int64_t *g = shape[i];
        double m = (double)g[0], n = (double)g[1], k = (double)g[2];
        char text[64];
        snprintf(text, sizeof text, "%lld x %lld x %lld %s%s", (long long)g[0], (long long)g[1],
                 (long long)g[2], g[4] ? "t" : "n", g[3] ? "t" : "n");
        row(g[5] ? "gemm bf16" : "gemm", text, 2 * m * n * k,
            (g[5] ? 2 : 4) * (m * k + k * n + m * n), gemm, g);
    }
}

static hp_attention_shape attention_shape(const int64_t *s)
{
    return (hp_attention_shape){.b = s[0],
                                .s = s[1],
                                .t = s[1],
                                .k = s[2],
                                .g = s[3],
                                .d = s[4],
                                .dv = s[4],
                                .scale = 0.125f,
                                .causal = s[5],
                                .pos_q = ints,
                                .pos_k = ints};
}

static void attention(const int64_t *s)
{
    hp_attention_shape a = attention_shape(s);
    hp_attention(&a, f(0), f(1), f(2), f(3), buf[4], threads);
}

static void attention_back(const int64_t *s)
{
    hp_attention_shape a = attention_shape(s);
    int64_t n = a.b * a.s * a.k * a.g * a.d;
    hp_attention_dx(&a, f(0), f(1), f(2), f(3), buf[4], f(0), hp_num_at(f(4), n),
                    hp_num_at(f(4), 2 * n), hp_num_at(f(4), 3 * n), scratch, threads);
}

static void attentions(void)
{
    static const int64_t shape[][6] = {/* b, s, k, g, d, causal */
                                       {4, 64, 12, 1, 64, 1},
                                       {4, 256, 12, 1, 64, 1},
                                       {1, 1024, 12, 1, 64, 1},
                                       {1, 1024, 12, 1, 64, 0}};
    for (int i = 0; i < 4; i++) {
        const int64_t *s = shape[i];
        double rows = (double)(s[0] * s[1] * s[2] * s[3]), d = (double)s[4];
        double pairs = rows * (double)s[1] / (s[5] ? 2 : 1);
        char text[64];
        snprintf(text, sizeof text, "%lld x %lld x %lld x %lld %s", (long long)s[0],
                 (long long)s[1], (long long)s[2], (long long)s[4], s[5] ? "causal" : "full");
        row("attention", text, 4 * pairs * d, 16 * rows * d, attention, s);
        row("attention back", text, 10 * pairs * d, 32 * rows * d, attention_back, s);
    }
}

/* arg: elements, or rows and width. */
static void add(const int64_t *n)
{
    hp_num in[2] = {f(0), f(1)};
    hp_add(2, in, n[0], f(2), threads);
}

static void to_half(const int64_t *n)
{
    hp_copy(n[0], f(0), h(0), threads);
}

static void sumsq(const int64_t *n)
{
    buf[4][0] = (float)hp_sumsq(n[0], f(0), threads);
}

static void reduce(const int64_t *n)
{
    hp_num in[4] = {f(0), f(1), f(2), f(3)};
    hp_reduce_flat(HP_ROP_SUM, 4, in, n[0], f(4), threads);
}

static void adamw(const int64_t *n)
{
    hp_optim o = {1e-9, 0.9, 0.95, 1e-8, 0, 1, 10};
    hp_adamw(n[0], &o, buf[0], f(1), buf[2], buf[3], NULL, threads);
}

static void gelu(const int64_t *n)
{
    hp_gelu(n[0] * n[1], f(0), f(1), threads);
}

static void gelu_back(const int64_t *n)
{
    hp_gelu_dx(n[0] * n[1], f(0), f(1), f(2), threads);
}

static void swiglu(const int64_t *n)
{
    hp_swiglu(n[0] * n[1], f(0), f(1), f(2), threads);
}

static void dropout(const int64_t *n)
{
    hp_dropout_at at = {7, 0.1f, 2, {0, 0}, {n[0], n[1]}, {n[0], n[1]}};
    hp_dropout(&at, f(0), f(1), threads);
}

static void bias_back(const int64_t *n)
{
    hp_bias_dw(n[0], n[1], f(0), f(1), false, threads);
}

static void layernorm(const int64_t *n)
{
    hp_layernorm(n[0], n[1], 1e-5f, f(0), f(1), f(1), f(2), buf[4], buf[4] + n[0], threads);
}

static void layernorm_back(const int64_t *n)
{
    hp_layernorm_dx(n[0], n[1], f(0), f(1), buf[4], buf[4] + n[0], f(2), f(3), threads);
}

static void rmsnorm(const int64_t *n)
{
    hp_rmsnorm(n[0], n[1], 1e-5f, f(0), f(1), f(2), buf[4], threads);
}

static void rope(const int64_t *n)
{
    hp_rope(n[0], n[1] / 64, 64, ints, 1e4, false, f(0), f(1), threads);
}

static void softmax(const int64_t *n)
{
    hp_softmax(n[0], n[1], f(0), f(1), threads);
}

static void xent(const int64_t *n)
{
    hp_xent_stats(n[0], 0, n[1], n[1], ints, f(0), buf[4], threads);
}

static void xent_back(const int64_t *n)
{
    hp_xent_dx(n[0], 0, n[1], n[1], ints, f(0), buf[4], 1, f(1), threads);
}

static void embed(const int64_t *n)
{
    hp_embed(n[0], n[1], 0, n[0], ints, f(0), f(1), threads);
}

static void rest(void)
{
    static const struct {
        const char *name;
        void (*fn)(const int64_t *);
        int64_t rows, width;
        double bytes; /* an element */
    } k[] = {
        {"add", add, BIG, 1, 12},
        {"copy to bf16", to_half, BIG, 1, 6},
        {"sum of squares", sumsq, BIG, 1, 4},
        {"reduce 4", reduce, BIG, 1, 20},
        {"adamw", adamw, BIG, 1, 28},
        {"gelu", gelu, ROWS, FFN, 8},
        {"gelu back", gelu_back, ROWS, FFN, 12},
        {"swiglu", swiglu, ROWS, FFN, 12},
        {"dropout", dropout, ROWS, FFN, 8},
        {"bias back", bias_back, ROWS, FFN, 4},
        {"layernorm", layernorm, ROWS, WIDTH, 8},
        {"layernorm back", layernorm_back, ROWS, WIDTH, 12},
        {"rmsnorm", rmsnorm, ROWS, WIDTH, 8},
        {"rope", rope, ROWS, WIDTH, 8},
        {"softmax", softmax, ROWS, FFN, 8},
        {"cross-entropy", xent, ROWS, VOCAB, 4},
        {"cross-entropy back", xent_back, ROWS, VOCAB, 8},
        {"embedding", embed, ROWS, WIDTH, 8},
    };
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        int64_t n[2] = {k[i].rows, k[i].width};
        char text[64];
        snprintf(text, sizeof text, "%lld x %lld", (long long)n[0], (long long)n[1]);
        row(k[i].name, text, 0, k[i].bytes * (double)(n[0] * n[1]), k[i].fn, n);
    }
}

/* 0.01 x (0 .. 99): harmless numbers for every kernel. */
static float *numbers(int64_t n)
{
    float *p = aligned_alloc(64, (size_t)n * sizeof *p);
    if (!p)
        exit(5);
    for (int64_t i = 0; i < n; i++)
        p[i] = 0.01f * (float)(i % 100);
    return p;
}

static void prepare(void)
{
    int64_t most = (int64_t)VOCAB * WIDTH;
    for (int i = 0; i < 5; i++)
        buf[i] = numbers(most);
    for (int i = 0; i < 3; i++) {
        half[i] = aligned_alloc(64, (size_t)most * sizeof **half);
        if (!half[i])
            exit(5);
        hp_copy(most, hp_num_f32(buf[0]), hp_num_bf16(half[i]), threads);
    }
    ints = (int32_t *)numbers(4096);
    for (int i = 0; i < 4096; i++)
        ints[i] = i % 1024;
    for (int i = 0; i < ROWS; i++)
        ints[i] = i;
    scratch = numbers(BIG);
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? atoi(argv[1]) : omp_get_num_procs();
    seconds = argc > 2 ? atof(argv[2]) : 0.1;
    if (threads < 1 || !(seconds > 0)) {
        fprintf(stderr, "usage: bench-kern [THREADS [SECONDS]]\n");
        return 2;
    }
    prepare();
    printf("%d threads, level %s\n", threads, hp_level_name(hp_level_now()));
    peaks();
    gemms();
    attentions();
    rest();
    peaks();
    return 0;
}

/* A product is cut into tiles of about 512 columns and at least 256 rows, an even number of them where
 * that is possible, since devices mostly have an even number of cores. */
#include "kern/gemm.h"

#include "kern/gemm_simd.h"
#include "kern/level.h"
#include "kern/pointwise.h"
#include "kern/team.h"

#include <assert.h>
#include <omp.h>

#if defined(HP_GEMM_ONEDNN)
#include <dnnl.h>
#elif defined(HP_GEMM_OPENBLAS)
#include <cblas.h>

/* OpenBLAS has a team of its own unless told before its first call. */
__attribute__((constructor)) static void one_thread(void)
{
    openblas_set_num_threads(1);
}
#endif

typedef struct product {
    bool ta, tb, accumulate;
    int64_t m, n, k;
    hp_num a, b, c;
} product;

/* Multiplies rows i .. i+m-1 and columns j .. j+n-1 with our own kernel. */
static void tile_packed(const product *p, int64_t i, int64_t m, int64_t j, int64_t n)
{
    int64_t lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
    HP_SIMD_PICK(hp_gemm_packed)
    (p->ta, p->tb, m, n, p->k, hp_num_at(p->a, p->ta ? i : i * lda), lda,
     hp_num_at(p->b, p->tb ? j * ldb : j), ldb, hp_num_at(p->c, i * p->n + j), p->n, p->accumulate);
}

#if defined(HP_GEMM_ONEDNN) || defined(HP_GEMM_OPENBLAS)
static bool all_floats(const product *p)
{
    return p->a.t == HP_NUM_F32 && p->b.t == HP_NUM_F32 && p->c.t == HP_NUM_F32;
}

/* The same tile with the library; floats only. */
static void tile_library(const product *p, int64_t i, int64_t m, int64_t j, int64_t n)
{
    int64_t lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
    const float *a = (const float *)p->a.p + (p->ta ? i : i * lda);
    const float *b = (const float *)p->b.p + (p->tb ? j * ldb : j);
    float *c = (float *)p->c.p + i * p->n + j, beta = p->accumulate ? 1 : 0;
#if defined(HP_GEMM_ONEDNN)
    dnnl_status_t s = dnnl_sgemm(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', m, n, p->k, 1, a, lda, b,
                                 ldb, beta, c, p->n);
    assert(s == dnnl_success);
    (void)s;
#else
    cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans, p->tb ? CblasTrans : CblasNoTrans,
                (int)m, (int)n, (int)p->k, 1, a, (int)lda, b, (int)ldb, beta, c, (int)p->n);
#endif
}
#endif

#if defined(HP_GEMM_ONEDNN)
/* oneDNN exports this product, but its header leaves it out: absent, our own kernel does the work. */
extern dnnl_status_t dnnl_gemm_bf16bf16f32(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n,
                                           dnnl_dim_t k, float alpha, const uint16_t *a,
                                           dnnl_dim_t lda, const uint16_t *b, dnnl_dim_t ldb,
                                           float beta, float *c, dnnl_dim_t ldc)
    __attribute__((weak));

/* Whether the library beats our kernel on this product of bf16: where the machine multiplies bf16. */
static bool bf16_library(const product *p)
{
    return p->a.t == HP_NUM_BF16 && p->b.t == HP_NUM_BF16 && dnnl_gemm_bf16bf16f32 &&
           hp_level_now() == HP_LEVEL_V4 && __builtin_cpu_supports("avx512bf16");
}

static void multiply_bf16(const product *p, int64_t i, int64_t m, int64_t j, int64_t n, float beta,
                          float *c, int64_t ldc)
{
    int64_t lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
    const uint16_t *a = (const uint16_t *)p->a.p + (p->ta ? i : i * lda);
    const uint16_t *b = (const uint16_t *)p->b.p + (p->tb ? j * ldb : j);
    dnnl_status_t s = dnnl_gemm_bf16bf16f32(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', m, n, p->k, 1, a,
                                            lda, b, ldb, beta, c, ldc);
    assert(s == dnnl_success);
    (void)s;
}

enum { BF16_ROWS = 256, BF16_COLS = 512 };

/* Sums in a float block and rounds once. */
static void block_bf16(const product *p, int64_t i, int64_t m, int64_t j, int64_t n)
{
    float sum[BF16_ROWS * BF16_COLS];
    multiply_bf16(p, i, m, j, n, 0, sum, n);
    for (int64_t r = 0; r < m; r++) {
        hp_num c = hp_num_at(p->c, (i + r) * p->n + j), in[2] = {hp_num_f32(sum + r * n), c};
        hp_add(p->accumulate ? 2 : 1, in, n, c, 1);
    }
}

static void tile_bf16(const product *p, int64_t i, int64_t m, int64_t j, int64_t n)
{
    if (p->c.t == HP_NUM_F32) {
        multiply_bf16(p, i, m, j, n, p->accumulate ? 1 : 0, (float *)p->c.p + i * p->n + j, p->n);
        return;
    }
    for (int64_t r = 0; r < m; r += BF16_ROWS)
        for (int64_t c = 0; c < n; c += BF16_COLS)
            block_bf16(p, i + r, hp_team_min(m - r, BF16_ROWS), j + c,
                       hp_team_min(n - c, BF16_COLS));
}
#endif

static void tile(const product *p, int64_t i, int64_t m, int64_t j, int64_t n)
{
#if defined(HP_GEMM_ONEDNN)
    if (bf16_library(p) && p->k > 0) {
        tile_bf16(p, i, m, j, n);
        return;
    }
#endif
#if defined(HP_GEMM_ONEDNN) || defined(HP_GEMM_OPENBLAS)
    if (all_floats(p) && p->k > 0) {
        tile_library(p, i, m, j, n);
        return;
    }
#endif
    tile_packed(p, i, m, j, n);
}

/* How a product of m rows and n columns is cut: by its shape alone. */
typedef struct cut {
    int64_t rows, cols, across, count; /* tile size, tiles side by side, tiles in all */
} cut;

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

static cut cut_of(int64_t m, int64_t n)
{
    int64_t pairs = (n + 512) / 1024, parts = n < 256 ? 1 : pairs > 0 ? 2 * pairs : 2;
    int64_t tall = m / 512 > 0 ? m / 512 : 1;
    if (parts == 1 && m >= 256 && tall < 2)
        tall = 2;
    cut c = {.rows = round_up((m + tall - 1) / tall, 12),
             .cols = round_up((n + parts - 1) / parts, 32)};
    c.across = (n + c.cols - 1) / c.cols;
    c.count = c.across * ((m + c.rows - 1) / c.rows);
    return c;
}

static void one(const product *p, const cut *c, int64_t i)
{
    int64_t row = i / c->across * c->rows, col = i % c->across * c->cols;
    tile(p, row, hp_team_min(p->m - row, c->rows), col, hp_team_min(p->n - col, c->cols));
}

/* The libraries ask OpenMP how many threads they may use: one, in whichever thread calls. */
static int alone(void)
{
    int was = omp_get_max_threads();
    omp_set_num_threads(1);
    return was;
}

/* Several products as one list of tiles: those of product g begin at first[g]. */
typedef struct job {
    const product *p;
    const cut *c;
    const int64_t *first;
    int64_t products;
} job;

static void task(const job *w, int64_t i)
{
    int64_t low = 0, high = w->products;
    while (high - low > 1) {
        int64_t mid = (low + high) / 2;
        if (w->first[mid] <= i)
            low = mid;
        else
            high = mid;
    }
    int was = alone();
    one(&w->p[low], &w->c[low], i - w->first[low]);
    omp_set_num_threads(was);
}

/* Which thread takes a tile decides nothing but time. */
static void multiply(int64_t count, const product *p, const cut *c, const int64_t *first,
                     int64_t products, int threads)
{
    job w = {p, c, first, products};
    HP_TEAM_TASKS(threads, count, for (int64_t i = 0; i < count; i++) task(&w, i));
}

void hp_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, hp_num b, hp_num c,
             bool accumulate, int threads)
{
    if (m <= 0 || n <= 0)
        return;
    product p = {ta, tb, accumulate, m, n, k, a, b, c};
    cut how = cut_of(m, n);
    int64_t first = 0;
    multiply(how.count, &p, &how, &first, 1, threads);
}

enum { BATCH = 64 }; /* groups a team takes at once */

/* Runs up to BATCH products as one list of tiles. */
static void multiply_all(int64_t products, const product *p, int threads)
{
    cut c[BATCH];
    int64_t first[BATCH], count = 0;
    for (int64_t g = 0; g < products; g++) {
        c[g] = cut_of(p[g].m, p[g].n);
        first[g] = count;
        count += c[g].count;
    }
    multiply(count, p, c, first, products, threads);
}

void hp_gemm_rows(bool tb, int64_t groups, const int64_t *off, int64_t n, int64_t k, hp_num a,
                  hp_num b, hp_num c, bool accumulate, int threads)
{
    product p[BATCH];
    int64_t have = 0;
    for (int64_t g = 0; g < groups && n > 0; g++) {
        if (off[g + 1] > off[g])
            p[have++] = (product){false,
                                  tb,
                                  accumulate,
                                  off[g + 1] - off[g],
                                  n,
                                  k,
                                  hp_num_at(a, off[g] * k),
                                  hp_num_at(b, g * n * k),
                                  hp_num_at(c, off[g] * n)};
        if (have == BATCH || g + 1 == groups) {
            multiply_all(have, p, threads);
            have = 0;
        }
    }
}

void hp_gemm_weights(int64_t groups, const int64_t *off, int64_t m, int64_t n, hp_num a, hp_num b,
                     hp_num c, bool accumulate, int threads)
{
    product p[BATCH];
    int64_t have = 0;
    for (int64_t g = 0; g < groups && m > 0 && n > 0; g++) {
        p[have++] = (product){true,
                              false,
                              accumulate,
                              m,
                              n,
                              off[g + 1] - off[g],
                              hp_num_at(a, off[g] * m),
                              hp_num_at(b, off[g] * n),
                              hp_num_at(c, g * m * n)};
        if (have == BATCH || g + 1 == groups) {
            multiply_all(have, p, threads);
            have = 0;
        }
    }
}

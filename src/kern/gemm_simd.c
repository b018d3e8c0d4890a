/* Blocks of MC rows and NC columns keep their sums in a float buffer over the whole of k, KC at a time,
 * so that bf16 results round once. Panels are zero-padded: the inner kernel knows no edges. */
#include "kern/gemm_simd.h"
#include "kern/micro.h"

enum { MC = 288, NC = 192, KC = 256 };

typedef struct blocks {
    float a[MC * KC], b[NC * KC], c[MC * NC];
} __attribute__((aligned(64))) blocks;

/* Panels of HP_MR rows i0 .. i0+m-1 over l0 .. l0+k-1. */
static void pack_a(bool ta, int64_t i0, int64_t m, int64_t l0, int64_t k, hp_num a, int64_t lda,
                   float *y)
{
    for (int64_t i = 0; i < m; i += HP_MR, y += HP_MR * k) {
        int64_t rows = m - i < HP_MR ? m - i : HP_MR;
        if (ta)
            pack_along(HP_MR, rows, k, hp_num_at(a, l0 * lda + i0 + i), lda, y);
        else
            pack_across(HP_MR, rows, k, hp_num_at(a, (i0 + i) * lda + l0), lda, y);
    }
}

static void pack_b(bool tb, int64_t j0, int64_t n, int64_t l0, int64_t k, hp_num b, int64_t ldb,
                   float *y)
{
    for (int64_t j = 0; j < n; j += HP_NR, y += HP_NR * k) {
        int64_t cols = n - j < HP_NR ? n - j : HP_NR;
        if (tb)
            pack_across(HP_NR, cols, k, hp_num_at(b, (j0 + j) * ldb + l0), ldb, y);
        else
            pack_along(HP_NR, cols, k, hp_num_at(b, l0 * ldb + j0 + j), ldb, y);
    }
}

static void multiply(int64_t m, int64_t n, int64_t k, blocks *w, bool add)
{
    for (int64_t j = 0; j < n; j += HP_NR)
        for (int64_t i = 0; i < m; i += HP_MR)
            micro(k, w->a + i * k, 1, HP_MR, w->b + j * k, HP_NR, w->c + j * MC + i * HP_NR, HP_NR,
                  add);
}

static void store(int64_t m, int64_t n, const float *w, hp_num c, int64_t ldc, bool accumulate)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j += HP_VL) {
            int64_t left = n - j, at = i * ldc + j;
            vf v = *(const vf_mem *)(w + j / HP_NR * HP_NR * MC + i * HP_NR + j % HP_NR);
            vst(c, at, left, accumulate ? v + vld(c, at, left) : v);
        }
}

void HP_SIMD(hp_gemm_packed)(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a,
                             int64_t lda, hp_num b, int64_t ldb, hp_num c, int64_t ldc,
                             bool accumulate)
{
    blocks w;
    for (int64_t i = 0; i < m; i += MC)
        for (int64_t j = 0; j < n; j += NC) {
            int64_t mc = m - i < MC ? m - i : MC, nc = n - j < NC ? n - j : NC;
            for (int64_t l = 0; l < k; l += KC) {
                int64_t kc = k - l < KC ? k - l : KC;
                pack_a(ta, i, mc, l, kc, a, lda, w.a);
                pack_b(tb, j, nc, l, kc, b, ldb, w.b);
                multiply(mc, nc, kc, &w, l > 0);
            }
            if (k == 0)
                memset(w.c, 0, sizeof w.c);
            store(mc, nc, w.c, hp_num_at(c, i * ldc + j), ldc, accumulate);
        }
}

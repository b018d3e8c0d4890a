#include "kern/box.h"

#include "kern/team.h"

/* Copies one row of y (its last dimension): `n` elements of x that lie `step` apart. */
static void gather(int64_t n, const char *x, int64_t step, char *y, int64_t elem_bytes)
{
    if (step == 1)
        memcpy(y, x, (size_t)(n * elem_bytes));
    else if (elem_bytes == 2)
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)(void *)y)[i] = ((const uint16_t *)(const void *)x)[i * step];
    else
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)y)[i] = ((const uint32_t *)(const void *)x)[i * step];
}

void hp_permute(int nd, const int64_t *len, const int *perm, const void *x, void *y,
                int64_t elem_bytes, int threads)
{
    int64_t of_x[HP_BOX_DIMS], size[HP_BOX_DIMS], step[HP_BOX_DIMS], rows = 1, stride = 1;
    for (int d = nd - 1; d >= 0; d--) {
        of_x[d] = stride;
        stride *= len[d];
    }
    for (int d = 0; d < nd; d++) {
        size[d] = len[perm[d]];
        step[d] = of_x[perm[d]];
        rows *= d < nd - 1 ? size[d] : 1;
    }
    int64_t n = nd > 0 ? size[nd - 1] : 1, inner = nd > 0 ? step[nd - 1] : 1;
    HP_TEAM_FOR(
        threads, rows * n, for (int64_t r = 0; r < rows; r++) {
            int64_t rest = r, from = 0;
            for (int d = nd - 2; d >= 0; d--) {
                from += rest % size[d] * step[d];
                rest /= size[d];
            }
            gather(n, (const char *)x + from * elem_bytes, inner, (char *)y + r * n * elem_bytes,
                   elem_bytes);
        });
}

#include "kern/routed.h"

#include "kern/pointwise.h"
#include "kern/routed_simd.h"
#include "kern/team.h"

size_t hp_route_bytes(int64_t tokens, int64_t k, int64_t e_len)
{
    return (size_t)(e_len + 1) * sizeof(int64_t) + 3 * (size_t)(tokens * k) * sizeof(int32_t);
}

static bool here(int32_t e, int64_t e_lo, int64_t e_len)
{
    return e >= 0 && e >= e_lo && e < e_lo + e_len;
}

int64_t hp_route_rows(int64_t tokens, int64_t k, const int32_t *idx, int64_t e_lo, int64_t e_len)
{
    int64_t rows = 0;
    for (int64_t j = 0; j < tokens * k; j++)
        rows += here(idx[j], e_lo, e_len);
    return rows;
}

/* A counting sort: off first counts, then holds where the next row of each expert goes, and slides
 * back by one expert at the end. */
void hp_route_build(int64_t tokens, int64_t k, const int32_t *idx, int64_t e_lo, int64_t e_len,
                    void *storage, hp_route *r)
{
    int64_t n = tokens * k, *off = storage;
    int32_t *lists = (int32_t *)(void *)(off + e_len + 1);
    *r = (hp_route){tokens, k, e_lo, e_len, 0, off, lists, lists + n, lists + 2 * n};
    memset(off, 0, (size_t)(e_len + 1) * sizeof *off);
    for (int64_t j = 0; j < n; j++)
        if (here(idx[j], e_lo, e_len))
            off[idx[j] - e_lo + 1]++;
    for (int64_t e = 0; e < e_len; e++)
        off[e + 1] += off[e];
    r->rows = off[e_len];
    for (int64_t j = 0; j < n; j++) {
        r->row[j] = -1;
        if (!here(idx[j], e_lo, e_len))
            continue;
        int64_t at = off[idx[j] - e_lo]++;
        r->token[at] = (int32_t)(j / k);
        r->slot[at] = (int32_t)(j % k);
        r->row[j] = (int32_t)at;
    }
    memmove(off + 1, off, (size_t)e_len * sizeof *off);
    off[0] = 0;
}

void hp_route_capacity(int64_t b, int64_t s, int64_t k, int64_t e, int64_t capacity, int32_t *idx,
                       int64_t *count)
{
    for (int64_t i = 0; i < b; i++) {
        memset(count, 0, (size_t)e * sizeof *count);
        for (int64_t j = i * s * k; j < (i + 1) * s * k; j++)
            if (idx[j] >= 0 && count[idx[j]]++ >= capacity)
                idx[j] = -1;
    }
}

void hp_dispatch(const hp_route *r, int64_t width, hp_num x, hp_num xe, int threads)
{
    HP_TEAM_FOR(threads, r->rows * width,
                for (int64_t i = 0; i < r->rows; i++)
                    hp_copy(width, hp_num_at(x, r->token[i] * width), hp_num_at(xe, i * width), 1));
}

/* y[t] = sum over slots of w (or 1) times the slot's row of x. */
static void gather(const hp_route *r, int64_t width, hp_num x, hp_num w, hp_num y, int threads)
{
    void (*row)(int64_t, const int32_t *, int64_t, hp_num, hp_num, hp_num) =
        HP_SIMD_PICK(hp_gather_sum);
    HP_TEAM_FOR(threads, r->tokens * width * r->k,
                for (int64_t t = 0; t < r->tokens; t++)
                    row(r->k, r->row + t * r->k, width, x, hp_num_at(w, t * r->k),
                        hp_num_at(y, t * width)));
}

void hp_dispatch_dx(const hp_route *r, int64_t width, hp_num dxe, hp_num dx, int threads)
{
    gather(r, width, dxe, hp_num_none(), dx, threads);
}

void hp_combine(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num y, int threads)
{
    gather(r, width, ye, w, y, threads);
}

void hp_combine_dx(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num dy, hp_num dye,
                   hp_num dw, int threads)
{
    float (*dot)(int64_t, hp_num, hp_num) = HP_SIMD_PICK(hp_dot);
    HP_TEAM_FOR(threads, r->rows * width,
                for (int64_t i = 0; i < r->rows; i++) if (dye.p)
                    hp_scale(width, hp_num_get(w, r->token[i] * r->k + r->slot[i]),
                             hp_num_at(dy, r->token[i] * width), hp_num_at(dye, i * width), 1));
    HP_TEAM_FOR(threads, r->rows * width,
                for (int64_t j = 0; j < r->tokens * r->k; j++) if (dw.p)
                    hp_num_put(dw, j,
                               r->row[j] < 0 ? 0
                                             : dot(width, hp_num_at(dy, j / r->k * width),
                                                   hp_num_at(ye, r->row[j] * width))));
}

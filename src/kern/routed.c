#include "kern/routed.h"

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

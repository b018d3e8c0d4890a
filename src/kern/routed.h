/* routed.h -- rows on their way to experts and back (mixture of experts).
 *
 * The router's choices idx [tokens, k] (tokens = batch x seq in order) say which expert each token goes
 * to; a negative choice is dropped. For a range of experts the routed rows are the pairs (token, slot)
 * with idx in the range, sorted by (expert, token): an hp_route lists them. All kernels below that
 * move rows, forward and backward, read the same list.
 */
#ifndef HP_KERN_ROUTED_H
#define HP_KERN_ROUTED_H

#include "kern/num.h"

#include <stddef.h>

typedef struct hp_route {
    int64_t tokens, k, e_lo, e_len, rows;
    int64_t *off;   /* [e_len + 1]: rows of expert e_lo + i are off[i] .. off[i+1]-1 */
    int32_t *token; /* [rows]: the token a row comes from */
    int32_t *slot;  /* [rows]: which of its k choices */
    int32_t *row;   /* [tokens, k]: the row of a choice, -1 where its expert is not in the range */
} hp_route;

/* hp_route_bytes returns the bytes of storage that hp_route_build needs at most. */
size_t hp_route_bytes(int64_t tokens, int64_t k, int64_t e_len);

/* hp_route_build fills *r; the lists lie in `storage` (hp_route_bytes, aligned to 8), which r borrows. */
void hp_route_build(int64_t tokens, int64_t k, const int32_t *idx, int64_t e_lo, int64_t e_len,
                    void *storage, hp_route *r);

/* hp_route_rows returns how many rows hp_route_build would find. */
int64_t hp_route_rows(int64_t tokens, int64_t k, const int32_t *idx, int64_t e_lo, int64_t e_len);

/* hp_route_capacity drops (idx := -1) the choices beyond `capacity` of each expert in each sequence, in
 * order of (seq, slot), for idx [b, s, k] over e experts. `count` has room for e numbers. */
void hp_route_capacity(int64_t b, int64_t s, int64_t k, int64_t e, int64_t capacity, int32_t *idx,
                       int64_t *count);

/* hp_dispatch copies tokens to rows: xe[r] = x[token[r]], x [tokens, width], xe [rows, width]. */
void hp_dispatch(const hp_route *r, int64_t width, hp_num x, hp_num xe, int threads);
void hp_dispatch_ref(const hp_route *r, int64_t width, hp_num x, hp_num xe);

/* hp_dispatch_dx sums rows back into tokens: dx[t] = sum over slots in order of dxe[row[t, slot]]. */
void hp_dispatch_dx(const hp_route *r, int64_t width, hp_num dxe, hp_num dx, int threads);
void hp_dispatch_dx_ref(const hp_route *r, int64_t width, hp_num dxe, hp_num dx);

/* hp_combine writes y[t] = sum over slots in order of w[t, slot] ye[row[t, slot]], w [tokens, k]. */
void hp_combine(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num y, int threads);
void hp_combine_ref(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num y);

/* hp_combine_dx writes dye[r] = w[token, slot] dy[token] unless dye.p is NULL, and
 * dw[t, slot] = dy[t] . ye[row[t, slot]] (0 without a row) unless dw.p is NULL. */
void hp_combine_dx(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num dy, hp_num dye,
                   hp_num dw, int threads);
void hp_combine_dx_ref(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num dy, hp_num dye,
                       hp_num dw);

#endif

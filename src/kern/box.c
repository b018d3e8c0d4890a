/* Trailing dimensions that are whole in every box fold into one run, so that the inner loop is long. */
#include "kern/box.h"

#include "kern/box_simd.h"
#include "kern/team.h"

/* Where box `meet` begins in a box, and how far apart its rows are, in elements. */
typedef struct walk {
    int64_t start, stride[HP_BOX_DIMS];
} walk;

static walk walk_of(int nd, const int64_t *lo, const int64_t *hi, const int64_t *meet_lo)
{
    walk w = {.start = 0};
    int64_t stride = 1;
    for (int d = nd - 1; d >= 0; d--) {
        w.stride[d] = stride;
        w.start += (meet_lo[d] - lo[d]) * stride;
        stride *= hi[d] - lo[d];
    }
    return w;
}

/* How many trailing dimensions are dense in both walks: `run` elements follow each other there. */
static int dense(int nd, const int64_t *len, const walk *a, const walk *b, int64_t *run)
{
    *run = 1;
    while (nd > 0 && a->stride[nd - 1] == *run && b->stride[nd - 1] == *run)
        *run *= len[--nd];
    return nd;
}

/* Steps `at` (coordinates within len[0..nd-1]) to the next one; false at the end. */
static bool next(int nd, const int64_t *len, int64_t *at)
{
    for (int d = nd - 1; d >= 0; d--) {
        if (++at[d] < len[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static int64_t offset(int nd, const walk *w, const int64_t *at)
{
    int64_t i = w->start;
    for (int d = 0; d < nd; d++)
        i += at[d] * w->stride[d];
    return i;
}

/* The sizes of `meet`; false when it is empty. */
static bool lengths(int nd, const int64_t *lo, const int64_t *hi, int64_t *len)
{
    for (int d = 0; d < nd; d++)
        if ((len[d] = hi[d] - lo[d]) <= 0)
            return false;
    return true;
}

void hp_box_copy(int nd, void *dst, const int64_t *dst_lo, const int64_t *dst_hi, const void *src,
                 const int64_t *src_lo, const int64_t *src_hi, const int64_t *meet_lo,
                 const int64_t *meet_hi, int64_t elem_bytes)
{
    int64_t len[HP_BOX_DIMS], at[HP_BOX_DIMS] = {0}, run;
    if (!lengths(nd, meet_lo, meet_hi, len))
        return;
    walk d = walk_of(nd, dst_lo, dst_hi, meet_lo), s = walk_of(nd, src_lo, src_hi, meet_lo);
    int outer = dense(nd, len, &d, &s, &run);
    do
        memcpy((char *)dst + offset(outer, &d, at) * elem_bytes,
               (const char *)src + offset(outer, &s, at) * elem_bytes, (size_t)(run * elem_bytes));
    while (next(outer, len, at));
}

void hp_reduce_flat(hp_rop op, int n_in, const hp_num *in, int64_t n, hp_num y, int threads)
{
    if (op == HP_ROP_LSE || y.t == HP_NUM_I32) {
        hp_reduce_flat_ref(op, n_in, in, n, y);
        return;
    }
    void (*block)(int, int, const hp_num *, int64_t, int64_t, hp_num) =
        HP_SIMD_PICK(hp_reduce_block);
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block((int)op, n_in, in, i, hp_team_min(n - i, HP_TEAM_BLOCK), y));
}

void hp_box_reduce(hp_rop op, int nd, hp_num y, const int64_t *y_lo, const int64_t *y_hi, int n_in,
                   const hp_num *in, const int64_t *const *in_lo, const int64_t *const *in_hi,
                   const int64_t *meet_lo, const int64_t *meet_hi)
{
    int64_t len[HP_BOX_DIMS], at[HP_BOX_DIMS] = {0}, run;
    if (!lengths(nd, meet_lo, meet_hi, len))
        return;
    walk d = walk_of(nd, y_lo, y_hi, meet_lo), s[n_in];
    int outer = 0;
    for (int i = 0; i < n_in; i++) {
        s[i] = walk_of(nd, in_lo[i], in_hi[i], meet_lo);
        int deep = dense(nd, len, &d, &s[i], &run);
        outer = deep > outer ? deep : outer;
    }
    run = 1;
    for (int i = outer; i < nd; i++)
        run *= len[i];
    do {
        hp_num from[n_in];
        for (int i = 0; i < n_in; i++)
            from[i] = hp_num_at(in[i], offset(outer, &s[i], at));
        hp_reduce_flat(op, n_in, from, run, hp_num_at(y, offset(outer, &d, at)), 1);
    } while (next(outer, len, at));
}

/* Scores of a tile come from the packed inner kernel, stay in cache, become probabilities in place and
 * go into the next product. Queries are scaled as they are loaded. Widths are padded to whole
 * vectors with zeros. A panel of HP_MR query rows stops at the last key it sees, so a causal diagonal costs
 * little more than half a tile. */
#include "kern/attention_simd.h"
#include "kern/micro.h"

enum { TILE = HP_ATTENTION_TILE, ALIGN = 64 };

#define LOCAL(name, floats) float name[floats] __attribute__((aligned(ALIGN)))

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t whole(int64_t n)
{
    return (n + HP_NR - 1) / HP_NR * HP_NR;
}

/* Row stride of a local tile of width n: one vector more, so that rows do not fall on the same cache sets. */
static inline int64_t stride(int64_t n)
{
    return whole(n) + HP_VL;
}

/* Positions and documents of a tile's rows or keys, and their range. */
typedef struct marks {
    int32_t pos[TILE], doc[TILE];
    int32_t pos_lo, pos_hi, doc_lo, doc_hi;
} marks;

static void widen(marks *m, int64_t i)
{
    m->pos_lo = m->pos[i] < m->pos_lo ? m->pos[i] : m->pos_lo;
    m->pos_hi = m->pos[i] > m->pos_hi ? m->pos[i] : m->pos_hi;
    m->doc_lo = m->doc[i] < m->doc_lo ? m->doc[i] : m->doc_lo;
    m->doc_hi = m->doc[i] > m->doc_hi ? m->doc[i] : m->doc_hi;
}

static void mark_rows(const hp_attention_shape *a, int64_t b, int64_t row, int64_t n, marks *m)
{
    *m = (marks){.pos_lo = INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN};
    for (int64_t i = 0; i < n; i++) {
        int64_t at = b * a->s + (row + i) / a->g;
        m->pos[i] = a->causal ? a->pos_q[at] : 0;
        m->doc[i] = a->doc_q ? a->doc_q[at] : 0;
        widen(m, i);
    }
}

/* Keys beyond n stand at a position that nobody reaches. */
static void mark_keys(const hp_attention_shape *a, int64_t b, int64_t t, int64_t n, marks *m)
{
    *m = (marks){.pos_lo = INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN};
    for (int64_t i = 0; i < TILE; i++) {
        int64_t at = b * a->t + t + i;
        m->pos[i] = i >= n ? INT32_MAX : a->causal ? a->pos_k[at] : 0;
        m->doc[i] = i < n && a->doc_k ? a->doc_k[at] : 0;
        if (i < n)
            widen(m, i);
    }
}

static bool hidden(const marks *q, const marks *k)
{
    return k->pos_lo > q->pos_hi || k->doc_lo > q->doc_hi || k->doc_hi < q->doc_lo;
}

/* Whether every row of a tile sees all of its n keys. */
static bool open(const marks *q, const marks *k, int64_t n)
{
    return n % HP_NR == 0 && k->pos_hi <= q->pos_lo && q->doc_lo == q->doc_hi &&
           k->doc_lo == k->doc_hi && q->doc_lo == k->doc_lo;
}

/* How many of the n keys the panel of rows from `row` on needs: up to the last that one of them sees. */
static int64_t seen(const marks *q, int64_t row, int64_t rows, const marks *k, int64_t n)
{
    int32_t top = INT32_MIN;
    for (int64_t i = row; i < least(row + HP_MR, rows); i++)
        top = q->pos[i] > top ? q->pos[i] : top;
    while (n > 0 && k->pos[n - 1] > top)
        n--;
    return n;
}

/* The first row that sees one of the keys of the panel from `key` on. */
static int64_t first_row(const marks *q, int64_t rows, const marks *k, int64_t key, int64_t n)
{
    int32_t bottom = INT32_MAX;
    for (int64_t i = key; i < least(key + HP_MR, n); i++)
        bottom = k->pos[i] < bottom ? k->pos[i] : bottom;
    int64_t r = 0;
    while (r < rows && q->pos[r] < bottom)
        r++;
    return r;
}

/* Puts -inf (as `blank`) where row r does not see a key. */
static void mask_row(const marks *q, int64_t r, const marks *k, int64_t cols, float *row)
{
    vi pos = (vi){0} + q->pos[r], doc = (vi){0} + q->doc[r], kp, kd;
    for (int64_t j = 0; j < cols; j += HP_VL) {
        memcpy(&kp, k->pos + j, sizeof kp);
        memcpy(&kd, k->doc + j, sizeof kd);
        vf_mem *x = (vf_mem *)(row + j);
        *x = vsel((kp <= pos) & (kd == doc), *x, vset(-INFINITY));
    }
}

/* Where a query row (numbered within its head) begins, in rows; stepped from row to row without division. */
typedef struct cursor {
    int64_t at, group, groups, jump;
} cursor;

static inline cursor cursor_at(const hp_attention_shape *a, int64_t b, int64_t k, int64_t row)
{
    int64_t at = ((b * a->s + row / a->g) * a->k + k) * a->g + row % a->g;
    return (cursor){at, row % a->g, a->g, (a->k - 1) * a->g};
}

static inline void step(cursor *c)
{
    c->at++;
    if (++c->group == c->groups) {
        c->group = 0;
        c->at += c->jump;
    }
}

/* n query rows of width w times c into y [n, stride(w)]. */
static void load_rows(const hp_attention_shape *a, int64_t b, int64_t k, int64_t row, int64_t n,
                      hp_num x, int64_t w, float c, float *y)
{
    cursor at = cursor_at(a, b, k, row);
    for (int64_t i = 0; i < n; i++, step(&at), y += stride(w)) {
        hp_num from = hp_num_at(x, at.at * w);
        for (int64_t j = 0; j < whole(w); j += HP_VL)
            *(vf_mem *)(y + j) = w > j ? c * vld(from, j, w - j) : vset(0);
    }
}

/* Panels of HP_MR of those rows, for the left side of a product. */
static void pack_rows(int64_t n, const float *rows, int64_t w, float *y)
{
    for (int64_t i = 0; i < n; i += HP_MR)
        pack_across(HP_MR, least(n - i, HP_MR), w, hp_num_f32(rows + i * stride(w)), stride(w),
                    y + i * w);
}

/* Panels of HP_NR of n keys (or values) of width w, transposed, for the right side. */
static void pack_keys(const hp_attention_shape *a, int64_t b, int64_t k, int64_t t, int64_t n,
                      hp_num x, int64_t w, float *y)
{
    hp_num from = hp_num_at(x, ((b * a->t + t) * a->k + k) * w);
    for (int64_t j = 0; j < n; j += HP_NR)
        pack_across(HP_NR, least(n - j, HP_NR), w, hp_num_at(from, j * a->k * w), a->k * w,
                    y + j * w);
}

/* The same keys as rows, [n, stride(w)]. */
static void load_keys(const hp_attention_shape *a, int64_t b, int64_t k, int64_t t, int64_t n,
                      hp_num x, int64_t w, float *y)
{
    hp_num from = hp_num_at(x, ((b * a->t + t) * a->k + k) * w);
    for (int64_t i = 0; i < n; i++, y += stride(w), from = hp_num_at(from, a->k * w))
        for (int64_t j = 0; j < whole(w); j += HP_VL)
            *(vf_mem *)(y + j) = w > j ? vld(from, j, w - j) : vset(0);
}

/* C [HP_MR rows, cols] = panel of rows times panels of keys. */
static inline void scores(int64_t w, const float *rows, const float *keys, int64_t cols, float *c)
{
    for (int64_t j = 0; j < cols; j += HP_NR)
        micro(w, rows, 1, HP_MR, keys + j * w, HP_NR, c + j, TILE, false);
}

/* C [HP_MR rows, w] (+)= probabilities p (row stride TILE) times n rows of x [n, w]. */
static inline void weigh(int64_t n, const float *p, const float *x, int64_t w, float *c, bool add)
{
    for (int64_t j = 0; j < w; j += HP_NR)
        micro(n, p, TILE, 1, x + j, stride(w), c + j, stride(w), add);
}

/* C [HP_MR keys, w] += p^T (p: n rows, from the panel's first key on) times n rows of x [n, w]. */
static inline void weigh_across(int64_t n, const float *p, const float *x, int64_t w, float *c)
{
    for (int64_t j = 0; j < w; j += HP_NR)
        micro(n, p, 1, TILE, x + j, stride(w), c + j, stride(w), true);
}

/* A tile of query rows on its way through the keys: packed queries, running maximum and sum of each row, and
 * its unnormalised output [TILE, stride(dv)]. */
typedef struct online {
    int64_t row, n, w; /* w: width of the output */
    const float *panels;
    float max[TILE], sum[TILE], *o;
    marks m;
} online;

/* Turns a row of scores into exp(score - max); a larger maximum first scales down what was summed. */
static void soften(online *w, int64_t r, float *row, int64_t cols)
{
    vf top = vset(-INFINITY), sum = vset(0);
    for (int64_t j = 0; j < cols; j += HP_VL)
        top = vmax(*(vf_mem *)(row + j), top);
    float max = vtop(top);
    if (max > w->max[r]) {
        float shrink = expf(w->max[r] - max);
        w->sum[r] *= shrink;
        for (int64_t j = 0; j < w->w; j += HP_VL)
            *(vf_mem *)(w->o + r * stride(w->w) + j) *= shrink;
        w->max[r] = max;
    }
    float base = w->max[r] > -INFINITY ? w->max[r] : 0;
    for (int64_t j = 0; j < cols; j += HP_VL) {
        vf p = vexp(*(vf_mem *)(row + j) - base);
        *(vf_mem *)(row + j) = p;
        sum += p;
    }
    w->sum[r] += vsum(sum);
}

static void store_rows(const hp_attention_shape *a, int64_t b, int64_t k, const online *w, hp_num o,
                       float *lse)
{
    cursor c = cursor_at(a, b, k, w->row);
    for (int64_t i = 0; i < w->n; i++, step(&c)) {
        hp_num to = hp_num_at(o, c.at * a->dv);
        const float *from = w->o + i * stride(a->dv);
        float inverse = w->sum[i] > 0 ? 1 / w->sum[i] : 0;
        lse[c.at] = w->sum[i] > 0 ? w->max[i] + logf(w->sum[i]) : -INFINITY;
        for (int64_t j = 0; j < a->dv; j += HP_VL)
            vst(to, j, a->dv - j, *(const vf_mem *)(from + j) * inverse);
    }
}

/* Begins tile `w` at its row; `rows` is room for its queries before packing. */
static void begin(const hp_attention_shape *a, int64_t b, int64_t k, hp_num q, float *rows,
                  float *panels, online *w)
{
    mark_rows(a, b, w->row, w->n, &w->m);
    load_rows(a, b, k, w->row, w->n, q, a->d, a->scale, rows);
    pack_rows(w->n, rows, a->d, panels);
    w->panels = panels;
    w->w = a->dv;
    memset(w->o, 0, (size_t)(TILE * stride(a->dv)) * sizeof *w->o);
    for (int64_t i = 0; i < TILE; i++) {
        w->max[i] = -INFINITY;
        w->sum[i] = 0;
    }
}

/* Takes tile `w` past n keys. */
static void pass(const hp_attention_shape *a, online *w, const marks *m, int64_t n, const float *kt,
                 const float *v, float *p)
{
    bool clear = open(&w->m, m, n);
    for (int64_t i = 0; i < w->n; i += HP_MR) {
        int64_t see = seen(&w->m, i, w->n, m, n), cols = whole(see);
        scores(a->d, w->panels + i * a->d, kt, cols, p + i * TILE);
        for (int64_t r = i; r < least(i + HP_MR, w->n); r++) {
            if (!clear)
                mask_row(&w->m, r, m, cols, p + r * TILE);
            soften(w, r, p + r * TILE, cols);
        }
        weigh(see, p + i * TILE, v, a->dv, w->o + i * stride(a->dv), true);
    }
}

void HP_SIMD(hp_attention_rows)(const hp_attention_shape *a, int64_t b, int64_t k, int64_t row0,
                                int64_t row1, hp_num q, hp_num keys, hp_num values, hp_num o,
                                float *lse)
{
    int64_t d = a->d, sv = stride(a->dv), tiles = (row1 - row0 + TILE - 1) / TILE;
    LOCAL(panels, tiles * TILE * d);
    LOCAL(out, tiles * TILE * sv);
    LOCAL(kt, TILE * d);
    LOCAL(v, TILE * (stride(d) > sv ? stride(d) : sv)); /* queries, then values */
    LOCAL(p, TILE * TILE);
    online w[HP_ATTENTION_SPAN];
    marks m;
    for (int64_t i = 0; i < tiles; i++) {
        w[i].row = row0 + i * TILE;
        w[i].n = least(row1 - w[i].row, TILE);
        w[i].o = out + i * TILE * sv;
        begin(a, b, k, q, v, panels + i * TILE * d, &w[i]);
    }
    for (int64_t t = 0; t < a->t; t += TILE) {
        int64_t n = least(a->t - t, TILE), from = 0;
        mark_keys(a, b, t, n, &m);
        while (from < tiles && hidden(&w[from].m, &m))
            from++;
        if (from == tiles)
            continue;
        pack_keys(a, b, k, t, n, keys, d, kt);
        load_keys(a, b, k, t, n, values, a->dv, v);
        for (int64_t i = from; i < tiles; i++)
            if (!hidden(&w[i].m, &m))
                pass(a, &w[i], &m, n, kt, v, p);
    }
    for (int64_t i = 0; i < tiles; i++)
        store_rows(a, b, k, &w[i], o, lse);
}

void HP_SIMD(hp_attention_delta)(int64_t rows, int64_t dv, hp_num o, hp_num dy, float *delta)
{
    for (int64_t r = 0; r < rows; r++) {
        hp_num x = hp_num_at(o, r * dv), y = hp_num_at(dy, r * dv);
        vf sum = vset(0);
        for (int64_t j = 0; j < dv; j += HP_VL)
            sum += vld(x, j, dv - j) * vld(y, j, dv - j);
        delta[r] = vsum(sum);
    }
}

/* One tile of query rows as the backward pass wants it. */
typedef struct query_tile {
    int64_t n, row;
    float *q, *q_panels, *dy, *dy_panels, lse[TILE], delta[TILE];
    marks m;
} query_tile;

static void load_queries(const hp_attention_grads *w, int64_t b, int64_t k, query_tile *x)
{
    const hp_attention_shape *a = w->a;
    load_rows(a, b, k, x->row, x->n, w->q, a->d, a->scale, x->q);
    load_rows(a, b, k, x->row, x->n, w->dy, a->dv, 1, x->dy);
    pack_rows(x->n, x->q, a->d, x->q_panels);
    pack_rows(x->n, x->dy, a->dv, x->dy_panels);
    cursor c = cursor_at(a, b, k, x->row);
    for (int64_t i = 0; i < x->n; i++, step(&c)) {
        x->lse[i] = w->lse[c.at];
        x->delta[i] = w->delta[c.at];
    }
}

/* Turns a row of scores and of dp into p = exp(score - lse) and ds = p (dp - delta). */
static void differentiate(const query_tile *x, int64_t r, int64_t cols, float *p, float *ds)
{
    bool sees = x->lse[r] > -INFINITY;
    for (int64_t j = 0; j < cols; j += HP_VL) {
        vf v = sees ? vexp(*(vf_mem *)(p + j) - x->lse[r]) : vset(0);
        *(vf_mem *)(p + j) = v;
        *(vf_mem *)(ds + j) = v * (*(vf_mem *)(ds + j) - x->delta[r]);
    }
    for (int64_t j = cols; j < TILE; j += HP_VL)
        *(vf_mem *)(p + j) = *(vf_mem *)(ds + j) = vset(0);
}

/* One tile of keys, and the sums of its gradients. */
typedef struct key_tile {
    int64_t n, t;
    float *k, *kt, *vt, *dk, *dv;
    marks m;
} key_tile;

/* Tiles of keys that share a load of queries, where they fit into the cache together. */
enum { SPAN = 2 };

/* p and ds of one pair of tiles, [TILE, TILE] each. */
static void probabilities(const hp_attention_shape *a, const query_tile *x, const key_tile *y,
                          float *p, float *ds)
{
    bool clear = open(&x->m, &y->m, y->n);
    for (int64_t i = 0; i < x->n; i += HP_MR) {
        int64_t cols = whole(seen(&x->m, i, x->n, &y->m, y->n));
        scores(a->d, x->q_panels + i * a->d, y->kt, cols, p + i * TILE);
        scores(a->dv, x->dy_panels + i * a->dv, y->vt, cols, ds + i * TILE);
        for (int64_t r = i; r < least(i + HP_MR, x->n); r++) {
            if (!clear)
                mask_row(&x->m, r, &y->m, cols, p + r * TILE);
            differentiate(x, r, cols, p + r * TILE, ds + r * TILE);
        }
    }
}

/* dk += ds^T q and dv += p^T dy. */
static void add_keys(const hp_attention_shape *a, const query_tile *x, const key_tile *y,
                     const float *p, const float *ds)
{
    int64_t sd = stride(a->d), sv = stride(a->dv);
    for (int64_t j = 0; j < y->n; j += HP_MR) {
        int64_t r = first_row(&x->m, x->n, &y->m, j, y->n), at = r * TILE + j;
        weigh_across(x->n - r, p + at, x->dy + r * sv, a->dv, y->dv + j * sv);
        weigh_across(x->n - r, ds + at, x->q + r * sd, a->d, y->dk + j * sd);
    }
}

/* sum [TILE, stride(d)] (+)= ds k. */
static void sum_queries(const hp_attention_shape *a, const query_tile *x, const key_tile *y,
                        const float *ds, float *sum, bool add)
{
    int64_t sd = stride(a->d);
    for (int64_t i = 0; i < x->n; i += HP_MR)
        weigh(seen(&x->m, i, x->n, &y->m, y->n), ds + i * TILE, y->k, a->d, sum + i * sd, add);
}

/* dq += scale sum. */
static void add_queries(const hp_attention_grads *w, int64_t b, int64_t k, const query_tile *x,
                        const float *sum)
{
    const hp_attention_shape *a = w->a;
    cursor c = cursor_at(a, b, k, x->row);
    for (int64_t i = 0; i < x->n; i++, step(&c), sum += stride(a->d)) {
        hp_num to = hp_num_f32(w->dq + c.at * a->d);
        for (int64_t j = 0; j < a->d; j += HP_VL)
            vst(to, j, a->d - j, vld(to, j, a->d - j) + a->scale * *(const vf_mem *)(sum + j));
    }
}

static void store_keys(const hp_attention_shape *a, int64_t b, int64_t k, const key_tile *y,
                       const float *sum, int64_t w, hp_num to)
{
    for (int64_t i = 0; i < y->n && to.p; i++)
        for (int64_t j = 0; j < w; j += HP_VL)
            vst(to, ((b * a->t + y->t + i) * a->k + k) * w + j, w - j,
                *(const vf_mem *)(sum + i * stride(w) + j));
}

static void load_key_tile(const hp_attention_grads *w, int64_t b, int64_t k, key_tile *y)
{
    const hp_attention_shape *a = w->a;
    mark_keys(a, b, y->t, y->n, &y->m);
    pack_keys(a, b, k, y->t, y->n, w->keys, a->d, y->kt);
    pack_keys(a, b, k, y->t, y->n, w->values, a->dv, y->vt);
    load_keys(a, b, k, y->t, y->n, w->keys, a->d, y->k);
    memset(y->dk, 0, (size_t)(TILE * stride(a->d)) * sizeof *y->dk);
    memset(y->dv, 0, (size_t)(TILE * stride(a->dv)) * sizeof *y->dv);
}

/* One tile of query rows against up to SPAN tiles of keys. Room: p and ds [TILE, TILE], sum [TILE, stride(d)]. */
static void meet(const hp_attention_grads *w, int64_t b, int64_t k, query_tile *x, int64_t tiles,
                 const key_tile *y, float *p, float *ds, float *sum)
{
    bool any = false;
    mark_rows(w->a, b, x->row, x->n, &x->m);
    for (int64_t i = 0; i < tiles; i++) {
        if (hidden(&x->m, &y[i].m))
            continue;
        if (!any)
            load_queries(w, b, k, x);
        probabilities(w->a, x, &y[i], p, ds);
        if (w->dk.p || w->dv.p)
            add_keys(w->a, x, &y[i], p, ds);
        if (w->dq)
            sum_queries(w->a, x, &y[i], ds, sum, any);
        any = true;
    }
    if (any && w->dq)
        add_queries(w, b, k, x, sum);
}

void HP_SIMD(hp_attention_back)(const hp_attention_grads *w, int64_t b, int64_t k, int64_t row0,
                                int64_t row1, int64_t t0, int64_t t1)
{
    const hp_attention_shape *a = w->a;
    int64_t d = a->d, dv = a->dv, sd = stride(d), sv = stride(dv), span = d + dv <= 256 ? SPAN : 1;
    LOCAL(q, TILE * sd);
    LOCAL(q_panels, TILE * d);
    LOCAL(dy, TILE * sv);
    LOCAL(dy_panels, TILE * dv);
    LOCAL(k_rows, span * TILE * sd);
    LOCAL(kt, span * TILE * d);
    LOCAL(vt, span * TILE * dv);
    LOCAL(dk, span * TILE * sd);
    LOCAL(dvalues, span * TILE * sv);
    LOCAL(sum, TILE * sd);
    LOCAL(p, TILE * TILE);
    LOCAL(ds, TILE * TILE);
    query_tile x = {.q = q, .q_panels = q_panels, .dy = dy, .dy_panels = dy_panels};
    key_tile y[SPAN];
    for (int64_t t = t0; t < t1; t += span * TILE) {
        int64_t tiles = least((t1 - t + TILE - 1) / TILE, span);
        for (int64_t i = 0; i < tiles; i++) {
            int64_t at = t + i * TILE, row = i * TILE;
            y[i] = (key_tile){.n = least(t1 - at, TILE),
                              .t = at,
                              .k = k_rows + row * sd,
                              .kt = kt + row * d,
                              .vt = vt + row * dv,
                              .dk = dk + row * sd,
                              .dv = dvalues + row * sv};
            load_key_tile(w, b, k, &y[i]);
        }
        for (x.row = row0; x.row < row1; x.row += TILE) {
            x.n = least(row1 - x.row, TILE);
            meet(w, b, k, &x, tiles, y, p, ds, sum);
        }
        for (int64_t i = 0; i < tiles; i++) {
            store_keys(a, b, k, &y[i], y[i].dk, d, w->dk);
            store_keys(a, b, k, &y[i], y[i].dv, dv, w->dv);
        }
    }
}

void HP_SIMD(hp_attention_blend)(int64_t n, float wa, hp_num a, float wb, hp_num b, hp_num y)
{
    for (int64_t i = 0; i < n; i += HP_VL)
        vst(y, i, n - i, wa * vld(a, i, n - i) + wb * vld(b, i, n - i));
}

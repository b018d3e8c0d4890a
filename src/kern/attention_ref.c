/* The plain reference recomputes every score where it needs one: slow, and nothing to get wrong. */
#include "kern/attention.h"

#include <math.h>

/* One query head's row: everything that indexes it. */
typedef struct row {
    int64_t b, s, k, at; /* at: index of (b, s, k, g) in lse; its q is at * d, its o at * dv */
} row;

static bool sees(const hp_attention_shape *a, row r, int64_t t)
{
    int64_t i = r.b * a->s + r.s, j = r.b * a->t + t;
    return (!a->causal || a->pos_q[i] >= a->pos_k[j]) && (!a->doc_q || a->doc_q[i] == a->doc_k[j]);
}

/* The element where key or value (b, t, k) begins, of width w. */
static int64_t key_at(const hp_attention_shape *a, row r, int64_t t, int64_t w)
{
    return ((r.b * a->t + t) * a->k + r.k) * w;
}

static double dot(int64_t n, hp_num x, int64_t i, hp_num y, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < n; l++)
        sum += (double)hp_num_get(x, i + l) * (double)hp_num_get(y, j + l);
    return sum;
}

static double score(const hp_attention_shape *a, row r, int64_t t, hp_num q, hp_num keys)
{
    return (double)a->scale * dot(a->d, q, r.at * a->d, keys, key_at(a, r, t, a->d));
}

static row row_of(const hp_attention_shape *a, int64_t at)
{
    int64_t k = at / a->g % a->k, s = at / a->g / a->k % a->s;
    return (row){at / a->g / a->k / a->s, s, k, at};
}

static double lse_of(const hp_attention_shape *a, row r, hp_num q, hp_num keys)
{
    double max = -INFINITY, sum = 0;
    for (int64_t t = 0; t < a->t; t++)
        if (sees(a, r, t))
            max = fmax(max, score(a, r, t, q, keys));
    for (int64_t t = 0; t < a->t; t++)
        if (sees(a, r, t))
            sum += exp(score(a, r, t, q, keys) - max);
    return sum > 0 ? max + log(sum) : -INFINITY;
}

void hp_attention_ref(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                      float *lse)
{
    for (int64_t at = 0; at < a->b * a->s * a->k * a->g; at++) {
        row r = row_of(a, at);
        double total = lse_of(a, r, q, keys), acc[a->dv > 0 ? a->dv : 1];
        for (int64_t j = 0; j < a->dv; j++)
            acc[j] = 0;
        for (int64_t t = 0; t < a->t; t++) {
            if (!sees(a, r, t))
                continue;
            double p = exp(score(a, r, t, q, keys) - total);
            for (int64_t j = 0; j < a->dv; j++)
                acc[j] += p * (double)hp_num_get(values, key_at(a, r, t, a->dv) + j);
        }
        for (int64_t j = 0; j < a->dv; j++)
            hp_num_put(o, at * a->dv + j, (float)acc[j]);
        lse[at] = (float)total;
    }
}

/* y[0..n-1] += c x[i..i+n-1]. */
static void add_scaled(int64_t n, double c, hp_num x, int64_t i, double *y)
{
    for (int64_t l = 0; l < n; l++)
        y[l] += c * (double)hp_num_get(x, i + l);
}

/* p and ds = p (dp - delta) of one pair (query row, key). */
typedef struct pair {
    double p, ds;
} pair;

typedef struct backward {
    const hp_attention_shape *a;
    hp_num q, keys, values, o, dy;
    const float *lse;
} backward;

static pair pair_of(const backward *w, row r, int64_t t)
{
    const hp_attention_shape *a = w->a;
    double lse = (double)w->lse[r.at];
    if (!sees(a, r, t) || lse == -INFINITY)
        return (pair){0, 0};
    double p = exp(score(a, r, t, w->q, w->keys) - lse);
    double dp = dot(a->dv, w->dy, r.at * a->dv, w->values, key_at(a, r, t, a->dv));
    double delta = dot(a->dv, w->dy, r.at * a->dv, w->o, r.at * a->dv);
    return (pair){p, p * (dp - delta)};
}

static void queries(const backward *w, hp_num dq)
{
    const hp_attention_shape *a = w->a;
    for (int64_t at = 0; at < a->b * a->s * a->k * a->g; at++) {
        row r = row_of(a, at);
        double acc[a->d > 0 ? a->d : 1];
        memset(acc, 0, sizeof acc);
        for (int64_t t = 0; t < a->t; t++)
            add_scaled(a->d, (double)a->scale * pair_of(w, r, t).ds, w->keys, key_at(a, r, t, a->d),
                       acc);
        for (int64_t i = 0; i < a->d; i++)
            hp_num_put(dq, at * a->d + i, (float)acc[i]);
    }
}

/* dk and dv of key (b, t, k): sums over the query rows of its group. */
static void key_gradient(const backward *w, int64_t b, int64_t t, int64_t k, hp_num dk, hp_num dv)
{
    const hp_attention_shape *a = w->a;
    double ak[a->d > 0 ? a->d : 1], av[a->dv > 0 ? a->dv : 1];
    memset(ak, 0, sizeof ak);
    memset(av, 0, sizeof av);
    for (int64_t s = 0; s < a->s; s++)
        for (int64_t g = 0; g < a->g; g++) {
            row r = row_of(a, ((b * a->s + s) * a->k + k) * a->g + g);
            pair x = pair_of(w, r, t);
            add_scaled(a->d, (double)a->scale * x.ds, w->q, r.at * a->d, ak);
            add_scaled(a->dv, x.p, w->dy, r.at * a->dv, av);
        }
    int64_t at = (b * a->t + t) * a->k + k;
    for (int64_t i = 0; i < a->d && dk.p; i++)
        hp_num_put(dk, at * a->d + i, (float)ak[i]);
    for (int64_t i = 0; i < a->dv && dv.p; i++)
        hp_num_put(dv, at * a->dv + i, (float)av[i]);
}

void hp_attention_dx_ref(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values,
                         hp_num o, const float *lse, hp_num dy, hp_num dq, hp_num dk, hp_num dv)
{
    backward w = {a, q, keys, values, o, dy, lse};
    if (dq.p)
        queries(&w, dq);
    for (int64_t b = 0; b < a->b && (dk.p || dv.p); b++)
        for (int64_t t = 0; t < a->t; t++)
            for (int64_t k = 0; k < a->k; k++)
                key_gradient(&w, b, t, k, dk, dv);
}

void hp_attention_merge_ref(int64_t rows, int64_t dv, hp_num o1, const float *lse1, hp_num o2,
                            const float *lse2, hp_num o, float *lse)
{
    for (int64_t r = 0; r < rows; r++) {
        double a = (double)lse1[r], b = (double)lse2[r], max = fmax(a, b);
        double total = max > -INFINITY ? max + log(exp(a - max) + exp(b - max)) : -INFINITY;
        double wa = max > -INFINITY ? exp(a - total) : 0, wb = max > -INFINITY ? exp(b - total) : 0;
        for (int64_t i = r * dv; i < (r + 1) * dv; i++)
            hp_num_put(o, i,
                       (float)(wa * (double)hp_num_get(o1, i) + wb * (double)hp_num_get(o2, i)));
        lse[r] = (float)total;
    }
}

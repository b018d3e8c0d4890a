/* Tokens are independent; the sums over a sequence run in token order, in double. */
#include "kern/router.h"

#include "kern/router_simd.h"
#include "kern/team.h"

#include <math.h>

typedef float score_fn(int64_t e, bool sigmoid, hp_num x, float *score);

/* The index of the largest of worth[0..n-1], the lowest one of equals; -1 when all are -inf. */
static int64_t largest(int64_t n, const float *worth)
{
    int64_t best = -1;
    float top = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (worth[i] > top) {
            top = worth[i];
            best = i;
        }
    return best;
}

/* The two best of a group added up, or its only one. */
static float group_worth(int64_t size, const float *worth)
{
    float first = -INFINITY, second = -INFINITY;
    for (int64_t j = 0; j < size; j++) {
        second = fmaxf(second, fminf(first, worth[j]));
        first = fmaxf(first, worth[j]);
    }
    return size > 1 ? first + second : first;
}

/* Sets the worth of every expert outside the topk_group best groups to -inf. */
static void limit_groups(const hp_router_shape *r, float *worth)
{
    int64_t size = r->e / r->n_group;
    float group[r->n_group];
    bool open[r->n_group];
    for (int64_t i = 0; i < r->n_group; i++) {
        group[i] = group_worth(size, worth + i * size);
        open[i] = false;
    }
    for (int64_t n = 0; n < r->topk_group; n++) {
        int64_t i = largest(r->n_group, group);
        if (i < 0)
            break;
        open[i] = true;
        group[i] = -INFINITY;
    }
    for (int64_t j = 0; j < r->e; j++)
        if (!open[j / size])
            worth[j] = -INFINITY;
}

static void choose(const hp_router_shape *r, const float *score, const float *bias, int32_t *idx)
{
    float worth[r->e];
    for (int64_t i = 0; i < r->e; i++)
        worth[i] = bias ? score[i] + bias[i] : score[i];
    if (r->n_group > 1)
        limit_groups(r, worth);
    for (int64_t j = 0; j < r->k; j++) {
        int64_t i = largest(r->e, worth);
        idx[j] = (int32_t)i;
        if (i >= 0)
            worth[i] = -INFINITY;
    }
}

/* What the weights are divided by. */
static float norm_of(const hp_router_shape *r, const float *score, const int32_t *idx)
{
    float sum = 1e-20f;
    for (int64_t j = 0; j < r->k; j++)
        sum += idx[j] >= 0 ? score[idx[j]] : 0;
    return r->normalise ? sum : 1;
}

/* f and p of sequence b. */
static void balance(const hp_router_shape *r, score_fn *scores, int64_t b, hp_num logits,
                    const int32_t *idx, float *f, float *p)
{
    float score[r->e];
    double times[r->e], mean[r->e];
    for (int64_t i = 0; i < r->e; i++)
        times[i] = mean[i] = 0;
    for (int64_t t = b * r->s; t < (b + 1) * r->s; t++) {
        float all = scores(r->e, r->sigmoid, hp_num_at(logits, t * r->e), score);
        for (int64_t i = 0; i < r->e; i++)
            mean[i] += (double)(score[i] / all);
        for (int64_t j = t * r->k; j < (t + 1) * r->k; j++)
            if (idx[j] >= 0)
                times[idx[j]]++;
    }
    for (int64_t i = 0; i < r->e; i++) {
        if (f)
            f[b * r->e + i] = (float)(times[i] * (double)r->e / (double)(r->k * r->s_full));
        if (p)
            p[b * r->e + i] = (float)(mean[i] / (double)r->s_full);
    }
}

void hp_router(const hp_router_shape *r, hp_num logits, const float *bias, int32_t *idx, hp_num w,
               float *f, float *p, int threads)
{
    score_fn *scores = HP_SIMD_PICK(hp_router_scores);
    if (r->e <= 0)
        return;
    HP_TEAM_FOR(
        threads, r->b * r->s * r->e, for (int64_t t = 0; t < r->b * r->s; t++) {
            float score[r->e];
            int32_t *at = idx + t * r->k;
            scores(r->e, r->sigmoid, hp_num_at(logits, t * r->e), score);
            choose(r, score, bias, at);
            float factor = r->scale / norm_of(r, score, at);
            for (int64_t j = 0; j < r->k; j++)
                hp_num_put(w, t * r->k + j, at[j] >= 0 ? score[at[j]] * factor : 0);
        });
    if (!f && !p)
        return;
    HP_TEAM_FOR(threads, r->b * r->s * r->e,
                for (int64_t b = 0; b < r->b; b++) balance(r, scores, b, logits, idx, f, p));
}

/* Adds to ds (gradient of the scores) what the weights of one token bring. */
static void from_weights(const hp_router_shape *r, const float *score, const int32_t *idx,
                         hp_num dw, float *ds)
{
    float norm = norm_of(r, score, idx), pull = 0;
    for (int64_t j = 0; j < r->k && r->normalise; j++)
        if (idx[j] >= 0)
            pull += hp_num_get(dw, j) * score[idx[j]] / norm;
    for (int64_t j = 0; j < r->k; j++)
        if (idx[j] >= 0)
            ds[idx[j]] += r->scale * (hp_num_get(dw, j) - pull) / norm;
}

/* Adds to ds what the mean probabilities of the token's sequence bring; `all` is the sum of scores. */
static void from_means(const hp_router_shape *r, const float *score, float all, const float *dp,
                       float *ds)
{
    float pull = 0;
    for (int64_t i = 0; i < r->e; i++)
        pull += dp[i] * score[i] / all;
    for (int64_t i = 0; i < r->e; i++)
        ds[i] += (dp[i] - pull) / all / (float)r->s_full;
}

static void through_scores(const hp_router_shape *r, const float *score, const float *ds, hp_num dx)
{
    float dot = 0;
    for (int64_t i = 0; i < r->e && !r->sigmoid; i++)
        dot += ds[i] * score[i];
    for (int64_t i = 0; i < r->e; i++)
        hp_num_put(dx, i, score[i] * (r->sigmoid ? ds[i] * (1 - score[i]) : ds[i] - dot));
}

void hp_router_dx(const hp_router_shape *r, hp_num logits, const int32_t *idx, hp_num dw,
                  const float *dp, hp_num dlogits, int threads)
{
    score_fn *scores = HP_SIMD_PICK(hp_router_scores);
    if (r->e <= 0)
        return;
    HP_TEAM_FOR(
        threads, r->b * r->s * r->e, for (int64_t t = 0; t < r->b * r->s; t++) {
            float score[r->e], ds[r->e];
            memset(ds, 0, sizeof ds);
            float all = scores(r->e, r->sigmoid, hp_num_at(logits, t * r->e), score);
            if (dw.p)
                from_weights(r, score, idx + t * r->k, hp_num_at(dw, t * r->k), ds);
            if (dp)
                from_means(r, score, all, dp + t / r->s * r->e, ds);
            through_scores(r, score, ds, hp_num_at(dlogits, t * r->e));
        });
}

/* Doubles throughout, but for the selection: that compares the float scores that the fast version
 * compares too, so that both choose alike wherever their scores agree. */
#include "kern/router.h"

#include <math.h>

/* score[e] of one token. */
static void scores(const hp_router_shape *r, hp_num x, double *score)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < r->e; i++)
        max = fmax(max, (double)hp_num_get(x, i));
    for (int64_t i = 0; i < r->e; i++) {
        double v = (double)hp_num_get(x, i);
        score[i] = r->sigmoid ? 1 / (1 + exp(-v)) : exp(v - max);
        sum += score[i];
    }
    for (int64_t i = 0; i < r->e && !r->sigmoid; i++)
        score[i] /= sum;
}

/* The index of the largest of worth[0..n-1], the lowest one of equals; -1 when all are -inf. */
static int64_t largest(int64_t n, const double *worth)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (worth[i] > -INFINITY && (best < 0 || worth[i] > worth[best]))
            best = i;
    return best;
}

/* Sets the worth of every expert outside the topk_group best groups to -inf. */
static void limit_groups(const hp_router_shape *r, double *worth)
{
    int64_t size = r->e / r->n_group;
    double group[r->n_group];
    bool open[r->n_group];
    for (int64_t i = 0; i < r->n_group; i++) {
        double first = -INFINITY, second = -INFINITY;
        for (int64_t j = i * size; j < (i + 1) * size; j++) {
            second = fmax(second, fmin(first, worth[j]));
            first = fmax(first, worth[j]);
        }
        group[i] = size > 1 ? first + second : first;
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

static void choose(const hp_router_shape *r, const double *score, const float *bias, int32_t *idx)
{
    double worth[r->e];
    for (int64_t i = 0; i < r->e; i++)
        worth[i] = (double)((float)score[i] + (bias ? bias[i] : 0));
    if (r->n_group > 1)
        limit_groups(r, worth);
    for (int64_t j = 0; j < r->k; j++) {
        int64_t i = largest(r->e, worth);
        idx[j] = (int32_t)i;
        if (i >= 0)
            worth[i] = -INFINITY;
    }
}

static double chosen_sum(const hp_router_shape *r, const double *score, const int32_t *idx)
{
    double sum = 0;
    for (int64_t j = 0; j < r->k; j++)
        sum += idx[j] >= 0 ? score[idx[j]] : 0;
    return sum;
}

void hp_router_ref(const hp_router_shape *r, hp_num logits, const float *bias, int32_t *idx,
                   hp_num w, float *f, float *p)
{
    double score[r->e + 1], times[r->e + 1], mean[r->e + 1];
    for (int64_t b = 0; b < r->b; b++) {
        memset(times, 0, sizeof times);
        memset(mean, 0, sizeof mean);
        for (int64_t t = b * r->s; t < (b + 1) * r->s; t++) {
            int32_t *at = idx + t * r->k;
            scores(r, hp_num_at(logits, t * r->e), score);
            choose(r, score, bias, at);
            double norm = r->normalise ? chosen_sum(r, score, at) + 1e-20 : 1, all = 0;
            for (int64_t i = 0; i < r->e; i++)
                all += score[i];
            for (int64_t i = 0; i < r->e; i++)
                mean[i] += score[i] / all;
            for (int64_t j = 0; j < r->k; j++) {
                double v = at[j] >= 0 ? score[at[j]] / norm * (double)r->scale : 0;
                hp_num_put(w, t * r->k + j, (float)v);
                if (at[j] >= 0)
                    times[at[j]]++;
            }
        }
        for (int64_t i = 0; i < r->e; i++) {
            if (f)
                f[b * r->e + i] = (float)(times[i] * (double)r->e / (double)(r->k * r->s_full));
            if (p)
                p[b * r->e + i] = (float)(mean[i] / (double)r->s_full);
        }
    }
}

/* Adds to ds (gradient of the scores) what the weights of one token bring. */
static void from_weights(const hp_router_shape *r, const double *score, const int32_t *idx,
                         hp_num dw, double *ds)
{
    double norm = r->normalise ? chosen_sum(r, score, idx) + 1e-20 : 1, pull = 0;
    for (int64_t j = 0; j < r->k && r->normalise; j++)
        if (idx[j] >= 0)
            pull += (double)hp_num_get(dw, j) * score[idx[j]] / norm;
    for (int64_t j = 0; j < r->k; j++)
        if (idx[j] >= 0)
            ds[idx[j]] += (double)r->scale * ((double)hp_num_get(dw, j) - pull) / norm;
}

/* Adds to ds what the mean probabilities of one token's sequence bring. */
static void from_means(const hp_router_shape *r, const double *score, const float *dp, double *ds)
{
    double all = 0, pull = 0;
    for (int64_t i = 0; i < r->e; i++)
        all += score[i];
    for (int64_t i = 0; i < r->e; i++)
        pull += (double)dp[i] * score[i] / all;
    for (int64_t i = 0; i < r->e; i++)
        ds[i] += ((double)dp[i] - pull) / all / (double)r->s_full;
}

void hp_router_dx_ref(const hp_router_shape *r, hp_num logits, const int32_t *idx, hp_num dw,
                      const float *dp, hp_num dlogits)
{
    double score[r->e + 1], ds[r->e + 1];
    for (int64_t t = 0; t < r->b * r->s; t++) {
        memset(ds, 0, sizeof ds);
        scores(r, hp_num_at(logits, t * r->e), score);
        if (dw.p)
            from_weights(r, score, idx + t * r->k, hp_num_at(dw, t * r->k), ds);
        if (dp)
            from_means(r, score, dp + t / r->s * r->e, ds);
        double dot = 0;
        for (int64_t i = 0; i < r->e && !r->sigmoid; i++)
            dot += ds[i] * score[i];
        for (int64_t i = 0; i < r->e; i++)
            hp_num_put(
                dlogits, t * r->e + i,
                (float)(r->sigmoid ? ds[i] * score[i] * (1 - score[i]) : score[i] * (ds[i] - dot)));
    }
}

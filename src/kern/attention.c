/* Forward, a team shares tiles of query rows. Backward, it shares heads where there are enough of them:
 * each pair of tiles then gives dq, dk and dv at once. With few heads (by the shape, not the team) keys
 * and queries are done one after the other, each pair twice. Sums run in the same order either way. */
#include "kern/attention.h"

#include "kern/attention_simd.h"
#include "kern/pointwise.h"
#include "kern/team.h"

#include <math.h>

enum { TILE = HP_ATTENTION_TILE, ENOUGH_HEADS = 8 };

static int64_t tiles(int64_t n)
{
    return (n + TILE - 1) / TILE;
}

/* How many tiles of query rows one task takes: more share the packing of keys, fewer occupy a team. A tile's
 * bits are the same in any company. */
static int64_t span_of(int64_t heads, int64_t n, int threads)
{
    int64_t span = HP_ATTENTION_SPAN;
    while (span > 1 && heads * ((tiles(n) + span - 1) / span) < 4 * (int64_t)threads)
        span /= 2;
    return span * TILE;
}

void hp_attention(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                  float *lse, int threads)
{
    void (*rows)(const hp_attention_shape *, int64_t, int64_t, int64_t, int64_t, hp_num, hp_num,
                 hp_num, hp_num, float *) = HP_SIMD_PICK(hp_attention_rows);
    int64_t n = a->s * a->g, span = span_of(a->b * a->k, n, threads);
    int64_t parts = (n + span - 1) / span, count = a->b * a->k * parts;
    HP_TEAM_TASKS(
        threads, count, for (int64_t i = 0; i < count; i++) {
            int64_t head = i / parts, at = (parts - 1 - i % parts) * span;
            rows(a, head / a->k, head % a->k, at, hp_team_min(at + span, n), q, keys, values, o,
                 lse);
        });
}

static size_t round_up(size_t n)
{
    return (n + 63) / 64 * 64;
}

size_t hp_attention_dx_scratch(const hp_attention_shape *a)
{
    size_t rows = (size_t)(a->b * a->s * a->k * a->g);
    return round_up(rows * sizeof(float)) + round_up(rows * (size_t)a->d * sizeof(float));
}

/* Runs one task a (batch, key head, tile of keys or of query rows), or one a head with neither cut. */
static void back(const hp_attention_grads *w, bool cut_keys, bool cut_rows, int threads)
{
    void (*task)(const hp_attention_grads *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) =
        HP_SIMD_PICK(hp_attention_back);
    const hp_attention_shape *a = w->a;
    int64_t n = a->s * a->g, parts = cut_keys ? tiles(a->t) : cut_rows ? tiles(n) : 1;
    int64_t count = a->b * a->k * parts;
    HP_TEAM_TASKS(
        threads, count, for (int64_t i = 0; i < count; i++) {
            int64_t head = i / parts, at = i % parts * TILE;
            int64_t t0 = cut_keys ? at : 0, t1 = cut_keys ? hp_team_min(at + TILE, a->t) : a->t;
            int64_t row0 = cut_rows ? at : 0, row1 = cut_rows ? hp_team_min(at + TILE, n) : n;
            task(w, head / a->k, head % a->k, row0, row1, t0, t1);
        });
}

static void back_all(const hp_attention_grads *w, int threads)
{
    bool keys = w->dk.p || w->dv.p;
    if (keys && w->dq && w->a->b * w->a->k >= ENOUGH_HEADS) {
        back(w, false, false, threads);
        return;
    }
    hp_attention_grads part = *w;
    part.dq = NULL;
    if (keys)
        back(&part, true, false, threads);
    part = *w;
    part.dk.p = part.dv.p = NULL;
    if (w->dq)
        back(&part, false, true, threads);
}

void hp_attention_dx(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                     const float *lse, hp_num dy, hp_num dq, hp_num dk, hp_num dv, void *scratch,
                     int threads)
{
    void (*dots)(int64_t, int64_t, hp_num, hp_num, float *) = HP_SIMD_PICK(hp_attention_delta);
    int64_t rows = a->b * a->s * a->k * a->g, step = hp_team_rows(a->dv);
    float *delta = scratch, *sums = NULL;
    HP_TEAM_FOR(threads, rows * a->dv,
                for (int64_t r = 0; r < rows; r += step)
                    dots(hp_team_min(rows - r, step), a->dv, hp_num_at(o, r * a->dv),
                         hp_num_at(dy, r * a->dv), delta + r));
    if (dq.p) {
        void *own = (char *)scratch + round_up((size_t)rows * sizeof(float));
        sums = dq.t == HP_NUM_F32 ? dq.p : own;
        hp_fill(rows * a->d, 0, hp_num_f32(sums), threads);
    }
    back_all(&(hp_attention_grads){a, q, keys, values, dy, lse, delta, dk, dv, sums}, threads);
    if (dq.p)
        hp_copy(rows * a->d, hp_num_f32(sums), dq, threads);
}

void hp_attention_merge(int64_t rows, int64_t dv, hp_num o1, const float *lse1, hp_num o2,
                        const float *lse2, hp_num o, float *lse, int threads)
{
    void (*blend)(int64_t, float, hp_num, float, hp_num, hp_num) = HP_SIMD_PICK(hp_attention_blend);
    HP_TEAM_FOR(
        threads, rows * dv, for (int64_t r = 0; r < rows; r++) {
            float a = lse1[r], b = lse2[r], max = fmaxf(a, b), wa = 0, wb = 0, total = -INFINITY;
            if (max > -INFINITY) {
                float ea = expf(a - max), eb = expf(b - max);
                total = max + logf(ea + eb);
                wa = ea / (ea + eb);
                wb = eb / (ea + eb);
            }
            blend(dv, wa, hp_num_at(o1, r * dv), wb, hp_num_at(o2, r * dv), hp_num_at(o, r * dv));
            lse[r] = total;
        });
}

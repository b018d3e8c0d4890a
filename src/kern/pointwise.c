#include "kern/pointwise.h"

#include "kern/pointwise_simd.h"
#include "kern/team.h"

void hp_add(int n_in, const hp_num *in, int64_t n, hp_num y, int threads)
{
    void (*block)(int, const hp_num *, int64_t, int64_t, hp_num) = HP_SIMD_PICK(hp_add_block);
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(n_in, in, i, hp_team_min(n - i, HP_TEAM_BLOCK), y));
}

void hp_mul(int64_t n, hp_num a, hp_num b, hp_num y, int threads)
{
    void (*block)(int64_t, hp_num, hp_num, hp_num) = HP_SIMD_PICK(hp_mul_block);
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(hp_team_min(n - i, HP_TEAM_BLOCK), hp_num_at(a, i), hp_num_at(b, i),
                          hp_num_at(y, i)));
}

void hp_scale(int64_t n, float alpha, hp_num x, hp_num y, int threads)
{
    void (*block)(int64_t, float, hp_num, hp_num) = HP_SIMD_PICK(hp_scale_block);
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK) block(
                    hp_team_min(n - i, HP_TEAM_BLOCK), alpha, hp_num_at(x, i), hp_num_at(y, i)));
}

static void copy_same(int64_t n, hp_num x, hp_num y, int threads)
{
    if (x.p == y.p)
        return;
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    memcpy(hp_num_at(y, i).p, hp_num_at(x, i).p,
                           (size_t)(hp_team_min(n - i, HP_TEAM_BLOCK) * hp_num_bytes(x.t))));
}

void hp_copy(int64_t n, hp_num x, hp_num y, int threads)
{
    if (x.t == y.t)
        copy_same(n, x, y, threads);
    else if (x.t == HP_NUM_I32 || y.t == HP_NUM_I32)
        hp_copy_ref(n, x, y);
    else
        hp_add(1, &x, n, y, threads);
}

void hp_fill(int64_t n, float v, hp_num y, int threads)
{
    HP_TEAM_FOR(
        threads, n, for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK) {
            int64_t m = hp_team_min(n - i, HP_TEAM_BLOCK);
            if (v == 0)
                memset(hp_num_at(y, i).p, 0, (size_t)(m * hp_num_bytes(y.t)));
            else
                hp_fill_ref(m, v, hp_num_at(y, i));
        });
}

#include "kern/act.h"

#include "kern/act_simd.h"
#include "kern/team.h"

typedef void one_in(int64_t n, hp_num x, hp_num y);
typedef void two_in(int64_t n, hp_num x, hp_num z, hp_num y);

static void map_one(one_in *block, int64_t n, hp_num x, hp_num y, int threads)
{
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(hp_team_min(n - i, HP_TEAM_BLOCK), hp_num_at(x, i), hp_num_at(y, i)));
}

static void map_two(two_in *block, int64_t n, hp_num x, hp_num z, hp_num y, int threads)
{
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(hp_team_min(n - i, HP_TEAM_BLOCK), hp_num_at(x, i), hp_num_at(z, i),
                          hp_num_at(y, i)));
}

void hp_silu(int64_t n, hp_num x, hp_num y, int threads)
{
    map_one(HP_SIMD_PICK(hp_silu_block), n, x, y, threads);
}

void hp_silu_dx(int64_t n, hp_num x, hp_num dy, hp_num dx, int threads)
{
    map_two(HP_SIMD_PICK(hp_silu_dx_block), n, x, dy, dx, threads);
}

void hp_gelu(int64_t n, hp_num x, hp_num y, int threads)
{
    map_one(HP_SIMD_PICK(hp_gelu_block), n, x, y, threads);
}

void hp_gelu_dx(int64_t n, hp_num x, hp_num dy, hp_num dx, int threads)
{
    map_two(HP_SIMD_PICK(hp_gelu_dx_block), n, x, dy, dx, threads);
}

void hp_swiglu(int64_t n, hp_num gate, hp_num up, hp_num y, int threads)
{
    map_two(HP_SIMD_PICK(hp_swiglu_block), n, gate, up, y, threads);
}

void hp_swiglu_dx(int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate, hp_num dup,
                  int threads)
{
    void (*block)(int64_t, hp_num, hp_num, hp_num, hp_num, hp_num) =
        HP_SIMD_PICK(hp_swiglu_dx_block);
    HP_TEAM_FOR(threads, n,
                for (int64_t i = 0; i < n; i += HP_TEAM_BLOCK)
                    block(hp_team_min(n - i, HP_TEAM_BLOCK), hp_num_at(gate, i), hp_num_at(up, i),
                          hp_num_at(dy, i), hp_num_at(dgate, i), hp_num_at(dup, i)));
}

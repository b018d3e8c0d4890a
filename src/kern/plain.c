#include "kern/gemm.h"
#include "kern/embed.h"
#include "kern/pointwise.h"
#include "kern/act.h"
#include "kern/bias.h"
#include "kern/sumsq.h"
#include "kern/dropout.h"
#include "kern/rmsnorm.h"
#include "kern/layernorm.h"
#include "kern/rope.h"
#include "kern/softmax.h"
#include "kern/attention.h"
#include "kern/xent.h"
#include "kern/router.h"
#include "kern/routed.h"
#include "kern/optim.h"
#include "kern/box.h"

void hp_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, hp_num a, hp_num b, hp_num c,
             bool accumulate, int threads)
{
    (void)threads;
    hp_gemm_ref(ta, tb, m, n, k, a, b, c, accumulate);
}
void hp_gemm_rows(bool tb, int64_t groups, const int64_t *off, int64_t n, int64_t k, hp_num a,
                  hp_num b, hp_num c, bool accumulate, int threads)
{
    (void)threads;
    hp_gemm_rows_ref(tb, groups, off, n, k, a, b, c, accumulate);
}
void hp_gemm_weights(int64_t groups, const int64_t *off, int64_t m, int64_t n, hp_num a, hp_num b,
                     hp_num c, bool accumulate, int threads)
{
    (void)threads;
    hp_gemm_weights_ref(groups, off, m, n, a, b, c, accumulate);
}
void hp_embed(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token, hp_num table,
              hp_num y, int threads)
{
    (void)threads;
    hp_embed_ref(n, width, lo, len, token, table, y);
}
void hp_embed_dw(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token, hp_num dy,
                 hp_num dw, bool accumulate, int threads)
{
    (void)threads;
    hp_embed_dw_ref(n, width, lo, len, token, dy, dw, accumulate);
}
void hp_add(int n_in, const hp_num *in, int64_t n, hp_num y, int threads)
{
    (void)threads;
    hp_add_ref(n_in, in, n, y);
}
void hp_mul(int64_t n, hp_num a, hp_num b, hp_num y, int threads)
{
    (void)threads;
    hp_mul_ref(n, a, b, y);
}
void hp_scale(int64_t n, float alpha, hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_scale_ref(n, alpha, x, y);
}
void hp_copy(int64_t n, hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_copy_ref(n, x, y);
}
void hp_fill(int64_t n, float v, hp_num y, int threads)
{
    (void)threads;
    hp_fill_ref(n, v, y);
}
void hp_silu(int64_t n, hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_silu_ref(n, x, y);
}
void hp_silu_dx(int64_t n, hp_num x, hp_num dy, hp_num dx, int threads)
{
    (void)threads;
    hp_silu_dx_ref(n, x, dy, dx);
}
void hp_gelu(int64_t n, hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_gelu_ref(n, x, y);
}
void hp_gelu_dx(int64_t n, hp_num x, hp_num dy, hp_num dx, int threads)
{
    (void)threads;
    hp_gelu_dx_ref(n, x, dy, dx);
}
void hp_swiglu(int64_t n, hp_num gate, hp_num up, hp_num y, int threads)
{
    (void)threads;
    hp_swiglu_ref(n, gate, up, y);
}
void hp_swiglu_dx(int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate, hp_num dup,
                  int threads)
{
    (void)threads;
    hp_swiglu_dx_ref(n, gate, up, dy, dgate, dup);
}
void hp_bias(int64_t rows, int64_t width, hp_num x, hp_num b, hp_num y, int threads)
{
    (void)threads;
    hp_bias_ref(rows, width, x, b, y);
}
void hp_bias_dw(int64_t rows, int64_t width, hp_num dy, hp_num db, bool accumulate, int threads)
{
    (void)threads;
    hp_bias_dw_ref(rows, width, dy, db, accumulate);
}
double hp_sumsq(int64_t n, hp_num x, int threads)
{
    (void)threads;
    return hp_sumsq_ref(n, x);
}
void hp_dropout(const hp_dropout_at *at, hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_dropout_ref(at, x, y);
}
void hp_rmsnorm(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num y, float *rstd,
                int threads)
{
    (void)threads;
    hp_rmsnorm_ref(rows, width, eps, x, w, y, rstd);
}
void hp_rmsnorm_dx(int64_t rows, int64_t width, hp_num x, hp_num w, const float *rstd, hp_num dy,
                   hp_num dx, int threads)
{
    (void)threads;
    hp_rmsnorm_dx_ref(rows, width, x, w, rstd, dy, dx);
}
void hp_rmsnorm_dw(int64_t rows, int64_t width, hp_num x, const float *rstd, hp_num dy, hp_num dw,
                   bool accumulate, int threads)
{
    (void)threads;
    hp_rmsnorm_dw_ref(rows, width, x, rstd, dy, dw, accumulate);
}
void hp_layernorm(int64_t rows, int64_t width, float eps, hp_num x, hp_num w, hp_num b, hp_num y,
                  float *mean, float *rstd, int threads)
{
    (void)threads;
    hp_layernorm_ref(rows, width, eps, x, w, b, y, mean, rstd);
}
void hp_layernorm_dx(int64_t rows, int64_t width, hp_num x, hp_num w, const float *mean,
                     const float *rstd, hp_num dy, hp_num dx, int threads)
{
    (void)threads;
    hp_layernorm_dx_ref(rows, width, x, w, mean, rstd, dy, dx);
}
void hp_layernorm_dw(int64_t rows, int64_t width, hp_num x, const float *mean, const float *rstd,
                     hp_num dy, hp_num dw, hp_num db, bool accumulate, int threads)
{
    (void)threads;
    hp_layernorm_dw_ref(rows, width, x, mean, rstd, dy, dw, db, accumulate);
}
void hp_rope(int64_t rows, int64_t heads, int64_t d, const int32_t *pos, double theta, bool inverse,
             hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_rope_ref(rows, heads, d, pos, theta, inverse, x, y);
}
void hp_softmax(int64_t rows, int64_t width, hp_num x, hp_num y, int threads)
{
    (void)threads;
    hp_softmax_ref(rows, width, x, y);
}
void hp_softmax_dx(int64_t rows, int64_t width, hp_num y, hp_num dy, hp_num dx, int threads)
{
    (void)threads;
    hp_softmax_dx_ref(rows, width, y, dy, dx);
}
void hp_attention(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                  float *lse, int threads)
{
    (void)threads;
    hp_attention_ref(a, q, keys, values, o, lse);
}
void hp_attention_dx(const hp_attention_shape *a, hp_num q, hp_num keys, hp_num values, hp_num o,
                     const float *lse, hp_num dy, hp_num dq, hp_num dk, hp_num dv, void *scratch,
                     int threads)
{
    (void)scratch;
    (void)threads;
    hp_attention_dx_ref(a, q, keys, values, o, lse, dy, dq, dk, dv);
}
void hp_attention_merge(int64_t rows, int64_t dv, hp_num o1, const float *lse1, hp_num o2,
                        const float *lse2, hp_num o, float *lse, int threads)
{
    (void)threads;
    hp_attention_merge_ref(rows, dv, o1, lse1, o2, lse2, o, lse);
}
void hp_xent_stats(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                   hp_num logits, float *stats, int threads)
{
    (void)threads;
    hp_xent_stats_ref(rows, lo, len, valid, target, logits, stats);
}
void hp_xent_dx(int64_t rows, int64_t lo, int64_t len, int64_t valid, const int32_t *target,
                hp_num logits, const float *stats, float seed, hp_num dlogits, int threads)
{
    (void)threads;
    hp_xent_dx_ref(rows, lo, len, valid, target, logits, stats, seed, dlogits);
}
void hp_router(const hp_router_shape *r, hp_num logits, const float *bias, int32_t *idx, hp_num w,
               float *f, float *p, int threads)
{
    (void)threads;
    hp_router_ref(r, logits, bias, idx, w, f, p);
}
void hp_router_dx(const hp_router_shape *r, hp_num logits, const int32_t *idx, hp_num dw,
                  const float *dp, hp_num dlogits, int threads)
{
    (void)threads;
    hp_router_dx_ref(r, logits, idx, dw, dp, dlogits);
}
void hp_dispatch(const hp_route *r, int64_t width, hp_num x, hp_num xe, int threads)
{
    (void)threads;
    hp_dispatch_ref(r, width, x, xe);
}
void hp_dispatch_dx(const hp_route *r, int64_t width, hp_num dxe, hp_num dx, int threads)
{
    (void)threads;
    hp_dispatch_dx_ref(r, width, dxe, dx);
}
void hp_combine(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num y, int threads)
{
    (void)threads;
    hp_combine_ref(r, width, ye, w, y);
}
void hp_combine_dx(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num dy, hp_num dye,
                   hp_num dw, int threads)
{
    (void)threads;
    hp_combine_dx_ref(r, width, ye, w, dy, dye, dw);
}
void hp_adamw(int64_t n, const hp_optim *o, float *p, hp_num g, float *m, float *v, uint16_t *p16,
              int threads)
{
    (void)threads;
    hp_adamw_ref(n, o, p, g, m, v, p16);
}
void hp_sgd(int64_t n, const hp_optim *o, float *p, hp_num g, uint16_t *p16, int threads)
{
    (void)threads;
    hp_sgd_ref(n, o, p, g, p16);
}
void hp_reduce_flat(hp_rop op, int n_in, const hp_num *in, int64_t n, hp_num y, int threads)
{
    (void)threads;
    hp_reduce_flat_ref(op, n_in, in, n, y);
}
size_t hp_attention_dx_scratch(const hp_attention_shape *a)
{
    (void)a;
    return 0;
}

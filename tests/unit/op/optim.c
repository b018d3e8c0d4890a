/* The optimizer's operations against their formulas in double, with both sets of kernels. */
#include "kern/num.h"
#include "op/op.h"

#include "tap.h"

enum { N = 7 };

static hp_operand flat(void *data, hp_dtype t, int64_t n)
{
    return (hp_operand){.data = data, .dtype = t, .nd = 1, .len = {n}, .full = {n}};
}

static hp_operand scalar(float *x)
{
    return (hp_operand){.data = x};
}

static void run(const char *op, hp_call *c)
{
    hp_errmsg e;
    hp_op_work w = {0};
    c->threads = 2;
    hp_op_find(op)->work(c, &w);
    if (hp_op_find(op)->run(c, &e))
        bail("%s", e.text);
}

static void check_adamw(hp_kernels kernels)
{
    float p[N], m[N], v[N], g[N], scale = 0.5f;
    uint16_t copy[N];
    double worst = 0, worst_copy = 0;
    for (int i = 0; i < N; i++) {
        p[i] = 0.3f * (float)i - 1;
        m[i] = 0.01f * (float)i;
        v[i] = 0.02f * (float)i;
        g[i] = 0.1f * (float)(i * i % 5) - 0.2f;
    }
    double wp[N], lr = 0.1 * 3 / 4;
    for (int i = 0; i < N; i++) {
        double gi = (double)g[i] * 0.5, mi = 0.8 * (double)m[i] + 0.2 * gi,
               vi = 0.9 * (double)v[i] + 0.1 * gi * gi;
        wp[i] =
            (double)p[i] - lr * (mi / (1 - pow(0.8, 3)) / (sqrt(vi / (1 - pow(0.9, 3))) + 1e-6) +
                                 0.01 * (double)p[i]);
    }
    hp_attr attr[] = {{"lr", 0.1},   {"beta1", 0.8},  {"beta2", 0.9},
                      {"eps", 1e-6}, {"decay", 0.01}, {"warmup", 4}};
    hp_operand op = flat(p, HP_F32, N), om = flat(m, HP_F32, N), ov = flat(v, HP_F32, N);
    hp_call c = {.n_in = 5,
                 .n_out = 4,
                 .attr = attr,
                 .n_attrs = 6,
                 .step = 2,
                 .kernels = kernels,
                 .arg = {op, om, ov, flat(g, HP_F32, N), scalar(&scale), op, om, ov,
                         flat(copy, HP_BF16, N)}};
    run("adamw", &c);
    for (int i = 0; i < N; i++) {
        worst = fmax(worst, fabs((double)p[i] - wp[i]));
        worst_copy = fmax(worst_copy, fabs((double)hp_bf16_f32(copy[i]) - (double)p[i]));
    }
    near(worst, 0, 1e-6, "AdamW's step with clipping, decay and warmup in step 2 of 4");
    near(worst_copy, 0, 4e-3, "and its bf16 copy");
    c.arg[4].nd = c.arg[8].nd = -1;
    float before = p[1];
    run("adamw", &c);
    ok(p[1] != before, "it runs without a clip factor and a copy");
}

static void check_sgd(hp_kernels kernels)
{
    float p[2] = {1, 2}, g[2] = {4, -8}, scale = 0.25f;
    hp_attr attr[] = {{"lr", 0.1}, {"decay", 0.5}};
    hp_call c = {
        .n_in = 3,
        .n_out = 1,
        .attr = attr,
        .n_attrs = 2,
        .kernels = kernels,
        .arg = {flat(p, HP_F32, 2), flat(g, HP_F32, 2), scalar(&scale), flat(p, HP_F32, 2)}};
    run("sgd", &c);
    near(p[0], 1 - 0.1 * (1 + 0.5), 1e-6, "SGD's step with clipping and decay");
    near(p[1], 2 - 0.1 * (-2 + 1), 1e-6, "of both elements");
}

static void check_moves(hp_kernels kernels)
{
    float x[3] = {1, 2, 3}, y[3] = {7, 7, 7};
    uint16_t h[3];
    hp_call cast = {.n_in = 1,
                    .n_out = 1,
                    .kernels = kernels,
                    .arg = {flat(x, HP_F32, 3), flat(h, HP_BF16, 3)}};
    run("cast", &cast);
    near(hp_bf16_f32(h[2]), 3, 0, "cast writes bf16");
    hp_call acc = {.n_in = 1,
                   .n_out = 1,
                   .kernels = kernels,
                   .arg = {flat(h, HP_BF16, 3), flat(y, HP_F32, 3)}};
    run("accum", &acc);
    near(y[1], 2, 0, "accum stores where it is told nothing");
    acc.accumulate = true;
    run("accum", &acc);
    near(y[1], 4, 0, "and adds where it is told to");
    hp_call zero = {.n_out = 1, .kernels = kernels, .arg = {flat(y, HP_F32, 3)}};
    run("zero", &zero);
    near(y[0] + y[1] + y[2], 0, 0, "zero writes zeros");
    hp_call empty = {.n_in = 1,
                     .n_out = 1,
                     .kernels = kernels,
                     .arg = {flat(NULL, HP_F32, 0), flat(NULL, HP_F32, 0)}};
    run("accum", &empty), run("cast", &empty);
    ok(true, "empty boxes are nothing");
}

static void check_norm(hp_kernels kernels)
{
    float x[3] = {1, 2, 2}, sum = 0, scale = 0, norm = 0, total = 0;
    hp_call sq = {
        .n_in = 1, .n_out = 1, .kernels = kernels, .arg = {flat(x, HP_F32, 3), scalar(&sum)}};
    run("sqnorm", &sq);
    sq.accumulate = true;
    run("sqnorm", &sq);
    near(sum, 18, 1e-6, "sqnorm adds to the sum of squares");
    hp_call add = {.n_in = 2,
                   .n_out = 1,
                   .kernels = kernels,
                   .arg = {scalar(&sum), scalar(&sum), scalar(&total)}};
    run("sum_scalars", &add);
    near(total, 36, 1e-6, "sum_scalars adds");
    hp_attr clip = {"clip", 1.5};
    hp_call c = {.n_in = 1,
                 .n_out = 2,
                 .attr = &clip,
                 .n_attrs = 1,
                 .kernels = kernels,
                 .arg = {scalar(&total), scalar(&scale), scalar(&norm)}};
    run("clip_scale", &c);
    near(scale, 0.25, 1e-6, "a norm of 6 is clipped to 1.5 by a quarter");
    near(norm, 6, 1e-6, "and the norm is given");
    clip.value = 10;
    run("clip_scale", &c);
    near(scale, 1, 0, "a smaller norm is left alone");
    clip.value = 0;
    run("clip_scale", &c);
    near(scale, 1, 0, "0 clips nothing");
}

int main(void)
{
    for (hp_kernels k = HP_KERN_REFERENCE; k <= HP_KERN_BEST; k++) {
        check_adamw(k);
        check_sgd(k);
        check_moves(k);
        check_norm(k);
    }
    return done_testing();
}

/* A router's capacity and replay on choices that can be told by hand. */
#include "op/op.h"

#include "tap.h"

enum { S = 4, E = 3, K = 2 };

static float weights[S * K], f[E], p[E], dx[S * E];
static int32_t idx[S * K];

/* Every token prefers expert 0, then 1 (tokens 0 to 2) or 2 (token 3). */
static float logits[S * E] = {3, 2, 1, 3, 2, 1, 3, 2, 1, 3, 1, 2};

static hp_operand box(void *data, hp_dtype t, int nd, int64_t a, int64_t b, int64_t c)
{
    return (hp_operand){.data = data, .dtype = t, .nd = nd, .len = {a, b, c}, .full = {a, b, c}};
}

static void call(const char *op, hp_call *c)
{
    _Alignas(64) char scratch[1024];
    hp_errmsg e;
    hp_op_work w = {0};
    hp_op_find(op)->work(c, &w);
    if (w.scratch_bytes > (int64_t)sizeof scratch)
        bail("scratch");
    c->scratch = scratch;
    if (hp_op_find(op)->run(c, &e))
        bail("%s", e.text);
}

static void route(double capacity, const int32_t *given)
{
    hp_attr attr[] = {{"normalise", 1}, {"scale", 2}, {"capacity", capacity}};
    hp_operand no = {.nd = -1}, all = box((void *)(uintptr_t)given, HP_I32, 3, 1, S, K);
    hp_call c = {.name = "router",
                 .n_in = 3,
                 .n_out = 4,
                 .attr = attr,
                 .n_attrs = 3,
                 .threads = 1,
                 .arg = {box(logits, HP_F32, 3, 1, S, E), no, given ? all : no,
                         box(idx, HP_I32, 3, 1, S, K), box(weights, HP_F32, 3, 1, S, K),
                         box(f, HP_F32, 2, 1, E, 0), box(p, HP_F32, 2, 1, E, 0)}};
    call("router", &c);
}

static void check_dropless(void)
{
    route(0, NULL);
    ok(idx[0] == 0 && idx[1] == 1 && idx[6] == 0 && idx[7] == 2, "the best experts are chosen");
    near(weights[0], 2 / (1 + exp(-1)), 1e-6,
         "weights are normalised over the choices, times the scale");
    near(f[0], (double)E / (K * S) * 4, 1e-6, "f counts choices");
    near(p[0] + p[1] + p[2], 1, 1e-6, "p sums to one");
}

static void check_capacity(void)
{
    route(0.75, NULL); /* ceil(0.75 * 2 * 4 / 3) = 2 choices an expert */
    int kept[E] = {0}, dropped[E] = {0};
    for (int i = 0; i < S * K; i++)
        (idx[i] < 0 ? dropped : kept)[idx[i] < 0 ? -1 - idx[i] : idx[i]]++;
    ok(kept[0] == 2 && kept[1] == 2 && kept[2] == 1, "an expert takes its capacity");
    ok(dropped[0] == 2 && dropped[1] == 1 && dropped[2] == 0, "and what is dropped says by whom");
    ok(idx[0] == 0 && idx[2] == 0 && idx[4] == -1 && idx[5] == -2, "in order of position");
    near(weights[4] + weights[5], 0, 0, "a dropped choice weighs nothing");
    near(weights[7], 2 / (1 + exp(1)), 1e-6, "the other keeps its share of both");
    near(f[0], (double)E / (K * S) * 4, 1e-6, "f counts dropped choices too");
}

static void check_replay(void)
{
    int32_t given[S * K];
    float before[S * K], f_before[E];
    route(0.75, NULL);
    memcpy(given, idx, sizeof idx), memcpy(before, weights, sizeof weights),
        memcpy(f_before, f, sizeof f);
    route(0.75, given);
    double apart = 0;
    for (int i = 0; i < S * K; i++)
        apart = fmax(apart, fabs((double)weights[i] - (double)before[i]));
    near(apart, 0, 1e-6, "choices replayed have the same weights");
    ok(memcmp(given, idx, sizeof idx) == 0 && fabsf(f[0] - f_before[0]) < 1e-6f,
       "and are the choices");
    given[1] = 2;
    route(0.75, given);
    near(weights[0], 2 / (1 + exp(-2)), 1e-6, "other choices have their own");
}

/* Only kept choices get a gradient from weights, but a dropped one is part of the sum that they are divided by. */
static void check_gradient(void)
{
    float dw[S * K] = {0};
    route(0.75, NULL);
    dw[7] = 1; /* token 3 keeps expert 2; its choice of expert 0 is dropped */
    hp_attr attr[] = {{"normalise", 1}, {"scale", 2}};
    hp_call c = {.name = "router/dx",
                 .n_in = 4,
                 .n_out = 1,
                 .attr = attr,
                 .n_attrs = 2,
                 .threads = 1,
                 .arg = {box(logits, HP_F32, 3, 1, S, E),
                         box(idx, HP_I32, 3, 1, S, K),
                         box(dw, HP_F32, 3, 1, S, K),
                         {.nd = -1},
                         box(dx, HP_F32, 3, 1, S, E)}};
    call("router_dx", &c);
    double w = 1 / (1 + exp(1));
    near(dx[9], -2 * w * (1 - w), 1e-5, "the dropped expert's logit pushes back");
    near(dx[11], 2 * w * (1 - w), 1e-5, "the kept one's gains");
    near(dx[0], 0, 1e-6, "other tokens have no gradient");
}

int main(void)
{
    check_dropless();
    check_capacity();
    check_replay();
    check_gradient();
    return done_testing();
}

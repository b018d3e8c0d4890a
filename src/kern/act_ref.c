#include "kern/act.h"

#include <math.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu_slope(double x)
{
    double s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

static double gelu_tanh(double x)
{
    return tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
}

static double gelu_slope(double x)
{
    double t = gelu_tanh(x), du = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

void hp_silu_ref(int64_t n, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i++) {
        double v = (double)hp_num_get(x, i);
        hp_num_put(y, i, (float)(v * sigmoid(v)));
    }
}

void hp_silu_dx_ref(int64_t n, hp_num x, hp_num dy, hp_num dx)
{
    for (int64_t i = 0; i < n; i++)
        hp_num_put(dx, i,
                   (float)((double)hp_num_get(dy, i) * silu_slope((double)hp_num_get(x, i))));
}

void hp_gelu_ref(int64_t n, hp_num x, hp_num y)
{
    for (int64_t i = 0; i < n; i++) {
        double v = (double)hp_num_get(x, i);
        hp_num_put(y, i, (float)(0.5 * v * (1 + gelu_tanh(v))));
    }
}

void hp_gelu_dx_ref(int64_t n, hp_num x, hp_num dy, hp_num dx)
{
    for (int64_t i = 0; i < n; i++)
        hp_num_put(dx, i,
                   (float)((double)hp_num_get(dy, i) * gelu_slope((double)hp_num_get(x, i))));
}

void hp_swiglu_ref(int64_t n, hp_num gate, hp_num up, hp_num y)
{
    for (int64_t i = 0; i < n; i++) {
        double g = (double)hp_num_get(gate, i);
        hp_num_put(y, i, (float)(g * sigmoid(g) * (double)hp_num_get(up, i)));
    }
}

void hp_swiglu_dx_ref(int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate, hp_num dup)
{
    for (int64_t i = 0; i < n; i++) {
        double g = (double)hp_num_get(gate, i), u = (double)hp_num_get(up, i);
        double d = (double)hp_num_get(dy, i);
        if (dgate.p)
            hp_num_put(dgate, i, (float)(d * u * silu_slope(g)));
        if (dup.p)
            hp_num_put(dup, i, (float)(d * g * sigmoid(g)));
    }
}

/* cost.c -- operations and copies: a roofline with measured efficiencies. */
#include "cost/cost.h"

#include <math.h>

double hp_cost_gemm_efficiency(const hp_cluster *c, hp_rate rate, int64_t m, int64_t n, int64_t k)
{
    hp_rate used;
    hp_cluster_peak(c, rate, &used);
    if (m <= 0 || n <= 0 || k <= 0)
        return c->device.gemm_efficiency;
    double side = cbrt((double)m * (double)n * (double)k);
    return hp_curve_at(&c->device.gemm_curve[used], side, c->device.gemm_efficiency);
}

double hp_cost_pass(const hp_cluster *c, double bytes)
{
    if (!(bytes > 0))
        return 0;
    double eff = hp_curve_at(&c->device.hbm_curve, bytes, c->device.hbm_efficiency);
    return bytes / (c->device.hbm_bandwidth * eff);
}

/* Matrix work at the matrix unit's rate, the rest at the vector unit's. */
static double flops_time(const hp_cluster *c, const hp_work *w, hp_rate rate)
{
    double eff = hp_cost_gemm_efficiency(c, rate, w->m, w->n, w->k);
    double matrix = w->matmul_flops > 0 ? w->matmul_flops / (hp_cluster_peak(c, rate, 0) * eff) : 0;
    double vector = w->other_flops > 0 ? w->other_flops / hp_cluster_peak(c, HP_RATE_F32, 0) : 0;
    return matrix + vector;
}

double hp_cost_op(const hp_cluster *c, const hp_work *w, hp_rate rate, hp_bound *why)
{
    double flops = flops_time(c, w, rate), bytes = hp_cost_pass(c, w->bytes);
    double work = fmax(flops, bytes), launch = c->device.launch;
    if (why)
        *why = launch > work ? HP_BOUND_LAUNCH : flops >= bytes ? HP_BOUND_FLOPS : HP_BOUND_BYTES;
    return launch + work;
}

double hp_cost_copy(const hp_cluster *c, bool pool, double bytes)
{
    const hp_device *d = &c->device;
    double bandwidth = pool && d->pool_bandwidth > 0 ? d->pool_bandwidth : d->host_bandwidth;
    if (!(bytes > 0) || !(bandwidth > 0))
        return 0;
    return d->host_latency + bytes / (bandwidth * d->host_efficiency);
}

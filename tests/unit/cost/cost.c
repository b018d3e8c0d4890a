/* cost.c -- rooflines and collectives against closed forms. */
#include "cost/cost.h"

#include "tap.h"

static hp_cluster *parse(const char *spec, int n, const hp_override *over)
{
    hp_cluster *c = NULL;
    hp_errmsg e = {0};
    if (hp_cluster_parse(spec, n, over, NULL, NULL, &c, &e))
        bail("%s: %s", spec, e.text);
    return c;
}

static hp_cluster *made(const char *const f[][2], int n, const char *count)
{
    hp_cluster *c = hp_cluster_new("made");
    hp_errmsg e = {0};
    for (int i = 0; i < n; i++)
        if (hp_cluster_set(c, f[i][0], f[i][1], "test", false, &e))
            bail("%s", e.text);
    if (hp_cluster_finish(c, count, &e))
        bail("%s", e.text);
    return c;
}

static double coll(const hp_cluster *c, hp_xfer kind, int first, int stride, int n, double bytes)
{
    hp_group g = hp_cluster_group_strided(c, first, stride, n);
    return hp_cost_collective(c, kind, &g, bytes).seconds;
}

static const char *algorithm(const hp_cluster *c, hp_xfer kind, int first, int stride, int n,
                             double bytes)
{
    hp_group g = hp_cluster_group_strided(c, first, stride, n);
    return hp_cost_collective(c, kind, &g, bytes).algorithm;
}

static void test_op(void)
{
    hp_cluster *c = parse("ideal:8", 0, NULL);
    hp_bound why;
    hp_work w = {.matmul_flops = 2e12, .bytes = 1e6, .m = 1000, .n = 1000, .k = 1000000};
    near(hp_cost_op(c, &w, HP_RATE_BF16, &why), 2e-3, 1e-15, "2 TFLOP take 2 ms on ideal");
    is_int(why, HP_BOUND_FLOPS, "... bound by flops");
    w = (hp_work){.other_flops = 1e6, .bytes = 1e9};
    near(hp_cost_op(c, &w, HP_RATE_F32, &why), 1e-3, 1e-15, "1 GB takes 1 ms on ideal");
    is_int(why, HP_BOUND_BYTES, "... bound by bytes");
    w = (hp_work){0};
    near(hp_cost_op(c, &w, HP_RATE_F32, NULL), 0, 0, "nothing takes no time on ideal");
    hp_cluster_free(c);
    static const char *const f[][2] = {
        {"peak.f32", "19.5T"},      {"peak.bf16", "312T"},
        {"hbm.bytes", "80GB"},      {"hbm.bandwidth", "2TB/s"},
        {"hbm.efficiency", "0.8"},  {"launch", "5us"},
        {"gemm.efficiency", "0.8"}, {"gemm.curve.bf16", "1024:119.4T 4096:228T"},
        {"level.node.size", "all"}, {"level.node.bandwidth", "300GB/s"}};
    c = made(f, 10, "8");
    w = (hp_work){.matmul_flops = 2.0 * 4096 * 4096 * 4096, .m = 4096, .n = 4096, .k = 4096};
    near(hp_cost_op(c, &w, HP_RATE_BF16, NULL), 5e-6 + w.matmul_flops / 228e12, 1e-12,
         "a measured shape takes its measured time");
    near(hp_cost_op(c, &w, HP_RATE_F32, NULL), 5e-6 + w.matmul_flops / (19.5e12 * 0.8), 1e-12,
         "without a curve the figure counts");
    w = (hp_work){.bytes = 16};
    hp_cost_op(c, &w, HP_RATE_BF16, &why);
    is_int(why, HP_BOUND_LAUNCH, "a tiny operation is bound by its launch");
    hp_cluster_free(c);
}

static void test_ideal_collectives(void)
{
    hp_cluster *c = parse("ideal:64", 0, NULL);
    for (int n = 2; n <= 64; n *= 2) {
        double whole = 1e9, part = whole * (n - 1) / n;
        near(coll(c, HP_X_ALL_REDUCE, 0, 1, n, 2 * part), 2 * part / 100e9, 1e-15,
             "all-reduce of %d is 2(n-1)/n S/bw", n);
        near(coll(c, HP_X_ALL_GATHER, 0, 1, n, part), part / 100e9, 1e-15,
             "all-gather of %d is (n-1)/n S/bw", n);
        near(coll(c, HP_X_REDUCE_SCATTER, 0, 64 / n, n, part), part / 100e9, 1e-15,
             "reduce-scatter of %d, strided, too", n);
        near(coll(c, HP_X_ALL_TO_ALL, 0, 1, n, part), part / 100e9, 1e-15,
             "all-to-all of %d is (n-1)/n L/bw", n);
    }
    near(coll(c, HP_X_ALL_REDUCE, 3, 1, 1, 1e9), 0, 0, "one device has nobody to talk to");
    near(hp_cost_send(c, 3, 60, 1e9).seconds, 1e-2, 1e-15, "a message of 1 GB takes 10 ms");
    near(hp_cost_send(c, 60, 60, 1e9).seconds, 0, 0, "a message to oneself takes none");
    hp_cluster_free(c);
}

static const char *const nodes[][2] = {{"peak.bf16", "989T"},
                                       {"hbm.bytes", "80GB"},
                                       {"hbm.bandwidth", "3TB/s"},
                                       {"level.node.size", "8"},
                                       {"level.node.bandwidth", "450GB/s"},
                                       {"level.node.latency", "2us"},
                                       {"level.fabric.size", "all"},
                                       {"level.fabric.bandwidth", "50GB/s"},
                                       {"level.fabric.latency", "10us"}};
enum { N_NODES = sizeof nodes / sizeof nodes[0] };

static void test_levels(void)
{
    hp_cluster *c = made(nodes, N_NODES, "64");
    double part = 8e9 * 7 / 8;
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 8, part), part / 450e9 + 7 * 2e-6, 1e-9,
         "inside a node the node's links count");
    near(coll(c, HP_X_ALL_GATHER, 0, 8, 8, part), part / 50e9 + 7 * 10e-6, 1e-9,
         "one a node: the fabric's");
    part = 8e9 * 63 / 64;
    near(coll(c, HP_X_ALL_REDUCE, 0, 1, 64, 2 * part), 2 * part / 400e9, 3e-3,
         "eight a node have eight network cards");
    double t1 = coll(c, HP_X_ALL_REDUCE, 0, 8, 8, 2 * 8e9 * 7 / 8);
    double t2 = coll(c, HP_X_ALL_REDUCE, 0, 4, 16, 2 * 8e9 * 15 / 16);
    ok(t2 < 0.6 * t1, "P08: with two cards a node an all-reduce takes about half");
    is_str(algorithm(c, HP_X_ALL_REDUCE, 0, 1, 64, 1e4), "tree", "small all-reduces go by tree");
    is_str(algorithm(c, HP_X_ALL_REDUCE, 0, 8, 8, 1e10), "ring", "large ones by ring");
    double a2a = 1e9 * 63 / 64;
    near(coll(c, HP_X_ALL_TO_ALL, 0, 1, 64, a2a), 1e9 * 56 / 64 / 50e9 + 10e-6, 1e-9,
         "all-to-all waits for the part that leaves the node");
    hp_group g = hp_cluster_group_strided(c, 0, 8, 8);
    is_int(hp_cost_collective(c, HP_X_ALL_GATHER, &g, 1e9).level, 1,
           "the level that bounds it is named");
    hp_cluster_free(c);
}

static void test_in_switch(void)
{
    hp_cluster *c = hp_cluster_new("nvls");
    hp_errmsg e = {0};
    for (int i = 0; i < N_NODES; i++)
        hp_cluster_set(c, nodes[i][0], nodes[i][1], "test", false, &e);
    hp_cluster_set(c, "level.node.efficiency", "0.82", "test", false, &e);
    hp_cluster_set(c, "level.node.reduce_gain", "1.3", "test", false, &e);
    hp_cluster_set(c, "level.node.busbw", "1MiB:43.7GB/s 1GiB:466GB/s", "test", false, &e);
    hp_cluster_finish(c, "8", &e);
    double whole = 1073741824.0, sent = 2 * whole * 7 / 8;
    near(coll(c, HP_X_ALL_REDUCE, 0, 1, 8, sent), sent / 466e9, 1e-12,
         "a measured all-reduce takes its measured time");
    is_str(algorithm(c, HP_X_ALL_REDUCE, 0, 1, 8, sent), "in-switch", "... in the switch");
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 8, sent / 2), sent / 2 / (0.82 * 450e9), 1e-12,
         "what the switch can't reduce keeps the ring's rate");
    hp_cluster_free(c);
}

static const char *const tpu[][2] = {
    {"peak.bf16", "459T"},           {"hbm.bytes", "95GB"},
    {"hbm.bandwidth", "2765GB/s"},   {"level.node.size", "4"},
    {"level.node.topology", "part"}, {"level.pod.size", "8960"},
    {"level.pod.topology", "torus"}, {"level.pod.bandwidth", "540GB/s"},
    {"level.pod.wrap", "all 4"}};

static void test_torus(void)
{
    hp_cluster *c = made(tpu, 9, "8x8x8");
    double part = 1e9 * 7 / 8;
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 8, part), part / 180e9, 1e-12,
         "one closed axis of three: both of its links");
    part = 1e9 * 63 / 64;
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 64, part), part / 360e9, 1e-12, "two axes: four links");
    part = 1e9 * 511 / 512;
    near(coll(c, HP_X_ALL_REDUCE, 0, 1, 512, 2 * part), 2 * part / 540e9, 1e-12,
         "all axes: all six links");
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 4, 0.75e9), 0.75e9 / 90e9, 1e-12,
         "half an axis is a line: one link");
    is_str(algorithm(c, HP_X_ALL_GATHER, 0, 1, 8, part), "torus", "the algorithm is the torus'");
    near(coll(c, HP_X_ALL_TO_ALL, 0, 1, 8, 1e9 * 7 / 8), 1e9 * 2 / 180e9, 1e-12,
         "all-to-all on a closed axis: a quarter of it for each byte");
    hp_cluster_free(c);
}

static void test_mesh(void)
{
    static const char *const f[][2] = {
        {"peak.bf16", "354T"},           {"hbm.bytes", "61GB"},
        {"hbm.bandwidth", "1600GB/s"},   {"level.node.size", "8"},
        {"level.node.topology", "mesh"}, {"level.node.bandwidth", "196GB/s"}};
    hp_cluster *c = made(f, 6, "8");
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 8, 7e8), 7e8 / 196e9, 1e-12,
         "all of a full mesh drive all links");
    near(coll(c, HP_X_ALL_GATHER, 0, 1, 2, 5e8), 5e8 / 28e9, 1e-12,
         "two of a full mesh have one link");
    near(hp_cost_send(c, 0, 5, 28e9).seconds, 1, 1e-12, "a message has one link");
    hp_cluster_free(c);
}

static void test_monotone(void)
{
    hp_cluster *c = made(nodes, N_NODES, "64");
    bool rises = true;
    for (int kind = 0; kind < HP_X_KINDS; kind++)
        for (double b = 1; b < 1e11; b *= 3)
            rises = rises &&
                    coll(c, (hp_xfer)kind, 0, 2, 32, 3 * b) >= coll(c, (hp_xfer)kind, 0, 2, 32, b);
    ok(rises, "more bytes never take less time");
    hp_cluster_free(c);
}

int main(void)
{
    test_op();
    test_ideal_collectives();
    test_levels();
    test_in_switch();
    test_torus();
    test_mesh();
    test_monotone();
    return done_testing();
}

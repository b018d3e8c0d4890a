/* profiles.c -- every file in share/hardware is a whole cluster whose figures have sources. */
#include "cluster/cluster.h"
#include "cost/cost.h"
#include "script/cluster.h"
#include "script/source.h"

#include "tap.h"

static hp_cluster *load(const char *spec)
{
    hp_cluster *c = NULL;
    hp_errmsg e = {0};
    if (hp_script_cluster(spec, 0, NULL, &c, &e))
        bail("%s: %s", spec, e.text);
    return c;
}

static void check_profile(const char *name)
{
    char spec[64];
    snprintf(spec, sizeof spec, "%s:64", name);
    hp_cluster *c = NULL;
    hp_errmsg e = {0};
    if (!ok(hp_script_cluster(spec, 0, NULL, &c, &e) == HP_OK, "%s loads", spec)) {
        diag("%s", e.text);
        return;
    }
    is_int(c->n_devices, 64 * c->dies, "... with its devices");
    bool sourced = true, marked = true;
    for (int i = 0; i < c->n_notes; i++) {
        const char *s = c->note[i].source;
        sourced = sourced && s && strlen(s) > 8;
        bool unsure = strstr(s, "from memory") || strstr(s, "assumed");
        marked = marked && (!unsure || c->note[i].unverified);
    }
    ok(sourced, "... each figure of %s has a source", name);
    ok(marked, "... and what nobody verified is marked");
    ok(c->device.gemm_efficiency > 0.3 && c->device.gemm_efficiency <= 1,
       "... efficiencies are fractions");
    hp_group g = hp_cluster_group_strided(c, 0, 1, 8);
    double t = hp_cost_collective(c, HP_X_ALL_REDUCE, &g, 2 * 1e9 * 7 / 8).seconds;
    ok(t > 1e9 / 1e12 && t < 1e9 / 2e9, "... 1 GB is all-reduced over 8 in %.3g s", t);
    hp_cluster_free(c);
}

static void test_all(void)
{
    char **name;
    int n;
    hp_errmsg e;
    if (hp_script_list("share/hardware", &name, &n, &e))
        bail("%s", e.text);
    ok(n >= 25, "there are %d profiles", n);
    for (int i = 0; i < n; i++)
        check_profile(name[i]);
    hp_script_list_free(name, n);
}

/* 384 packages and 768 dies are one machine. */
static void test_supernode(void)
{
    hp_cluster *npu = load("910c-npu:384"), *die = load("Ascend910C-die:768");
    is_int(npu->n_devices, 768, "910c-npu:384 has 768 devices");
    is_int(npu->n_devices, die->n_devices, "... as 910c-die:768");
    hp_work w = {.matmul_flops = 1e12, .bytes = 1e9, .m = 4096, .n = 4096, .k = 4096};
    near(hp_cost_op(npu, &w, HP_RATE_BF16, NULL), hp_cost_op(die, &w, HP_RATE_BF16, NULL), 0,
         "... computes alike");
    hp_group a = hp_cluster_group_strided(npu, 0, 3, 200),
             b = hp_cluster_group_strided(die, 0, 3, 200);
    near(hp_cost_collective(npu, HP_X_ALL_TO_ALL, &a, 1e8).seconds,
         hp_cost_collective(die, HP_X_ALL_TO_ALL, &b, 1e8).seconds, 0,
         "... and communicates alike");
    hp_cluster_free(npu);
    hp_cluster_free(die);
}

/* The published all-reduce of 8 A100 comes out as it was measured. */
static void test_measured(void)
{
    hp_cluster *c = load("a100-sxm-80g:16");
    hp_group g = hp_cluster_group_strided(c, 0, 1, 8);
    double bytes = 16777216;
    near(hp_cost_collective(c, HP_X_ALL_REDUCE, &g, 2 * bytes * 7 / 8).seconds,
         2 * bytes * 7 / 8 / 109.22e9, 1e-9, "16 MiB over 8 A100 at 109.22 GB/s of bus bandwidth");
    hp_cluster_free(c);
    c = load("tpu-v5p:8x8x8");
    const hp_level *pod = hp_cluster_level(c, "pod");
    ok(c->n_devices == 512 && pod->wrap[0] && pod->wrap[1] && pod->wrap[2],
       "tpu-v5p:8x8x8 is a closed torus of 512 chips");
    is_int(hp_cluster_level(c, "node")->size, 4, "... with four chips a host");
    hp_cluster_free(c);
}

int main(void)
{
    test_all();
    test_supernode();
    test_measured();
    return done_testing();
}

/* cluster.c -- clusters from text: counts, overrides, levels, torus rules, what is refused. */
#include "cluster/cluster.h"
#include "cluster/host.h"

#include "tap.h"

static hp_cluster *parse(const char *spec, int n, const hp_override *over)
{
    hp_cluster *c = NULL;
    hp_errmsg e = {0};
    if (hp_cluster_parse(spec, n, over, NULL, NULL, &c, &e))
        bail("%s: %s", spec, e.text);
    return c;
}

static void test_ideal(void)
{
    hp_cluster *c = parse("ideal:8", 0, NULL);
    is_int(c->n_devices, 8, "ideal:8 has 8 devices");
    near(hp_cluster_peak(c, HP_RATE_BF16, NULL), 1e15, 0, "ideal computes 1 PFLOP/s");
    near(c->device.hbm_bandwidth, 1e12, 0, "ideal reads 1 TB/s");
    near(c->level[c->n_levels - 1].bandwidth, 100e9, 0, "ideal links carry 100 GB/s");
    near(c->budget_bytes, 80 * 1073741824.0, 0, "ideal has 80 GiB");
    is_int(hp_cluster_level(c, "node")->size, 8, "a node of ideal holds 8 devices");
    ok(!c->is_host && !c->paced, "ideal is neither the host nor paced");
    hp_cluster_free(c);
    c = parse("ideal:3", 0, NULL);
    is_int(hp_cluster_level(c, "node")->size, 3, "a node of three devices holds three");
    is_int(hp_cluster_level(c, "node")->full_size, 8, "... of the eight it could");
    hp_cluster_free(c);
}

static void test_host(void)
{
    hp_host h;
    hp_host_read(&h);
    ok(h.memory_bytes > (1 << 28) && h.available_bytes <= h.memory_bytes,
       "memory is what the kernel says");
    ok(h.n_cores >= 1 && h.n_threads >= h.n_cores, "there are cores");
    hp_cluster *c = parse("host:4", 0, NULL);
    ok(c->is_host, "host:4 is this machine");
    near(c->budget_bytes, 0.8 * (double)h.memory_bytes / 4, 1e6,
         "a virtual device has 0.8 of the memory over 4");
    is_int(hp_cluster_level(c, "node")->size, 4, "the host is one node");
    hp_cluster_free(c);
    hp_override slow[] = {{"link.bandwidth", "1GB/s"}, {"hbm_bytes", "64MiB"}};
    c = parse("HOST:2", 2, slow);
    ok(c->paced, "a link bandwidth paces the links");
    near(hp_cluster_level(c, "node")->bandwidth, 1e9, 0,
         "the paced bandwidth is the one asked for");
    near(c->budget_bytes, 64 * 1048576.0, 0, "the budget is the one asked for");
    bool noted = false;
    for (int i = 0; i < c->n_notes; i++)
        noted = noted || strcmp(c->note[i].name, "link.bandwidth") == 0;
    ok(noted, "an override stands in the assumptions");
    hp_cluster_free(c);
}

static void refuse(const char *spec, const char *key, const char *value, hp_err want,
                   const char *says)
{
    hp_cluster *c = NULL;
    hp_errmsg e = {0};
    hp_override o = {key, value};
    is_int(hp_cluster_parse(spec, key != NULL, &o, NULL, NULL, &c, &e), want, "%s %s=%s is refused",
           spec, key ? key : "", value ? value : "");
    ok(strstr(e.text, says) != NULL, "... and says \"%s\" (%s)", says, e.text);
    hp_cluster_free(c);
}

static void test_refused(void)
{
    refuse("ideal", NULL, NULL, HP_EUSAGE, "NAME:COUNT");
    refuse("ideal:0", NULL, NULL, HP_EUSAGE, "no number");
    refuse("ideal:8x", NULL, NULL, HP_EUSAGE, "no number");
    refuse("ideal:-1", NULL, NULL, HP_EUSAGE, "no number");
    refuse("ideal:99999999", NULL, NULL, HP_EUSAGE, "no number");
    refuse("ideal:300000x300000x300000", NULL, NULL, HP_EUSAGE, "no number");
    refuse("nosuch:8", NULL, NULL, HP_EUSAGE, "nosuch");
    refuse("ideal:8", "hbm.byte", "1", HP_EINPUT, "hbm.bytes");
    refuse("ideal:8", "hbm.bytes", "lots", HP_EINPUT, "80GiB");
    refuse("ideal:8", "hbm.bytes", "nan", HP_EINPUT, "80GiB");
    refuse("ideal:8", "level.pod.bandwidth", "1GB/s", HP_EINPUT, "no level \"pod\"");
    refuse("ideal:8", "level.node.colour", "1", HP_EINPUT, "no \"colour\"");
    refuse("ideal:8", "slow", "rank=9,factor=1.3", HP_EINPUT, "device 9 of 8");
    refuse("ideal:8", "slow", "17", HP_EINPUT, "rank=17,factor=1.3");
    refuse("ideal:8", "hbm.curve", "2KiB:0.5 1KiB:0.6", HP_EINPUT, "ascend");
    refuse("ideal:16", "level.fabric.size", "8", HP_EINFEASIBLE, "at most 8");
}

static void set(hp_cluster *c, const char *key, const char *value)
{
    hp_errmsg e = {0};
    if (hp_cluster_set(c, key, value, "test", false, &e))
        bail("%s", e.text);
}

/* A machine with packages of 2 dies, nodes of 16, supernodes of 768, and links between those. */
static hp_cluster *supernode(const char *count, int dies)
{
    static const char *const f[][2] = {{"peak.bf16", "354T"},
                                       {"hbm.bytes", "61GiB"},
                                       {"hbm.bandwidth", "1600GB/s"},
                                       {"level.package.size", "2"},
                                       {"level.package.bandwidth", "224GB/s"},
                                       {"level.node.size", "16"},
                                       {"level.node.topology", "part"},
                                       {"level.supernode.size", "768"},
                                       {"level.supernode.bandwidth", "196GB/s"},
                                       {"level.fabric.size", "all"},
                                       {"level.fabric.bandwidth", "200Gb/s"}};
    hp_cluster *c = hp_cluster_new("910c");
    for (size_t i = 0; i < sizeof f / sizeof f[0]; i++)
        set(c, f[i][0], f[i][1]);
    c->dies = dies;
    hp_errmsg e = {0};
    if (hp_cluster_finish(c, count, &e))
        bail("%s", e.text);
    return c;
}

static void test_levels(void)
{
    hp_cluster *c = supernode("1536", 1);
    near(hp_cluster_level(c, "fabric")->bandwidth, 25e9, 0, "200Gb/s are 25 GB/s");
    is_int(hp_cluster_level_of(c, 0, 1, 2), 0, "two dies share a package");
    is_int(hp_cluster_level_of(c, 0, 1, 4), 2, "a level without links is passed over");
    is_int(hp_cluster_level_of(c, 0, 768, 2), 3, "two supernodes meet in the fabric");
    is_int(hp_cluster_level_of(c, 5, 1, 1), -1, "one device needs no level");
    hp_group g = hp_cluster_group_strided(c, 0, 8, 192);
    is_int(g.span[0], 1, "every eighth die: one a package");
    is_int(g.span[1], 2, "... two packages of a node");
    is_int(g.span[2], 48, "... 48 nodes of a supernode");
    is_int(g.span[3], 2, "... two supernodes");
    int list[] = {770, 0, 768, 2};
    g = hp_cluster_group(c, list, 4);
    ok(g.span[0] == 1 && g.span[1] == 2 && g.span[2] == 1 && g.span[3] == 2 && g.outer == 3,
       "an unsorted list is described like its sorted one");
    hp_cluster_free(c);
    hp_cluster *npu = supernode("384", 2), *die = supernode("768", 1);
    is_int(npu->n_devices, die->n_devices, "384 packages are 768 dies");
    is_int(npu->n_levels, 3, "levels beyond the one that holds all are dropped");
    hp_cluster_free(npu);
    hp_cluster_free(die);
}

static hp_cluster *torus(const char *count, const char *axes, const char *wrap)
{
    hp_cluster *c = hp_cluster_new("tpu");
    set(c, "peak.bf16", "459T");
    set(c, "hbm.bytes", "95GiB");
    set(c, "hbm.bandwidth", "2765GB/s");
    set(c, "level.node.size", "4");
    set(c, "level.node.topology", "part");
    set(c, "level.pod.size", "8960");
    set(c, "level.pod.topology", "torus");
    set(c, "level.pod.bandwidth", "540GB/s");
    set(c, "level.pod.axes", axes);
    set(c, "level.pod.wrap", wrap);
    hp_errmsg e = {0};
    if (hp_cluster_finish(c, count, &e))
        bail("%s", e.text);
    return c;
}

static void test_torus(void)
{
    hp_cluster *c = torus("8x8x8", "3", "all 4");
    const hp_level *l = hp_cluster_level(c, "pod");
    is_int(c->n_devices, 512, "8x8x8 chips are 512");
    ok(l->wrap[0] && l->wrap[1] && l->wrap[2], "whole cubes close all axes");
    hp_group g = hp_cluster_group_strided(c, 0, 8, 64);
    ok(g.axis[0] == 8 && g.axis[1] == 8 && g.axis[2] == 1,
       "every eighth chip spans the two outer axes");
    hp_cluster_free(c);
    c = torus("4x4x2", "3", "all 4");
    l = hp_cluster_level(c, "pod");
    ok(!l->wrap[0] && !l->wrap[1] && !l->wrap[2], "less than a cube closes none");
    hp_cluster_free(c);
    c = torus("16x8", "2", "16");
    l = hp_cluster_level(c, "pod");
    ok(l->wrap[0] && !l->wrap[1], "with wrap 16 only the axis of 16 closes");
    hp_cluster_free(c);
    hp_errmsg e = {0};
    hp_cluster *bad = hp_cluster_new("tpu");
    set(bad, "level.node.size", "4");
    set(bad, "level.node.topology", "part");
    set(bad, "level.pod.size", "256");
    set(bad, "level.pod.topology", "torus");
    set(bad, "level.pod.axes", "2");
    is_int(hp_cluster_finish(bad, "4x4x4", &e), HP_EUSAGE, "three factors on two axes are refused");
    ok(strstr(e.text, "2 axes") != NULL, "... saying how many there are (%s)", e.text);
    hp_cluster_free(bad);
    c = torus("128", "3", "all 4");
    l = hp_cluster_level(c, "pod");
    ok(l->dims[0] == 4 && l->dims[1] == 4 && l->dims[2] == 8,
       "a plain count becomes the evenest torus");
    hp_cluster_free(c);
}

static void test_names(void)
{
    char buf[64];
    is_str(hp_cluster_plain_name("Ascend910C-die", buf, sizeof buf), "910c-die",
           "the vendor falls off");
    is_str(hp_cluster_plain_name("NVIDIA H100_SXM", buf, sizeof buf), "h100-sxm",
           "spaces and case fall off");
    is_str(hp_cluster_plain_name("host", buf, sizeof buf), "host", "a plain name stays");
}

static void test_curve_and_peak(void)
{
    hp_curve c = {2, {1024, 4096}, {0.1, 0.4}};
    near(hp_curve_at(&c, 2048, 9), 0.2, 1e-12, "between points a curve is straight in logarithms");
    near(hp_curve_at(&c, 1, 9), 0.1, 0, "below it stays");
    near(hp_curve_at(&c, 1e9, 9), 0.4, 0, "above it stays");
    hp_curve none = {0};
    near(hp_curve_at(&none, 1, 0.7), 0.7, 0, "without points the figure counts");
    hp_cluster *t = torus("4x4x4", "3", "always");
    hp_rate used;
    near(hp_cluster_peak(t, HP_RATE_FP8, &used), 459e12, 0,
         "a missing peak is the next wider one's");
    is_int(used, HP_RATE_BF16, "... and says so");
    hp_cluster_free(t);
}

static void test_hash(void)
{
    hp_override o[] = {{"hbm.bandwidth", "2TB/s"}};
    hp_cluster *a = parse("ideal:8", 0, NULL), *b = parse("ideal:8", 0, NULL),
               *c = parse("ideal:8", 1, o);
    ok(hp_cluster_hash(a) == hp_cluster_hash(b), "equal clusters hash alike");
    ok(hp_cluster_hash(a) != hp_cluster_hash(c), "a changed figure changes the hash");
    hp_cluster_free(a);
    hp_cluster_free(b);
    hp_cluster_free(c);
}

int main(void)
{
    test_ideal();
    test_host();
    test_refused();
    test_levels();
    test_torus();
    test_names();
    test_curve_and_peak();
    test_hash();
    return done_testing();
}

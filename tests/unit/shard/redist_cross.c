#include "shard/redist.h"

#include "tap.h"

static const char *const dims[] = {"x", "y"};

static hp_mesh mesh_of(const char *spec)
{
    const char *view[] = {""};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, 1, view, &spec, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static hp_layout parsed(const hp_mesh *m, const char *text)
{
    hp_layout l;
    hp_errmsg e;
    if (hp_layout_parse(m, 2, dims, text, &l, &e))
        bail("%s: %s", text, e.text);
    return l;
}

/* "0>0:6 0>1:3 ..." : source, destination, elements. */
static const char *messages(const char *mesh_a, const char *a, const char *mesh_b, const char *b,
                            int64_t x, int64_t y)
{
    static char buf[1024];
    hp_mesh ma = mesh_of(mesh_a), mb = mesh_of(mesh_b);
    hp_layout la = parsed(&ma, a), lb = parsed(&mb, b);
    hp_shape s = {.nd = 2, .size = {x, y}};
    hp_xmove *m;
    hp_errmsg e;
    int n;
    if (hp_redist_cross(&ma, &la, &mb, &lb, &s, &m, &n, &e))
        bail("%s", e.text);
    size_t k = 0;
    buf[0] = '\0';
    for (int i = 0; i < n; i++)
        k += (size_t)snprintf(buf + k, sizeof buf - k, "%s%d>%d:%lld", i ? " " : "", m[i].src,
                              m[i].dst, (long long)hp_box_size(&m[i].box));
    free(m);
    return buf;
}

int main(void)
{
    is_str(messages("dp=2", "x:dp", "dp=2", "x:dp", 4, 1), "0>0:2 1>1:2",
           "equal layouts send rank by rank");
    is_str(messages("dp=2", "x:dp", "dp=3", "x:dp", 6, 1), "0>0:2 0>1:1 1>1:1 1>2:2",
           "boxes that cross are cut");
    is_str(messages("tp=2", "-", "dp=4", "x:dp", 8, 1), "0>0:2 0>2:2 1>1:2 1>3:2",
           "replicas share the load");
    is_str(messages("dp=3", "x:dp", "tp=2", "-", 4, 1), "0>0:2 0>1:2 1>0:2 1>1:2",
           "a rank without rows sends none");
    is_str(messages("dp=2", "x:dp", "dp=3", "x:dp", 2, 1), "0>0:1 1>1:1",
           "a rank that needs none gets none");
    is_str(messages("dp=2,tp=2", "x:dp y:tp", "dp=2,tp=2", "x:tp y:dp", 4, 4),
           "0>0:4 1>2:4 2>1:4 3>3:4", "axes trade dimensions");
    hp_mesh m = mesh_of("tp=2");
    hp_layout partial = parsed(&m, "partial:sum(tp)"), whole = parsed(&m, "-");
    hp_shape s = {.nd = 2, .size = {4, 4}};
    hp_xmove *out;
    hp_errmsg e = {0};
    int n;
    is_int(hp_redist_cross(&m, &partial, &m, &whole, &s, &out, &n, &e), HP_EINFEASIBLE,
           "a partial value is reduced before it leaves");
    return done_testing();
}

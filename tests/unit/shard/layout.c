#include "shard/layout.h"

#include "tap.h"

static const char *const dims[] = {"batch", "seq", "embed"};

static hp_mesh mesh_of(const char *spec, const char *other)
{
    const char *view[] = {"", "moe"}, *both[] = {spec, other};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, other ? 2 : 1, view, both, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static hp_layout parsed(const hp_mesh *m, const char *text)
{
    hp_layout l;
    hp_errmsg e;
    if (hp_layout_parse(m, 3, dims, text, &l, &e))
        bail("%s: %s", text, e.text);
    return l;
}

/* "0-2 2-3 ..." of dimension d by rank. */
static const char *boxes(const hp_mesh *m, const char *layout, const hp_shape *s, int d)
{
    static char buf[512];
    hp_layout l = parsed(m, layout);
    int n = 0;
    for (int r = 0; r < m->n_ranks; r++) {
        hp_box b = hp_layout_box(m, &l, s, r);
        n += snprintf(buf + n, sizeof buf - (size_t)n, "%s%lld-%lld", r ? " " : "",
                      (long long)b.lo[d], (long long)b.hi[d]);
    }
    return buf;
}

static void test_boxes(void)
{
    hp_mesh two = mesh_of("dp=2,tp=2", NULL), four = mesh_of("tp=4", NULL),
            joined = mesh_of("dp=4,tp=1", "edp=2,ep=2");
    hp_shape s = {.nd = 3, .size = {5, 6, 7}};
    is_str(boxes(&two, "batch:dp+tp", &s, 0), "0-2 2-3 3-4 4-5",
           "V10: 5 rows, split twice by 2, nest as 2, 1, 1, 1");
    is_str(boxes(&four, "seq:tp", &s, 1), "0-2 2-4 4-6 6-6",
           "V10: 6 rows on 4 ranks are 2, 2, 2 and none");
    is_str(boxes(&joined, "batch:dp", &s, 0), "0-2 2-4 4-5 5-5",
           "an axis means the same however it was refined");
    is_str(boxes(&joined, "batch:dp.1+dp.0", &s, 0), "0-2 3-4 2-3 4-5",
           "its parts in another order nest");
    is_str(boxes(&two, "batch:tp+dp", &s, 0), "0-2 3-4 2-3 4-5", "the first axis is the outer one");
    is_str(boxes(&two, "-", &s, 0), "0-5 0-5 0-5 0-5", "a replicated tensor is whole everywhere");

    hp_cut balanced = {.kind = HP_CUT_BALANCED},
           sizes = {.kind = HP_CUT_SIZES, .n = 2, .size = {1, 4}};
    s.cut[0] = &balanced;
    is_str(boxes(&four, "batch:tp", &s, 0), "0-2 2-3 3-4 4-5",
           "balanced parts differ by one at most");
    s.cut[0] = &sizes;
    is_str(boxes(&two, "batch:dp+tp", &s, 0), "0-1 1-1 1-3 3-5",
           "explicit sizes cut the outermost axis, inner ones by chunk");
    is_str(boxes(&four, "batch:tp", &s, 0), "0-2 2-4 4-5 5-5",
           "sizes for two parts do not apply to four");

    hp_mesh three = mesh_of("dp=3", NULL), nine = mesh_of("tp=9", NULL);
    hp_shape few = {.nd = 3, .size = {2, 7, 1}};
    is_str(boxes(&three, "batch:dp", &few, 0), "0-1 1-2 2-2",
           "2 sequences on dp=3: the last rank has none");
    is_str(boxes(&nine, "seq:tp", &few, 1), "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-7 7-7",
           "a vocabulary of 7 on 9 ranks");
}

static void test_sizes(void)
{
    hp_mesh m = mesh_of("dp=2,tp=3", NULL);
    hp_shape s = {.nd = 3, .size = {5, 6, 7}};
    hp_layout l = parsed(&m, "batch:dp seq:tp"), one = parsed(&m, "embed:dp+tp");
    int d = -1;
    is_int(hp_layout_max_size(&m, &l, &s), 3 * 2 * 7, "the largest box is that of the first ranks");
    is_int(hp_layout_max_len(&m, &one, &s, 2), 2, "nested parts round up at every fold");
    ok(!hp_layout_even(&m, &l, &s, &d) && d == 0, "5 on 2 is uneven, in dimension 0");
    s.size[0] = 4;
    ok(hp_layout_even(&m, &l, &s, &d), "4 on 2 and 6 on 3 are even");
    hp_cut sizes = {.kind = HP_CUT_SIZES, .n = 2, .size = {1, 3}};
    s.cut[0] = &sizes;
    ok(!hp_layout_even(&m, &l, &s, &d), "explicit sizes that differ are uneven");
    is_int(hp_layout_max_size(&m, &l, &s), 3 * 2 * 7, "the largest explicit size counts");
    hp_box a = {.nd = 2, .lo = {0, 2}, .hi = {4, 6}}, b = {.nd = 2, .lo = {3, 7}, .hi = {9, 9}};
    hp_box meet = hp_box_meet(&a, &b);
    is_int(hp_box_size(&meet), 0, "boxes that do not meet leave nothing");
    is_int(hp_box_size(&a), 16, "a box has the product of its lengths");
}

static void test_seams(void)
{
    hp_mesh m = mesh_of("dp=4,tp=2", "edp=2,ep=4");
    hp_layout l = parsed(&m, "batch:dp+tp");
    hp_shape s = {.nd = 3, .size = {6, 6, 6}};
    is_int(hp_layout_run(&m, &l, 0, 0), 2, "the two parts of dp fold as one");
    ok(hp_layout_seam(&m, &l, &s, 0, 2) && hp_layout_seam(&m, &l, &s, 0, 0),
       "between axes there is a seam");
    ok(!hp_layout_seam(&m, &l, &s, 0, 1), "inside an axis that does not divide there is none");
    s.size[0] = 8;
    ok(hp_layout_seam(&m, &l, &s, 0, 1), "inside an axis that divides there is one");
}

static void roundtrip(const hp_mesh *m, const char *text)
{
    hp_layout l = parsed(m, text);
    hp_str out = {0};
    hp_layout_print(m, &l, dims, &out);
    is_str(hp_str_text(&out), text, "\"%s\" prints as it was read", text);
    hp_str_fini(&out);
}

static void refused(const hp_mesh *m, const char *text, hp_err code, const char *says)
{
    hp_layout l;
    hp_errmsg e = {0};
    is_int(hp_layout_parse(m, 3, dims, text, &l, &e), code, "\"%s\" is refused", text);
    ok(strstr(e.text, says) != NULL, "saying \"%s\"", says) || (diag("%s", e.text), 0);
}

static void test_text(void)
{
    hp_mesh m = mesh_of("dp=4,cp=2,tp=2", "edp=2,ep=8");
    roundtrip(&m, "-");
    roundtrip(&m, "batch:dp+cp seq:tp");
    roundtrip(&m, "batch:moe.ep");
    roundtrip(&m, "seq:dp.1+tp partial:max(cp)");
    roundtrip(&m, "partial:sum(dp+tp)");
    refused(&m, "batch", HP_EINPUT, "dimension:axes");
    refused(&m, "betch:dp", HP_EINPUT, "nearest is \"batch\"");
    refused(&m, "batch:dq", HP_EINPUT, "no axis \"dq\"");
    refused(&m, "batch:dp batch:tp", HP_EINPUT, "twice");
    refused(&m, "batch:dp seq:dp", HP_EINFEASIBLE, "splits a tensor twice");
    refused(&m, "batch:dp partial:sum(dp)", HP_EINFEASIBLE, "both split and partial");
    refused(&m, "partial:sum(dp) partial:max(tp)", HP_EINFEASIBLE, "the order would matter");
    refused(&m, "partial:som(dp)", HP_EINPUT, "no reduction");
    refused(&m, "partial:sum", HP_EINPUT, "partial:sum(tp)");
    hp_mesh flat = mesh_of("dp=2,tp=1", NULL);
    hp_layout a = parsed(&flat, "batch:tp seq:dp"), b = parsed(&flat, "seq:dp");
    ok(hp_layout_equal(&a, &b), "an axis of size 1 splits nothing");
}

static void test_map(void)
{
    const char *view[] = {""}, *spec[] = {"dp=2,sp=2,mp=2"}, *both[] = {"x", "y"};
    hp_mesh m;
    hp_errmsg e;
    hp_layout l;
    int map[HP_MAX_DIMS];
    hp_mesh_build(&m, 1, view, spec, 0, NULL, NULL, &e);
    hp_layout_parse(&m, 2, both, "x:dp y:mp", &l, &e);
    ok(hp_layout_tensor_map(&m, &l, map) && map[0] == 2 && map[1] == 0,
       "(\"dp\", \"mp\") on (dp, sp, mp) is the map (2, 0)");
    hp_layout_parse(&m, 2, both, "y:sp", &l, &e);
    ok(hp_layout_tensor_map(&m, &l, map) && map[0] == -1 && map[1] == 1,
       "an unsplit dimension is -1");
    hp_layout_parse(&m, 2, both, "y:sp+mp", &l, &e);
    ok(!hp_layout_tensor_map(&m, &l, map), "two axes on a dimension have no map");
}

int main(void)
{
    test_boxes();
    test_sizes();
    test_seams();
    test_text();
    test_map();
    return done_testing();
}

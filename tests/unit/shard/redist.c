#include "shard/redist.h"

#include "tap.h"

static const char *const dims[] = {"x"};

static hp_mesh mesh_of(const char *spec)
{
    const char *view[] = {""};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, 1, view, &spec, 0, NULL, NULL, &e))
        bail("%s", e.text);
    return m;
}

static hp_layout parsed(const hp_mesh *m, int nd, const char *text)
{
    hp_layout l;
    hp_errmsg e;
    if (hp_layout_parse(m, nd, dims, text, &l, &e))
        bail("%s: %s", text, e.text);
    return l;
}

static void test_sources(const hp_mesh *m, const hp_shape *s)
{
    hp_box box[4];
    hp_layout split = parsed(m, 1, "x:tp");
    for (int i = 0; i < 4; i++)
        box[i] = hp_layout_box(m, &split, s, i);
    is_int(hp_move_source(box, 4, 1, 3), 1, "a box that one rank holds comes from it");
    box[3] = box[1];
    is_int(hp_move_source(box, 4, 1, 3), 3, "who holds a box takes its own");
    is_int(hp_move_source(box, 4, 1, 0), 1, "of two owners destination 0 asks the first");
    box[2] = box[0];
    is_int(hp_move_source(box, 4, 0, 1), 2, "and destination 1 the second");
}

int main(void)
{
    hp_mesh m = mesh_of("tp=4");
    hp_shape s = {.nd = 1, .size = {6}};
    hp_move gather = {HP_COLL_ALL_GATHER, 1, parsed(&m, 1, "x:tp"), parsed(&m, 1, "-")};
    hp_move reduce = {HP_COLL_ALL_REDUCE, 1, parsed(&m, 1, "partial:sum(tp)"), parsed(&m, 1, "-")};
    hp_move scatter = {HP_COLL_REDUCE_SCATTER, 1, parsed(&m, 1, "partial:sum(tp)"),
                       parsed(&m, 1, "x:tp")};
    hp_move slice = {HP_COLL_SLICE, 1, parsed(&m, 1, "-"), parsed(&m, 1, "x:tp")};
    is_int((int)hp_move_bytes(&m, &gather, &s, 4, 0), 4 * 4,
           "6 on 4: rank 0 forwards all but the 2 of rank 1");
    is_int((int)hp_move_bytes(&m, &gather, &s, 4, 2), 4 * 6,
           "rank 2 forwards all, rank 3 has nothing");
    is_int((int)hp_move_bytes(&m, &scatter, &s, 4, 0), 4 * 4,
           "reduce-scatter: all but the own part");
    is_int((int)hp_move_bytes(&m, &scatter, &s, 4, 3), 4 * 6, "a rank that gets nothing sends all");
    is_int((int)hp_move_bytes(&m, &reduce, &s, 4, 0), 4 * (12 - 2 - 2),
           "all-reduce: twice all but a balanced part");
    is_int((int)hp_move_bytes(&m, &slice, &s, 4, 0), 0, "a slice sends nothing");
    is_int(hp_coll_find("all-to-all"), HP_COLL_ALL_TO_ALL, "kinds are found by name");
    is_int(hp_coll_find("gossip"), -1, "an unknown kind is not");
    test_sources(&m, &s);
    return done_testing();
}

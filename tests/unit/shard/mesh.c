#include "shard/layout.h"

#include "tap.h"

static hp_mesh built(const char *main_view, const char *other)
{
    const char *view[] = {"", "moe"}, *spec[] = {main_view, other};
    hp_mesh m;
    hp_errmsg e;
    if (hp_mesh_build(&m, other ? 2 : 1, view, spec, 0, NULL, NULL, &e))
        bail("%s: %s", main_view, e.text);
    return m;
}

static void refused(const char *main_view, const char *other, hp_err code, const char *says)
{
    const char *view[] = {"", "moe"}, *spec[] = {main_view, other};
    hp_mesh m;
    hp_errmsg e = {0};
    is_int(hp_mesh_build(&m, other ? 2 : 1, view, spec, 0, NULL, NULL, &e), code,
           "%s with %s is refused", main_view, other ? other : "no other view");
    ok(strstr(e.text, says) != NULL, "the refusal says \"%s\"", says) || (diag("%s", e.text), 0);
}

static void test_refinement(void)
{
    hp_mesh m = built("pp=2,dp=4,tp=2", NULL);
    is_int(m.n_atoms, 3, "axes of one view are atoms");
    is_int(m.n_ranks, 16, "ranks are the product");
    ok(!m.joined[1] && !m.joined[2], "atoms of different axes are not joined");

    m = built("dp=4,tp=2", "edp=2,ep=4");
    is_int(m.n_atoms, 3, "dp=4,tp=2 and edp=2,ep=4 refine into three atoms of 2");
    ok(m.size[0] == 2 && m.size[1] == 2 && m.size[2] == 2 && m.joined[1] && !m.joined[2],
       "dp's two parts are joined, tp is apart");
    const hp_axis *ep = hp_mesh_axis(&m, "moe.ep");
    ok(ep && ep->n == 2 && ep->atom[0] == 1 && ep->atom[1] == 2 && ep->size == 4,
       "moe.ep is the inner part of dp with tp");
    ok(hp_mesh_axis(&m, "ep") == ep, "a name that one view has needs no prefix");
    ok(hp_mesh_axis(&m, "dq") == NULL && hp_mesh_axis(&m, "moe.dp") == NULL,
       "an unknown axis is NULL");

    m = built("pp=2,dp=2,tp=2", "pp=2,edp=1,ep=4");
    ok(hp_mesh_axis(&m, "edp")->n == 0 && hp_mesh_axis(&m, "edp")->size == 1,
       "an axis of size 1 is found and has no atoms");
    is_int(m.n_atoms, 3, "an axis of size 1 makes no atom");
    is_int(built("dp=1,tp=1", NULL).n_atoms, 0, "a mesh of one rank has no atoms");
}

static void test_factors(void)
{
    const char *view[] = {""}, *spec[] = {"dp=2,tp=8"}, *axis[] = {"tp"};
    int outer = 4;
    hp_mesh m;
    hp_errmsg e;
    is_int(hp_mesh_build(&m, 1, view, spec, 1, axis, &outer, &e), HP_OK,
           "tp=8 is cut in 4 x 2 for four kv heads");
    ok(m.n_atoms == 3 && m.size[1] == 4 && m.size[2] == 2 && m.joined[2],
       "the outer factor is 4, the inner joined to it");
    outer = 3;
    is_int(hp_mesh_build(&m, 1, view, spec, 1, axis, &outer, &e), HP_EINFEASIBLE,
           "tp=8 cannot be cut in 3");
    axis[0] = "cp";
    is_int(hp_mesh_build(&m, 1, view, spec, 1, axis, &outer, &e), HP_EINPUT,
           "an axis that is not there cannot be cut");
}

static void test_refusals(void)
{
    refused("dp=2,tp=6", "edp=3,ep=4", HP_EINFEASIBLE,
            "\"dp\" (strides 6 to 12) and \"moe.edp\" (4 to 12)");
    refused("dp=4,tp=2", "edp=2,ep=2", HP_EINFEASIBLE, "has 4 ranks, the main mesh has 8");
    refused("dp=4,tp=2", "dp=2,ep=4", HP_EINFEASIBLE, "axis \"dp\"");
    refused("dp=4,tp", NULL, HP_EINPUT, "axis \"tp\" needs a size");
    refused("dp=4,=2", NULL, HP_EINPUT, "an axis name is missing");
    refused("dp=*,tp=2", NULL, HP_EINPUT, "axis \"dp\" needs a size");
    refused("dp=0", NULL, HP_EINPUT, "needs a size from 1");
    refused("dp=2,dp=2", NULL, HP_EINPUT, "there twice");
    refused("dp=2 tp=2", NULL, HP_EINPUT, "expected \",\"");
    refused("dp=65536,tp=65536", NULL, HP_EINFEASIBLE, "ranks");
    refused("a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2,i=2,j=2,k=2,l=2,m=2", NULL, HP_EINFEASIBLE,
            "refine into 13 parts");
}

static void test_groups(void)
{
    hp_mesh m = built("pp=2,dp=2,tp=3", NULL);
    int coord[HP_MAX_ATOMS], group[12];
    hp_mesh_coord(&m, 11, coord);
    ok(coord[0] == 1 && coord[1] == 1 && coord[2] == 2, "rank 11 is (1,1,2)");
    is_int(hp_mesh_group(&m, 7, 1u << 2, group), 3, "the tp group of rank 7 has three ranks");
    ok(group[0] == 6 && group[1] == 7 && group[2] == 8, "they are 6, 7, 8");
    is_int(hp_mesh_group(&m, 4, 1u << 0 | 1u << 2, group), 6,
           "the pp+tp group of rank 4 has six ranks");
    ok(group[0] == 3 && group[2] == 5 && group[3] == 9 && group[5] == 11, "in rank order");
    is_int(hp_mesh_group(&m, 4, 0, group), 1, "the group of nothing is the rank itself");
    is_int(group[0], 4, "which is named");
}

static void test_names(void)
{
    hp_mesh m = built("dp=4,cp=2,tp=4", "edp=2,ep=16"),
            plain = built("dp_shard=2,cp=2,rep=2,x=2", NULL);
    char buf[64];
    is_str(hp_mesh_name(&m, 1u << 3, buf, sizeof buf), "tp", "one axis has its name");
    is_str(hp_mesh_name(&m, 7, buf, sizeof buf), "dp+cp", "several axes are joined by +");
    is_str(hp_mesh_name(&m, 14, buf, sizeof buf), "moe.ep",
           "an axis of another view has its prefix");
    is_str(hp_mesh_name(&m, 2, buf, sizeof buf), "dp.1", "a part of an axis has a number");
    is_str(hp_mesh_name(&m, 1, buf, sizeof buf), "moe.edp",
           "a part that another view names has that name");
    is_str(hp_mesh_name(&m, 10, buf, sizeof buf), "dp.1+tp", "parts and axes mix");
    ok(plain.axis[0].role == HP_ROLE_DP && plain.axis[1].role == HP_ROLE_CP &&
           plain.axis[2].role == HP_ROLE_DP && plain.axis[3].role == HP_ROLE_OTHER,
       "roles follow from names");
    uint8_t atom[HP_MAX_ATOMS];
    int n;
    hp_errmsg e = {0};
    ok(hp_mesh_atoms(&m, "dp.1+moe.edp+tp", atom, &n, &e) == HP_OK && n == 3 && atom[0] == 1 &&
           atom[1] == 0 && atom[2] == 3,
       "names are read back in their order");
    is_int(hp_mesh_atoms(&m, "dp+dp.1", atom, &n, &e), HP_EINPUT,
           "an axis and its part are named twice");
    is_int(hp_mesh_atoms(&m, "dp+tq", atom, &n, &e), HP_EINPUT, "an unknown axis is refused");
    ok(strstr(e.text, "nearest is \"tp\"") != NULL, "with the nearest name");
}

int main(void)
{
    test_refinement();
    test_factors();
    test_refusals();
    test_groups();
    test_names();
    return done_testing();
}

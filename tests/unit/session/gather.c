/* Pieces become wholes: nested uneven splits, copies, partial sums, in any combination. */
#include "session/gather.h"

#include "base/rng.h"
#include "handplan.h"

#include "tap.h"

enum { ROWS = 5, COLUMNS = 7 };

/* A plan of one program with one [5, 7] buffer laid out as `layout` says on `mesh`. */
static hp_plan *planned(const char *mesh, const char *layout)
{
    static const char *const dims[] = {"r", "c"};
    int n = 1;
    hp_errmsg e = {0};
    hp_plan *p = hand_plan(1, n);
    hp_program *r = hand_program(p, 0, mesh, 0);
    hand_buffer(p, r, "b", HP_B_ACTIVATIONS, HP_S_FRAME, 64);
    r->buffer[0].shape = (hp_shape){.nd = 2, .size = {ROWS, COLUMNS}};
    if (hp_layout_parse(&r->mesh, 2, dims, layout, &r->buffer[0].layout, &e))
        bail("%s: %s", layout, e.text);
    p->micro = 2;
    return p;
}

/* Gives every rank its box of `whole`; where the layout is partial, shares that add up to it. */
static void give_all(hp_gather *g, const hp_plan *p, const float *whole, int skip)
{
    const hp_program *r = &p->program[0];
    const hp_buffer *b = &r->buffer[0];
    uint32_t partial = hp_layout_partial_mask(&b->layout);
    for (int rank = 0; rank < r->mesh.n_ranks; rank++) {
        hp_box box = hp_layout_box(&r->mesh, &b->layout, &b->shape, rank);
        int coord[HP_MAX_ATOMS], parts = 1, part = 0;
        hp_mesh_coord(&r->mesh, rank, coord);
        for (int a = 0; a < r->mesh.n_atoms; a++)
            if (partial & 1u << a) {
                parts *= r->mesh.size[a];
                part = part * r->mesh.size[a] + coord[a];
            }
        float local[ROWS * COLUMNS];
        int n = 0;
        for (int64_t i = box.lo[0]; i < box.hi[0]; i++)
            for (int64_t j = box.lo[1]; j < box.hi[1]; j++)
                local[n++] =
                    part == parts - 1 ? whole[i * COLUMNS + j] - (float)(parts - 1) * 3 : 3;
        hp_operand o = {.data = n ? local : NULL, .dtype = HP_F32, .nd = 2};
        for (int d = 0; d < 2; d++) {
            o.lo[d] = box.lo[d];
            o.len[d] = box.hi[d] - box.lo[d];
            o.full[d] = b->shape.size[d];
        }
        if (rank != skip)
            hp_gather_put(g, 0, 0, 1, rank, &o);
    }
}

static void test_layouts(void)
{
    static const struct {
        const char *mesh, *layout;
        int copies;
    } c[] = {
        {"tp=4", "-", 4},
        {"tp=4", "r:tp", 1},
        {"dp=2,tp=3", "r:dp c:tp", 1},
        {"dp=2,tp=3", "c:tp", 2},
        {"dp=2,tp=3", "c:dp", 3},
        {"dp=3,tp=2", "r:dp+tp", 1},
        {"dp=3,tp=2", "r:tp+dp", 1},
        {"dp=2,tp=2", "partial:sum(tp)", 2},
        {"dp=2,tp=2", "r:dp partial:sum(tp)", 1},
        {"tp=9", "c:tp", 1},
        {"dp=2,cp=2,tp=2", "r:cp partial:sum(dp)", 2},
    };
    float whole[ROWS * COLUMNS], out[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        whole[i] = (float)(i * i % 64);
    for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
        hp_plan *p = planned(c[k].mesh, c[k].layout);
        hp_gather *g = hp_gather_new(p);
        int rank_of[64], wrong = 0;
        give_all(g, p, whole, -1);
        is_int(hp_gather_copies(g, 0, 0, rank_of), c[k].copies, "%s on %s has %d copies",
               c[k].layout, c[k].mesh, c[k].copies);
        for (int copy = 0; copy < c[k].copies; copy++)
            wrong += !hp_gather_whole(g, 0, 0, 1, copy, out) || memcmp(out, whole, sizeof out) != 0;
        is_int(wrong, 0, "and each is the whole");
        hp_gather_free(g);
        hp_plan_free(p);
    }
}

static void test_what_is_missing(void)
{
    float whole[ROWS * COLUMNS] = {0}, out[ROWS * COLUMNS];
    hp_plan *p = planned("dp=2,tp=3", "c:tp");
    hp_gather *g = hp_gather_new(p);
    ok(!hp_gather_has(g, 0, 0, 1) && !hp_gather_whole(g, 0, 0, 1, 0, out),
       "nothing given, nothing there");
    give_all(g, p, whole, 4);
    ok(hp_gather_has(g, 0, 0, 1) && !hp_gather_has(g, 0, 0, 0), "each microbatch has its own");
    ok(hp_gather_whole(g, 0, 0, 1, 0, out), "a copy whose pieces are all there is whole");
    ok(!hp_gather_whole(g, 0, 0, 1, 1, out), "one without a piece is not");
    hp_gather_free(g);
    hp_plan_free(p);

    p = planned("tp=2", "partial:lse(tp)");
    g = hp_gather_new(p);
    give_all(g, p, whole, -1);
    ok(!hp_gather_whole(g, 0, 0, 1, 0, out),
       "a partial value without an elementwise sum is not put together");
    hp_gather_free(g);
    hp_plan_free(p);
}

static void test_types(void)
{
    uint16_t half[2] = {0x3F80, 0xC000};
    int32_t whole[2] = {-1, 7};
    float out[2];
    hp_operand o = {.data = half, .dtype = HP_BF16, .nd = 1, .len = {2}};
    hp_gather_f32(&o, out);
    ok(out[0] == 1 && out[1] == -2, "bf16 becomes f32");
    o = (hp_operand){.data = whole, .dtype = HP_I32, .nd = 1, .len = {2}};
    hp_gather_f32(&o, out);
    ok(out[0] == -1 && out[1] == 7, "so do integers");
}

int main(void)
{
    test_layouts();
    test_what_is_missing();
    test_types();
    return done_testing();
}

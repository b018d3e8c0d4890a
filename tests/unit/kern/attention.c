#include "kern/attention.h"

#include "unit/kern/kern_test.h"

/* How positions and documents are laid. */
enum { OPEN, CAUSAL, SHUFFLED, DOCS, LATER };

typedef struct call {
    hp_attention_shape a;
    tensor q, k, v, o, lse, dy;
} call;

static int32_t *ascending(int64_t b, int64_t n, int64_t from)
{
    int32_t *p = draw_ints(b * n, 0, 1);
    for (int64_t i = 0; i < b * n; i++)
        p[i] = (int32_t)(from + i % n);
    return p;
}

static int32_t *documents(int64_t b, int64_t n, int64_t each)
{
    int32_t *p = draw_ints(b * n, 0, 1);
    for (int64_t i = 0; i < b * n; i++)
        p[i] = (int32_t)(i % n / each);
    return p;
}

static call make(const int64_t *s, int mask, int t)
{
    call c = {.a = {s[0], s[1], s[2], s[3], s[4], s[5], s[6], 0.3f, mask != OPEN, 0, 0, 0, 0}};
    hp_attention_shape *a = &c.a;
    a->pos_q = ascending(a->b, a->s, a->t > a->s ? a->t - a->s : 0);
    a->pos_k = ascending(a->b, a->t, 0);
    if (mask == SHUFFLED) {
        a->pos_q = draw_ints(a->b * a->s, 0, 50);
        a->pos_k = draw_ints(a->b * a->t, 0, 60);
    }
    if (mask == LATER)
        a->pos_q = ascending(a->b, a->s, -40);
    if (mask == DOCS) {
        a->doc_q = documents(a->b, a->s, 40);
        a->doc_k = documents(a->b, a->t, 40);
    }
    int64_t rows = a->b * a->s * a->k * a->g, keys = a->b * a->t * a->k;
    c.q = draw(t, rows * a->d, 1), c.k = draw(t, keys * a->d, 1), c.v = draw(t, keys * a->dv, 1);
    c.o = blank(t, rows * a->dv), c.lse = blank(0, rows), c.dy = draw(t, rows * a->dv, 1);
    return c;
}

static void forward(call *c)
{
    tensor o1 = same(c->o), o2 = same(c->o), l1 = same(c->lse), l2 = same(c->lse);
    hp_attention_ref(&c->a, c->q.x, c->k.x, c->v.x, c->o.x, c->lse.x.p);
    hp_attention(&c->a, c->q.x, c->k.x, c->v.x, o1.x, l1.x.p, 1);
    hp_attention(&c->a, c->q.x, c->k.x, c->v.x, o2.x, l2.x.p, 2);
    judge(o1, o2, c->o);
    judge(l1, l2, c->lse);
}

/* The gradients of one run; `which` bit by bit says which of dq, dk, dv are wanted. */
static void backward(const call *c, int which)
{
    int t = c->q.x.t;
    void *scratch = keep(hp_xmalloc(hp_attention_dx_scratch(&c->a) + 1));
    tensor g[3][3];
    int64_t size[3] = {c->q.n, c->k.n, c->v.n};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            g[i][j] = blank(t, size[i]);
            if (!(which >> i & 1))
                g[i][j].x.p = NULL;
        }
    const hp_attention_shape *a = &c->a;
    float *lse = c->lse.x.p;
    hp_attention_dx_ref(a, c->q.x, c->k.x, c->v.x, c->o.x, lse, c->dy.x, g[0][0].x, g[1][0].x,
                        g[2][0].x);
    for (int j = 1; j <= 2; j++)
        hp_attention_dx(a, c->q.x, c->k.x, c->v.x, c->o.x, lse, c->dy.x, g[0][j].x, g[1][j].x,
                        g[2][j].x, scratch, j);
    for (int i = 0; i < 3; i++)
        if (which >> i & 1)
            judge(g[i][1], g[i][2], g[i][0]);
}

static const int64_t shapes[][7] = {/* b, s, t, k, g, d, dv */
                                    {1, 1, 1, 1, 1, 1, 1},      {2, 0, 5, 1, 1, 8, 8},
                                    {2, 5, 0, 2, 1, 8, 8},      {1, 7, 13, 2, 3, 24, 16},
                                    {1, 64, 64, 2, 1, 64, 64},  {2, 300, 20, 1, 1, 8, 8},
                                    {1, 20, 210, 2, 1, 8, 150}, {1, 100, 110, 1, 1, 33, 7},
                                    {1, 60, 100, 1, 2, 20, 36}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void all(void)
{
    for (int i = 0; i < SHAPES; i++)
        for (int mask = OPEN; mask <= LATER; mask++) {
            call c = make(shapes[i], mask, HP_NUM_F32);
            forward(&c);
            backward(&c, 7);
        }
    verdict("attention and its gradients", "attention");
}

static void rest(void)
{
    for (int mask = OPEN; mask <= LATER; mask++) {
        call c = make(shapes[3 + mask % 4], mask, HP_NUM_BF16);
        forward(&c);
        backward(&c, 7);
        for (int which = 0; which < 7; which++)
            backward(&c, which);
    }
    verdict("attention in bf16, and some of its gradients,", "attention");
}

/* With heads to spare every pair of tiles is done once, with few twice: the bits are the same. */
static void either_way(void)
{
    static const int64_t many[7] = {8, 100, 200, 1, 1, 16, 16};
    call c = make(many, CAUSAL, HP_NUM_F32), one = c;
    void *scratch = keep(hp_xmalloc(hp_attention_dx_scratch(&c.a)));
    hp_attention(&c.a, c.q.x, c.k.x, c.v.x, c.o.x, c.lse.x.p, 1);
    tensor dq = blank(0, c.q.n), dk = blank(0, c.k.n), dv = blank(0, c.v.n);
    tensor q1 = blank(0, c.q.n / 8), k1 = blank(0, c.k.n / 8), v1 = blank(0, c.v.n / 8);
    hp_attention_dx(&c.a, c.q.x, c.k.x, c.v.x, c.o.x, c.lse.x.p, c.dy.x, dq.x, dk.x, dv.x, scratch,
                    1);
    one.a.b = 1;
    hp_attention_dx(&one.a, c.q.x, c.k.x, c.v.x, c.o.x, c.lse.x.p, c.dy.x, q1.x, k1.x, v1.x,
                    scratch, 1);
    ok(memcmp(dq.x.p, q1.x.p, (size_t)q1.n * 4) == 0 &&
           memcmp(dk.x.p, k1.x.p, (size_t)k1.n * 4) == 0 &&
           memcmp(dv.x.p, v1.x.p, (size_t)v1.n * 4) == 0,
       "one batch entry alone and among eight has the same gradient bits");
    drop();
}

static double loss(void *arg)
{
    call *c = arg;
    hp_attention_ref(&c->a, c->q.x, c->k.x, c->v.x, c->o.x, c->lse.x.p);
    return inner(c->o, c->dy);
}

static void slopes(void)
{
    static const int64_t s[7] = {1, 5, 7, 2, 2, 4, 3};
    call c = make(s, CAUSAL, HP_NUM_F32);
    tensor dq = blank(0, c.q.n), dk = blank(0, c.k.n), dv = blank(0, c.v.n);
    loss(&c);
    hp_attention_dx_ref(&c.a, c.q.x, c.k.x, c.v.x, c.o.x, c.lse.x.p, c.dy.x, dq.x, dk.x, dv.x);
    slope("attention's dq", loss, &c, c.q, dq, 1e-2f, 2e-3);
    slope("attention's dk", loss, &c, c.k, dk, 1e-2f, 2e-3);
    slope("attention's dv", loss, &c, c.v, dv, 1e-2f, 2e-3);
    drop();
}

/* A copy of a call that sees only keys t0 .. t1-1. */
static call some_keys(const call *c, int64_t t0, int64_t t1)
{
    call p = *c;
    const hp_attention_shape *a = &c->a;
    p.a.t = t1 - t0;
    p.a.pos_k += t0;
    p.k.x = hp_num_at(c->k.x, t0 * a->k * a->d);
    p.v.x = hp_num_at(c->v.x, t0 * a->k * a->dv);
    p.o = blank(c->o.x.t, c->o.n), p.lse = blank(0, c->lse.n);
    hp_attention(&p.a, p.q.x, p.k.x, p.v.x, p.o.x, p.lse.x.p, 1);
    return p;
}

static void ring(void)
{
    static const int64_t s[7] = {1, 150, 150, 2, 1, 16, 24};
    call c = make(s, CAUSAL, HP_NUM_F32);
    hp_attention_ref(&c.a, c.q.x, c.k.x, c.v.x, c.o.x, c.lse.x.p);
    call p = some_keys(&c, 0, 70), r = some_keys(&c, 70, 150);
    tensor o1 = same(p.o), o2 = same(p.o), l1 = same(p.lse), l2 = same(p.lse);
    hp_attention_merge(300, 24, p.o.x, p.lse.x.p, r.o.x, r.lse.x.p, o1.x, l1.x.p, 1);
    hp_attention_merge(300, 24, o2.x, l2.x.p, r.o.x, r.lse.x.p, o2.x, l2.x.p, 2);
    judge(o1, o2, c.o);
    judge(l1, l2, c.lse);
    tensor o3 = same(p.o), l3 = same(p.lse);
    hp_attention_merge_ref(300, 24, p.o.x, p.lse.x.p, r.o.x, r.lse.x.p, o3.x, l3.x.p);
    judge(o3, o3, c.o);
    verdict("a merge of two parts of the keys", "attention_merge");
}

int main(void)
{
    each_level(all);
    each_level(rest);
    each_level(either_way);
    each_level(ring);
    slopes();
    return done_testing();
}

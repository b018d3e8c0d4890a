/* rows.c -- choices are used where they lie when their box has the same tokens, else the box's own are copied out first. */
#include "exec/rows.h"

#include "kern/box.h"

static int64_t len(const hp_box *b, int d)
{
    return b->hi[d] > b->lo[d] ? b->hi[d] - b->lo[d] : 0;
}

static int64_t tokens(const hp_box *b)
{
    return len(b, 0) * len(b, 1);
}

static const int32_t *choice(const hp_operand *c, int64_t batch, int64_t seq)
{
    return (const int32_t *)c->data +
           ((batch - c->lo[0]) * c->len[1] + (seq - c->lo[1])) * c->len[2];
}

int64_t hp_rows_count(const hp_operand *c, const hp_box *box)
{
    int64_t n = 0;
    for (int64_t b = box->lo[0]; b < box->hi[0]; b++)
        for (int64_t s = box->lo[1]; s < box->hi[1]; s++) {
            const int32_t *idx = choice(c, b, s);
            for (int64_t j = 0; j < c->len[2]; j++)
                n += idx[j] >= box->lo[2] && idx[j] < box->hi[2];
        }
    return n;
}

static size_t aligned(size_t n)
{
    return (n + 63) / 64 * 64;
}

size_t hp_rows_bytes(const hp_box *box, int64_t k)
{
    return aligned((size_t)(tokens(box) * k) * sizeof(int32_t)) +
           aligned(hp_route_bytes(tokens(box), k, len(box, 2)));
}

void hp_rows_build(const hp_operand *c, const hp_box *box, void *storage, hp_rows *r)
{
    int64_t k = c->len[2];
    char *lists = (char *)storage + aligned((size_t)(tokens(box) * k) * sizeof(int32_t));
    r->box = *box;
    r->idx = c->data;
    if (tokens(box) > 0 && (c->lo[0] != box->lo[0] || c->len[0] != len(box, 0) ||
                            c->lo[1] != box->lo[1] || c->len[1] != len(box, 1))) {
        int64_t lo[3] = {box->lo[0], box->lo[1], 0}, hi[3] = {box->hi[0], box->hi[1], k};
        int64_t from_hi[3] = {c->lo[0] + c->len[0], c->lo[1] + c->len[1], k};
        hp_box_copy(3, storage, lo, hi, c->data, c->lo, from_hi, lo, hi, (int64_t)sizeof(int32_t));
        r->idx = storage;
    }
    hp_route_build(tokens(box), k, r->idx, box->lo[2], len(box, 2), lists, &r->route);
}

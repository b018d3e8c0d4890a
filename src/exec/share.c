/* share.c -- pieces are moved in blocks small enough to stay in cache between being reduced and being handed on. */
#include "exec/share.h"

#include "exec/work.h"
#include "kern/box.h"

#include <string.h>

enum { BLOCK_ELEMENTS = 16384 };

/* One pair of a collective as a share sees it. */
typedef struct pair {
    hp_side *s;
    const hp_info *in;
    int inst, index, frame;
    int from, to; /* buffers */
    int elem;
    hp_reduce red;
} pair;

static pair pair_of(hp_side *s, int inst, int index)
{
    const hp_info *in = hp_info_of(s, inst);
    int from = in->task->buf[index], to = in->task->buf[in->task->n_in + index];
    return (pair){s,
                  in,
                  inst,
                  index,
                  hp_entry_of(s, inst)->frame,
                  from,
                  to,
                  hp_dtype_bytes(s->p->buffer[to].dtype),
                  in->flow[index]->red};
}

static hp_storage *storage(const pair *p, int rank)
{
    return &p->s->storage[rank * p->s->p->n_streams + p->in->task->stream];
}

/* Where a rank's new box is put together: its buffer, or staging memory. */
static char *target(const pair *p, int rank)
{
    return p->in->staged ? storage(p, rank)->stage + p->in->stage_at[p->index]
                         : hp_data(p->s, rank, p->to, p->frame);
}

static hp_rop op_of(hp_reduce r)
{
    switch (r) {
    case HP_RED_MAX:
        return HP_ROP_MAX;
    case HP_RED_MIN:
        return HP_ROP_MIN;
    case HP_RED_PROD:
        return HP_ROP_PROD;
    case HP_RED_ALL:
        return HP_ROP_ALL;
    case HP_RED_LSE:
        return HP_ROP_LSE;
    default:
        return HP_ROP_SUM;
    }
}

/* --- dense boxes --- */

static void copy_piece(const pair *p, const hp_box *box, int dst, const char *from,
                       const hp_box *from_box)
{
    const hp_box *to_box = hp_box_of(p->s, dst, p->to);
    char *to = target(p, dst);
    if (to == from)
        return; /* in place: the box is where it should be */
    hp_box_copy(box->nd, to, to_box->lo, to_box->hi, from, from_box->lo, from_box->hi, box->lo,
                box->hi, p->elem);
}

/* The mean from the sum, over the piece's box in the buffer at `to`. */
static void divide(const hp_box *box, const hp_box *in, hp_num y, float n)
{
    int64_t at[HP_MAX_DIMS], size = hp_box_size(box);
    memcpy(at, box->lo, sizeof at);
    for (int64_t k = 0; k < size; k++) {
        int64_t i = 0;
        for (int d = 0; d < box->nd; d++)
            i = i * (in->hi[d] - in->lo[d]) + at[d] - in->lo[d];
        hp_num_put(y, i, hp_num_get(y, i) / n);
        for (int d = box->nd - 1; d >= 0 && ++at[d] == box->hi[d]; d--)
            at[d] = box->lo[d];
    }
}

static void reduce_block(const pair *p, const hp_piece *piece, const hp_box *box, int own)
{
    hp_num in[piece->n_src], y = {target(p, own), (int)p->s->p->buffer[p->to].dtype};
    const int64_t *lo[piece->n_src], *hi[piece->n_src];
    const hp_box *mine = hp_box_of(p->s, own, p->to);
    for (int i = 0; i < piece->n_src; i++) {
        const hp_box *b = hp_box_of(p->s, piece->src[i], p->from);
        in[i] = (hp_num){hp_data(p->s, piece->src[i], p->from, p->frame), y.t};
        lo[i] = b->lo;
        hi[i] = b->hi;
    }
    hp_box_reduce(op_of(p->red), box->nd, y, mine->lo, mine->hi, piece->n_src, in, lo, hi, box->lo,
                  box->hi);
    if (p->red == HP_RED_AVG)
        divide(box, mine, y, (float)piece->n_src);
    for (int i = 0; i < piece->n_dst; i++)
        if (piece->dst[i] != own)
            copy_piece(p, box, piece->dst[i], target(p, own), mine);
}

static void move_dense(const pair *p, const hp_piece *piece, int own)
{
    if (piece->n_src == 1) {
        copy_piece(p, &piece->box, own, hp_data(p->s, piece->src[0], p->from, p->frame),
                   hp_box_of(p->s, piece->src[0], p->from));
        return;
    }
    hp_box block = piece->box;
    int64_t inner = 1, outer = block.nd > 0 ? block.hi[0] - block.lo[0] : 1;
    inner = hp_box_size(&block) / outer;
    bool triples = block.nd == 1 && p->red == HP_RED_LSE;
    int64_t step =
        triples || inner >= BLOCK_ELEMENTS ? (triples ? outer : 1) : BLOCK_ELEMENTS / inner;
    for (int64_t at = 0; at < outer; at += step) {
        if (block.nd > 0) {
            block.lo[0] = piece->box.lo[0] + at;
            block.hi[0] = at + step < outer ? block.lo[0] + step : piece->box.hi[0];
        }
        reduce_block(p, piece, &block, own);
    }
}

/* --- rows of routed buffers --- */

static hp_rows *rows_of(const pair *p, int rank, bool to)
{
    return &storage(p, rank)->rows[2 * p->index + to];
}

static hp_err list_rows(const pair *p, int rank, hp_errmsg *e)
{
    const hp_program *pr = p->s->p;
    for (int to = 0; to < 2; to++) {
        int buffer = to ? p->to : p->from;
        hp_operand rows, choices;
        hp_err rc = hp_work_operand(p->s, rank, buffer, p->frame, &rows, e);
        if (!rc)
            rc = hp_work_operand(p->s, rank, pr->buffer[buffer].route, p->frame, &choices, e);
        if (rc)
            return hp_fail_at(e, "task %s", p->in->task->name);
        char *lists = storage(p, rank)->lists + (size_t)(2 * p->index + to) * p->in->list_bytes;
        hp_rows_build(&choices, hp_box_of(p->s, rank, buffer), lists, rows_of(p, rank, to));
    }
    return HP_OK;
}

static int64_t token(const hp_rows *r, int64_t b, int64_t s)
{
    return (b - r->box.lo[0]) * (r->box.hi[1] - r->box.lo[1]) + s - r->box.lo[1];
}

/* Where columns from `col` on of the row of (token, slot) lie; NULL when the rank lacks the row. */
static char *row_at(const hp_rows *r, char *data, int64_t b, int64_t s, int64_t slot, int64_t col,
                    int elem)
{
    int64_t row = r->route.row[token(r, b, s) * r->route.k + slot];
    return row < 0 ? NULL
                   : data + (row * (r->box.hi[3] - r->box.lo[3]) + col - r->box.lo[3]) * elem;
}

/* Moves one row of a piece; counts the bytes that every sender sends. False when a source lacks it. */
static bool move_row(const pair *p, const hp_piece *piece, int own, int64_t b, int64_t s,
                     int64_t slot, int64_t *sent)
{
    int64_t cols = piece->box.hi[3] - piece->box.lo[3];
    int type = (int)p->s->p->buffer[p->to].dtype;
    hp_num in[piece->n_src],
        y = {row_at(rows_of(p, own, true), target(p, own), b, s, slot, piece->box.lo[3], p->elem),
             type};
    for (int i = 0; i < piece->n_src; i++) {
        int r = piece->src[i];
        in[i] = (hp_num){row_at(rows_of(p, r, false), hp_data(p->s, r, p->from, p->frame), b, s,
                                slot, piece->box.lo[3], p->elem),
                         type};
        if (!in[i].p)
            return false;
        sent[i] += r == own ? 0 : cols * p->elem;
    }
    if (piece->n_src == 1)
        memmove(y.p, in[0].p, (size_t)(cols * p->elem));
    else
        hp_reduce_flat(op_of(p->red), piece->n_src, in, cols, y, 1);
    for (int i = 0; i < piece->n_dst; i++)
        if (piece->dst[i] != own) {
            memcpy(row_at(rows_of(p, piece->dst[i], true), target(p, piece->dst[i]), b, s, slot,
                          piece->box.lo[3], p->elem),
                   y.p, (size_t)(cols * p->elem));
            sent[piece->n_src] += cols * p->elem;
        }
    return true;
}

static hp_err move_rows(hp_engine *g, const pair *p, const hp_piece *piece, int own, hp_errmsg *e)
{
    const hp_box *box = &piece->box;
    const hp_rows *mine = rows_of(p, own, true);
    int64_t sent[piece->n_src + 1];
    memset(sent, 0, sizeof sent);
    for (int64_t b = box->lo[0]; b < box->hi[0]; b++)
        for (int64_t s = box->lo[1]; s < box->hi[1]; s++)
            for (int64_t slot = 0; slot < mine->route.k; slot++) {
                int32_t expert = mine->idx[token(mine, b, s) * mine->route.k + slot];
                if (expert >= box->lo[2] && expert < box->hi[2] &&
                    !move_row(p, piece, own, b, s, slot, sent))
                    return hp_fail(
                        e, HP_EINTERNAL,
                        "task %s: source and destination of %s were routed by different choices",
                        p->in->task->name, p->s->p->buffer[p->to].name);
            }
    for (int i = 0; i <= piece->n_src; i++) {
        int sender = i < piece->n_src ? piece->src[i] : own;
        __atomic_fetch_add(&hp_segment_span(g->seg, g->slot, p->s->index, sender, p->inst)->bytes,
                           sent[i], __ATOMIC_RELAXED);
    }
    return HP_OK;
}

/* --- phases --- */

bool hp_share_exists(const hp_side *s, int rank, int inst, hp_coll_phase phase)
{
    const hp_info *in = hp_info_of(s, inst);
    if (phase == HP_PHASE_ROWS)
        return in->routed;
    if (phase == HP_PHASE_OUT)
        return in->staged;
    for (int i = 0; i < in->task->n_in; i++)
        if (in->flow[i]->first[rank] < in->flow[i]->first[rank + 1])
            return true;
    return false;
}

static hp_err move(hp_engine *g, const pair *p, int rank, hp_errmsg *e)
{
    const hp_flow *f = p->in->flow[p->index];
    for (int i = f->first[rank]; i < f->first[rank + 1]; i++) {
        if (p->s->p->buffer[p->to].route < 0) {
            move_dense(p, &f->piece[i], rank);
            continue;
        }
        hp_err rc = move_rows(g, p, &f->piece[i], rank, e);
        if (rc)
            return rc;
    }
    return HP_OK;
}

hp_err hp_share_run(hp_engine *g, hp_side *s, int rank, int inst, hp_coll_phase phase, hp_errmsg *e)
{
    const hp_info *in = hp_info_of(s, inst);
    hp_err rc = HP_OK;
    for (int i = 0; i < in->task->n_in && !rc; i++) {
        pair p = pair_of(s, inst, i);
        bool routed = s->p->buffer[p.to].route >= 0;
        if (phase == HP_PHASE_ROWS && routed)
            rc = list_rows(&p, rank, e);
        else if (phase == HP_PHASE_MOVE)
            rc = move(g, &p, rank, e);
        else if (phase == HP_PHASE_OUT)
            memcpy(hp_data(s, rank, p.to, p.frame), target(&p, rank),
                   (size_t)(routed ? rows_of(&p, rank, true)->route.rows *
                                         (hp_box_of(s, rank, p.to)->hi[3] -
                                          hp_box_of(s, rank, p.to)->lo[3]) *
                                         p.elem
                                   : hp_buffer_rank_bytes(s->p, p.to, rank)));
    }
    return rc;
}

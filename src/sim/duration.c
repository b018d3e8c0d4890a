/* duration.c -- from tasks to the plain numbers that cost asks for. */
#include "sim/duration.h"
#include "trace/work.h"

#include <math.h>

static int64_t nanoseconds(double s)
{
    return llround(s * 1e9);
}

static int64_t bytes_of(const hp_program *p, const hp_task *t, int rank)
{
    int64_t sum = 0;
    for (int i = 0; i < t->n_in + t->n_out; i++)
        if (t->buf[i] >= 0)
            sum += hp_buffer_rank_bytes(p, t->buf[i], rank);
    return sum;
}

/* Matrix products run at the rate of their inputs' type. */
static hp_rate rate_of(const hp_program *p, const hp_task *t)
{
    for (int i = 0; i < t->n_in; i++)
        if (t->buf[i] >= 0 && p->buffer[t->buf[i]].dtype == HP_BF16)
            return HP_RATE_BF16;
    return HP_RATE_F32;
}

int64_t hp_duration_op(const hp_cluster *c, const hp_program *p, const hp_task *t, int rank)
{
    hp_work w = {.bytes = (double)bytes_of(p, t, rank)};
    if (t->kind == HP_TASK_OP) {
        hp_op_work o = hp_task_work(p, t, rank);
        w = (hp_work){o.matmul_flops, o.other_flops, o.bytes, o.m, o.n, o.k, o.groups};
    }
    return nanoseconds(hp_cost_op(c, &w, rate_of(p, t), NULL) *
                       hp_cluster_slowness(c, p->mesh.first + rank));
}

hp_xfer hp_xfer_of(hp_coll k)
{
    static const hp_xfer of[] = {
        [HP_COLL_ALL_GATHER] = HP_X_ALL_GATHER, [HP_COLL_REDUCE_SCATTER] = HP_X_REDUCE_SCATTER,
        [HP_COLL_ALL_REDUCE] = HP_X_ALL_REDUCE, [HP_COLL_ALL_TO_ALL] = HP_X_ALL_TO_ALL,
        [HP_COLL_PERMUTE] = HP_X_PERMUTE,       [HP_COLL_SEND_RECV] = HP_X_SEND};
    return of[k];
}

hp_transfer_time hp_duration_collective(const hp_cluster *c, const hp_program *p,
                                        const hp_program_rows *k, const hp_task *t,
                                        const hp_row_group *g)
{
    double bytes = 0;
    for (int i = 0; i < g->n; i++)
        bytes = fmax(bytes, hp_task_bytes(p, t, k->rep[g->row[i]]));
    for (int i = 0; i < 3; i++)
        bytes = fmax(bytes, hp_task_bytes(p, t, g->probe[i]));
    hp_xfer_cost cost = hp_cost_collective(c, hp_xfer_of(t->coll), &g->shape, bytes);
    return (hp_transfer_time){nanoseconds(cost.seconds), cost.level, cost.algorithm};
}

/* Messages of one receiver share its port; the slowest level's latency counts once. */
hp_transfer_time hp_duration_message(const hp_cluster *c, const hp_row_link *l, int dst)
{
    double bytes = 0, seconds = 0;
    hp_transfer_time out = {0, -1, "none"};
    for (int i = l->first_of_dst[dst]; i < l->first_of_dst[dst + 1]; i++)
        bytes += (double)l->message[i].bytes;
    for (int i = l->first_of_dst[dst]; i < l->first_of_dst[dst + 1]; i++) {
        hp_xfer_cost cost =
            hp_cost_send(c, l->message[i].src_device, l->message[i].dst_device, bytes);
        if (cost.level < 0 || cost.seconds <= seconds)
            continue;
        seconds = cost.seconds;
        out = (hp_transfer_time){nanoseconds(seconds), cost.level, cost.algorithm};
    }
    return out;
}

hp_transfer_time hp_duration_copy(const hp_cluster *c, const hp_program *p, const hp_task *t,
                                  int rank)
{
    int64_t bytes = 0;
    bool pool = false;
    for (int i = 0; i < t->n_in; i++)
        bytes += hp_buffer_rank_bytes(p, t->buf[i], rank);
    for (int i = 0; i < t->n_in + t->n_out; i++)
        pool = pool || p->buffer[t->buf[i]].tier == HP_TIER_POOL;
    return (hp_transfer_time){nanoseconds(hp_cost_copy(c, pool, (double)bytes)), c->n_levels,
                              "copy"};
}

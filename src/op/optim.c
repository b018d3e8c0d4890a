/* optim.c -- the optimizer's operations on flat boxes; they stand in plans, not in graphs. */
#include "kern/optim.h"

#include "kern/pointwise.h"
#include "kern/sumsq.h"
#include "op/rows.h"
#include "op/run.h"

#include <math.h>

static hp_err zero_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_fill, hp_box_count(hp_call_out(c, 0), false), 0, hp_out_num(c, 0));
    return HP_OK;
}

static hp_err cast_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_copy, hp_box_count(hp_call_in(c, 0), false), hp_in_num(c, 0), hp_out_num(c, 0));
    return HP_OK;
}

static hp_err accum_run(const hp_call *c, hp_errmsg *e)
{
    hp_num in[] = {hp_out_num(c, 0), hp_in_num(c, 0)};
    if (!c->accumulate)
        return cast_run(c, e);
    HP_KERNEL(c, hp_add, 2, in, hp_box_count(hp_call_in(c, 0), false), hp_out_num(c, 0));
    return HP_OK;
}

static void move_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
}

static hp_err sqnorm_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    double sum = HP_KERNEL(c, hp_sumsq, hp_box_count(hp_call_in(c, 0), false), hp_in_num(c, 0));
    hp_num y = hp_out_num(c, 0);
    hp_num_put(y, 0, (float)(sum + (c->accumulate ? (double)hp_num_get(y, 0) : 0)));
    return HP_OK;
}

static hp_err sum_scalars_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    double sum = 0;
    for (int i = 0; i < c->n_in; i++)
        sum += hp_num_get(hp_in_num(c, i), 0);
    hp_num_put(hp_out_num(c, 0), 0, (float)sum);
    return HP_OK;
}

/* torch.nn.utils.clip_grad_norm_: max_norm / (total_norm + 1e-6), at most 1; clip 0 scales nothing. Output 1 is the norm. */
static hp_err clip_scale_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    double norm = sqrt((double)hp_num_get(hp_in_num(c, 0), 0)), clip = hp_call_attr(c, "clip", 1);
    hp_num_put(hp_out_num(c, 0), 0, clip > 0 ? (float)fmin(1, clip / (norm + 1e-6)) : 1);
    if (c->n_out > 1 && hp_call_out(c, 1)->nd >= 0)
        hp_num_put(hp_out_num(c, 1), 0, (float)norm);
    return HP_OK;
}

static hp_optim settings(const hp_call *c, int scale)
{
    double warmup = hp_call_attr(c, "warmup", 0), at = (double)c->step + 1;
    return (hp_optim){.lr = hp_call_attr(c, "lr", 1e-3) * (warmup > 0 ? fmin(1, at / warmup) : 1),
                      .beta1 = hp_call_attr(c, "beta1", 0.9),
                      .beta2 = hp_call_attr(c, "beta2", 0.95),
                      .eps = hp_call_attr(c, "eps", 1e-8),
                      .decay = hp_call_attr(c, "decay", 0),
                      .grad_scale = hp_call_has(c, scale) ? hp_num_get(hp_in_num(c, scale), 0) : 1,
                      .step = c->step + 1};
}

static uint16_t *copy_out(const hp_call *c, int i)
{
    return i < c->n_out && hp_call_out(c, i)->nd >= 0 ? hp_call_out(c, i)->data : NULL;
}

static hp_err adamw_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_optim o = settings(c, 4);
    HP_KERNEL(c, hp_adamw, hp_box_count(hp_call_in(c, 0), false), &o, hp_call_out(c, 0)->data,
              hp_in_num(c, 3), hp_call_out(c, 1)->data, hp_call_out(c, 2)->data, copy_out(c, 3));
    return HP_OK;
}

static void adamw_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
    w->other_flops += 12.0 * (double)hp_box_count(hp_call_in(c, 0), false);
}

static hp_err sgd_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    hp_optim o = settings(c, 2);
    HP_KERNEL(c, hp_sgd, hp_box_count(hp_call_in(c, 0), false), &o, hp_call_out(c, 0)->data,
              hp_in_num(c, 1), copy_out(c, 1));
    return HP_OK;
}

static void sgd_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
    w->other_flops += 3.0 * (double)hp_box_count(hp_call_in(c, 0), false);
}

const hp_op hp_op_zero = {{"zero", NULL, NULL}, .work = move_work, .run = zero_run};
const hp_op hp_op_cast = {{"cast", NULL, NULL}, .work = move_work, .run = cast_run};
const hp_op hp_op_accum = {
    {"accum", NULL, NULL}, .accumulates = true, .work = hp_work_pointwise, .run = accum_run};
const hp_op hp_op_sqnorm = {
    {"sqnorm", NULL, NULL}, .accumulates = true, .work = hp_work_pointwise, .run = sqnorm_run};
const hp_op hp_op_sum_scalars = {
    {"sum_scalars", NULL, NULL}, .work = hp_work_pointwise, .run = sum_scalars_run};
const hp_op hp_op_clip_scale = {
    {"clip_scale", NULL, NULL}, .work = hp_work_pointwise, .run = clip_scale_run};
const hp_op hp_op_adamw = {
    {"adamw", NULL, NULL}, .in_place = true, .work = adamw_work, .run = adamw_run};
const hp_op hp_op_sgd = {{"sgd", NULL, NULL}, .in_place = true, .work = sgd_work, .run = sgd_run};

/* metrics.c -- the record of a small pipeline: classes, the critical one, memory, levels. */
#include "trace/metrics.h"

#include "handplan.h"
#include "tap.h"

static void span(hp_span *s, int64_t start, int64_t xfer, int64_t end, int64_t bytes)
{
    *s = (hp_span){
        .ready_ns = start, .start_ns = start, .xfer_ns = xfer, .end_ns = end, .bytes = bytes};
    s->state = HP_SPAN_DONE;
}

/* Two stages over tp=2; each computes, then all-reduces over tp. */
static hp_plan *two_stages(void)
{
    hp_plan *p = hand_plan(2, 4);
    p->global_batch = 4;
    p->seq = 100;
    p->budget_bytes = 1 << 20;
    p->model_flops_causal = 1e6;
    p->model_flops_full = 2e6;
    for (int i = 0; i < 2; i++) {
        hp_program *r = hand_program(p, i, "tp=2", 2 * i);
        int tp = hand_stream(r, "tp", HP_ROLE_TP);
        int w = hand_buffer(p, r, "w", HP_B_PARAMS, HP_S_PERSIST, 1024 * (i + 1));
        int a = hand_buffer(p, r, "a", HP_B_ACTIVATIONS, HP_S_FRAME, 256);
        int f = hand_template(p, r, HP_TMPL_F);
        hand_task(p, r, f, "op", HP_TASK_OP, 0, 1, 1, w, a);
        hand_collective(r, hand_task(p, r, f, "ar", HP_TASK_COLL, tp, 1, 1, a, a),
                        HP_COLL_ALL_REDUCE);
        hand_entry(r, f, 0, 0);
        hand_close(r);
    }
    return p;
}

static const hp_class_figures *class_of(const hp_result *r, const char *name)
{
    for (int i = 0; i < r->n_classes; i++)
        if (strcmp(r->cls[i].name, name) == 0)
            return &r->cls[i];
    return NULL;
}

static void test_record(void)
{
    hp_plan *p = two_stages();
    hp_expansion *x = hand_expand(p);
    hp_step_trace t;
    hp_step_trace_init(&t, p, x);
    t.step_ns = 1000;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            hp_span *s = t.span[i] + 2 * k;
            int64_t late = i == 1 && k == 1 ? 100 : 0; /* rank 1 of stage 1 is slow */
            span(&s[0], 0, 0, 400 + 100 * i + late, 0);
            span(&s[1], 400 + 100 * i + late, 500 + 100 * i, 800, 64);
        }
    hp_result *r = hp_result_new();
    hp_metrics_fill(p, x, &t, r);
    near(r->step_s, 1e-6, 1e-18, "the step is the trace's");
    near(r->tokens_per_s, 400 / 1e-6, 1, "tokens a second");
    near(r->tokens_per_s_per_device, 100 / 1e-6, 1, "... and a device");
    is_int(r->n_classes, 3, "equal ranks are one class, a straggler is its own");
    const hp_class_figures *a = class_of(r, "stage0"), *b = class_of(r, "stage1/rank1");
    ok(a && a->devices == 2 && a->stage == 0, "stage 0 has one class of two devices");
    ok(b && b->devices == 1 && b->stage == 1, "the straggler is named by stage and rank");
    near(r->time.compute_s, 600e-9, 1e-15, "the critical class computes and moves the most");
    near(r->time.exposed_s[HP_ROLE_TP], 200e-9, 1e-15, "... and its exposed time is its own");
    near(a->time.wait_s, 100e-9, 1e-15, "another class has its own owners");
    double sum = r->time.compute_s + r->time.overlapped_s + r->time.bubble_s + r->time.wait_s +
                 r->time.host_s + r->time.free_s;
    for (int i = 0; i < HP_OWN_ROLES; i++)
        sum += r->time.exposed_s[i];
    near(sum, r->time.step_s, 1e-15, "owners add up in seconds too");
    near(r->masking_ratio, 0, 0, "nothing is hidden");
    ok(isnan(r->copy_masking_ratio), "no copies, no ratio");
    is_int(r->n_axes, 1, "one axis");
    is_str(r->axis[0].axis, "tp", "... by the user's name");
    near(r->axis[0].bytes, 64, 0, "... with the bytes a device sends");
    near(r->memory.peak_bytes, 2048 + 256, 0, "memory is the worst class'");
    near(r->memory.arena_bytes, (double)hp_program_arena(&p->program[1]), 0,
         "... judged by its arena");
    ok(r->memory.fits, "it fits");
    is_str(r->memory.peak_at, "op of microbatch 0 in stage1", "the peak's instant has a name");
    hp_result_free(r);
    hp_step_trace_fini(&t);
    hand_free(p, x);
}

static void test_many_ranks(void)
{
    hp_plan *p = hand_plan(1, 16);
    hp_program *r = hand_program(p, 0, "dp=16", 0);
    int a = hand_buffer(p, r, "a", HP_B_ACTIVATIONS, HP_S_FRAME, 64),
        f = hand_template(p, r, HP_TMPL_F);
    hand_task(p, r, f, "op", HP_TASK_OP, 0, 0, 1, a);
    hand_entry(r, f, 0, 0);
    hand_close(r);
    hp_expansion *x = hand_expand(p);
    hp_step_trace t;
    hp_step_trace_init(&t, p, x);
    t.step_ns = 200;
    for (int k = 0; k < 16; k++)
        span(&t.span[0][k], 0, 0, 100 + (k * 7) % 16, 0);
    hp_result *res = hp_result_new();
    hp_metrics_fill(p, x, &t, res);
    is_int(res->n_classes, 1, "ranks that all differ are one class");
    is_int(res->cls[0].devices, 16, "... of all devices");
    near(res->time.compute_s, 115e-9, 1e-15, "... shown by its heaviest rank");
    hp_result_free(res);
    hp_step_trace_fini(&t);
    hand_free(p, x);
}

static void test_rows(void)
{
    hp_plan *p = two_stages();
    hp_expansion *x = hand_expand(p);
    hp_step_trace t;
    int rows[] = {1, 2}, row0[] = {0, 0}, *row[] = {row0, NULL};
    hp_step_trace_init_rows(&t, p, x, rows, row);
    is_int(hp_trace_row(&t, 0, 1), 0, "ranks may share a row");
    is_int(hp_trace_row(&t, 1, 1), 1, "... or have their own");
    ok(hp_trace_spans(&t, 0, 0) == hp_trace_spans(&t, 0, 1), "shared spans are the same spans");
    t.step_ns = 100;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < rows[i]; k++)
            span(&t.span[i][2 * k], 0, 0, 100, 0);
    hp_result *r = hp_result_new();
    hp_metrics_fill(p, x, &t, r);
    is_int(r->n_classes, 2, "folded rows make the same classes");
    is_int(class_of(r, "stage0")->devices, 2, "... with all their devices");
    hp_result_free(r);
    hp_step_trace_fini(&t);
    hand_free(p, x);
}

static void test_cluster(void)
{
    hp_plan *p = two_stages();
    hp_expansion *x = hand_expand(p);
    hp_step_trace t;
    hp_step_trace_init(&t, p, x);
    t.step_ns = 1000;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            span(&t.span[i][2 * k], 0, 0, 400, 0);
            span(&t.span[i][2 * k + 1], 400, 400, 800, 64);
        }
    hp_cluster *c = NULL;
    hp_errmsg e;
    hp_cluster_parse("ideal:4", 0, NULL, NULL, NULL, &c, &e);
    hp_result *r = hp_result_new();
    hp_metrics_fill(p, x, &t, r);
    hp_metrics_flops(p, r);
    hp_metrics_cluster(p, x, &t, c, HP_RATE_BF16, r);
    near(r->mfu, 1e6 / (1e15 * 4 * 1e-6), 1e-12,
         "mfu is model flops over what the devices could do");
    near(r->mfu_full_attention, 2 * r->mfu, 1e-12, "... full attention counts its own");
    is_str(r->mfu_dtype, "bf16", "... at a named rate");
    is_int(r->n_levels, 2, "every level of the cluster is there");
    near(r->bytes_by_level[1], 64, 0, "bytes are at the level they cross");
    ok(r->n_assumptions > 5, "the cluster's figures are assumptions");
    near(r->flops_executed, 0, 0, "unknown operations execute no flops");
    hp_result_free(r);
    hp_cluster_free(c);
    hp_step_trace_fini(&t);
    hand_free(p, x);
}

int main(void)
{
    test_record();
    test_many_ranks();
    test_rows();
    test_cluster();
    return done_testing();
}

/* allreduce.c -- the engine's all-reduce of 64 MiB between two devices, through a plan: prints the median seconds of one.
 * Built and run by scripts/bench/allreduce.sh. */
#include "exec/run.h"
#include "plan/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 12 };

/* Two devices with 16 Mi floats each, reduced in place. */
static const char plan_text[] = "hpbench-plan 1\n"
                                "model bench cluster host:2 strategy dp=2 hash 0000000000000000\n"
                                "sizes devices 2 batch 2 micro 1 global 2 seq 1 vocab 1 zigzag 0\n"
                                "budget 0 flops 0 0\n"
                                "program p stage 0 frames 0 host 0 scopes 67108864 0 0 0\n"
                                "mesh first 0 ranks 2 atoms 2\n"
                                "axis dp \"\" dp size 2 atoms 0\n"
                                "stream compute compute -\n"
                                "stream dp transfer dp\n"
                                "buffer x - f32 grads persist hbm bytes 67108864 at 0 shape 16777216 ~0:sum\n"
                                "buffer y - f32 grads persist hbm bytes 67108864 at 0 alias x shape 16777216\n"
                                "template O chunk 0\n"
                                " coll reduce dp always all-reduce 1 \"bench\" : x -> y\n"
                                "entry 0 micro -1 frame -1 first last\n"
                                "end\n";

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    hp_plan *p = NULL;
    hp_errmsg e = {0};
    hp_exec_options o = hp_exec_options_default();
    hp_exec_report r = {0};
    o.steps = STEPS;
    o.pin = true;
    hp_err err = hp_plan_parse(plan_text, &p, &e);
    if (!err)
        err = hp_exec_run(p, &o, NULL, &r, &e);
    if (err) {
        fprintf(stderr, "%s\n", e.text);
        return (int)err;
    }
    int64_t ns[STEPS];
    for (int i = 0; i < STEPS; i++)
        ns[i] = r.metrics[i].step_ns;
    qsort(ns + 2, STEPS - 2, sizeof *ns, ascending);
    printf("%.6f\n", (double)ns[2 + (STEPS - 2) / 2] * 1e-9);
    hp_exec_report_fini(&r);
    hp_plan_free(p);
    return 0;
}

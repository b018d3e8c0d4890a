/* lower_program.c -- one stage from placement to addresses. Chunks are emitted last to first, the order in which their gradients come. */
#include "plan/lower.h"

#include <stdlib.h>
#include <string.h>

static hp_err place_chunks(lowering *w)
{
    hp_err err = HP_OK;
    w->n_chunks = w->r->vpp;
    w->chunk = hp_xcalloc((size_t)w->n_chunks, sizeof *w->chunk);
    for (int k = 0; k < w->n_chunks && !err; k++) {
        w->chunk[k].chunk = k;
        w->chunk[k].vstage = k * w->r->pp + w->p->stage;
        err = low_place(w, &w->chunk[k]);
    }
    return err;
}

static void *keep(hp_plan *plan, void *heap, int n, size_t size)
{
    void *p = hp_arena_alloc(&plan->arena, (size_t)n * size);
    if (n)
        memcpy(p, heap, (size_t)n * size);
    free(heap);
    return p;
}

/* Moves all arrays into the plan's arena. */
static void finish(lowering *w)
{
    hp_program *p = w->p;
    hp_plan *plan = w->plan;
    p->n_templates = w->n_tmpl;
    p->tmpl = hp_arena_alloc(&plan->arena, (size_t)w->n_tmpl * sizeof *p->tmpl);
    for (int i = 0; i < w->n_tmpl; i++) {
        low_tmpl *t = w->tmpl[i];
        p->tmpl[i] = (hp_template){.kind = t->kind, .chunk = t->chunk, .n_tasks = t->n, .task = keep(plan, t->task, t->n, sizeof *t->task)};
        t->task = NULL;
    }
    p->stream = keep(plan, p->stream, p->n_streams, sizeof *p->stream);
    p->buffer = keep(plan, p->buffer, p->n_buffers, sizeof *p->buffer);
    p->entry = keep(plan, p->entry, p->n_entries, sizeof *p->entry);
}

static void drop(lowering *w)
{
    for (int i = 0; i < w->n_chunks; i++)
        low_chunk_fini(&w->chunk[i]);
    for (int i = 0; i < w->n_tmpl; i++) {
        free(w->tmpl[i]->task);
        free(w->tmpl[i]);
    }
    for (int i = 0; i < w->r->g->n_tensors; i++)
        free(w->param[i].gathered);
    free(w->chunk);
    free(w->param);
    free(w->step_value);
    hp_map_fini(&w->names);
    hp_map_fini(&w->buffer_names);
}

hp_err low_program(hp_resolved *r, hp_plan *plan, int stage, const hp_price *price, hp_errmsg *e)
{
    hp_program *p = &plan->program[stage];
    size_t n = (size_t)r->g->n_tensors;
    lowering w = {.r = r, .plan = plan, .p = p, .e = e, .price = *price, .loss_sum = -1};
    w.bf16 = !strcmp(r->s->dtype, "bf16");
    w.param = hp_xcalloc(n, sizeof *w.param);
    w.step_value = hp_xmalloc(n * sizeof *w.step_value);
    memset(w.step_value, 0xff, n * sizeof *w.step_value);
    *p = (hp_program){.name = hp_arena_printf(&plan->arena, "stage%d", stage), .stage = stage, .mesh = r->mesh[stage]};
    low_stream(&w, "compute", false, -1);
    hp_err err = low_params(&w);
    if (!err)
        err = low_init(&w);
    if (!err)
        err = place_chunks(&w);
    if (!err)
        err = low_accumulators(&w);
    for (int k = w.n_chunks - 1; k >= 0 && !err; k--)
        err = low_chunk_emit(&w, &w.chunk[k]);
    if (!err)
        err = low_optimizer(&w);
    if (!err)
        err = low_schedule(&w);
    if (err) {
        free(p->stream);
        free(p->buffer);
        free(p->entry);
        *p = (hp_program){0};
    } else {
        finish(&w);
        low_pass_in_place(p);
        low_addresses(p);
    }
    drop(&w);
    return err;
}

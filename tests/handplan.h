/* handplan.h -- plans written by hand, for tests of those who read plans.
 *
 * Buffers are one-dimensional f32, laid out one after the other in their scope. All memory belongs to the plan. A hand_ function
 * appends and returns what it made; limits are generous and asserted.
 */
#ifndef HP_TESTS_HANDPLAN_H
#define HP_TESTS_HANDPLAN_H

#include "plan/expand.h"
#include "plan/plan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HAND_MAX = 600, HAND_TASKS = 64 };

#define HAND_FN static __attribute__((unused))

HAND_FN hp_plan *hand_plan(int n_programs, int n_devices)
{
    hp_plan *p = hp_plan_new();
    p->model = p->cluster = p->strategy = "hand";
    p->n_devices = n_devices;
    p->batch = p->micro = p->seq = p->vocab = p->global_batch = 1;
    p->n_programs = n_programs;
    p->program = hp_arena_alloc(&p->arena, (size_t)n_programs * sizeof *p->program);
    return p;
}

/* A program over the mesh `axes` ("dp=2,tp=4") whose rank 0 is device `first`, with stream 0 called compute. */
HAND_FN hp_program *hand_program(hp_plan *p, int i, const char *axes, int first)
{
    hp_program *r = &p->program[i];
    const char *view = "";
    hp_errmsg e = {0};
    r->name = hp_arena_printf(&p->arena, "stage%d", i);
    r->stage = i;
    if (hp_mesh_build(&r->mesh, 1, &view, &axes, 0, NULL, NULL, &e)) {
        fprintf(stderr, "# %s\n", e.text);
        abort();
    }
    r->mesh.first = first;
    r->stream = hp_arena_alloc(&p->arena, 16 * sizeof *r->stream);
    r->buffer = hp_arena_alloc(&p->arena, HAND_MAX * sizeof *r->buffer);
    r->tmpl = hp_arena_alloc(&p->arena, 16 * sizeof *r->tmpl);
    r->entry = hp_arena_alloc(&p->arena, HAND_MAX * sizeof *r->entry);
    r->stream[r->n_streams++] = (hp_stream){"compute", false, -1};
    r->n_frames = 1;
    return r;
}

HAND_FN int hand_stream(hp_program *r, const char *name, int role)
{
    assert(r->n_streams < 16);
    r->stream[r->n_streams] = (hp_stream){name, true, role};
    return r->n_streams++;
}

HAND_FN int hand_buffer(hp_plan *p, hp_program *r, const char *name, hp_bkind kind, hp_scope scope,
                        int64_t bytes)
{
    assert(r->n_buffers < HAND_MAX && bytes % 64 == 0);
    hp_buffer *b = &r->buffer[r->n_buffers];
    *b = (hp_buffer){.name = hp_arena_strdup(&p->arena, name),
                     .dtype = HP_F32,
                     .layout = hp_layout_replicated(1),
                     .kind = kind,
                     .scope = scope,
                     .route = -1,
                     .alias = -1,
                     .bytes = bytes,
                     .offset = r->scope_bytes[scope]};
    b->shape.nd = 1;
    b->shape.size[0] = bytes / 4;
    r->scope_bytes[scope] += bytes;
    return r->n_buffers++;
}

HAND_FN int hand_template(hp_plan *p, hp_program *r, hp_tmpl_kind kind)
{
    assert(r->n_templates < 16);
    r->tmpl[r->n_templates] = (hp_template){.kind = kind};
    r->tmpl[r->n_templates].task = hp_arena_alloc(&p->arena, HAND_TASKS * sizeof(hp_task));
    return r->n_templates++;
}

/* Appends a task that reads n_in and writes n_out buffers, whose ids follow. */
HAND_FN hp_task *hand_task(hp_plan *p, hp_program *r, int tmpl, const char *name, hp_task_kind kind,
                           int stream, int n_in, int n_out, ...)
{
    hp_template *t = &r->tmpl[tmpl];
    assert(t->n_tasks < HAND_TASKS);
    hp_task *k = &t->task[t->n_tasks++];
    *k = (hp_task){.name = hp_arena_strdup(&p->arena, name),
                   .kind = kind,
                   .stream = stream,
                   .n_in = n_in,
                   .n_out = n_out,
                   .peer = -1,
                   .edge = -1};
    k->op = kind == HP_TASK_OP ? "hand" : NULL;
    k->buf = hp_arena_alloc(&p->arena, (size_t)(n_in + n_out) * sizeof(int));
    va_list ap;
    va_start(ap, n_out);
    for (int i = 0; i < n_in + n_out; i++)
        k->buf[i] = va_arg(ap, int);
    va_end(ap);
    return k;
}

/* Makes a task a collective over all atoms of the program's mesh. */
HAND_FN void hand_collective(hp_program *r, hp_task *k, hp_coll coll)
{
    k->coll = coll;
    k->atoms = (1u << r->mesh.n_atoms) - 1;
}

HAND_FN void hand_entry(hp_program *r, int tmpl, int micro, int frame)
{
    assert(r->n_entries < HAND_MAX);
    r->entry[r->n_entries++] = (hp_entry){tmpl, micro, frame, false, false};
    if (frame >= r->n_frames)
        r->n_frames = frame + 1;
}

/* Says which entries are the first and last of their template. */
HAND_FN void hand_close(hp_program *r)
{
    for (int i = 0; i < r->n_entries; i++) {
        bool first = true, last = true;
        for (int k = 0; k < r->n_entries; k++)
            if (r->entry[k].tmpl == r->entry[i].tmpl) {
                first = first && k >= i;
                last = last && k <= i;
            }
        r->entry[i].first = first;
        r->entry[i].last = last;
    }
}

HAND_FN hp_expansion *hand_expand(const hp_plan *p)
{
    hp_expansion *x = calloc((size_t)p->n_programs, sizeof *x);
    for (int i = 0; i < p->n_programs; i++)
        hp_expand(&p->program[i], &x[i]);
    return x;
}

HAND_FN void hand_free(hp_plan *p, hp_expansion *x)
{
    for (int i = 0; x && i < p->n_programs; i++)
        hp_expansion_fini(&x[i]);
    free(x);
    hp_plan_free(p);
}

#endif

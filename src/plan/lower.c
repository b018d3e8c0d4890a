/* lower.c -- buffers, tasks and moves: every name is unique in its program, every byte of a buffer follows from shape and layout. */
#include "plan/lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *unique(lowering *w, hp_map *names, const char *name)
{
    int n = hp_map_get(names, name, 0);
    hp_map_put(names, name, n + 1);
    if (!n)
        return hp_arena_strdup(&w->plan->arena, name);
    char *s = hp_arena_printf(&w->plan->arena, "%s~%d", name, n + 1);
    hp_map_put(names, s, 1);
    return s;
}

/* Rows a rank can get at most, and gets when all experts are chosen equally often. */
static void routed_share(const lowering *w, const hp_layout *l, const hp_shape *shape, int64_t k, int64_t *most, double *balanced)
{
    *most = 0;
    *balanced = 0;
    for (int rank = 0; rank < w->p->mesh.n_ranks; rank++) {
        hp_box b = hp_layout_box(&w->p->mesh, l, shape, rank);
        int64_t experts = b.hi[2] - b.lo[2], tokens = (b.hi[0] - b.lo[0]) * (b.hi[1] - b.lo[1]);
        int64_t rows = tokens * (k < experts ? k : experts);
        double even = (double)(tokens * k) * (double)experts / (double)shape->size[2];
        *most = rows > *most ? rows : *most;
        *balanced = even > *balanced ? even : *balanced;
    }
}

/* Rows a buffer has room for: all that can come where that was asked for, else `headroom` times the balanced share. */
static int64_t routed_rows(const lowering *w, int tensor, const hp_layout *l, const hp_shape *shape)
{
    const hp_shape *route = &w->r->shape[w->r->g->tensor[tensor].route];
    int64_t most;
    double balanced;
    routed_share(w, l, shape, route->size[route->nd - 1], &most, &balanced);
    int64_t planned = (int64_t)(w->r->s->moe.headroom * balanced) + 1;
    return w->r->all_rows || most < planned ? most : planned;
}

int low_buffer(lowering *w, const char *name, int tensor, hp_dtype t, const hp_shape *shape, const hp_layout *l, hp_bkind kind,
               hp_scope scope)
{
    hp_program *p = w->p;
    p->buffer = hp_grow(p->buffer, &w->cap_buffers, p->n_buffers + 1, sizeof *p->buffer);
    hp_buffer *b = &p->buffer[p->n_buffers];
    *b = (hp_buffer){.name = unique(w, &w->buffer_names, name), .dtype = t, .shape = *shape, .layout = *l, .kind = kind, .scope = scope,
                     .route = -1, .alias = -1};
    int64_t n = hp_layout_max_size(&p->mesh, l, shape);
    if (tensor >= 0) {
        b->tensor = hp_arena_strdup(&w->plan->arena, w->r->g->tensor[tensor].name);
        if (w->r->g->tensor[tensor].route >= 0) {
            b->rows = routed_rows(w, tensor, l, shape);
            int64_t width = 0;
            for (int rank = 0; rank < p->mesh.n_ranks; rank++) {
                hp_box box = hp_layout_box(&p->mesh, l, shape, rank);
                int64_t have = box.hi[box.nd - 1] - box.lo[box.nd - 1];
                width = have > width ? have : width;
            }
            n = b->rows * width;
        }
    }
    b->bytes = (n * hp_dtype_bytes(t) + 63) / 64 * 64;
    return p->n_buffers++;
}

int low_stream(lowering *w, const char *name, bool comm, int role)
{
    hp_program *p = w->p;
    for (int i = 0; i < p->n_streams; i++)
        if (!strcmp(p->stream[i].name, name))
            return i;
    p->stream = hp_grow(p->stream, &w->cap_streams, p->n_streams + 1, sizeof *p->stream);
    p->stream[p->n_streams] = (hp_stream){.name = hp_arena_strdup(&w->plan->arena, name), .comm = comm, .role = role};
    return p->n_streams++;
}

static int role_of(const hp_mesh *m, uint32_t atoms)
{
    char name[64];
    hp_mesh_name(m, atoms, name, sizeof name);
    name[strcspn(name, "+")] = 0;
    char *dot = strrchr(name, '.');
    if (dot && dot[1] >= '0' && dot[1] <= '9')
        *dot = 0;
    const hp_axis *a = hp_mesh_axis(m, name);
    return a ? a->role : HP_ROLE_OTHER;
}

/* The stream of a collective, 0 when transfers of its role are not to overlap. */
static int comm_stream(lowering *w, const hp_task *t)
{
    char name[64];
    const hp_axis *a = hp_coll_axis(w->p, t);
    int role = a ? a->role : role_of(&w->p->mesh, t->atoms);
    const hp_strategy *s = w->r->s;
    bool async = role == HP_ROLE_TP || role == HP_ROLE_DP || (role == HP_ROLE_CP && s->overlap.cp) ||
                 (role == HP_ROLE_EP && s->overlap.ep);
    return async ? low_stream(w, hp_coll_axis_name(w->p, t, name, sizeof name), true, role) : 0;
}

hp_task *low_task(lowering *w, low_tmpl *t, const char *name, hp_task_kind kind, int stream, int n_in, int n_out)
{
    t->task = hp_grow(t->task, &t->cap, t->n + 1, sizeof *t->task);
    hp_task *k = &t->task[t->n++];
    *k = (hp_task){.name = unique(w, &w->names, name), .kind = kind, .stream = stream, .n_in = n_in, .n_out = n_out};
    k->buf = hp_arena_alloc(&w->plan->arena, (size_t)(n_in + n_out) * sizeof *k->buf);
    for (int i = 0; i < n_in + n_out; i++)
        k->buf[i] = -1;
    return k;
}

hp_task *low_op(lowering *w, low_tmpl *t, const char *name, const char *op, int n_in, const int *in, int n_out, const int *out)
{
    hp_task *k = low_task(w, t, name, HP_TASK_OP, 0, n_in, n_out);
    k->op = op;
    memcpy(k->buf, in, (size_t)n_in * sizeof *in);
    memcpy(k->buf + n_in, out, (size_t)n_out * sizeof *out);
    return k;
}

void low_attrs(lowering *w, hp_task *t, const hp_node *n)
{
    t->n_attrs = n->n_attrs;
    t->attr = hp_arena_alloc(&w->plan->arena, (size_t)n->n_attrs * sizeof *t->attr);
    for (int i = 0; i < n->n_attrs; i++)
        t->attr[i] = (hp_attr){hp_arena_strdup(&w->plan->arena, n->attr[i].key), n->attr[i].value};
    t->node = hp_arena_strdup(&w->plan->arena, n->name);
}

hp_task *low_coll(lowering *w, low_tmpl *t, const char *name, hp_coll kind, uint32_t atoms, int n, const int *src, const int *dst,
                  const char *why)
{
    hp_task *k = low_task(w, t, name, HP_TASK_COLL, 0, n, n);
    k->coll = kind;
    k->atoms = atoms;
    k->why = why;
    memcpy(k->buf, src, (size_t)n * sizeof *src);
    memcpy(k->buf + n, dst, (size_t)n * sizeof *dst);
    k->stream = kind == HP_COLL_SLICE ? 0 : comm_stream(w, k);
    return k;
}

void low_dims(const hp_graph *g, int tensor, const char **dims)
{
    const hp_tensor *t = &g->tensor[tensor];
    for (int d = 0; d < t->nd; d++)
        dims[d] = g->dim[t->dim[d]].name;
}

const char *low_why(lowering *w, int tensor, const hp_layout *from, const hp_layout *to, const char *consumer)
{
    const char *dims[HP_MAX_DIMS];
    hp_str s = {0};
    low_dims(w->r->g, tensor, dims);
    hp_str_add(&s, "%s from [", w->r->g->tensor[tensor].name);
    hp_layout_print(&w->p->mesh, from, dims, &s);
    hp_str_add(&s, "] to [");
    hp_layout_print(&w->p->mesh, to, dims, &s);
    hp_str_add(&s, "] for %s", consumer);
    char *why = hp_arena_strdup(&w->plan->arena, hp_str_text(&s));
    hp_str_fini(&s);
    return why;
}

hp_err low_move(lowering *w, low_tmpl *t, int src, const hp_layout *to, int dst, hp_scope scope, bool async, const char *consumer, int *out)
{
    hp_program *p = w->p;
    hp_buffer from = p->buffer[src];
    *out = src;
    if (hp_layout_equal(&from.layout, to) && dst < 0)
        return HP_OK;
    hp_path path = {0};
    hp_err err = hp_redist_path(&p->mesh, &from.shape, hp_dtype_bytes(from.dtype), &from.layout, to, &w->price, &path, w->e);
    if (err)
        return hp_fail_at(w->e, "%s for %s", from.name, consumer);
    if (!path.n) { /* equal layouts, another buffer */
        path.n = 1;
        path.move[0] = (hp_move){.kind = HP_COLL_SLICE, .from = from.layout, .to = *to};
    }
    int tensor = from.tensor ? hp_map_get(&w->r->g->tensor_id, from.tensor, -1) : -1;
    for (int i = 0; i < path.n; i++) {
        const hp_move *m = &path.move[i];
        char name[256];
        int next = i + 1 == path.n ? dst : -1;
        if (next < 0)
            next = low_buffer(w, from.name, tensor, from.dtype, &from.shape, &m->to, from.kind, i + 1 == path.n ? scope : HP_S_RUN);
        snprintf(name, sizeof name, "%s>%s", from.name, hp_coll_name(m->kind));
        const char *why = tensor >= 0 ? low_why(w, tensor, &m->from, &m->to, consumer)
                                      : hp_arena_printf(&w->plan->arena, "%s for %s", from.name, consumer);
        hp_task *k = low_coll(w, t, name, m->kind, m->atoms, 1, out, &next, why);
        if (!async)
            k->stream = 0;
        *out = next;
    }
    return HP_OK;
}

low_tmpl *low_template(lowering *w, hp_tmpl_kind kind, int chunk)
{
    low_tmpl *t = hp_xcalloc(1, sizeof *t);
    t->kind = kind;
    t->chunk = chunk;
    return w->tmpl[w->n_tmpl++] = t;
}

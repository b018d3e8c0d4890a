/* parse.c -- a plan from its text (plan/text.h). The text is copied once into the plan's arena and cut into words there; names point into it. */
#include "plan/text.h"

#include "base/map.h"
#include "plan/words.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    hp_plan *p;
    hp_words w;
    hp_program g; /* being read; arrays are heap until close_program */
    hp_map buffer_id, task_id;
    int cap_programs, cap_cuts, cap_streams, cap_buffers, cap_templates, cap_entries, cap_tasks,
        cap_bufs, cap_attrs;
    hp_cut *cut;        /* until the first program */
    hp_task *task;      /* of the open template */
    const char **route; /* per buffer: name of its route, NULL */
    int cap_routes;
    int *buf;      /* operands of the open task */
    hp_attr *attr; /* attributes of the open task */
    int n_bufs, n_attrs;
} reader;

/* Runs takes in order and returns the first error. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        hp_err try_rc = (call);                                                                    \
        if (try_rc)                                                                                \
            return try_rc;                                                                         \
    } while (0)

/* --- the head --- */

enum { MAX_COUNT = 1 << 28 };

static hp_err read_model(reader *r)
{
    hp_plan *p = r->p;
    TRY(hp_words_string(&r->w, "model", &p->model));
    TRY(hp_words_literal(&r->w, "cluster"));
    TRY(hp_words_string(&r->w, "cluster", &p->cluster));
    TRY(hp_words_literal(&r->w, "strategy"));
    TRY(hp_words_string(&r->w, "strategy", &p->strategy));
    TRY(hp_words_literal(&r->w, "hash"));
    return hp_words_hex(&r->w, "hash", &p->strategy_hash);
}

static hp_err read_sizes(reader *r)
{
    hp_plan *p = r->p;
    TRY(hp_words_literal(&r->w, "devices"));
    TRY(hp_words_int(&r->w, "devices", 0, MAX_COUNT, &p->n_devices));
    TRY(hp_words_literal(&r->w, "batch"));
    TRY(hp_words_int64(&r->w, "batch", 0, INT64_MAX, &p->batch));
    TRY(hp_words_literal(&r->w, "micro"));
    TRY(hp_words_int64(&r->w, "micro", 0, INT64_MAX, &p->micro));
    TRY(hp_words_literal(&r->w, "global"));
    TRY(hp_words_int64(&r->w, "global", 0, INT64_MAX, &p->global_batch));
    TRY(hp_words_literal(&r->w, "seq"));
    TRY(hp_words_int64(&r->w, "seq", 0, INT64_MAX, &p->seq));
    TRY(hp_words_literal(&r->w, "vocab"));
    TRY(hp_words_int64(&r->w, "vocab", 0, INT64_MAX, &p->vocab));
    TRY(hp_words_literal(&r->w, "zigzag"));
    return hp_words_int(&r->w, "zigzag", 0, MAX_COUNT, &p->zigzag);
}

static hp_err read_budget(reader *r)
{
    TRY(hp_words_int64(&r->w, "budget", 0, INT64_MAX, &r->p->budget_bytes));
    TRY(hp_words_literal(&r->w, "flops"));
    TRY(hp_words_double(&r->w, "flops", &r->p->model_flops_causal));
    return hp_words_double(&r->w, "flops", &r->p->model_flops_full);
}

/* Buffers point at cuts, so all cuts stand before the first program. */
static hp_err read_cut(reader *r)
{
    hp_plan *p = r->p;
    if (p->n_programs > 0)
        return hp_words_bad(&r->w, "line", "cut", "a cut before the first program");
    r->cut = hp_grow(r->cut, &r->cap_cuts, p->n_cuts + 1, sizeof *r->cut);
    hp_cut *c = &r->cut[p->n_cuts++];
    *c = (hp_cut){0};
    int kind = 0;
    TRY(hp_words_choice(&r->w, "cut", hp_text_cut, HP_TEXT_CUTS, &kind));
    c->kind = (hp_cut_kind)kind;
    for (;;) {
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (!w.s)
            return HP_OK;
        if (c->kind != HP_CUT_SIZES || c->n == 64)
            return hp_words_bad(&r->w, "word", w.s,
                                "the end of the line (a cut has up to 64 sizes)");
        TRY(hp_words_number(&r->w, "size", w.s, 0, INT64_MAX, &c->size[c->n]));
        c->n++;
    }
}

/* --- a program --- */

/* Moves a heap array into the plan's arena. */
static void *keep(reader *r, void *heap, int n, size_t size)
{
    void *p = hp_arena_alloc(&r->p->arena, (size_t)n * size);
    if (n)
        memcpy(p, heap, (size_t)n * size);
    free(heap);
    return p;
}

static void close_cuts(reader *r)
{
    if (!r->p->cut)
        r->p->cut = keep(r, r->cut, r->p->n_cuts, sizeof *r->cut);
    r->cut = NULL;
}

static void close_template(reader *r)
{
    if (r->g.n_templates == 0 || !r->task)
        return;
    hp_template *t = &r->g.tmpl[r->g.n_templates - 1];
    t->task = keep(r, r->task, t->n_tasks, sizeof *t->task);
    r->task = NULL;
    r->cap_tasks = 0;
}

static hp_err resolve_routes(reader *r)
{
    for (int i = 0; i < r->g.n_buffers; i++) {
        if (!r->route[i])
            continue;
        int id = hp_map_get(&r->buffer_id, r->route[i], -1);
        if (id < 0 || r->g.buffer[id].dtype != HP_I32 || r->g.buffer[id].shape.nd != 3 ||
            r->g.buffer[i].shape.nd != 4)
            return hp_words_bad(
                &r->w, "route of a buffer", r->route[i],
                "an i32 buffer [batch, seq, k] of the program, for a buffer of 4 dimensions");
        r->g.buffer[i].route = id;
    }
    return HP_OK;
}

static hp_err close_program(reader *r)
{
    if (r->p->n_programs == 0)
        return HP_OK;
    close_template(r);
    TRY(resolve_routes(r));
    hp_program *g = &r->g;
    for (int i = 0; i < g->n_entries; i++)
        if (g->entry[i].tmpl >= g->n_templates || g->entry[i].frame >= g->n_frames)
            return hp_words_bad(&r->w, "schedule of program", g->name,
                                "entries with a template and a frame that exist");
    g->stream = keep(r, g->stream, g->n_streams, sizeof *g->stream);
    g->buffer = keep(r, g->buffer, g->n_buffers, sizeof *g->buffer);
    g->tmpl = keep(r, g->tmpl, g->n_templates, sizeof *g->tmpl);
    g->entry = keep(r, g->entry, g->n_entries, sizeof *g->entry);
    r->p->program[r->p->n_programs - 1] = *g;
    *g = (hp_program){0};
    r->cap_streams = r->cap_buffers = r->cap_templates = r->cap_entries = 0;
    hp_map_fini(&r->buffer_id);
    hp_map_fini(&r->task_id);
    return HP_OK;
}

static hp_err read_program(reader *r)
{
    hp_plan *p = r->p;
    TRY(close_program(r));
    close_cuts(r);
    p->program = hp_grow(p->program, &r->cap_programs, p->n_programs + 1, sizeof *p->program);
    p->program[p->n_programs++] = (hp_program){0};
    hp_program *g = &r->g;
    TRY(hp_words_string(&r->w, "program", &g->name));
    TRY(hp_words_literal(&r->w, "stage"));
    TRY(hp_words_int(&r->w, "stage", 0, MAX_COUNT, &g->stage));
    TRY(hp_words_literal(&r->w, "frames"));
    TRY(hp_words_int(&r->w, "frames", 0, 1 << 16, &g->n_frames));
    TRY(hp_words_literal(&r->w, "host"));
    TRY(hp_words_int64(&r->w, "host", 0, INT64_MAX, &g->host_bytes));
    TRY(hp_words_literal(&r->w, "scopes"));
    for (int i = 0; i < HP_S_SCOPES; i++)
        TRY(hp_words_int64(&r->w, "scope", 0, INT64_MAX / 8 / (g->n_frames + 1),
                           &g->scope_bytes[i]));
    return HP_OK;
}

static hp_err read_mesh(reader *r)
{
    hp_mesh *m = &r->g.mesh;
    int64_t product = 1;
    TRY(hp_words_literal(&r->w, "first"));
    TRY(hp_words_int(&r->w, "first", 0, MAX_COUNT, &m->first));
    TRY(hp_words_literal(&r->w, "ranks"));
    TRY(hp_words_int(&r->w, "ranks", 1, 1 << 20, &m->n_ranks));
    TRY(hp_words_literal(&r->w, "atoms"));
    for (m->n_atoms = 0;; m->n_atoms++) {
        hp_word w;
        int64_t size = 0;
        TRY(hp_words_next(&r->w, &w));
        if (!w.s)
            break;
        if (m->n_atoms == HP_MAX_ATOMS)
            return hp_words_bad(&r->w, "atom", w.s, "up to 12 atoms");
        size_t n = strlen(w.s);
        m->joined[m->n_atoms] = n > 1 && w.s[n - 1] == '+';
        if (m->joined[m->n_atoms])
            w.s[n - 1] = '\0';
        TRY(hp_words_number(&r->w, "atom", w.s, 2, m->n_ranks, &size));
        m->size[m->n_atoms] = (int)size;
        product *= size;
        if (product > m->n_ranks)
            break;
    }
    return product == m->n_ranks
               ? HP_OK
               : hp_words_bad(&r->w, "mesh", "atoms", "sizes whose product is the number of ranks");
}

static hp_err take_axis_name(reader *r, const char *what, char *out, size_t n)
{
    const char *s;
    TRY(hp_words_name(&r->w, what, &s));
    if (strlen(s) >= n)
        return hp_words_bad(&r->w, what, s, "up to 15 letters");
    strcpy(out, s);
    return HP_OK;
}

static hp_err read_axis(reader *r)
{
    hp_mesh *m = &r->g.mesh;
    if (m->n_axes == HP_MAX_AXES)
        return hp_words_bad(&r->w, "line", "axis", "up to 24 axes");
    hp_axis *a = &m->axis[m->n_axes++];
    TRY(take_axis_name(r, "axis", a->name, sizeof a->name));
    TRY(take_axis_name(r, "view", a->view, sizeof a->view));
    TRY(hp_words_choice(&r->w, "role", hp_text_role, HP_TEXT_ROLES, &a->role));
    TRY(hp_words_literal(&r->w, "size"));
    TRY(hp_words_int(&r->w, "size", 1, 1 << 20, &a->size));
    TRY(hp_words_literal(&r->w, "atoms"));
    for (a->n = 0;; a->n++) {
        hp_word w;
        int64_t atom = 0;
        TRY(hp_words_next(&r->w, &w));
        if (!w.s)
            return HP_OK;
        TRY(hp_words_number(&r->w, "atom", a->n < HP_MAX_ATOMS ? w.s : NULL, 0, m->n_atoms - 1,
                            &atom));
        a->atom[a->n] = (uint8_t)atom;
    }
}

static hp_err read_stream(reader *r)
{
    static const char *const kind[] = {"compute", "transfer"};
    hp_program *g = &r->g;
    hp_word w;
    int comm = 0;
    g->stream = hp_grow(g->stream, &r->cap_streams, g->n_streams + 1, sizeof *g->stream);
    hp_stream *s = &g->stream[g->n_streams++];
    *s = (hp_stream){.role = -1};
    TRY(hp_words_name(&r->w, "stream", &s->name));
    TRY(hp_words_choice(&r->w, "kind of stream", kind, 2, &comm));
    s->comm = comm == 1;
    TRY(hp_words_next(&r->w, &w));
    if (w.s && strcmp(w.s, "-") == 0)
        return HP_OK;
    s->role = w.s ? hp_words_find(hp_text_role, HP_TEXT_ROLES, w.s) : -1;
    return s->role < 0 ? hp_words_bad(&r->w, "role", w.s, "dp, tp, pp, cp, ep, other or -") : HP_OK;
}

/* --- buffers --- */

static hp_err read_partial(reader *r, hp_buffer *b, char *s)
{
    char *colon = strchr(s, ':');
    int64_t atom = 0;
    if (colon)
        *colon = '\0';
    TRY(hp_words_number(&r->w, "partial atom", s + 1, 0, r->g.mesh.n_atoms - 1, &atom));
    int red = colon ? hp_reduce_find(colon + 1) : -1;
    if (red <= 0)
        return hp_words_bad(&r->w, "reduction", colon ? colon + 1 : "",
                            "~ATOM:sum, max, min, avg, prod, all or lse");
    b->layout.partial[atom] = (uint8_t)red;
    return HP_OK;
}

static hp_err read_dim(reader *r, hp_buffer *b, char *s)
{
    int d = b->shape.nd;
    if (d == HP_MAX_DIMS)
        return hp_words_bad(&r->w, "dimension", s, "up to 6 dimensions");
    char *atoms = strchr(s, ':');
    if (atoms)
        *atoms++ = '\0';
    char *cut = strchr(s, '/');
    if (cut)
        *cut++ = '\0';
    TRY(hp_words_number(&r->w, "size", s, 0, INT64_MAX / 64, &b->shape.size[d]));
    if (cut) {
        int64_t i = 0;
        TRY(hp_words_number(&r->w, "cut", cut, 0, r->p->n_cuts - 1, &i));
        b->shape.cut[d] = &r->p->cut[i];
    }
    while (atoms) {
        char *dot = strchr(atoms, '.');
        int64_t atom = 0;
        if (dot)
            *dot++ = '\0';
        TRY(hp_words_number(&r->w, "atom", b->layout.n[d] < HP_MAX_ATOMS ? atoms : NULL, 0,
                            r->g.mesh.n_atoms - 1, &atom));
        b->layout.split[d][b->layout.n[d]++] = (uint8_t)atom;
        atoms = dot;
    }
    b->shape.nd++;
    b->layout.nd++;
    return HP_OK;
}

static hp_err read_shape(reader *r, hp_buffer *b)
{
    for (;;) {
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (!w.s)
            return HP_OK;
        TRY(*w.s == '~' ? read_partial(r, b, w.s) : read_dim(r, b, w.s));
    }
}

static hp_err read_buffer_where(reader *r, hp_buffer *b)
{
    int v = 0;
    TRY(hp_words_found(&r->w, "dtype", hp_dtype_find, "f32, bf16 or i32", &v));
    b->dtype = (hp_dtype)v;
    TRY(hp_words_found(&r->w, "kind of buffer", hp_bkind_find,
                       "params, grads, optimizer, activations, logits, workspace, comm or kv", &v));
    b->kind = (hp_bkind)v;
    TRY(hp_words_found(&r->w, "scope", hp_scope_find, "persist, step, frame or run", &v));
    b->scope = (hp_scope)v;
    TRY(hp_words_found(&r->w, "tier", hp_tier_find, "hbm, host, pool or file", &v));
    b->tier = (hp_tier)v;
    TRY(hp_words_literal(&r->w, "bytes"));
    TRY(hp_words_int64(&r->w, "bytes", 0, INT64_MAX / 8, &b->bytes));
    TRY(hp_words_literal(&r->w, "at"));
    return hp_words_int64(&r->w, "offset", 0, INT64_MAX / 8, &b->offset);
}

static hp_err read_buffer_rest(reader *r, int id)
{
    hp_buffer *b = &r->g.buffer[id];
    for (;;) {
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (w.s && strcmp(w.s, "init") == 0) {
            int init = 0;
            double std = 0;
            TRY(hp_words_choice(&r->w, "init", hp_text_init, HP_TEXT_INITS, &init));
            TRY(hp_words_double(&r->w, "std", &std));
            b->init = (hp_init)init;
            b->init_std = (float)std;
        } else if (w.s && strcmp(w.s, "turn") == 0) {
            uint64_t atoms = 0;
            TRY(hp_words_hex(&r->w, "atoms of the ring", &atoms));
            if (atoms >> r->g.mesh.n_atoms)
                return hp_words_bad(&r->w, "atoms of the ring", "",
                                    "a mask of atoms that the mesh has");
            b->turn_atoms = (uint32_t)atoms;
            TRY(hp_words_int(&r->w, "turn", 1, MAX_COUNT, &b->turn));
        } else if (w.s && strcmp(w.s, "alias") == 0) {
            const char *name;
            TRY(hp_words_name(&r->w, "alias", &name));
            b->alias = hp_map_get(&r->buffer_id, name, -1);
            if (b->alias < 0 || b->alias == id || r->g.buffer[b->alias].scope != b->scope)
                return hp_words_bad(&r->w, "alias of a buffer", name,
                                    "an earlier buffer of the same scope");
        } else if (w.s && strcmp(w.s, "route") == 0) {
            TRY(hp_words_name(&r->w, "route", &r->route[id]));
            TRY(hp_words_int64(&r->w, "rows", 0, INT64_MAX / 64, &b->rows));
        } else if (w.s && strcmp(w.s, "shape") == 0) {
            return read_shape(r, b);
        } else {
            return hp_words_bad(&r->w, "word", w.s, "init, turn, alias, route or shape");
        }
    }
}

static hp_err read_buffer(reader *r)
{
    hp_program *g = &r->g;
    int id = g->n_buffers;
    g->buffer = hp_grow(g->buffer, &r->cap_buffers, id + 1, sizeof *g->buffer);
    r->route = hp_grow(r->route, &r->cap_routes, id + 1, sizeof *r->route);
    g->n_buffers++;
    r->route[id] = NULL;
    hp_buffer *b = &g->buffer[id];
    *b = (hp_buffer){.route = -1, .alias = -1};
    TRY(hp_words_name(&r->w, "buffer", &b->name));
    if (hp_map_get(&r->buffer_id, b->name, -1) >= 0)
        return hp_words_bad(&r->w, "buffer", b->name,
                            "a name that no other buffer of the program has");
    hp_map_put(&r->buffer_id, b->name, id);
    TRY(hp_words_string(&r->w, "tensor", &b->tensor));
    TRY(read_buffer_where(r, b));
    return read_buffer_rest(r, id);
}

/* --- tasks --- */

static hp_err read_template(reader *r)
{
    hp_program *g = &r->g;
    int kind = 0;
    close_template(r);
    g->tmpl = hp_grow(g->tmpl, &r->cap_templates, g->n_templates + 1, sizeof *g->tmpl);
    hp_template *t = &g->tmpl[g->n_templates++];
    *t = (hp_template){0};
    TRY(hp_words_choice(&r->w, "template", hp_text_tmpl, HP_TEXT_TMPLS, &kind));
    t->kind = (hp_tmpl_kind)kind;
    TRY(hp_words_literal(&r->w, "chunk"));
    return hp_words_int(&r->w, "chunk", 0, MAX_COUNT, &t->chunk);
}

static hp_err read_attr(reader *r)
{
    r->attr = hp_grow(r->attr, &r->cap_attrs, r->n_attrs + 1, sizeof *r->attr);
    hp_attr *a = &r->attr[r->n_attrs++];
    TRY(hp_words_name(&r->w, "attribute", &a->key));
    return hp_words_double(&r->w, "value", &a->value);
}

/* Reads "IN... -> OUT..." behind the colon. */
static hp_err read_operands(reader *r, hp_task *t)
{
    bool outputs = false;
    r->n_bufs = 0;
    for (;;) {
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (!w.s)
            break;
        if (!w.quoted && strcmp(w.s, "->") == 0 && !outputs) {
            outputs = true;
            t->n_in = r->n_bufs;
            continue;
        }
        int id = !w.quoted && strcmp(w.s, "-") == 0 ? -1 : hp_map_get(&r->buffer_id, w.s, -2);
        if (id == -2)
            return hp_words_bad(&r->w, "operand", w.s, "a buffer of the program, or -");
        r->buf = hp_grow(r->buf, &r->cap_bufs, r->n_bufs + 1, sizeof *r->buf);
        r->buf[r->n_bufs++] = id;
    }
    if (!outputs)
        return hp_words_bad(&r->w, "operands", NULL, "IN... -> OUT...");
    t->n_out = r->n_bufs - t->n_in;
    t->buf = hp_arena_alloc(&r->p->arena, (size_t)r->n_bufs * sizeof *t->buf);
    if (r->n_bufs)
        memcpy(t->buf, r->buf, (size_t)r->n_bufs * sizeof *t->buf);
    return HP_OK;
}

static hp_err read_op(reader *r, hp_task *t)
{
    TRY(hp_words_name(&r->w, "operation", &t->op));
    TRY(hp_words_string(&r->w, "node", &t->node));
    r->n_attrs = 0;
    for (;;) {
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (w.s && strcmp(w.s, "accumulate") == 0)
            t->accumulate = true;
        else if (w.s && strcmp(w.s, "recompute") == 0)
            t->recompute = true;
        else if (w.s && strcmp(w.s, "@") == 0)
            TRY(read_attr(r));
        else if (w.s && strcmp(w.s, ":") == 0)
            break;
        else
            return hp_words_bad(&r->w, "word", w.s, "accumulate, recompute, @ KEY VALUE or :");
    }
    t->n_attrs = r->n_attrs;
    t->attr =
        r->n_attrs ? hp_arena_alloc(&r->p->arena, (size_t)r->n_attrs * sizeof *t->attr) : NULL;
    if (r->n_attrs)
        memcpy(t->attr, r->attr, (size_t)r->n_attrs * sizeof *t->attr);
    return HP_OK;
}

static hp_err read_coll(reader *r, hp_task *t)
{
    uint64_t atoms = 0;
    int coll = 0;
    TRY(hp_words_found(&r->w, "collective", hp_coll_find,
                       "slice, all-gather, reduce-scatter, all-reduce, all-to-all or permute",
                       &coll));
    t->coll = (hp_coll)coll;
    TRY(hp_words_hex(&r->w, "atoms", &atoms));
    if (atoms >> r->g.mesh.n_atoms)
        return hp_words_bad(&r->w, "atoms", "", "a mask of atoms that the mesh has");
    t->atoms = (uint32_t)atoms;
    TRY(hp_words_string(&r->w, "why", &t->why));
    return hp_words_literal(&r->w, ":");
}

static hp_err read_message(reader *r, hp_task *t)
{
    TRY(hp_words_literal(&r->w, "peer"));
    TRY(hp_words_int(&r->w, "peer", 0, MAX_COUNT, &t->peer));
    TRY(hp_words_literal(&r->w, "edge"));
    TRY(hp_words_int(&r->w, "edge", 0, INT32_MAX, &t->edge));
    TRY(hp_words_string(&r->w, "why", &t->why));
    return hp_words_literal(&r->w, ":");
}

static hp_err read_kind(reader *r, hp_task *t)
{
    switch (t->kind) {
    case HP_TASK_OP:
        return read_op(r, t);
    case HP_TASK_COLL:
        return read_coll(r, t);
    case HP_TASK_SEND:
    case HP_TASK_RECV:
        return read_message(r, t);
    case HP_TASK_COPY:
        TRY(hp_words_string(&r->w, "why", &t->why));
        return hp_words_literal(&r->w, ":");
    default:
        return hp_words_literal(&r->w, ":");
    }
}

/* What each kind of task must have; the operands of OP are the operation's own business. */
static hp_err check_operands(reader *r, const hp_task *t)
{
    bool right = true;
    for (int i = 0; i < t->n_in + t->n_out && t->kind != HP_TASK_OP; i++)
        right = right && t->buf[i] >= 0;
    if (t->kind == HP_TASK_OP)
        right = t->n_in + t->n_out <= HP_MAX_OPERANDS;
    else if (t->kind == HP_TASK_COLL)
        right = right && t->n_in >= 1 && t->n_in == t->n_out;
    else if (t->kind != HP_TASK_LOAD)
        right =
            right && t->n_in == (t->kind != HP_TASK_RECV) && t->n_out == (t->kind != HP_TASK_SEND);
    return right ? HP_OK
                 : hp_words_bad(&r->w, "operands of", t->name,
                                "14 for op, pairs for coll, -> OUT... for load, IN -> for send, -> "
                                "OUT for recv, IN -> OUT for copy");
}

static hp_err read_task(reader *r, int kind)
{
    hp_program *g = &r->g;
    if (g->n_templates == 0)
        return hp_words_bad(&r->w, "line", hp_text_task[kind], "a task behind a template");
    hp_template *tm = &g->tmpl[g->n_templates - 1];
    r->task = hp_grow(r->task, &r->cap_tasks, tm->n_tasks + 1, sizeof *r->task);
    hp_task *t = &r->task[tm->n_tasks++];
    *t = (hp_task){.kind = (hp_task_kind)kind};
    int when = 0;
    const char *stream;
    TRY(hp_words_name(&r->w, "task", &t->name));
    if (hp_map_get(&r->task_id, t->name, -1) >= 0)
        return hp_words_bad(&r->w, "task", t->name, "a name that no other task of the program has");
    hp_map_put(&r->task_id, t->name, 0);
    TRY(hp_words_name(&r->w, "stream", &stream));
    t->stream = -1;
    for (int i = 0; i < g->n_streams && t->stream < 0; i++)
        if (strcmp(g->stream[i].name, stream) == 0)
            t->stream = i;
    if (t->stream < 0)
        return hp_words_bad(&r->w, "stream", stream, "a stream of the program");
    TRY(hp_words_choice(&r->w, "when", hp_text_when, HP_TEXT_WHENS, &when));
    t->when = (hp_when)when;
    TRY(read_kind(r, t));
    TRY(read_operands(r, t));
    return check_operands(r, t);
}

static hp_err read_entry(reader *r)
{
    hp_program *g = &r->g;
    g->entry = hp_grow(g->entry, &r->cap_entries, g->n_entries + 1, sizeof *g->entry);
    hp_entry *e = &g->entry[g->n_entries++];
    *e = (hp_entry){0};
    TRY(hp_words_int(&r->w, "template", 0, MAX_COUNT, &e->tmpl));
    TRY(hp_words_literal(&r->w, "micro"));
    TRY(hp_words_int(&r->w, "micro", -1, MAX_COUNT, &e->micro));
    TRY(hp_words_literal(&r->w, "frame"));
    TRY(hp_words_int(&r->w, "frame", -1, MAX_COUNT, &e->frame));
    for (;;) {
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (!w.s)
            return HP_OK;
        if (strcmp(w.s, "first") == 0)
            e->first = true;
        else if (strcmp(w.s, "last") == 0)
            e->last = true;
        else
            return hp_words_bad(&r->w, "word", w.s, "first or last");
    }
}

/* --- the whole --- */

typedef struct line_kind {
    const char *word;
    hp_err (*read)(reader *r);
    bool in_program;
} line_kind;

static const line_kind lines[] = {
    {"buffer", read_buffer, true},     {"entry", read_entry, true},
    {"template", read_template, true}, {"program", read_program, false},
    {"mesh", read_mesh, true},         {"axis", read_axis, true},
    {"stream", read_stream, true},     {"model", read_model, false},
    {"sizes", read_sizes, false},      {"budget", read_budget, false},
    {"cut", read_cut, false},
};

static hp_err read_line(reader *r, const char *first)
{
    int task = hp_words_find(hp_text_task, HP_TEXT_TASKS, first);
    if (task >= 0)
        return read_task(r, task);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(lines[i].word, first) != 0)
            continue;
        if (lines[i].in_program && r->p->n_programs == 0)
            return hp_words_bad(&r->w, "line", first, "a program line before it");
        return lines[i].read(r);
    }
    return hp_words_bad(&r->w, "line", first,
                        "model, sizes, budget, cut, program, mesh, axis, stream, buffer, template, "
                        "entry, a task or end");
}

static hp_err read_all(reader *r)
{
    const char *version;
    TRY(hp_words_literal(&r->w, "hpbench-plan"));
    TRY(hp_words_name(&r->w, "version", &version));
    if (strcmp(version, "1") != 0)
        return hp_words_bad(&r->w, "version", version, "1");
    for (;;) {
        TRY(hp_words_end(&r->w));
        if (r->w.held == '\0' && *r->w.at == '\0')
            return hp_words_bad(&r->w, "text", NULL, "a last line \"end\"");
        hp_words_skip(&r->w);
        hp_word w;
        TRY(hp_words_next(&r->w, &w));
        if (w.s && strcmp(w.s, "end") == 0)
            break;
        if (w.s)
            TRY(read_line(r, w.s));
    }
    TRY(hp_words_end(&r->w));
    close_cuts(r);
    return close_program(r);
}

static void drop(reader *r)
{
    free(r->g.stream);
    free(r->g.buffer);
    free(r->g.tmpl);
    free(r->g.entry);
    free(r->cut);
    free(r->task);
    free(r->route);
    free(r->buf);
    free(r->attr);
    hp_map_fini(&r->buffer_id);
    hp_map_fini(&r->task_id);
}

hp_err hp_plan_parse(const char *text, hp_plan **plan, hp_errmsg *e)
{
    reader r = {.p = hp_plan_new(), .w = {.line = 1, .e = e}};
    r.w.at = hp_arena_strdup(&r.p->arena, text);
    hp_err rc = read_all(&r);
    r.p->program = keep(&r, r.p->program, r.p->n_programs, sizeof *r.p->program);
    drop(&r);
    if (rc)
        hp_plan_free(r.p);
    else
        *plan = r.p;
    return rc;
}

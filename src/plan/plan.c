/* plan.c -- names, addresses and sizes. The order of scopes in an arena is written once, in scope_base. */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const bkind_name[HP_B_KINDS] = {
    "params", "grads", "optimizer", "activations", "logits", "workspace", "comm", "kv"};
static const char *const scope_name[HP_S_SCOPES] = {"persist", "step", "frame", "run"};
static const char *const tier_name[HP_TIERS] = {"hbm", "host", "pool", "file"};

static int find(const char *const *names, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], s) == 0)
            return i;
    return -1;
}

const char *hp_bkind_name(hp_bkind k)
{
    return bkind_name[k];
}

const char *hp_scope_name(hp_scope s)
{
    return scope_name[s];
}

const char *hp_tier_name(hp_tier t)
{
    return tier_name[t];
}

int hp_bkind_find(const char *s)
{
    return find(bkind_name, HP_B_KINDS, s);
}

int hp_scope_find(const char *s)
{
    return find(scope_name, HP_S_SCOPES, s);
}

int hp_tier_find(const char *s)
{
    return find(tier_name, HP_TIERS, s);
}

hp_plan *hp_plan_new(void)
{
    return hp_xcalloc(1, sizeof(hp_plan));
}

void hp_plan_free(hp_plan *p)
{
    if (!p)
        return;
    hp_arena_fini(&p->arena);
    free(p);
}

/* Where a scope (and frame) begins: [persist | step | frame 0 .. frame n-1 | run]. */
static int64_t scope_base(const hp_program *p, hp_scope s, int frame)
{
    const int64_t *b = p->scope_bytes;
    int64_t frames = b[HP_S_PERSIST] + b[HP_S_STEP];
    switch (s) {
    case HP_S_PERSIST:
        return 0;
    case HP_S_STEP:
        return b[HP_S_PERSIST];
    case HP_S_FRAME:
        return frames + frame * b[HP_S_FRAME];
    default:
        return frames + p->n_frames * b[HP_S_FRAME];
    }
}

int64_t hp_program_arena(const hp_program *p)
{
    return scope_base(p, HP_S_RUN, 0) + p->scope_bytes[HP_S_RUN];
}

int64_t hp_buffer_address(const hp_program *p, int buffer, int frame)
{
    const hp_buffer *b = &p->buffer[buffer];
    return b->tier == HP_TIER_HBM ? scope_base(p, b->scope, frame) + b->offset : b->offset;
}

int hp_buffer_root(const hp_program *p, int buffer)
{
    while (p->buffer[buffer].alias >= 0)
        buffer = p->buffer[buffer].alias;
    return buffer;
}

bool hp_task_due(const hp_task *t, const hp_entry *e)
{
    switch (t->when) {
    case HP_W_FIRST:
        return e->first;
    case HP_W_REST:
        return !e->first;
    case HP_W_LAST:
        return e->last;
    default:
        return true;
    }
}

static uint32_t axis_mask(const hp_axis *a)
{
    uint32_t mask = 0;
    for (int i = 0; i < a->n; i++)
        mask |= 1u << a->atom[i];
    return mask;
}

static bool moves_rows(const hp_program *p, const hp_task *t)
{
    for (int i = 0; i < t->n_in + t->n_out; i++)
        if (t->buf[i] >= 0 && p->buffer[t->buf[i]].route >= 0)
            return true;
    return false;
}

const hp_axis *hp_coll_axis(const hp_program *p, const hp_task *t)
{
    const hp_mesh *m = &p->mesh;
    const hp_axis *best = NULL;
    bool rows = moves_rows(p, t);
    for (int i = 0; i < m->n_axes; i++) {
        const hp_axis *a = &m->axis[i];
        bool holds = (t->atoms & ~axis_mask(a)) == 0;
        bool experts = best && rows && a->size == best->size && a->role == HP_ROLE_EP && best->role != HP_ROLE_EP;
        if (holds && (!best || a->size < best->size || experts))
            best = a;
    }
    return best;
}

char *hp_coll_axis_name(const hp_program *p, const hp_task *t, char *buf, size_t n)
{
    const hp_axis *a = hp_coll_axis(p, t);
    if (!a || axis_mask(a) != t->atoms)
        return hp_mesh_name(&p->mesh, t->atoms, buf, n);
    snprintf(buf, n, "%s%s%s", a->view, *a->view ? "." : "", a->name);
    return buf;
}

/* The rank `turn` places further than `rank` along the atoms of a mask, taken as one ring. */
static int turned(const hp_mesh *m, int rank, uint32_t atoms, int turn)
{
    int coord[HP_MAX_ATOMS], n = 1, at = 0, out = 0;
    hp_mesh_coord(m, rank, coord);
    for (int a = 0; a < m->n_atoms; a++)
        if (atoms >> a & 1) {
            at = at * m->size[a] + coord[a];
            n *= m->size[a];
        }
    at = ((at + turn) % n + n) % n;
    for (int a = m->n_atoms - 1; a >= 0; a--)
        if (atoms >> a & 1) {
            coord[a] = at % m->size[a];
            at /= m->size[a];
        }
    for (int a = 0; a < m->n_atoms; a++)
        out = out * m->size[a] + coord[a];
    return out;
}

hp_box hp_buffer_box(const hp_program *p, int buffer, int rank)
{
    const hp_buffer *b = &p->buffer[buffer];
    if (b->turn)
        rank = turned(&p->mesh, rank, b->turn_atoms, b->turn);
    return hp_layout_box(&p->mesh, &b->layout, &b->shape, rank);
}

int64_t hp_buffer_rank_bytes(const hp_program *p, int buffer, int rank)
{
    const hp_buffer *b = &p->buffer[buffer];
    hp_box box = hp_buffer_box(p, buffer, rank);
    if (b->route >= 0)
        return b->rows * (box.hi[box.nd - 1] - box.lo[box.nd - 1]) * hp_dtype_bytes(b->dtype);
    return hp_box_size(&box) * hp_dtype_bytes(b->dtype);
}

/* The share of a routed tensor's logical rows that exist: every token has k of all experts. */
static double routed_share(const hp_program *p, const hp_buffer *b)
{
    if (b->route < 0)
        return 1;
    const hp_shape *choices = &p->buffer[b->route].shape;
    return (double)choices->size[choices->nd - 1] / (double)b->shape.size[2];
}

double hp_task_bytes(const hp_program *p, const hp_task *t, int rank)
{
    double sum = 0;
    for (int i = 0; t->kind == HP_TASK_COLL && i < t->n_in; i++) {
        const hp_buffer *src = &p->buffer[t->buf[i]], *dst = &p->buffer[t->buf[t->n_in + i]];
        hp_move mv = {.kind = t->coll, .atoms = t->atoms, .from = src->layout, .to = dst->layout};
        if (src->turn != dst->turn) { /* one place along the ring: all that a rank holds */
            sum += (double)hp_buffer_rank_bytes(p, t->buf[i], rank);
            continue;
        }
        sum += routed_share(p, src) *
               hp_move_bytes(&p->mesh, &mv, &src->shape, hp_dtype_bytes(src->dtype), rank);
    }
    return sum;
}

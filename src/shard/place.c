/* place.c -- walks a stage's nodes, asks decide for each new question, and emits moves and nodes over copies.
 *
 * Invariant: `seen[t]` lists the copies of tensor t that a later node may read, oldest first. A copy leaves the list when its value was
 * reduced (nobody should reduce it again) and, at the turn to backward, when another copy of its tensor is the one worth saving.
 */
#include "shard/place.h"

#include "base/rng.h"
#include "shard/decide.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct seen {
    int n, cap, *copy;
} seen;

typedef struct use {
    int node, operand, next;
} use;

/* A remembered decision: the question's bytes and the answer. */
typedef struct memory {
    uint64_t hash;
    size_t n_bytes;
    char *bytes;
    hp_decision answer;
} memory;

typedef struct placer {
    const hp_place_in *in;
    hp_placement *out;
    hp_errmsg *e;
    hp_routes routes;
    seen *seen;     /* by tensor */
    int *shape;     /* number of the tensor's shape */
    int *target;    /* number of the tensor's target */
    int *first_use; /* by tensor: uses by nodes of this stage */
    use *use;
    int *layout; /* by copy: number of its layout */
    int cap_layouts;
    bool turned;
    memory *memory;
    int n_memories, cap_memories, *slot, n_slots; /* slots: open addressing, -1 free */
    hp_str key;
} placer;

static const hp_tensor *tensor(const placer *p, int t)
{
    return &p->in->g->tensor[t];
}

static bool is_fixed(const hp_tensor *t)
{
    return t->kind == HP_T_PARAM || t->kind == HP_T_BUFFER;
}

/* --- copies -------------------------------------------------------------------------------------- */

static int new_copy(placer *p, int t, int layout, int step, hp_phase phase)
{
    hp_placement *o = p->out;
    int c = o->n_copies++;
    o->copy = hp_grow(o->copy, &o->cap_copies, o->n_copies, sizeof *o->copy);
    o->copy[c] = (hp_copy){t, *hp_routes_at(&p->routes, layout), step, phase};
    p->layout = hp_grow(p->layout, &p->cap_layouts, o->n_copies, sizeof *p->layout);
    p->layout[c] = layout;
    seen *s = &p->seen[t];
    s->copy = hp_grow(s->copy, &s->cap, s->n + 1, sizeof *s->copy);
    s->copy[s->n++] = c;
    return c;
}

static hp_step *new_step(placer *p, int node, int consumer, hp_phase phase, double cost)
{
    hp_placement *o = p->out;
    o->step = hp_grow(o->step, &o->cap_steps, o->n_steps + 1, sizeof *o->step);
    hp_step *s = &o->step[o->n_steps++];
    *s = (hp_step){.node = node, .consumer = consumer, .phase = phase, .cost = cost};
    memset(s->copy, -1, sizeof s->copy);
    return s;
}

/* What W makes of its own, B cannot see when they are templates of their own. */
static bool visible(const placer *p, int copy, hp_phase phase)
{
    return !p->in->split_weights || p->out->copy[copy].phase != HP_P_WGRAD || phase == HP_P_WGRAD;
}

/* Forgets the copies that are partial where the new one no longer is. */
static void drop_partial(placer *p, int t, int reduced)
{
    uint32_t now = hp_layout_partial_mask(hp_routes_at(&p->routes, reduced));
    seen *s = &p->seen[t];
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        uint32_t was = hp_layout_partial_mask(hp_routes_at(&p->routes, p->layout[s->copy[i]]));
        if ((was & now) != now || was == now)
            s->copy[n++] = s->copy[i];
    }
    s->n = n;
}

static int64_t copy_size(const placer *p, int copy)
{
    const hp_copy *c = &p->out->copy[copy];
    return hp_layout_max_size(p->in->mesh, &c->layout, &p->in->shape[c->tensor]);
}

/* The turn from forward to backward: of each tensor the smallest copy stays, of equals the latest. */
static void turn(placer *p)
{
    p->turned = true;
    for (int t = 0; t < p->in->g->n_tensors; t++) {
        seen *s = &p->seen[t];
        if (s->n < 2 || is_fixed(tensor(p, t)) || tensor(p, t)->kind == HP_T_INPUT)
            continue;
        int best = s->copy[0];
        for (int i = 1; i < s->n; i++)
            if (copy_size(p, s->copy[i]) <= copy_size(p, best))
                best = s->copy[i];
        s->copy[0] = best;
        s->n = 1;
    }
}

/* --- the question -------------------------------------------------------------------------------- */

/* Atoms over which the values of another operand are or may still be partial. */
static uint32_t may_be_partial(const placer *p, int t)
{
    const seen *s = &p->seen[t];
    uint32_t mask = 0;
    if (s->n == 0)
        return is_fixed(tensor(p, t)) || tensor(p, t)->kind == HP_T_INPUT ? 0 : ~0u;
    for (int i = 0; i < s->n; i++)
        mask |= hp_layout_partial_mask(hp_routes_at(&p->routes, p->layout[s->copy[i]]));
    return mask;
}

static uint32_t shared_later(const placer *p, int t, int depth);

/* Whether nothing but free inputs stands beside operand i: then a partial value passes through the node. */
static bool alone(const placer *p, const hp_node *n, int i)
{
    for (int k = 0; k < n->n_in; k++)
        if (k != i && n->arg[k] >= 0 && tensor(p, n->arg[k])->kind != HP_T_INPUT)
            return false;
    return true;
}

/* Atoms over which one use of a tensor could take it partial and share its reduction: with the other terms of a sum, or further on. */
static uint32_t shared_in(const placer *p, const use *u, int depth)
{
    const hp_node *n = &p->in->g->node[u->node];
    uint32_t mask = 0;
    for (int g = 0; g < n->n_groups; g++) {
        if (!(n->group[g] >> u->operand & 1))
            continue;
        uint32_t terms = ~0u;
        int others = 0;
        for (int i = 0; i < n->n_in; i++)
            if (n->group[g] >> i & 1 && n->arg[i] >= 0 && n->arg[i] != n->arg[u->operand])
                others++, terms &= may_be_partial(p, n->arg[i]);
        if (others)
            mask |= terms;
        else if (n->n_out == 1 && alone(p, n, u->operand))
            mask |= shared_later(p, n->arg[n->n_in], depth + 1);
    }
    return mask;
}

/* A use that needs the value whole reduces it for all, so every use must be able to share. */
static uint32_t shared_later(const placer *p, int t, int depth)
{
    int u = depth < 4 ? p->first_use[t] : -1;
    uint32_t mask = u >= 0 ? ~0u : 0;
    for (; u >= 0 && mask; u = p->use[u].next)
        mask &= shared_in(p, &p->use[u], depth);
    return mask;
}

static void list_copies(const placer *p, int t, hp_phase phase, hp_choice_operand *o)
{
    const seen *s = &p->seen[t];
    for (int i = s->n - 1; i >= 0 && o->n_copies < HP_MAX_COPIES;
         i--) /* the latest, should there be too many */
        if (visible(p, s->copy[i], phase))
            o->copy[o->n_copies++] = p->layout[s->copy[i]];
}

static hp_err ask(placer *p, int node, hp_choice *c)
{
    const hp_node *n = &p->in->g->node[node];
    memset(c, 0, sizeof *c);
    c->node = n;
    if (p->in->ring_from && p->in->ring_from[node] >= 0) {
        c->ring = p->in->ring;
        c->ring_from = p->in->ring_from[node];
        c->ring_to = p->in->ring_to[node];
    }
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        hp_choice_operand *o = &c->op[i];
        int t = n->arg[i];
        o->shape = -1;
        if (t < 0)
            continue;
        const hp_tensor *x = tensor(p, t);
        c->shape[i] = &p->in->shape[t];
        o->shape = p->shape[t];
        for (o->same = 0; n->arg[o->same] != t;)
            o->same++;
        o->weight = x->kind == HP_T_WGRAD && x->of >= 0;
        o->target = p->target[o->weight ? x->of : t];
        o->fixed = is_fixed(x);
        o->free = x->kind == HP_T_INPUT;
        if (i >= n->n_in)
            o->late = shared_later(p, t, 0) & ((1u << p->in->mesh->n_atoms) - 1);
        else
            list_copies(p, t, n->phase, o);
        if (i < n->n_in && o->n_copies == 0 && !o->fixed && !o->free)
            return hp_fail(p->e, HP_EINTERNAL,
                           "node \"%s\" reads \"%s\", which no earlier node of the stage makes",
                           n->name, x->name);
    }
    return HP_OK;
}

/* --- memory -------------------------------------------------------------------------------------- */

static void key_of(hp_str *key, const hp_choice *c)
{
    const hp_node *n = c->node;
    key->len = 0;
    hp_str_put(key, (const char *)&n->kind, sizeof n->kind);
    hp_str_put(key, (const char *)&n->phase, sizeof n->phase);
    hp_str_put(key, (const char *)&n->n_in, sizeof n->n_in);
    hp_str_put(key, (const char *)&n->n_out, sizeof n->n_out);
    hp_str_put(key, (const char *)n->blocked, sizeof n->blocked);
    hp_str_put(key, (const char *)n->group, (size_t)n->n_groups * sizeof n->group[0]);
    hp_str_put(key, (const char *)n->reduce, (size_t)n->n_out * sizeof n->reduce[0]);
    for (int i = 0; i < n->n_attrs; i++) {
        hp_str_put(key, n->attr[i].key, strlen(n->attr[i].key) + 1);
        hp_str_put(key, (const char *)&n->attr[i].value, sizeof n->attr[i].value);
    }
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const hp_choice_operand *o = &c->op[i];
        int fact[] = {o->shape,    o->target,    o->same,
                      o->n_copies, (int)o->late, o->fixed | o->free << 1 | o->weight << 2};
        hp_str_put(key, (const char *)fact, sizeof fact);
        hp_str_put(key, (const char *)o->copy, (size_t)o->n_copies * sizeof o->copy[0]);
        if (o->shape >= 0)
            hp_str_put(key, (const char *)n->label[i], (size_t)c->shape[i]->nd);
    }
}

static int *memory_slot(const placer *p, uint64_t hash, const char *bytes, size_t n)
{
    for (uint64_t at = hash;; at++) {
        int *slot = &p->slot[at & (uint64_t)(p->n_slots - 1)];
        const memory *m = *slot < 0 ? NULL : &p->memory[*slot];
        if (!m || (m->hash == hash && m->n_bytes == n && memcmp(m->bytes, bytes, n) == 0))
            return slot;
    }
}

static void grow_memory(placer *p)
{
    p->n_slots = p->n_slots ? 2 * p->n_slots : 256;
    p->slot = hp_xrealloc(p->slot, (size_t)p->n_slots * sizeof *p->slot);
    memset(p->slot, -1, (size_t)p->n_slots * sizeof *p->slot);
    for (int i = 0; i < p->n_memories; i++)
        *memory_slot(p, p->memory[i].hash, p->memory[i].bytes, p->memory[i].n_bytes) = i;
}

static hp_decision decide(placer *p, const hp_choice *c)
{
    key_of(&p->key, c);
    if (2 * (p->n_memories + 1) > p->n_slots)
        grow_memory(p);
    uint64_t hash = hp_hash64(p->key.s, p->key.len);
    int *slot = memory_slot(p, hash, p->key.s, p->key.len);
    if (*slot >= 0) {
        p->out->n_memo++;
        return p->memory[*slot].answer;
    }
    p->out->n_decisions++;
    memory m = {hash, p->key.len, hp_xmalloc(p->key.len), hp_decide(&p->routes, c, true)};
    if (!m.answer.possible)
        m.answer = hp_decide(&p->routes, c, false);
    memcpy(m.bytes, p->key.s, p->key.len);
    *slot = p->n_memories;
    p->memory = hp_grow(p->memory, &p->cap_memories, p->n_memories + 1, sizeof *p->memory);
    p->memory[p->n_memories++] = m;
    return m.answer;
}

/* --- emission ------------------------------------------------------------------------------------ */

/* Moves copy `from` along its route and returns the last copy. */
static int emit_route(placer *p, int from, int want, int consumer)
{
    hp_copy start = p->out->copy[from];
    const hp_node *n = &p->in->g->node[consumer];
    const hp_route *way = hp_routes_find(&p->routes, p->shape[start.tensor], p->layout[from], want);
    bool reduces = hp_layout_partial_mask(&start.layout) !=
                   hp_layout_partial_mask(hp_routes_at(&p->routes, want));
    hp_phase phase = n->phase;
    if (start.phase == HP_P_INIT)
        phase = HP_P_INIT; /* once a step is enough */
    else if (phase == HP_P_WGRAD && reduces && start.phase != HP_P_WGRAD)
        phase = HP_P_BWD; /* so that both templates see the reduced value */
    for (int i = 0; i < way->n; i++) {
        hp_move mv = {way->leg[i].kind, way->leg[i].atoms, p->out->copy[from].layout,
                      *hp_routes_at(&p->routes, way->leg[i].to)};
        int to = new_copy(p, start.tensor, way->leg[i].to, p->out->n_steps, phase);
        hp_step *s = new_step(p, -1, consumer, phase, way->leg[i].cost);
        s->copy[0] = from;
        s->copy[1] = to;
        s->move = mv;
        from = to;
    }
    if (reduces)
        drop_partial(p, start.tensor, want);
    return from;
}

/* Returns a copy of the tensor in the wanted layout, made by the cheapest moves when there is none. */
static int provide(placer *p, int t, int want, int consumer)
{
    hp_phase phase = p->in->g->node[consumer].phase;
    const seen *s = &p->seen[t];
    int best = -1;
    double least = 0;
    for (int i = 0; i < s->n; i++) {
        int c = s->copy[i];
        if (!visible(p, c, phase))
            continue;
        if (p->layout[c] == want)
            return c;
        const hp_route *way = hp_routes_find(&p->routes, p->shape[t], p->layout[c], want);
        if (way->possible && (best < 0 || way->cost < least))
            best = c, least = way->cost;
    }
    if (tensor(p, t)->kind == HP_T_INPUT)
        return new_copy(p, t, want, -1, phase);
    assert(best >= 0);
    return emit_route(p, best, want, consumer);
}

static void emit(placer *p, int node, const hp_choice *c, const hp_decision *d)
{
    const hp_node *n = &p->in->g->node[node];
    int copy[HP_MAX_OPERANDS];
    for (int i = 0; i < n->n_in; i++)
        copy[i] = n->arg[i] < 0 ? -1 : provide(p, n->arg[i], d->layout[i], node);
    int step = p->out->n_steps;
    hp_step *s = new_step(p, node, node, n->phase, d->op_cost);
    memcpy(s->copy, copy, (size_t)n->n_in * sizeof *copy);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++)
        s->copy[i] = n->arg[i] < 0 ? -1 : new_copy(p, n->arg[i], d->layout[i], step, n->phase);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++) {
        int made = p->out->step[step].copy[i], goal;
        if (made < 0 || !c->op[i].weight)
            continue;
        goal = hp_decide_weight_goal(&p->routes, p->layout[made], c->op[i].target);
        if (goal != p->layout[made])
            emit_route(p, made, goal, node);
    }
}

static hp_err refuse(placer *p, const hp_choice *c)
{
    const hp_node *n = c->node;
    int dim = 0, i = hp_decide_conflict(&p->routes, c, &dim);
    if (i < 0)
        return hp_fail(p->e, HP_EINFEASIBLE,
                       "node \"%s\" cannot compute with its parameters laid out as they are: give "
                       "them layouts that agree",
                       n->name);
    const hp_tensor *t = tensor(p, n->arg[i]);
    char axes[64];
    return hp_fail(p->e, HP_EINFEASIBLE,
                   "node \"%s\" cannot compute with \"%s\" split over \"%s\" in dimension \"%s\": "
                   "the operation needs that dimension whole",
                   n->name, t->name,
                   hp_mesh_name(p->in->mesh,
                                hp_layout_mask(hp_routes_at(&p->routes, c->op[i].target), dim),
                                axes, sizeof axes),
                   p->in->g->dim[t->dim[dim]].name);
}

static hp_err place_node(placer *p, int node)
{
    hp_choice c;
    if (!p->turned && p->in->g->node[node].phase >= HP_P_BWD)
        turn(p);
    hp_err err = ask(p, node, &c);
    if (err)
        return err;
    hp_decision d = decide(p, &c);
    if (!d.possible)
        return refuse(p, &c);
    emit(p, node, &c, &d);
    return HP_OK;
}

/* --- begin and end ------------------------------------------------------------------------------- */

/* Rows that a routed tensor holds, as a share of its logical shape: of all experts every token has the k it chose. */
static double density(const placer *p, const hp_tensor *t)
{
    if (t->route < 0)
        return 1;
    const hp_shape *route = &p->in->shape[t->route], *own = &p->in->shape[t - p->in->g->tensor];
    int64_t experts = own->size[own->nd - 2], k = route->size[route->nd - 1];
    return experts > k ? (double)k / (double)experts : 1;
}

static void begin_tensor(placer *p, int t)
{
    const hp_tensor *x = tensor(p, t);
    p->shape[t] =
        hp_routes_shape(&p->routes, &p->in->shape[t], hp_dtype_bytes(x->dtype) * density(p, x));
    p->target[t] = hp_routes_layout(&p->routes, &p->in->target[t]);
    p->first_use[t] = -1;
}

static void begin_uses(placer *p)
{
    int n = 0;
    for (int i = 0; i < p->in->n_nodes; i++)
        n += p->in->g->node[p->in->node[i]].n_in;
    p->use = hp_xmalloc((size_t)n * sizeof *p->use + 1);
    n = 0;
    for (int i = 0; i < p->in->n_nodes; i++) {
        const hp_node *node = &p->in->g->node[p->in->node[i]];
        for (int k = 0; k < node->n_in; k++)
            if (node->arg[k] >= 0) {
                p->use[n] = (use){p->in->node[i], k, p->first_use[node->arg[k]]};
                p->first_use[node->arg[k]] = n++;
            }
    }
}

/* Parameters exist when some node of the stage uses them. */
static void begin_copies(placer *p)
{
    for (int t = 0; t < p->in->g->n_tensors; t++) {
        const hp_tensor *x = tensor(p, t);
        bool given = p->in->given && p->in->given[t];
        if (given || (is_fixed(x) && p->first_use[t] >= 0))
            new_copy(p, t, p->target[t], -1,
                     x->kind == HP_T_GRAD   ? HP_P_BWD
                     : x->kind == HP_T_STEP ? HP_P_INIT
                                            : HP_P_FWD);
    }
}

static void begin(placer *p)
{
    size_t n = (size_t)p->in->g->n_tensors;
    hp_routes_init(&p->routes, p->in->mesh, p->in->price);
    p->seen = hp_xcalloc(n, sizeof *p->seen);
    p->shape = hp_xcalloc(n, sizeof *p->shape);
    p->target = hp_xcalloc(n, sizeof *p->target);
    p->first_use = hp_xcalloc(n, sizeof *p->first_use);
    for (int t = 0; t < p->in->g->n_tensors; t++)
        begin_tensor(p, t);
    hp_placement *o = p->out;
    o->step = hp_grow(o->step, &o->cap_steps, 3 * p->in->n_nodes / 2 + 1, sizeof *o->step);
    o->copy = hp_grow(o->copy, &o->cap_copies, 2 * p->in->n_nodes + 1, sizeof *o->copy);
    begin_uses(p);
    begin_copies(p);
}

static void end(placer *p)
{
    for (int t = 0; t < p->in->g->n_tensors; t++)
        free(p->seen[t].copy);
    for (int i = 0; i < p->n_memories; i++)
        free(p->memory[i].bytes);
    free(p->seen);
    free(p->shape);
    free(p->target);
    free(p->first_use);
    free(p->use);
    free(p->layout);
    free(p->memory);
    free(p->slot);
    hp_str_fini(&p->key);
    hp_routes_fini(&p->routes);
}

hp_err hp_place(const hp_place_in *in, hp_placement *out, hp_errmsg *e)
{
    *out = (hp_placement){0};
    placer p = {.in = in, .out = out, .e = e};
    begin(&p);
    hp_err err = HP_OK;
    for (int i = 0; i < in->n_nodes && !err; i++)
        err = place_node(&p, in->node[i]);
    end(&p);
    if (err)
        hp_placement_fini(out);
    return err;
}

void hp_placement_fini(hp_placement *p)
{
    free(p->copy);
    free(p->step);
    *p = (hp_placement){0};
}

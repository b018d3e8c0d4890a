/* lower_chunk.c -- F and B of one chunk, from its placement.
 *
 * Every copy that B reads and F made is either *saved* (its buffer lives in the frame) or made *again* in B: it is made again when the recompute rules put its maker
 * into an instance of a module ("layers.3") and every reader in B belongs to the same instance, or where the results of that instance are discarded too; what crosses
 * into an instance is saved. Steps are emitted on demand: a step that is run again drags in what it reads. Integer choices (routing) are always saved.
 */
#include "plan/lower.h"

#include "op/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F, B };
enum { NOT_USED = -2, MIXED = -3 };

/* --- placement ------------------------------------------------------------------------------------------------- */

static bool here(const lowering *w, const low_chunk *c, int node)
{
    return node >= 0 && w->r->vstage[node] == c->vstage;
}

static void find_nodes(lowering *w, low_chunk *c)
{
    const hp_graph *g = w->r->g;
    c->node = hp_xmalloc((size_t)g->n_nodes * sizeof *c->node);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < g->n_nodes; i++) {
            bool forward = g->node[i].phase == HP_P_FWD;
            if (here(w, c, i) && g->node[i].phase != HP_P_INIT && forward == !pass)
                c->node[c->n_nodes++] = i;
        }
}

/* What the chunk's nodes read and none of them makes: received, or made once a step. */
static void find_given(lowering *w, low_chunk *c)
{
    const hp_graph *g = w->r->g;
    c->given = hp_xcalloc((size_t)g->n_tensors, sizeof *c->given);
    for (int i = 0; i < c->n_nodes; i++) {
        const hp_node *n = &g->node[c->node[i]];
        for (int k = 0; k < n->n_in; k++)
            if (n->arg[k] >= 0 && g->tensor[n->arg[k]].producer >= 0)
                c->given[n->arg[k]] = true;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        const hp_node *n = &g->node[c->node[i]];
        for (int k = n->n_in; k < n->n_in + n->n_out; k++)
            c->given[n->arg[k]] = false;
    }
}

hp_err low_place(lowering *w, low_chunk *c)
{
    if (!c->node)
        find_nodes(w, c);
    find_given(w, c);
    hp_place_in in = {.g = w->r->g, .mesh = &w->p->mesh, .shape = w->r->shape, .target = w->r->target, .given = c->given,
                      .n_nodes = c->n_nodes, .node = c->node, .price = &w->price, .ring = w->r->ring, .ring_from = w->r->ring_from,
                      .ring_to = w->r->ring_to};
    hp_err err = hp_place(&in, &c->placed, w->e);
    if (err)
        return err;
    size_t copies = (size_t)c->placed.n_copies, steps = (size_t)c->placed.n_steps;
    c->saved = hp_xcalloc(copies, sizeof *c->saved);
    c->again = hp_xcalloc(copies, sizeof *c->again);
    for (int k = 0; k < 2; k++) {
        c->buf[k] = hp_xmalloc(copies * sizeof *c->buf[k]);
        memset(c->buf[k], 0xff, copies * sizeof *c->buf[k]);
        c->done[k] = hp_xcalloc(steps, sizeof *c->done[k]);
    }
    return HP_OK;
}

void low_chunk_fini(low_chunk *c)
{
    free(c->node);
    free(c->given);
    free(c->saved);
    free(c->again);
    free(c->route);
    for (int k = 0; k < 2; k++) {
        free(c->buf[k]);
        free(c->done[k]);
        free(c->unit[k]);
    }
    hp_placement_fini(&c->placed);
}

/* --- what is saved, what is made again --------------------------------------------------------------------------- */

static bool names_op(const char *list, const char *op)
{
    size_t n = strlen(op);
    for (const char *s = list; (s = strstr(s, op)); s += n)
        if ((s == list || s[-1] == '+') && (s[n] == '+' || !s[n]))
            return true;
    return false;
}

/* The shortest ancestor of `name` that the glob matches, written to buf; false when none does. */
static bool instance_root(const char *glob, const char *name, char *buf, size_t n)
{
    for (const char *dot = strchr(name, '.');; dot = strchr(dot + 1, '.')) {
        snprintf(buf, n, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
        if (hp_glob_match(glob, buf))
            return true;
        if (!dot)
            return false;
    }
}

/* "layers.5" in groups of 4 belongs to "layers.4+4": only a group's input is kept. */
static void join_uniform(const char *root, int n, char *found, size_t size)
{
    const char *dot = strrchr(root, '.');
    int layer = dot ? atoi(dot + 1) : 0;
    snprintf(found, size, "%.*s.%d+%d", dot ? (int)(dot - root) : (int)strlen(root), root, layer / n * n, n);
}

/* As instance_root for a node or what its result answers to ("layers.0.moe.act"). */
static bool recompute_root(const lowering *w, const char *glob, const hp_node *n, char *buf, size_t size)
{
    if (instance_root(glob, n->name, buf, size))
        return true;
    const char *alias = w->r->g->tensor[n->arg[n->n_in]].alias;
    snprintf(buf, size, "%s", n->name);
    return alias && hp_glob_match(glob, alias);
}

/* The recompute instance of a forward node, -1 when it is not recomputed, and whether its results are discarded. The last rule that covers it wins. */
static int instance_of(const lowering *w, int node, hp_map *ids, bool *discards)
{
    const hp_node *n = &w->r->g->node[node];
    const char *op = w->r->g->ops[n->kind]->name;
    char root[256], found[320] = "";
    for (int i = 0; i < w->r->s->recompute.n; i++) {
        const hp_rule *u = &w->r->s->recompute.rule[i];
        bool listed = names_op(u->value, op), discard = !strcmp(u->value, "discard");
        if (!recompute_root(w, u->glob, n, root, sizeof root))
            continue;
        if (!strcmp(u->value, "none")) {
            *found = 0;
        } else if (discard || !strcmp(u->value, "inside")) {
            snprintf(found, sizeof found, "%s", root);
        } else if (!strcmp(u->value, "per-child")) {
            size_t k = strlen(root);
            const char *rest = n->name[k] ? n->name + k + 1 : "";
            snprintf(found, sizeof found, "%s.%.*s", root, (int)strcspn(rest, "."), rest);
        } else if (!strncmp(u->value, "uniform:", 8)) {
            join_uniform(root, atoi(u->value + 8), found, sizeof found);
        } else if (listed) {
            snprintf(found, sizeof found, "%s", n->name);
        } else {
            continue;
        }
        *discards = listed || discard;
    }
    if (!*found)
        return -1;
    int id = hp_map_get(ids, found, ids->n);
    hp_map_put(ids, found, id);
    return id;
}

static bool no_larger(const lowering *w, const low_chunk *c, int copy, int than)
{
    const hp_copy *a = &c->placed.copy[copy], *b = &c->placed.copy[than];
    const hp_shape *shape = &w->r->shape[a->tensor];
    return hp_layout_max_size(&w->p->mesh, &a->layout, shape) <= hp_layout_max_size(&w->p->mesh, &b->layout, shape);
}

/* The instance to which a step belongs: a node's own, a backward node's forward node's, a move's consumer's; but a move of forward whose result is no larger than
 * its source belongs to its source, so that what crosses into an instance is kept as it is read there. */
static int step_instance(const lowering *w, const low_chunk *c, int step, const int *instance)
{
    const hp_step *s = &c->placed.step[step];
    if (s->node < 0 && s->phase == HP_P_FWD && no_larger(w, c, s->copy[1], s->copy[0])) {
        int maker = c->placed.copy[s->copy[0]].step;
        return maker < 0 ? -1 : step_instance(w, c, maker, instance);
    }
    int node = s->node >= 0 ? s->node : s->consumer;
    if (node >= 0 && w->r->g->node[node].phase != HP_P_FWD)
        node = w->r->g->node[node].fwd;
    return node < 0 ? -1 : instance[node];
}

static void use(int *by, int instance)
{
    *by = *by == NOT_USED || *by == instance ? instance : MIXED;
}

static int n_inputs(const lowering *w, const hp_step *s)
{
    return s->node < 0 ? 1 : w->r->g->node[s->node].n_in;
}

static bool always_saved(const lowering *w, const hp_copy *k)
{
    return w->r->g->tensor[k->tensor].dtype == HP_I32;
}

/* What the recompute rules say of a chunk's forward nodes. */
typedef struct regime {
    int *instance; /* by node, -1 */
    bool *discards;
} regime;

static regime find_regime(const lowering *w, const low_chunk *c)
{
    const hp_graph *g = w->r->g;
    regime m = {hp_xmalloc((size_t)g->n_nodes * sizeof *m.instance), hp_xcalloc((size_t)g->n_nodes, sizeof *m.discards)};
    hp_map ids = {0};
    for (int i = 0; i < g->n_nodes; i++)
        m.instance[i] = w->r->s->recompute.n && here(w, c, i) && g->node[i].phase == HP_P_FWD ? instance_of(w, i, &ids, &m.discards[i]) : -1;
    hp_map_fini(&ids);
    return m;
}

/* Whether what a step makes is the result, moved or not, of a node whose results are discarded. */
static bool is_discarded(const lowering *w, const low_chunk *c, int step, const regime *m)
{
    const hp_step *s = &c->placed.step[step];
    if (s->node >= 0)
        return m->discards[s->node];
    int maker = c->placed.copy[s->copy[0]].step;
    return maker >= 0 && step_instance(w, c, maker, m->instance) == step_instance(w, c, step, m->instance) && is_discarded(w, c, maker, m);
}

/* Values that F makes and B may read. */
static bool is_made_forward(const lowering *w, const hp_copy *k)
{
    hp_tkind kind = w->r->g->tensor[k->tensor].kind;
    return k->phase == HP_P_FWD && kind != HP_T_PARAM && kind != HP_T_BUFFER && kind != HP_T_INPUT && kind != HP_T_STEP;
}

/* Walks copies from last to first, so that the readers of a copy (also those in steps that run again) are known when it is judged. */
static void judge_copies(lowering *w, low_chunk *c)
{
    const hp_placement *p = &c->placed;
    regime m = find_regime(w, c);
    int *by = hp_xmalloc((size_t)p->n_copies * sizeof *by);
    for (int i = 0; i < p->n_copies; i++)
        by[i] = NOT_USED;
    for (int s = 0; s < p->n_steps; s++)
        for (int k = 0; p->step[s].phase != HP_P_FWD && k < n_inputs(w, &p->step[s]); k++)
            if (p->step[s].copy[k] >= 0)
                use(&by[p->step[s].copy[k]], step_instance(w, c, s, m.instance));
    for (int i = p->n_copies - 1; i >= 0; i--) {
        const hp_copy *k = &p->copy[i];
        bool route = always_saved(w, k) && w->r->g->tensor[k->tensor].kind == HP_T_ACT;
        if (!is_made_forward(w, k) || (by[i] == NOT_USED && !route))
            continue;
        int made = k->step < 0 ? -1 : step_instance(w, c, k->step, m.instance);
        if (made < 0 || route || (by[i] != made && !is_discarded(w, c, k->step, &m))) {
            c->saved[i] = true;
            continue;
        }
        c->again[i] = true;
        for (int j = 0; j < n_inputs(w, &p->step[k->step]); j++)
            if (p->step[k->step].copy[j] >= 0)
                use(&by[p->step[k->step].copy[j]], made);
    }
    free(m.instance);
    free(m.discards);
    free(by);
}

/* --- emission ------------------------------------------------------------------------------------------------------ */

static hp_err emit_step(lowering *w, low_chunk *c, int which, int step);

static low_tmpl *tmpl_of(low_chunk *c, int which)
{
    return which == F ? c->f : c->b;
}

static hp_bkind kind_of(const lowering *w, int tensor, bool move)
{
    const hp_tensor *t = &w->r->g->tensor[tensor];
    for (int d = 0; d < t->nd; d++)
        if (!strcmp(w->r->g->dim[t->dim[d]].name, "vocab") && t->kind != HP_T_WGRAD)
            return HP_B_LOGITS;
    if (t->kind == HP_T_WGRAD)
        return HP_B_GRADS;
    return t->kind == HP_T_GRAD ? HP_B_WORKSPACE : move ? HP_B_COMM : HP_B_ACTIVATIONS;
}

static hp_dtype dtype_of(const lowering *w, int tensor)
{
    const hp_tensor *t = &w->r->g->tensor[tensor];
    if (!w->bf16 || t->dtype != HP_F32 || (t->kind != HP_T_ACT && t->kind != HP_T_GRAD) || !t->nd)
        return t->dtype;
    return t->wide ? HP_F32 : HP_BF16;
}

static int new_copy_buffer(lowering *w, low_chunk *c, int which, int copy, bool move)
{
    const hp_copy *k = &c->placed.copy[copy];
    bool saved = c->saved[copy];
    int b = low_buffer(w, w->r->g->tensor[k->tensor].name, k->tensor, dtype_of(w, k->tensor), &w->r->shape[k->tensor], &k->layout,
                       saved ? HP_B_ACTIVATIONS : kind_of(w, k->tensor, move), saved ? HP_S_FRAME : HP_S_RUN);
    if (saved && kind_of(w, k->tensor, false) == HP_B_LOGITS)
        w->p->buffer[b].kind = HP_B_LOGITS;
    c->buf[which][copy] = b;
    if (saved)
        c->buf[B][copy] = b;
    return b;
}

static int load_input(lowering *w, low_chunk *c, int which, int copy)
{
    const hp_copy *k = &c->placed.copy[copy];
    const hp_tensor *t = &w->r->g->tensor[k->tensor];
    int b = low_buffer(w, t->name, k->tensor, t->dtype, &w->r->shape[k->tensor], &k->layout, HP_B_WORKSPACE, HP_S_RUN);
    char name[256];
    snprintf(name, sizeof name, "%s/load", t->name);
    hp_task *task = low_task(w, tmpl_of(c, which), name, HP_TASK_LOAD, 0, 0, 1);
    task->buf[0] = b;
    return c->buf[which][copy] = b;
}

static hp_err copy_buffer(lowering *w, low_chunk *c, int which, int copy, int *buffer)
{
    const hp_copy *k = &c->placed.copy[copy];
    hp_tkind kind = w->r->g->tensor[k->tensor].kind;
    if (kind == HP_T_PARAM || kind == HP_T_BUFFER)
        return low_param_buffer(w, c, which, k->tensor, buffer);
    if (kind == HP_T_STEP && k->step < 0) {
        *buffer = w->step_value[k->tensor];
        return HP_OK;
    }
    if (c->buf[which][copy] < 0 && kind == HP_T_INPUT && k->step < 0)
        load_input(w, c, which, copy);
    if (c->buf[which][copy] < 0 && k->step >= 0) {
        hp_err err = emit_step(w, c, which, k->step);
        if (err)
            return err;
    }
    *buffer = c->buf[which][copy];
    if (*buffer < 0)
        return hp_fail(w->e, HP_EINTERNAL, "lowering lost a copy of %s", w->r->g->tensor[k->tensor].name);
    return HP_OK;
}

/* Whether the boxes that `of` makes of dimension d are parts of those that l makes. */
static bool covers(const lowering *w, const hp_shape *shape, const hp_layout *l, const hp_layout *of, int d)
{
    return l->n[d] <= of->n[d] && !memcmp(l->split[d], of->split[d], l->n[d]) && hp_layout_seam(&w->p->mesh, of, shape, d, l->n[d]);
}

/* Gathers a copy of the choices into layout `to`, once. */
static hp_err gather_route(lowering *w, low_chunk *c, int which, int copy, const hp_layout *to, int *out)
{
    int tensor = c->placed.copy[copy].tensor, src;
    for (int i = 0; i < c->n_routes; i++) {
        const low_route *r = &c->route[i];
        if (r->tensor == tensor && (r->which == F || r->which == which) && hp_layout_equal(&r->layout, to)) {
            *out = r->buffer;
            return HP_OK;
        }
    }
    hp_err err = copy_buffer(w, c, which, copy, &src);
    if (!err)
        err = low_move(w, tmpl_of(c, which), src, to, -1, which == F ? HP_S_FRAME : HP_S_RUN, true, "routing", out);
    if (err)
        return err;
    c->route = hp_grow(c->route, &c->cap_routes, c->n_routes + 1, sizeof *c->route);
    c->route[c->n_routes++] = (low_route){which, tensor, *out, *to};
    return HP_OK;
}

/* A buffer with the router's choices for all tokens that two layouts of a routed tensor hold. */
static hp_err route_buffer(lowering *w, low_chunk *c, int which, int tensor, const hp_layout *a, const hp_layout *b, int *out)
{
    int route = w->r->g->tensor[tensor].route, best = -1, most = -1, any = -1;
    const hp_shape *shape = &w->r->shape[route];
    for (int i = 0; i < c->placed.n_copies; i++) {
        const hp_copy *k = &c->placed.copy[i];
        if (k->tensor != route || k->layout.n[2] || hp_layout_partial_mask(&k->layout) || (which == F && k->phase != HP_P_FWD))
            continue;
        any = i;
        bool fits = true;
        for (int d = 0; d < 2; d++)
            fits = fits && covers(w, shape, &k->layout, a, d) && covers(w, shape, &k->layout, b, d);
        int atoms = k->layout.n[0] + k->layout.n[1];
        if (fits && atoms > most) {
            best = i;
            most = atoms;
        }
    }
    if (best >= 0)
        return copy_buffer(w, c, which, best, out);
    if (any < 0)
        return hp_fail(w->e, HP_EINTERNAL, "no copy of %s routes %s", w->r->g->tensor[route].name, w->r->g->tensor[tensor].name);
    hp_layout meet = hp_layout_replicated(3);
    for (int d = 0; d < 2; d++) {
        while (meet.n[d] < a->n[d] && meet.n[d] < b->n[d] && a->split[d][meet.n[d]] == b->split[d][meet.n[d]]) {
            meet.split[d][meet.n[d]] = a->split[d][meet.n[d]];
            meet.n[d]++;
        }
        while (!covers(w, shape, &meet, a, d) || !covers(w, shape, &meet, b, d))
            hp_layout_remove(&meet, d, 1);
    }
    return gather_route(w, c, which, any, &meet, out);
}

static hp_err set_route(lowering *w, low_chunk *c, int which, int copy, const hp_layout *other)
{
    int tensor = c->placed.copy[copy].tensor, route;
    if (w->r->g->tensor[tensor].route < 0)
        return HP_OK;
    hp_err err = route_buffer(w, c, which, tensor, &c->placed.copy[copy].layout, other, &route);
    if (!err)
        w->p->buffer[c->buf[which][copy]].route = route;
    return err;
}

static hp_err emit_move(lowering *w, low_chunk *c, int which, int step)
{
    const hp_step *s = &c->placed.step[step];
    const hp_copy *from = &c->placed.copy[s->copy[0]];
    int src;
    hp_err err = copy_buffer(w, c, which, s->copy[0], &src);
    if (err)
        return err;
    if (w->r->g->tensor[from->tensor].route >= 0) { /* the choices must be there before the rows move */
        int route;
        err = route_buffer(w, c, which, from->tensor, &s->move.from, &s->move.to, &route);
        if (err)
            return err;
    }
    int dst = c->buf[which][s->copy[1]];
    if (dst < 0)
        dst = new_copy_buffer(w, c, which, s->copy[1], true);
    char name[256];
    snprintf(name, sizeof name, "%s%s>%s", w->r->g->tensor[from->tensor].name, which == B && s->phase == HP_P_FWD ? "/again" : "",
             hp_coll_name(s->move.kind));
    const char *consumer = s->consumer >= 0 ? w->r->g->node[s->consumer].name : "a later stage";
    hp_task *t = low_coll(w, tmpl_of(c, which), name, s->move.kind, s->move.atoms, 1, &src, &dst,
                          low_why(w, from->tensor, &s->move.from, &s->move.to, consumer));
    t->recompute = which == B && s->phase == HP_P_FWD;
    return set_route(w, c, which, s->copy[1], &s->move.from);
}

static hp_err emit_node(lowering *w, low_chunk *c, int which, int step)
{
    const hp_step *s = &c->placed.step[step];
    const hp_node *n = &w->r->g->node[s->node];
    int buf[HP_MAX_OPERANDS];
    hp_err err = HP_OK;
    for (int i = 0; i < n->n_in && !err; i++) {
        buf[i] = -1;
        if (s->copy[i] >= 0)
            err = copy_buffer(w, c, which, s->copy[i], &buf[i]);
    }
    if (err || n->phase == HP_P_WGRAD)
        return err ? err : low_contribute(w, c, step, buf);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++) {
        int copy = s->copy[i];
        buf[i] = c->buf[which][copy];
        if (buf[i] < 0)
            buf[i] = new_copy_buffer(w, c, which, copy, false);
        err = set_route(w, c, which, copy, &c->placed.copy[copy].layout);
        if (err)
            return err;
    }
    char name[256];
    bool again = which == B && s->phase == HP_P_FWD;
    if (low_is_ring(w, c, s))
        return low_ring(w, tmpl_of(c, which), n, buf, again);
    snprintf(name, sizeof name, "%s%s", n->name, again ? "/again" : "");
    hp_task *t = low_op(w, tmpl_of(c, which), name, w->r->g->ops[n->kind]->name, n->n_in, buf, n->n_out, buf + n->n_in);
    t->recompute = again;
    low_attrs(w, t, n);
    return HP_OK;
}

static hp_err emit_step(lowering *w, low_chunk *c, int which, int step)
{
    if (c->done[which][step])
        return HP_OK;
    c->done[which][step] = true;
    return c->placed.step[step].node >= 0 ? emit_node(w, c, which, step) : emit_move(w, c, which, step);
}

/* --- messages between stages ----------------------------------------------------------------------------------------- */

static int edge_id(const lowering *w, int tensor, int to)
{
    return tensor * w->r->pp * w->r->vpp + to;
}

/* Each chunk receives on streams of its own: behind what another chunk waits for, a message would hold its sender's bytes, and with them the frame that
 * the other chunk's microbatch has to have first. */
static int recv_stream(lowering *w, const low_chunk *c, int which)
{
    char name[32];
    snprintf(name, sizeof name, w->r->vpp > 1 ? "recv.%c%d" : "recv.%c", which == F ? 'f' : 'b', c->chunk);
    return low_stream(w, name, true, HP_ROLE_PP);
}

static void receive(lowering *w, low_chunk *c, int which, hp_tkind kind)
{
    const hp_graph *g = w->r->g;
    for (int i = 0; i < c->placed.n_copies; i++) {
        const hp_copy *k = &c->placed.copy[i];
        const hp_tensor *t = &g->tensor[k->tensor];
        if (k->step >= 0 || !c->given[k->tensor] || t->kind != kind)
            continue;
        char name[256];
        snprintf(name, sizeof name, "%s/recv", t->name);
        int b = new_copy_buffer(w, c, which, i, true), from = w->r->vstage[t->producer];
        w->p->buffer[b].scope = HP_S_FRAME;
        hp_task *task = low_task(w, tmpl_of(c, which), name, HP_TASK_RECV, recv_stream(w, c, which), 0, 1);
        task->buf[0] = b;
        task->peer = from % w->r->pp;
        task->edge = edge_id(w, k->tensor, c->vstage);
        task->why = hp_arena_printf(&w->plan->arena, "%s made on stage %d", t->name, task->peer);
    }
}

/* The best copy to send: whole, and the latest made. What is sent or received lies in the frame: a message on its way must not hold up the next template. */
static int copy_to_send(const low_chunk *c, int tensor)
{
    int best = -1;
    for (int i = 0; i < c->placed.n_copies; i++) {
        const hp_copy *k = &c->placed.copy[i];
        if (k->tensor != tensor)
            continue;
        bool whole = !hp_layout_partial_mask(&k->layout);
        if (best < 0 || whole || hp_layout_partial_mask(&c->placed.copy[best].layout))
            best = i;
    }
    return best;
}

static hp_err send(lowering *w, low_chunk *c, int which, int tensor, int to)
{
    const hp_graph *g = w->r->g;
    int copy = copy_to_send(c, tensor), src;
    hp_err err = copy_buffer(w, c, which, copy, &src);
    if (!err && hp_layout_partial_mask(&c->placed.copy[copy].layout))
        err = low_move(w, tmpl_of(c, which), src, &w->r->target[tensor], -1, HP_S_RUN, true, "a later stage", &src);
    if (err)
        return err;
    if (w->p->buffer[src].scope == HP_S_RUN)
        w->p->buffer[src].scope = HP_S_FRAME;
    char name[256];
    snprintf(name, sizeof name, "%s/send", g->tensor[tensor].name);
    hp_task *t = low_task(w, tmpl_of(c, which), name, HP_TASK_SEND, low_stream(w, which == F ? "send.f" : "send.b", true, HP_ROLE_PP), 1, 0);
    t->buf[0] = src;
    t->peer = to % w->r->pp;
    t->edge = edge_id(w, tensor, to);
    t->why = hp_arena_printf(&w->plan->arena, "%s needed on stage %d", g->tensor[tensor].name, t->peer);
    return HP_OK;
}

/* Sends everything of a kind that nodes of other virtual stages read, once a stage. */
static hp_err send_all(lowering *w, low_chunk *c, int which, hp_tkind kind)
{
    const hp_graph *g = w->r->g;
    int stages = w->r->pp * w->r->vpp;
    bool *sent = hp_xcalloc((size_t)g->n_tensors * (size_t)stages, sizeof *sent);
    hp_err err = HP_OK;
    for (int i = 0; i < g->n_nodes && !err && stages > 1; i++) {
        const hp_node *n = &g->node[i];
        if (w->r->vstage[i] == c->vstage || n->phase == HP_P_INIT)
            continue;
        for (int k = 0; k < n->n_in && !err; k++) {
            int t = n->arg[k], to = w->r->vstage[i];
            if (t < 0 || g->tensor[t].kind != kind || !here(w, c, g->tensor[t].producer) || sent[(size_t)t * (size_t)stages + (size_t)to])
                continue;
            sent[(size_t)t * (size_t)stages + (size_t)to] = true;
            err = send(w, c, which, t, to);
        }
    }
    free(sent);
    return err;
}

hp_err low_emit_all(lowering *w, low_chunk *c)
{
    hp_err err = HP_OK;
    for (int i = 0; i < c->placed.n_steps && !err; i++)
        err = emit_step(w, c, F, i);
    return err;
}

hp_err low_copy_buffer(lowering *w, low_chunk *c, int copy, int *buffer)
{
    return copy_buffer(w, c, F, copy, buffer);
}

/* --- the chunk ---------------------------------------------------------------------------------------------------------- */

static hp_err emit_phase(lowering *w, low_chunk *c, int which)
{
    receive(w, c, which, which == F ? HP_T_ACT : HP_T_GRAD);
    for (int i = 0; i < c->placed.n_steps; i++) {
        if ((c->placed.step[i].phase == HP_P_FWD) != (which == F))
            continue;
        hp_err err = emit_step(w, c, which, i);
        if (err)
            return err;
    }
    return send_all(w, c, which, which == F ? HP_T_ACT : HP_T_GRAD);
}

/* Adds the microbatch's loss to the step's. */
static hp_err keep_loss(lowering *w, low_chunk *c)
{
    const hp_graph *g = w->r->g;
    int copy = -1, src;
    if (g->loss < 0 || !here(w, c, g->tensor[g->loss].producer))
        return HP_OK;
    for (int i = 0; i < c->placed.n_copies; i++)
        if (c->placed.copy[i].tensor == g->loss && c->placed.copy[i].phase == HP_P_FWD)
            copy = i;
    hp_err err = copy_buffer(w, c, F, copy, &src);
    if (err)
        return err;
    const hp_layout *l = &c->placed.copy[copy].layout;
    w->loss_sum = low_buffer(w, "loss.sum", -1, HP_F32, &w->r->shape[g->loss], l, HP_B_WORKSPACE, HP_S_STEP);
    for (int rest = 0; rest < 2; rest++) {
        hp_task *t = low_op(w, c->f, rest ? "loss.sum/add" : "loss.sum/first", "accum", 1, &src, 1, &w->loss_sum);
        t->accumulate = rest;
        t->when = rest ? HP_W_REST : HP_W_FIRST;
    }
    return HP_OK;
}

hp_err low_chunk_emit(lowering *w, low_chunk *c)
{
    c->f = low_template(w, HP_TMPL_F, c->chunk);
    c->b = low_template(w, HP_TMPL_B, c->chunk);
    judge_copies(w, c);
    low_gather_order(w, c);
    hp_err err = emit_phase(w, c, F);
    if (!err)
        err = keep_loss(w, c);
    if (!err)
        err = emit_phase(w, c, B);
    return err || c->chunk ? err : low_flush_grads(w, c->b);
}

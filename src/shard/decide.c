/* decide.c -- one node's modes: candidates unit by unit, then every combination. */
#include "shard/decide.h"

#include <math.h>
#include <string.h>

enum {
    MODE_R = -1,
    MODE_P = 32,
    MAX_MODES = HP_MAX_LABELS + HP_MAX_GROUPS + 1
}; /* a label is its own mode; P(g) is MODE_P + g */

typedef struct unit {
    uint32_t atoms;
    int n_modes, mode[MAX_MODES], chosen;
} unit;

typedef struct score {
    double cost;
    int left; /* atoms over which outputs stay partial without hope that a later node shares the reduction, less those with */
    int split; /* units in an L mode */
} score;

typedef struct asker {
    hp_routes *r;
    const hp_choice *c;
    const hp_node *node;
    bool strict, legal[HP_MAX_LABELS];
    int n_units;
    unit unit[HP_MAX_ATOMS];
    score best;
    hp_decision found;
} asker;

static int n_operands(const hp_node *n)
{
    return n->n_in + n->n_out;
}

static bool present(const asker *a, int i)
{
    return a->c->op[i].shape >= 0;
}

static bool is_output(const asker *a, int i)
{
    return i >= a->node->n_in;
}

/* Whether operand i must lie exactly as its target says. */
static bool bound(const asker *a, int i)
{
    const hp_choice_operand *o = &a->c->op[i];
    return present(a, i) && (o->fixed || (o->weight && a->strict));
}

static const hp_layout *target_of(const asker *a, int i)
{
    return hp_routes_at(a->r, a->c->op[i].target);
}

/* --- units --------------------------------------------------------------------------------------- */

/* Whether a layout treats atoms x and x + 1 as one: next to each other in a split, or equally not split. */
static bool one_in(const hp_layout *l, int x)
{
    for (int d = 0; d < l->nd; d++)
        for (int i = 0; i < l->n[d]; i++)
            if (l->split[d][i] == x)
                return i + 1 < l->n[d] && l->split[d][i + 1] == x + 1;
            else if (l->split[d][i] == x + 1)
                return false;
    return l->partial[x] == l->partial[x + 1];
}

static bool one_everywhere(const asker *a, int x)
{
    for (int i = 0; i < n_operands(a->node); i++) {
        if (!present(a, i))
            continue;
        if (!one_in(target_of(a, i), x))
            return false;
        for (int k = 0; k < a->c->op[i].n_copies; k++)
            if (!one_in(hp_routes_at(a->r, a->c->op[i].copy[k]), x))
                return false;
    }
    return true;
}

static void make_units(asker *a)
{
    const hp_mesh *m = a->r->m;
    for (int x = 0; x < m->n_atoms; x++) {
        if (x == 0 || !m->joined[x] || !one_everywhere(a, x - 1))
            a->n_units++;
        a->unit[a->n_units - 1].atoms |= 1u << x;
    }
}

/* --- which modes a unit may take ----------------------------------------------------------------- */

/* Counts dimensions of operand i with the label; *d is one of them. */
static int label_dims(const asker *a, int i, int label, int *d)
{
    int n = 0;
    for (int k = 0; present(a, i) && k < a->c->shape[i]->nd; k++)
        if (a->node->label[i][k] == label)
            n++, *d = k;
    return n;
}

/* A label can be split when its dimensions are cut alike everywhere and outputs without it can combine their parts. */
static bool label_legal(const asker *a, int label)
{
    const hp_shape *first = NULL;
    int at = 0;
    if (a->node->blocked[label])
        return false;
    for (int i = 0; i < n_operands(a->node); i++) {
        int d = 0, n = label_dims(a, i, label, &d);
        if (n > 1)
            return false;
        if (n == 0 && present(a, i) && is_output(a, i) &&
            a->node->reduce[i - a->node->n_in] == HP_RED_NONE)
            return false;
        if (n == 0)
            continue;
        const hp_shape *s = a->c->shape[i];
        if (first && (first->size[at] != s->size[d] || first->cut[at] != s->cut[d]))
            return false;
        first = s, at = d;
    }
    return first != NULL;
}

static bool allowed_by(const asker *a, int i, uint32_t atoms, int mode)
{
    const hp_layout *t = target_of(a, i);
    if (mode >= MODE_P && !is_output(a, i) && a->node->group[mode - MODE_P] >> i & 1)
        return false;
    for (int d = 0; d < t->nd; d++) {
        uint32_t here = hp_layout_mask(t, d) & atoms;
        int label = a->node->label[i][d];
        if (here && (here != atoms || mode != label || label < 0))
            return false;
        if (!here && mode >= 0 && mode == label)
            return false;
    }
    return true;
}

static bool allowed(const asker *a, uint32_t atoms, int mode)
{
    for (int i = 0; i < n_operands(a->node); i++)
        if (bound(a, i) && !allowed_by(a, i, atoms, mode))
            return false;
    return true;
}

static bool touches(const hp_layout *l, int d, uint32_t atoms)
{
    return (hp_layout_mask(l, d) & atoms) != 0;
}

/* Whether any copy or target has the unit on a dimension with the label. */
static bool suggested(const asker *a, uint32_t atoms, int label)
{
    for (int i = 0; i < n_operands(a->node); i++) {
        int d = 0;
        if (label_dims(a, i, label, &d) == 0)
            continue;
        if (touches(target_of(a, i), d, atoms))
            return true;
        for (int k = 0; k < a->c->op[i].n_copies; k++)
            if (touches(hp_routes_at(a->r, a->c->op[i].copy[k]), d, atoms))
                return true;
    }
    return false;
}

static bool partial_over(const hp_layout *l, uint32_t atoms)
{
    for (int x = 0; x < HP_MAX_ATOMS; x++)
        if (atoms >> x & 1 && l->partial[x] != HP_RED_SUM)
            return false;
    return true;
}

/* Whether every input of the group has a copy that is partial over the unit: others are never made partial. */
static bool group_partial(const asker *a, int group, uint32_t atoms)
{
    bool any = false;
    for (int i = 0; i < a->node->n_in; i++) {
        if (!(a->node->group[group] >> i & 1) || !present(a, i))
            continue;
        bool some = false;
        for (int k = 0; k < a->c->op[i].n_copies; k++)
            some |= partial_over(hp_routes_at(a->r, a->c->op[i].copy[k]), atoms);
        if (!some)
            return false;
        any = true;
    }
    return any;
}

static void add_mode(asker *a, unit *u, int mode)
{
    if (allowed(a, u->atoms, mode))
        u->mode[u->n_modes++] = mode;
}

static void make_modes(asker *a)
{
    for (int l = 0; l < a->node->n_labels; l++)
        a->legal[l] = label_legal(a, l);
    for (int k = 0; k < a->n_units; k++) {
        unit *u = &a->unit[k];
        for (int l = 0; l < a->node->n_labels; l++)
            if (a->legal[l] && suggested(a, u->atoms, l))
                add_mode(a, u, l);
        add_mode(a, u, MODE_R);
        for (int g = 0; g < a->node->n_groups; g++)
            if (group_partial(a, g, u->atoms))
                add_mode(a, u, MODE_P + g);
    }
}

/* --- from modes to layouts ----------------------------------------------------------------------- */

/* Takes the order of the label's atoms from a split that has exactly those; or, with `more`, those and others. */
static bool order_from(const hp_layout *l, int d, uint32_t atoms, bool more, uint8_t *order)
{
    uint32_t mask = hp_layout_mask(l, d);
    int n = 0;
    if (more ? (mask & atoms) != atoms : mask != atoms)
        return false;
    for (int i = 0; i < l->n[d]; i++)
        if (atoms >> l->split[d][i] & 1)
            order[n++] = l->split[d][i];
    return true;
}

static bool order_from_operand(const asker *a, int i, int label, uint32_t atoms, bool more,
                               uint8_t *order)
{
    int d = 0;
    if (label_dims(a, i, label, &d) == 0)
        return false;
    for (int k = 0; k < a->c->op[i].n_copies && !a->c->op[i].fixed; k++)
        if (order_from(hp_routes_at(a->r, a->c->op[i].copy[k]), d, atoms, more, order))
            return true;
    return order_from(target_of(a, i), d, atoms, more, order);
}

/* Orders the atoms of a label as what cannot move has them, else as an input, else as a target, else as the mesh. */
static void label_order(const asker *a, int label, uint32_t atoms, uint8_t *order)
{
    int n = 0;
    for (int x = 0; x < a->r->m->n_atoms; x++)
        if (atoms >> x & 1)
            order[n++] = (uint8_t)x;
    if (n < 2)
        return;
    for (int i = 0; i < n_operands(a->node); i++)
        if (bound(a, i) && order_from_operand(a, i, label, atoms, false, order))
            return;
    for (int more = 0; more <= 1; more++)
        for (int i = 0; i < n_operands(a->node); i++)
            if (order_from_operand(a, i, label, atoms, more, order))
                return;
}

typedef struct labels {
    uint32_t atoms[HP_MAX_LABELS];
    uint8_t order[HP_MAX_LABELS][HP_MAX_ATOMS];
} labels;

/* What circulates is split as what stays: ring_to takes ring_from's atoms of the ring, in their order. */
static void follow_ring(const asker *a, labels *s)
{
    int from = a->c->ring_from, to = a->c->ring_to, n = 0;
    s->atoms[to] = s->atoms[from] & a->c->ring;
    for (int i = 0; i < __builtin_popcount(s->atoms[from]); i++)
        if (s->atoms[to] >> s->order[from][i] & 1)
            s->order[to][n++] = s->order[from][i];
}

static labels split_labels(const asker *a)
{
    labels s = {0};
    for (int k = 0; k < a->n_units; k++)
        if (a->unit[k].chosen >= 0 && a->unit[k].chosen < MODE_P)
            s.atoms[a->unit[k].chosen] |= a->unit[k].atoms;
    for (int l = 0; l < a->node->n_labels; l++)
        if (s.atoms[l])
            label_order(a, l, s.atoms[l], s.order[l]);
    if (a->c->ring)
        follow_ring(a, &s);
    return s;
}

static void set_partial(hp_layout *l, uint32_t atoms, int red)
{
    for (int x = 0; x < HP_MAX_ATOMS; x++)
        if (atoms >> x & 1)
            l->partial[x] = (uint8_t)red;
}

/* The atoms over which operand i, which lacks the label, comes home from the ring instead of staying partial. */
static uint32_t rung(const asker *a, int i, int label)
{
    int d;
    bool circulates = a->c->ring && label == a->c->ring_from && label_dims(a, i, a->c->ring_to, &d);
    return circulates ? a->c->ring : 0;
}

static hp_layout layout_of(const asker *a, const labels *s, int i)
{
    int nd = a->c->shape[i]->nd, d = 0;
    hp_layout l = hp_layout_replicated(nd);
    for (int k = 0; k < nd; k++) {
        int label = a->node->label[i][k];
        if (label >= 0 && s->atoms[label])
            hp_layout_append(&l, k, s->order[label], __builtin_popcount(s->atoms[label]));
    }
    for (int k = 0; k < a->n_units; k++) {
        const unit *u = &a->unit[k];
        if (u->chosen >= MODE_P && (is_output(a, i) || a->node->group[u->chosen - MODE_P] >> i & 1))
            set_partial(&l, u->atoms, HP_RED_SUM);
        else if (u->chosen >= 0 && u->chosen < MODE_P && is_output(a, i) &&
                 label_dims(a, i, u->chosen, &d) == 0)
            set_partial(&l, u->atoms & ~rung(a, i, u->chosen),
                        (int)a->node->reduce[i - a->node->n_in]);
    }
    return l;
}

/* --- prices -------------------------------------------------------------------------------------- */

/* The cheapest way from an existing copy; infinite when there is none. */
static double input_cost(const asker *a, int i, int want)
{
    const hp_choice_operand *o = &a->c->op[i];
    double best = INFINITY;
    if (o->free || o->fixed)
        return 0;
    for (int k = 0; k < o->n_copies; k++) {
        const hp_route *way = hp_routes_find(a->r, o->shape, o->copy[k], want);
        if (way->possible && way->cost < best)
            best = way->cost;
    }
    return best;
}

/* The split of the parameter with what of the gradient stays partial. */
static hp_layout weight_goal(const hp_layout *made, const hp_layout *target)
{
    hp_layout l = hp_layout_clean(target);
    uint32_t split = hp_layout_split_mask(&l);
    for (int x = 0; x < HP_MAX_ATOMS; x++)
        l.partial[x] = split >> x & 1 ? HP_RED_NONE : made->partial[x];
    return l;
}

int hp_decide_weight_goal(hp_routes *r, int made, int target)
{
    hp_layout l = weight_goal(hp_routes_at(r, made), hp_routes_at(r, target));
    return hp_routes_layout(r, &l);
}

static double output_cost(const asker *a, int i, int made)
{
    const hp_choice_operand *o = &a->c->op[i];
    if (a->c->shape[i]->nd == 0)
        return 0; /* a scalar is added up over the step first and reduced once */
    if (!o->weight) {
        const hp_route *way = hp_routes_find(a->r, o->shape, made, o->target);
        return way->possible ? way->cost : 0;
    }
    int goal = hp_decide_weight_goal(a->r, made, o->target);
    if (a->strict)
        return goal == made ? 0 : INFINITY;
    return hp_routes_find(a->r, o->shape, made, goal)->cost;
}

static double op_cost(const asker *a, const hp_decision *d)
{
    hp_shape local[HP_MAX_OPERANDS];
    if (!a->r->price || !a->r->price->op)
        return 0;
    for (int i = 0; i < n_operands(a->node); i++) {
        local[i] = (hp_shape){.nd = -1};
        if (!present(a, i))
            continue;
        local[i].nd = a->c->shape[i]->nd;
        for (int k = 0; k < local[i].nd; k++)
            local[i].size[k] =
                hp_layout_max_len(a->r->m, hp_routes_at(a->r, d->layout[i]), a->c->shape[i], k);
    }
    return a->r->price->op(a->r->price->ctx, a->node, local);
}

/* Two uses of one tensor cannot want it partial and whole at once: making it whole ends the partial copy. */
static bool clash(const asker *a, const hp_decision *d, int i)
{
    int j = a->c->op[i].same;
    return j != i && hp_layout_partial_mask(hp_routes_at(a->r, d->layout[i])) !=
                         hp_layout_partial_mask(hp_routes_at(a->r, d->layout[j]));
}

static double operand_cost(const asker *a, const hp_decision *d, int i)
{
    if (is_output(a, i))
        return output_cost(a, i, d->layout[i]);
    int j = a->c->op[i].same;
    return j != i && d->layout[i] == d->layout[j] ? 0 : input_cost(a, i, d->layout[i]);
}

static bool better(score x, score y)
{
    double near = 1e-9 * fmin(x.cost, y.cost);
    if (fabs(x.cost - y.cost) > near)
        return x.cost < y.cost;
    return x.left != y.left ? x.left < y.left : x.split > y.split;
}

/* Whether the layouts of a combination can be at all: those of parameters as they are, reductions that commute, no clash. */
static bool coherent(const asker *a, const hp_decision *d)
{
    for (int i = 0; i < n_operands(a->node); i++) {
        if (!present(a, i))
            continue;
        if (a->c->op[i].fixed && a->c->op[i].target != d->layout[i])
            return false;
        if (is_output(a, i)
                ? hp_layout_check(a->r->m, hp_routes_at(a->r, d->layout[i]), NULL) != HP_OK
                : clash(a, d, i))
            return false;
    }
    return true;
}

static hp_decision lay_out(asker *a, score *s)
{
    hp_decision d = {.possible = true};
    labels split = split_labels(a);
    *s = (score){0};
    for (int i = 0; i < n_operands(a->node); i++) {
        d.layout[i] = -1;
        if (!present(a, i))
            continue;
        hp_layout l = layout_of(a, &split, i);
        d.layout[i] = hp_routes_layout(a->r, &l);
        uint32_t left = is_output(a, i) ? hp_layout_partial_mask(&l) : 0;
        s->left += __builtin_popcount(left & ~a->c->op[i].late) -
                   __builtin_popcount(left & a->c->op[i].late);
    }
    for (int k = 0; k < a->n_units; k++)
        s->split += a->unit[k].chosen >= 0 && a->unit[k].chosen < MODE_P;
    return d;
}

/* Prices the combination that the units have chosen and keeps it when it is the best so far; stops as soon as it cannot be. */
static void judge(asker *a)
{
    score s;
    hp_decision d = lay_out(a, &s);
    if (!coherent(a, &d))
        return;
    double most = a->found.possible ? a->best.cost * (1 + 1e-9) : INFINITY;
    s.cost = d.op_cost = op_cost(a, &d);
    for (int i = 0; i < n_operands(a->node) && s.cost <= most; i++)
        if (present(a, i))
            s.cost += operand_cost(a, &d, i);
    if (s.cost < INFINITY && (!a->found.possible || better(s, a->best))) {
        a->found = d;
        a->best = s;
    }
}

static void combine(asker *a, int k)
{
    if (k == a->n_units) {
        judge(a);
        return;
    }
    for (int i = 0; i < a->unit[k].n_modes; i++) {
        a->unit[k].chosen = a->unit[k].mode[i];
        combine(a, k + 1);
    }
}

hp_decision hp_decide(hp_routes *r, const hp_choice *c, bool strict)
{
    asker a = {.r = r, .c = c, .node = c->node, .strict = strict};
    make_units(&a);
    make_modes(&a);
    combine(&a, 0);
    return a.found;
}

int hp_decide_conflict(hp_routes *r, const hp_choice *c, int *dim)
{
    asker a = {.r = r, .c = c, .node = c->node, .strict = false};
    for (int i = 0; i < n_operands(a.node); i++) {
        if (!bound(&a, i))
            continue;
        const hp_layout *t = target_of(&a, i);
        for (*dim = 0; *dim < t->nd; (*dim)++) {
            int label = a.node->label[i][*dim];
            if (t->n[*dim] && (label < 0 || !label_legal(&a, label)))
                return i;
        }
    }
    return -1;
}

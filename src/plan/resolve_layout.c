/* resolve_layout.c -- a layout for every tensor from ordered split rules and glob lists.
 *
 * For one tensor: what glob lists say about it comes first (the last match of a key wins), then the split rules in their order; an axis that was
 * taken is skipped, so the first match has it. `heads` is two dimensions (kv_heads, group): an axis splits kv_heads as far as that divides and
 * group beyond; a tensor with kv_heads alone (keys, values) replicates there.
 */
#include "plan/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct words { /* a strategy's layout list for one tensor: key -> value, last match wins */
    int n;
    const char *key[24], *value[24];
} words;

typedef struct task { /* one tensor being laid out */
    const hp_resolved *r;
    const hp_tensor *t;
    hp_layout *l;
    uint32_t used;
    const char *axes; /* of the rule at work, for messages */
} task;

bool hp_glob_covers(const char *glob, const char *name, const char *alias)
{
    if (alias && hp_glob_match(glob, alias))
        return true;
    char part[256];
    snprintf(part, sizeof part, "%s", name);
    for (;;) {
        if (hp_glob_match(glob, part))
            return true;
        char *dot = strrchr(part, '.');
        if (!dot)
            return false;
        *dot = 0;
    }
}

static void collect(const hp_rules *rules, const hp_tensor *t, words *w)
{
    char out[256];
    snprintf(out, sizeof out, "%s.out", t->name);
    w->n = 0;
    for (int i = 0; i < rules->n; i++) {
        const hp_rule *u = &rules->rule[i];
        bool covers = hp_glob_covers(u->glob, t->name, t->alias) || (t->kind == HP_T_ACT && hp_glob_match(u->glob, out));
        if (!covers)
            continue;
        int k = 0;
        while (k < w->n && strcmp(w->key[k], u->key))
            k++;
        if (k == 24)
            continue;
        w->key[k] = u->key;
        w->value[k] = u->value;
        w->n += k == w->n;
    }
}

static const char *said(const words *w, const char *key)
{
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->key[i], key))
            return w->value[i];
    return NULL;
}

static int find_dim(const task *k, const char *name)
{
    for (int d = 0; d < k->t->nd; d++)
        if (!strcmp(k->r->g->dim[k->t->dim[d]].name, name))
            return d;
    return -1;
}

static bool may_be_uneven(const task *k, int d)
{
    const char *name = k->r->g->dim[k->t->dim[d]].name;
    bool cut = k->r->s->uneven;
    for (int i = 0; i < k->r->s->cuts.n; i++)
        cut = cut || !strcmp(k->r->s->cuts.rule[i].glob, name);
    return cut;
}

static int64_t split_so_far(const task *k, int d)
{
    int64_t n = 1;
    for (int i = 0; i < k->l->n[d]; i++)
        n *= k->r->mesh[0].size[k->l->split[d][i]];
    return n;
}

static int64_t size_of(const task *k, int d)
{
    return k->r->shape[k->t - k->r->g->tensor].size[d];
}

static void append(task *k, int d, int atom)
{
    k->l->split[d][k->l->n[d]++] = (uint8_t)atom;
    k->used |= 1u << atom;
}

/* "2 or 4": the divisors of `size` next to `n`. */
static char *nearest_divisors(int64_t size, int64_t n, char *buf, size_t cap)
{
    int64_t low = n, high = n;
    while (low > 1 && size % low)
        low--;
    while (high <= size && size % high)
        high++;
    if (high > size)
        snprintf(buf, cap, "%lld", (long long)low);
    else
        snprintf(buf, cap, "%lld or %lld", (long long)low, (long long)high);
    return buf;
}

/* What else than other parts would be legal: a padded vocabulary, another length of the sequence. */
static char *other_sizes(const task *k, const char *dim, int64_t size, int64_t parts, char *buf, size_t cap)
{
    int64_t unit = !strcmp(dim, "seq") ? hp_resolved_seq_multiple(k->r) : parts, high = (size + unit - 1) / unit * unit;
    *buf = 0;
    if (!strcmp(dim, "vocab"))
        snprintf(buf, cap, ", or a vocabulary padded to %lld (-o model.vocab_pad=%lld)", (long long)high, (long long)parts);
    else if (!strcmp(dim, "seq") && size > unit)
        snprintf(buf, cap, ", or a sequence of %lld or %lld", (long long)(high - unit), (long long)high);
    else if (!strcmp(dim, "seq"))
        snprintf(buf, cap, ", or a sequence of %lld", (long long)high);
    return buf;
}

static hp_err refuse_uneven(const task *k, int d, int64_t parts, hp_errmsg *e)
{
    char near[64], other[96];
    const char *dim = k->r->g->dim[k->t->dim[d]].name;
    return hp_fail(e, HP_EINFEASIBLE,
                   "%s: dimension %s (%lld) does not divide over %s (%lld parts); nearest legal: %s parts%s, or ask for uneven splits (`uneven`)",
                   k->t->name, dim, (long long)size_of(k, d), k->axes, (long long)parts,
                   nearest_divisors(size_of(k, d), parts, near, sizeof near), other_sizes(k, dim, size_of(k, d), parts, other, sizeof other));
}

/* Splits dimension d by the atoms that are still free. */
static hp_err split_dim(task *k, int d, const uint8_t *atom, int n, hp_errmsg *e)
{
    for (int i = 0; i < n; i++)
        if (!(k->used >> atom[i] & 1))
            append(k, d, atom[i]);
    int64_t parts = split_so_far(k, d);
    if (size_of(k, d) % parts && !may_be_uneven(k, d))
        return refuse_uneven(k, d, parts, e);
    return HP_OK;
}

/* Whether `parts` ranks can share kv key/value heads of q query heads: whole heads each, or whole copies of keys and values. */
static bool heads_fit(int64_t kv, int64_t q, int64_t parts)
{
    return kv % parts == 0 || (parts % kv == 0 && q % parts == 0);
}

/* "2 or 5": the numbers of parts next to `n` that fit. */
static char *nearest_heads(int64_t kv, int64_t q, int64_t n, char *buf, size_t cap)
{
    int64_t low = n - 1, high = n + 1;
    while (low > 1 && !heads_fit(kv, q, low))
        low--;
    while (high <= q && !heads_fit(kv, q, high))
        high++;
    if (high > q)
        snprintf(buf, cap, "%lld", (long long)low);
    else
        snprintf(buf, cap, "%lld or %lld", (long long)low, (long long)high);
    return buf;
}

static hp_err refuse_heads(const task *k, int64_t kv, int64_t q, int64_t parts, hp_errmsg *e)
{
    char near[64];
    return hp_fail(e, HP_EINFEASIBLE,
                   "%s: neither do %lld key/value heads divide over %s (%lld parts), nor the parts over them and %lld query heads over the parts; nearest legal: "
                   "%s parts, or ask for uneven splits (`uneven`)",
                   k->t->name, (long long)kv, k->axes, (long long)parts, (long long)q, nearest_heads(kv, q, parts, near, sizeof near));
}

/* Heads: kv_heads takes an atom while it divides, group what comes after; `group` -1: keys and values, which replicate there. */
static hp_err split_heads(task *k, int kv, int group, const uint8_t *atom, int n, hp_errmsg *e)
{
    const hp_mesh *m = &k->r->mesh[0];
    int64_t left = size_of(k, kv) / split_so_far(k, kv), rest = group < 0 ? 1 : size_of(k, group);
    for (int i = 0; i < n; i++) {
        if (k->used >> atom[i] & 1)
            continue;
        int64_t t = m->size[atom[i]];
        if (left % t == 0) {
            append(k, kv, atom[i]);
            left /= t;
        } else if (left == 1 && group < 0) {
            k->used |= 1u << atom[i];
        } else if (left == 1 && rest % t == 0) {
            append(k, group, atom[i]);
            rest /= t;
        } else if (may_be_uneven(k, kv)) {
            append(k, kv, atom[i]);
            left = (left + t - 1) / t;
        } else {
            int64_t q = size_of(k, kv) * (group < 0 ? 1 : size_of(k, group));
            return refuse_heads(k, size_of(k, kv), q, split_so_far(k, kv) * (group < 0 ? 1 : split_so_far(k, group)) * t, e);
        }
    }
    return HP_OK;
}

static hp_err apply_word(task *k, const char *word, const char *axes, hp_errmsg *e)
{
    uint8_t atom[HP_MAX_ATOMS];
    int n;
    k->axes = axes;
    hp_err err = hp_resolve_atoms(k->r, axes, atom, &n, e);
    if (err)
        return hp_fail_at(e, "%s", k->t->name);
    int kv = find_dim(k, "kv_heads"), group = find_dim(k, "group");
    if (!strcmp(word, "heads") && kv >= 0 && group >= 0)
        return split_heads(k, kv, group, atom, n, e);
    if (!strcmp(word, "kv_heads"))
        return kv < 0 || group >= 0 ? HP_OK : split_heads(k, kv, -1, atom, n, e);
    int d = find_dim(k, word);
    return d < 0 ? HP_OK : split_dim(k, d, atom, n, e);
}

static bool is_state_key(const char *key)
{
    return !strcmp(key, "store") || !strcmp(key, "dtype");
}

/* Lays out one tensor: explicit words first, then the rules in order. */
static hp_err lay_out(const hp_resolved *r, int tensor, const hp_splits *rules, bool parameter, hp_layout *l, words *w, hp_errmsg *e)
{
    const hp_tensor *t = &r->g->tensor[tensor];
    *l = hp_layout_replicated(t->nd);
    task k = {.r = r, .t = t, .l = l};
    collect(&r->s->layout, t, w);
    for (int i = 0; i < w->n; i++) {
        hp_err err = is_state_key(w->key[i]) ? HP_OK : apply_word(&k, w->key[i], w->value[i], e);
        if (err)
            return err;
    }
    for (int i = 0; i < rules->n; i++) {
        const hp_split_rule *u = &rules->rule[i];
        bool data = !strcmp(u->dim, "batch") || !strcmp(u->dim, "seq");
        if ((parameter && rules == &r->s->split && data) || said(w, u->dim))
            continue;
        hp_err err = apply_word(&k, u->dim, u->axes, e);
        if (err)
            return err;
    }
    return HP_OK;
}

/* Appends the ZeRO axes last on one dimension: the largest that divides, else the largest. */
static hp_err shard_state(const hp_resolved *r, int tensor, const char *axes, hp_layout *l, hp_errmsg *e)
{
    uint8_t atom[HP_MAX_ATOMS], rest[HP_MAX_ATOMS];
    int n, m = 0;
    hp_err err = hp_resolve_atoms(r, axes, atom, &n, e);
    if (err)
        return err;
    uint32_t used = 0;
    for (int d = 0; d < l->nd; d++)
        used |= hp_layout_mask(l, d);
    int64_t parts = 1;
    for (int i = 0; i < n; i++)
        if (!(used >> atom[i] & 1)) {
            rest[m++] = atom[i];
            parts *= r->mesh[0].size[atom[i]];
        }
    int best = -1;
    int64_t most = 0;
    for (int even = 1; even >= 0 && best < 0 && m; even--)
        for (int d = 0; d < l->nd; d++) {
            int64_t size = r->shape[tensor].size[d], local = size;
            for (int i = 0; i < l->n[d]; i++)
                local /= r->mesh[0].size[l->split[d][i]];
            if ((!even || local % parts == 0) && local > most) {
                best = d;
                most = local;
            }
        }
    for (int i = 0; i < m && best >= 0; i++)
        l->split[best][l->n[best]++] = rest[i];
    return HP_OK;
}

static hp_err lay_out_states(hp_resolved *r, int tensor, const words *w, hp_errmsg *e)
{
    const hp_tensor *t = &r->g->tensor[tensor];
    const hp_strategy *s = r->s;
    hp_param_state *p = &r->state[tensor];
    const char *params = s->states.params, *grads = s->states.grads, *optimizer = s->states.optimizer;
    for (int i = 0; i < s->states.over.n; i++) {
        const hp_rule *u = &s->states.over.rule[i];
        if (!hp_glob_covers(u->glob, t->name, t->alias))
            continue;
        if (!strcmp(u->key, "params"))
            params = u->value;
        else if (!strcmp(u->key, "grads"))
            grads = u->value;
        else if (!strcmp(u->key, "optimizer"))
            optimizer = u->value;
    }
    p->compute = p->store = p->accumulate = p->optimizer = r->target[tensor];
    const char *store = said(w, "store");
    if (store && !strcmp(store, "whole"))
        params = NULL;
    p->keep = params && !strcmp(s->states.after_forward, "keep");
    hp_err err = shard_state(r, tensor, params, &p->store, e);
    if (!err)
        err = shard_state(r, tensor, grads, &p->accumulate, e);
    if (!err)
        err = shard_state(r, tensor, optimizer ? optimizer : params, &p->optimizer, e);
    return err ? hp_fail_at(e, "states of %s", t->name) : HP_OK;
}

static const char *near_tensor(hp_resolved *r, const char *glob)
{
    const char **name = hp_arena_alloc(&r->arena, (size_t)r->g->n_tensors * sizeof *name);
    int n = 0;
    for (int i = 0; i < r->g->n_tensors; i++)
        if (r->g->tensor[i].kind == HP_T_ACT || r->g->tensor[i].kind == HP_T_PARAM)
            name[n++] = r->g->tensor[i].alias ? r->g->tensor[i].alias : r->g->tensor[i].name;
    return hp_near(glob, name, n);
}

static hp_err check_globs(hp_resolved *r, const hp_rules *rules, const char *list, hp_errmsg *e)
{
    const hp_graph *g = r->g;
    for (int i = 0; i < rules->n; i++) {
        const char *glob = rules->rule[i].glob;
        bool any = false;
        for (int t = 0; t < g->n_tensors && !any; t++) {
            char out[256];
            snprintf(out, sizeof out, "%s.out", g->tensor[t].name);
            any = hp_glob_covers(glob, g->tensor[t].name, g->tensor[t].alias) || hp_glob_match(glob, out);
        }
        if (!any) {
            const char *near = near_tensor(r, glob);
            return hp_fail(e, hp_resolve_bad(r), "%s: \"%s\" matches nothing in %s%s%s", list, glob, g->name,
                           near ? "; nearest name: " : "", near ? near : "");
        }
    }
    return HP_OK;
}

/* What a recompute rule may say: inside, discard, per-child, none, uniform:N, or operations joined by +. */
static hp_err check_recompute(hp_resolved *r, hp_errmsg *e)
{
    const hp_graph *g = r->g;
    for (int i = 0; i < r->s->recompute.n; i++) {
        const char *what = r->s->recompute.rule[i].value;
        if (!strcmp(what, "inside") || !strcmp(what, "discard") || !strcmp(what, "per-child") || !strcmp(what, "none") ||
            (!strncmp(what, "uniform:", 8) && atoi(what + 8) > 0))
            continue;
        char word[160];
        snprintf(word, sizeof word, "%s", what);
        for (char *save, *op = strtok_r(word, "+", &save); op; op = strtok_r(NULL, "+", &save)) {
            bool known = false;
            for (int k = 0; k < g->n_nodes && !known; k++)
                known = g->node[k].phase == HP_P_FWD && !strcmp(g->ops[g->node[k].kind]->name, op);
            if (!known)
                return hp_fail(e, hp_resolve_bad(r),
                               "recompute of %s: \"%s\" is neither inside, discard, per-child, none, uniform:N nor an operation of %s",
                               r->s->recompute.rule[i].glob, op, g->name);
        }
    }
    return HP_OK;
}

static bool known_dim(const hp_graph *g, const char *word)
{
    for (int i = 0; i < g->n_dims; i++)
        if (!strcmp(g->dim[i].name, word))
            return true;
    return false;
}

/* Words of general use may be absent from a model (a strategy names ffn, the model has none); others must be dimensions. */
static hp_err check_words(hp_resolved *r, hp_errmsg *e)
{
    static const char *const general[] = {"experts", "heads", "kv_heads", "ffn", "vocab", "seq", "batch"};
    const hp_splits *lists[] = {&r->s->split, &r->s->param_split};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lists[k]->n; i++) {
            const char *word = lists[k]->rule[i].dim;
            bool ok = known_dim(r->g, word);
            for (size_t j = 0; j < sizeof general / sizeof *general; j++)
                ok = ok || !strcmp(word, general[j]);
            if (ok)
                continue;
            const char *near = hp_near(word, general, 7);
            return hp_fail(e, hp_resolve_bad(r), "split: %s has no dimension \"%s\"; nearest: %s", r->g->name, word, near);
        }
    return HP_OK;
}

/* One tensor's target: data and step values replicated, parameters by their own rules, gradients as what they are the gradient of. */
static hp_err lay_out_tensor(hp_resolved *r, int i, hp_errmsg *e)
{
    const hp_tensor *t = &r->g->tensor[i];
    const hp_strategy *s = r->s;
    bool parameter = t->kind == HP_T_PARAM || t->kind == HP_T_BUFFER;
    words w = {0};
    if (t->of >= 0) {
        r->target[i] = r->target[t->of];
        return HP_OK;
    }
    if (t->kind == HP_T_STEP) {
        r->target[i] = hp_layout_replicated(t->nd);
        return HP_OK;
    }
    const hp_splits *rules = parameter && s->param_split.n >= 0 ? &s->param_split : &s->split;
    hp_err err = lay_out(r, i, rules, parameter, &r->target[i], &w, e);
    return err || !parameter ? err : lay_out_states(r, i, &w, e);
}

hp_err hp_resolve_layouts(hp_resolved *r, hp_errmsg *e)
{
    size_t n = (size_t)r->g->n_tensors;
    r->target = hp_arena_alloc(&r->arena, n * sizeof *r->target);
    r->state = hp_arena_alloc(&r->arena, n * sizeof *r->state);
    hp_err err = check_words(r, e);
    if (!err)
        err = check_globs(r, &r->s->layout, "layout", e);
    if (!err)
        err = check_globs(r, &r->s->states.over, "states", e);
    if (!err)
        err = check_globs(r, &r->s->recompute, "recompute", e);
    if (!err)
        err = check_recompute(r, e);
    for (int i = 0; i < r->g->n_tensors && !err; i++)
        err = lay_out_tensor(r, i, e);
    return err;
}

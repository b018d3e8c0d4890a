/* resolve.c -- sizes first (mesh, batch, cuts), then stages, then layouts. */
#include "plan/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hp_resolved_note(hp_resolved *r, const char *name, const char *value, const char *source)
{
    r->note = hp_grow(r->note, &r->cap_notes, r->n_notes + 1, sizeof *r->note);
    r->note[r->n_notes++] = (hp_note){.name = hp_arena_strdup(&r->arena, name),
                                      .value = hp_arena_strdup(&r->arena, value),
                                      .source = hp_arena_strdup(&r->arena, source)};
}

static void note_int(hp_resolved *r, const char *name, int64_t value, const char *source)
{
    char buf[32];
    snprintf(buf, sizeof buf, "%lld", (long long)value);
    hp_resolved_note(r, name, buf, source);
}

static const hp_split_rule *split_of(const hp_resolved *r, const char *dim)
{
    for (int i = 0; i < r->s->split.n; i++)
        if (!strcmp(r->s->split.rule[i].dim, dim))
            return &r->s->split.rule[i];
    return NULL;
}

/* The number of devices that a word's axes make. */
static hp_err axes_size(const hp_resolved *r, const char *axes, int64_t *n, hp_errmsg *e)
{
    uint8_t atom[HP_MAX_ATOMS];
    int k;
    hp_err err = hp_resolve_atoms(r, axes, atom, &k, e);
    *n = 1;
    for (int i = 0; i < k && !err; i++)
        *n *= r->mesh[0].size[atom[i]];
    return err;
}

/* With uneven splits a microbatch may have fewer sequences than its ranks have room for (2 on dp=3), as long as all microbatches have as many. */
static void shrink_microbatch(hp_resolved *r)
{
    int64_t n = r->s->batch.accum > 0 ? r->s->batch.accum : (r->global + r->batch - 1) / r->batch;
    if (r->s->uneven && r->global % n == 0 && r->global / n < r->batch)
        r->batch = r->global / n;
}

static hp_err resolve_batch(hp_resolved *r, hp_errmsg *e)
{
    const hp_strategy *s = r->s;
    const hp_split_rule *rule = split_of(r, "batch");
    int64_t dp = 1, mbs = s->batch.micro > 0 ? s->batch.micro : 1;
    hp_err err = rule ? axes_size(r, rule->axes, &dp, e) : HP_OK;
    if (err)
        return hp_fail_at(e, "split of batch");
    r->batch = mbs * dp;
    int64_t accum = s->batch.accum > 0 ? s->batch.accum : 1;
    r->global = s->batch.global > 0 ? s->batch.global : r->batch * accum;
    if (r->global % r->batch)
        shrink_microbatch(r);
    if (r->global % r->batch) {
        int64_t low = r->global / r->batch * r->batch, high = low + r->batch;
        return hp_fail(e, HP_EINFEASIBLE,
                       "global batch %lld is not a multiple of microbatch %lld x data-parallel size %lld = %lld (Megatron's and DeepSpeed's rule); nearest legal: "
                       "%lld or %lld",
                       (long long)r->global, (long long)mbs, (long long)dp, (long long)r->batch, (long long)(low ? low : high), (long long)high);
    }
    r->micro = r->global / r->batch;
    if (s->batch.accum > 0 && s->batch.accum != r->micro)
        return hp_fail(e, HP_EINFEASIBLE, "global batch %lld makes %lld microbatches, accum says %lld", (long long)r->global,
                       (long long)r->micro, (long long)s->batch.accum);
    note_int(r, "batch.micro", mbs, s->batch.micro > 0 ? "given" : "default");
    note_int(r, "batch.global", r->global, s->batch.global > 0 ? "given" : "derived: microbatch x data-parallel size x accumulation");
    note_int(r, "microbatches", r->micro, "derived");
    return HP_OK;
}

static int64_t least_common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

int64_t hp_resolved_seq_multiple(const hp_resolved *r)
{
    const hp_split_rule *rule = split_of(r, "seq");
    const hp_rules *layout = &r->s->layout;
    hp_errmsg ignored;
    int64_t multiple = 1, parts;
    if (rule && !axes_size(r, rule->axes, &parts, &ignored))
        multiple = rule->order ? 2 * parts : parts;
    for (int i = 0; i < layout->n; i++)
        if (!strcmp(layout->rule[i].key, "seq") && !axes_size(r, layout->rule[i].value, &parts, &ignored))
            multiple = least_common_multiple(multiple, parts);
    return multiple;
}

static bool seq_may_be_uneven(const hp_strategy *s)
{
    bool may = s->uneven;
    for (int i = 0; i < s->cuts.n; i++)
        may = may || !strcmp(s->cuts.rule[i].glob, "seq");
    return may;
}

static hp_err resolve_sequence(hp_resolved *r, hp_errmsg *e)
{
    const hp_split_rule *rule = split_of(r, "seq");
    int64_t cp = 1, seq = 0;
    hp_err err = rule ? axes_size(r, rule->axes, &cp, e) : HP_OK;
    if (err || !rule || !rule->order || cp < 2)
        return err;
    if (strcmp(rule->order, "zigzag"))
        return hp_fail(e, hp_resolve_bad(r), "split of seq: unknown order \"%s\"; known: zigzag", rule->order);
    for (int i = 0; i < r->g->n_dims; i++)
        if (!strcmp(r->g->dim[i].name, "seq"))
            seq = r->g->dim[i].size;
    if (seq % (2 * cp) && !seq_may_be_uneven(r->s)) {
        int64_t unit = hp_resolved_seq_multiple(r), low = seq / unit * unit;
        return hp_fail(e, HP_EINFEASIBLE,
                       "zigzag order over %s cuts seq (%lld) in %lld chunks, which does not divide; nearest legal: %lld or %lld, or ask for uneven splits (`uneven`)",
                       rule->axes, (long long)seq, (long long)(2 * cp), (long long)(low ? low : unit), (long long)(low ? low + unit : 2 * unit));
    }
    r->zigzag = (int)cp;
    note_int(r, "zigzag", cp, "split of seq");
    return HP_OK;
}

static hp_err read_cut(const hp_resolved *r, const hp_rule *u, hp_cut *cut, hp_errmsg *e)
{
    if (!strcmp(u->value, "chunk") || !strcmp(u->value, "balanced")) {
        cut->kind = *u->value == 'c' ? HP_CUT_CHUNK : HP_CUT_BALANCED;
        return HP_OK;
    }
    cut->kind = HP_CUT_SIZES;
    for (const char *s = u->value; *s;) {
        char *end;
        long long v = strtoll(s, &end, 10);
        if (end == s || v < 0 || (*end && *end != '+') || cut->n == 64)
            return hp_fail(e, hp_resolve_bad(r), "cut of %s: \"%s\" is neither chunk, balanced nor sizes joined by +", u->glob, u->value);
        cut->size[cut->n++] = v;
        s = *end ? end + 1 : end;
    }
    return HP_OK;
}

static hp_err resolve_cuts(hp_resolved *r, hp_errmsg *e)
{
    r->n_cuts = r->s->cuts.n;
    r->cut = hp_arena_alloc(&r->arena, (size_t)r->n_cuts * sizeof *r->cut);
    for (int i = 0; i < r->n_cuts; i++) {
        const hp_rule *u = &r->s->cuts.rule[i];
        hp_err err = read_cut(r, u, &r->cut[i], e);
        int64_t sum = 0, size = -1;
        for (int k = 0; k < r->cut[i].n; k++)
            sum += r->cut[i].size[k];
        for (int d = 0; d < r->g->n_dims; d++)
            if (!strcmp(r->g->dim[d].name, u->glob))
                size = r->g->dim[d].size;
        if (!err && size < 0)
            err = hp_fail(e, hp_resolve_bad(r), "cut: %s has no dimension \"%s\"", r->g->name, u->glob);
        if (!err && r->cut[i].kind == HP_CUT_SIZES && sum != size)
            err = hp_fail(e, HP_EINFEASIBLE, "cut of %s: \"%s\" adds up to %lld, the dimension has %lld", u->glob, u->value,
                          (long long)sum, (long long)size);
        if (err)
            return err;
    }
    return HP_OK;
}

static void resolve_shapes(hp_resolved *r)
{
    const hp_graph *g = r->g;
    r->shape = hp_arena_alloc(&r->arena, (size_t)g->n_tensors * sizeof *r->shape);
    for (int i = 0; i < g->n_tensors; i++) {
        const hp_tensor *t = &g->tensor[i];
        r->shape[i].nd = t->nd;
        for (int d = 0; d < t->nd; d++) {
            r->shape[i].size[d] = g->dim[t->dim[d]].size;
            for (int k = 0; k < r->n_cuts; k++)
                if (!strcmp(r->s->cuts.rule[k].glob, g->dim[t->dim[d]].name))
                    r->shape[i].cut[d] = &r->cut[k];
        }
    }
}

hp_err hp_resolve(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_resolved *r, hp_errmsg *e)
{
    r->g = g;
    r->cluster = c;
    r->s = s;
    hp_err err = hp_resolve_mesh(r, e);
    if (!err)
        err = resolve_batch(r, e);
    if (!err)
        err = hp_graph_bind(g, "batch", r->batch, e);
    if (!err)
        err = hp_graph_bind(g, "micro", r->micro, e);
    if (!err)
        err = resolve_sequence(r, e);
    if (!err)
        err = resolve_cuts(r, e);
    if (err)
        return err;
    resolve_shapes(r);
    err = hp_resolve_stages(r, e);
    if (!err)
        err = hp_resolve_layouts(r, e);
    if (!err)
        err = hp_resolve_ring(r, e);
    return err;
}

void hp_resolved_fini(hp_resolved *r)
{
    free(r->note);
    hp_arena_fini(&r->arena);
    memset(r, 0, sizeof *r);
}

static void print_tensor(const hp_resolved *r, int i, hp_str *out)
{
    const hp_tensor *t = &r->g->tensor[i];
    const hp_mesh *m = &r->mesh[0];
    const char *dims[HP_MAX_DIMS];
    for (int d = 0; d < t->nd; d++)
        dims[d] = r->g->dim[t->dim[d]].name;
    hp_str_add(out, "%s", t->name);
    if (t->kind != HP_T_PARAM) {
        hp_str_add(out, " target ");
        hp_layout_print(m, &r->target[i], dims, out);
    } else {
        const hp_param_state *p = &r->state[i];
        const hp_layout *l[] = {&p->store, &p->compute, &p->accumulate, &p->optimizer};
        static const char *const name[] = {"store", "compute", "accumulate", "optimizer"};
        for (int k = 0; k < 4; k++) {
            hp_str_add(out, "%s %s ", k ? " |" : "", name[k]);
            hp_layout_print(m, l[k], dims, out);
        }
    }
    hp_str_add(out, "\n");
}

void hp_resolved_print(const hp_resolved *r, hp_str *out)
{
    for (int i = 0; i < r->n_notes; i++)
        hp_str_add(out, "%s %s (%s)\n", r->note[i].name, r->note[i].value, r->note[i].source);
    for (int i = 0; i < r->g->n_nodes; i++) {
        const hp_node *n = &r->g->node[i];
        if (n->phase != HP_P_FWD)
            continue;
        hp_str_add(out, "%s stage %d chunk %d\n", n->name, r->vstage[i] % r->pp, r->vstage[i] / r->pp);
    }
    for (int i = 0; i < r->g->n_tensors; i++)
        if (r->g->tensor[i].kind == HP_T_PARAM || (r->g->tensor[i].kind == HP_T_ACT && r->g->tensor[i].nd))
            print_tensor(r, i, out);
}

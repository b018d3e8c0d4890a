/* build.c -- resolve, lower every stage, judge the fit; prices for placement come from the cost room. */
#include "plan/build.h"

#include "cost/cost.h"
#include "op/op.h"
#include "plan/fit.h"
#include "plan/lower.h"

#include <stdlib.h>
#include <string.h>

/* --- prices --------------------------------------------------------------------------------------------------------------- */

typedef struct prices {
    const hp_resolved *r;
    hp_rate rate;
    bool known[1 << HP_MAX_ATOMS];
    hp_group group[1 << HP_MAX_ATOMS]; /* by atom mask, of stage 0 */
} prices;

static const hp_group *group_of(prices *p, const hp_mesh *m, uint32_t atoms)
{
    if (!p->known[atoms]) {
        int *rank = hp_xmalloc((size_t)m->n_ranks * sizeof *rank), n = hp_mesh_group(m, 0, atoms, rank);
        for (int i = 0; i < n; i++)
            rank[i] += m->first;
        p->group[atoms] = hp_cluster_group(p->r->cluster, rank, n);
        p->known[atoms] = true;
        free(rank);
    }
    return &p->group[atoms];
}

static double price_coll(void *ctx, const hp_mesh *m, hp_coll kind, uint32_t atoms, double bytes)
{
    static const hp_xfer xfer[] = {[HP_COLL_ALL_GATHER] = HP_X_ALL_GATHER, [HP_COLL_REDUCE_SCATTER] = HP_X_REDUCE_SCATTER,
                                   [HP_COLL_ALL_REDUCE] = HP_X_ALL_REDUCE, [HP_COLL_ALL_TO_ALL] = HP_X_ALL_TO_ALL,
                                   [HP_COLL_PERMUTE] = HP_X_PERMUTE,       [HP_COLL_SEND_RECV] = HP_X_SEND};
    prices *p = ctx;
    if (kind == HP_COLL_SLICE)
        return hp_cost_pass(p->r->cluster, bytes);
    return hp_cost_collective(p->r->cluster, xfer[kind], group_of(p, m, atoms), bytes).seconds;
}

static double price_op(void *ctx, const hp_node *n, const hp_shape *local)
{
    prices *p = ctx;
    const hp_graph *g = p->r->g;
    hp_call c = {.name = n->name, .n_in = n->n_in, .n_out = n->n_out, .n_attrs = n->n_attrs, .attr = n->attr, .threads = 1};
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        hp_operand *o = &c.arg[i];
        int t = n->arg[i];
        o->nd = t < 0 ? -1 : local[i].nd;
        o->dtype = t < 0 ? HP_F32 : g->tensor[t].dtype;
        for (int d = 0; d < o->nd; d++) {
            o->len[d] = local[i].size[d];
            o->full[d] = p->r->shape[t].size[d];
        }
        if (t >= 0 && g->tensor[t].route >= 0) {
            const hp_shape *route = &p->r->shape[g->tensor[t].route];
            double share = (double)route->size[2] / (double)o->full[2];
            o->rows = (int64_t)((double)(o->len[0] * o->len[1] * o->len[2]) * share);
        }
    }
    hp_op_work w = {0};
    hp_op_find(g->ops[n->kind]->name)->work(&c, &w);
    hp_work work = {.matmul_flops = w.matmul_flops, .other_flops = w.other_flops, .bytes = w.bytes, .m = w.m, .n = w.n, .k = w.k, .groups = w.groups};
    return hp_cost_op(p->r->cluster, &work, p->rate, NULL);
}

static double price_pass(void *ctx, double bytes)
{
    return hp_cost_pass(((prices *)ctx)->r->cluster, bytes);
}

/* --- the plan's head -------------------------------------------------------------------------------------------------------- */

static int64_t dim_size(const hp_graph *g, const char *name)
{
    for (int i = 0; i < g->n_dims; i++)
        if (!strcmp(g->dim[i].name, name))
            return g->dim[i].size;
    return 0;
}

/* The loss's node with the statistics of the vocabulary, NULL where a model has none. */
static const hp_node *vocabulary(const hp_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->ops[g->node[i].kind]->name, "ce_stats"))
            return &g->node[i];
    return NULL;
}

/* Tokens that there are, without padding. */
static int64_t valid_vocab(const hp_graph *g)
{
    const hp_node *n = vocabulary(g);
    int64_t padded = dim_size(g, "vocab");
    return n ? (int64_t)hp_attr_get(n->attr, n->n_attrs, "valid", (double)padded) : padded;
}

/* Fills an operand with the sizes that count as model: the whole tensor, with the vocabulary that is valid. */
static void model_operand(const hp_resolved *r, int tensor, int vocab_dim, hp_operand *o)
{
    const hp_graph *g = r->g;
    const hp_tensor *t = &g->tensor[tensor];
    o->nd = t->nd;
    for (int d = 0; d < t->nd; d++)
        o->len[d] = o->full[d] = t->dim[d] == vocab_dim ? valid_vocab(g) : r->shape[tensor].size[d];
    if (t->route >= 0)
        o->rows = o->len[0] * o->len[1] * r->shape[t->route].size[2];
}

/* Model flops: 3 x forward matmul flops of the unsplit model, unpadded, causal attention at half and at full (DESIGN.md). */
static void count_flops(const hp_resolved *r, hp_plan *plan)
{
    const hp_graph *g = r->g;
    const hp_node *loss = vocabulary(g);
    int vocab_dim = loss ? g->tensor[loss->arg[0]].dim[g->tensor[loss->arg[0]].nd - 1] : -1;
    for (int i = 0; i < g->n_nodes; i++) {
        const hp_node *n = &g->node[i];
        const hp_op *op = hp_op_find(g->ops[n->kind]->name);
        if (n->phase != HP_P_FWD || !op->matmul)
            continue;
        hp_call c = {.n_in = n->n_in, .n_out = n->n_out, .n_attrs = n->n_attrs, .attr = n->attr};
        for (int k = 0; k < n->n_in + n->n_out; k++) {
            c.arg[k].nd = -1;
            if (n->arg[k] >= 0)
                model_operand(r, n->arg[k], vocab_dim, &c.arg[k]);
        }
        hp_op_work w = {0};
        op->work(&c, &w);
        bool half = hp_attr_get(n->attr, n->n_attrs, "causal", 0) != 0;
        plan->model_flops_causal += 3 * w.matmul_flops * (double)r->micro;
        plan->model_flops_full += 3 * w.matmul_flops * (half ? 2 : 1) * (double)r->micro;
    }
}

static void fill_head(hp_resolved *r, hp_plan *plan)
{
    plan->model = hp_arena_strdup(&plan->arena, r->g->name);
    plan->cluster = hp_arena_strdup(&plan->arena, r->cluster->spec);
    plan->strategy = hp_arena_strdup(&plan->arena, r->s->shorthand ? r->s->shorthand : r->s->name);
    plan->strategy_hash = hp_strategy_hash(r->s);
    plan->n_devices = r->cluster->n_devices;
    plan->batch = r->batch;
    plan->micro = r->micro;
    plan->global_batch = r->global;
    plan->zigzag = r->zigzag;
    plan->seq = dim_size(r->g, "seq");
    plan->vocab = valid_vocab(r->g);
    plan->budget_bytes = r->s->hbm_bytes ? r->s->hbm_bytes : (int64_t)r->cluster->budget_bytes;
    count_flops(r, plan);
    plan->n_cuts = r->n_cuts;
    plan->cut = hp_arena_alloc(&plan->arena, (size_t)r->n_cuts * sizeof *plan->cut);
    memcpy(plan->cut, r->cut, (size_t)r->n_cuts * sizeof *plan->cut);
    for (int i = 0; i < r->g->n_tensors; i++)
        for (int d = 0; d < r->shape[i].nd; d++)
            if (r->shape[i].cut[d])
                r->shape[i].cut[d] = plan->cut + (r->shape[i].cut[d] - r->cut);
}

static void keep_notes(const hp_resolved *r, hp_built *out)
{
    for (int i = 0; i < r->n_notes; i++) {
        out->note = hp_grow(out->note, &out->cap_notes, out->n_notes + 1, sizeof *out->note);
        out->note[out->n_notes++] = (hp_note){.name = hp_arena_strdup(&out->plan->arena, r->note[i].name),
                                              .value = hp_arena_strdup(&out->plan->arena, r->note[i].value),
                                              .source = hp_arena_strdup(&out->plan->arena, r->note[i].source)};
    }
}

static hp_err build_any(hp_graph *g, const hp_cluster *c, const hp_strategy *s, bool all_rows, hp_built *out, hp_errmsg *e)
{
    hp_resolved r = {.all_rows = all_rows};
    prices *p = hp_xcalloc(1, sizeof *p);
    *out = (hp_built){0};
    hp_err err = hp_resolve(g, c, s, &r, e);
    if (!err) {
        p->r = &r;
        p->rate = strcmp(s->dtype, "f32") ? HP_RATE_BF16 : HP_RATE_F32;
        hp_price price = {.ctx = p, .coll = price_coll, .op = price_op, .pass = price_pass};
        out->plan = hp_plan_new();
        fill_head(&r, out->plan);
        out->plan->n_programs = r.pp;
        out->plan->program = hp_arena_alloc(&out->plan->arena, (size_t)r.pp * sizeof *out->plan->program);
        for (int i = 0; i < r.pp && !err; i++)
            err = low_program(&r, out->plan, i, &price, e);
        keep_notes(&r, out);
        hp_resolved_print(&r, &out->resolved);
    }
    free(p);
    hp_resolved_fini(&r);
    if (err)
        hp_built_fini(out);
    return err;
}

static hp_err try_plan(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_plan **plan, hp_errmsg *e)
{
    hp_built b = {0};
    hp_err err = build_any(g, c, s, false, &b, e);
    *plan = b.plan;
    b.plan = NULL;
    hp_built_fini(&b);
    return err;
}

hp_err hp_build(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_built *out, hp_errmsg *e)
{
    hp_err err = build_any(g, c, s, c->is_host, out, e);
    if (!err && c->is_host && !hp_fits(out->plan)) { /* real routing may be skewed: room for all rows where it can be had */
        hp_built_fini(out);
        err = build_any(g, c, s, false, out, e);
    }
    if (!err)
        err = hp_fit_check(g, c, s, out->plan, try_plan, e);
    if (err)
        hp_built_fini(out);
    return err;
}

void hp_built_fini(hp_built *b)
{
    hp_plan_free(b->plan);
    hp_str_fini(&b->resolved);
    free(b->note);
    *b = (hp_built){0};
}

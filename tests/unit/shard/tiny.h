/* tiny.h -- small models of real operations, and a simulator that carries out a placement on real numbers.
 *
 * The simulator keeps every copy of every rank as a dense box (routed tensors too; rows that do not exist are zero) and compares each copy, summed over
 * what it is partial over, with the tensor that the reference interpreter computed on one device. Shared by the unit and property tests of placement.
 */
#ifndef HP_TESTS_SHARD_TINY_H
#define HP_TESTS_SHARD_TINY_H

#include "base/rng.h"
#include "kern/routed.h"
#include "op/data.h"
#include "op/interp.h"
#include "shard/place.h"

#include "tap.h"

typedef struct tiny_sizes {
    int64_t batch, seq, embed, kv_heads, group, head, ffn, vocab, experts, k;
    int layers;
    bool lora; /* the head goes through two matmuls without anything between */
} tiny_sizes;

/* --- the model ----------------------------------------------------------------------------------- */

typedef struct tiny {
    hp_graph *g;
    int batch, seq, embed, kv, group, head, ffn, vocab, experts, k, rank;
    hp_errmsg e;
} tiny;

static int tiny_dim(tiny *t, const char *name, int64_t size)
{
    int id = -1;
    if (hp_graph_dim(t->g, name, size, &id, &t->e))
        bail("%s", t->e.text);
    return id;
}

static int tiny_input(tiny *t, const char *name, int nd, const int *dim)
{
    int id = -1;
    if (hp_graph_tensor(t->g, name, HP_T_INPUT, HP_I32, nd, dim, &id, &t->e))
        bail("%s", t->e.text);
    return id;
}

#define tiny_param(t, name, ...)                                                                   \
    tiny_param_of(t, name, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})
static int tiny_param_of(tiny *t, const char *name, int nd, const int *dim)
{
    int id = -1;
    if (hp_graph_tensor(t->g, name, HP_T_PARAM, HP_F32, nd, dim, &id, &t->e))
        bail("%s", t->e.text);
    t->g->tensor[id].init = nd == 1 ? HP_INIT_ONES : HP_INIT_NORMAL;
    t->g->tensor[id].init_std = 0.3f;
    return id;
}

/* Adds a node and returns its first output. */
static int tiny_add(tiny *t, const char *op, const char *name, int n_in, const int *in, int n_attrs,
                    const hp_attr *attr)
{
    int node = -1;
    if (hp_graph_add(t->g, op, name, n_in, in, n_attrs, attr, &node, &t->e))
        bail("%s", t->e.text);
    return t->g->node[node].arg[n_in];
}

static int tiny_linear(tiny *t, const char *name, int x, int contract, int w)
{
    return tiny_add(t, "linear", name, 2, (int[]){x, w}, 1, &(hp_attr){"contract", contract});
}

static const char *tiny_name(tiny *t, int layer, const char *name)
{
    return hp_arena_printf(&t->g->arena, "layers.%d.%s", layer, name);
}

static int tiny_attention(tiny *t, int l, int x, int positions)
{
    int q = tiny_linear(t, tiny_name(t, l, "q"), x, 1,
                        tiny_param(t, tiny_name(t, l, "q.w"), t->embed, t->kv, t->group, t->head));
    int k = tiny_linear(t, tiny_name(t, l, "k"), x, 1,
                        tiny_param(t, tiny_name(t, l, "k.w"), t->embed, t->kv, t->head));
    int v = tiny_linear(t, tiny_name(t, l, "v"), x, 1,
                        tiny_param(t, tiny_name(t, l, "v.w"), t->embed, t->kv, t->head));
    q = tiny_add(t, "rope", tiny_name(t, l, "rope_q"), 2, (int[]){q, positions}, 0, NULL);
    k = tiny_add(t, "rope", tiny_name(t, l, "rope_k"), 2, (int[]){k, positions}, 0, NULL);
    int o = tiny_add(t, "attention", tiny_name(t, l, "core"), 5,
                     (int[]){q, k, v, positions, positions}, 1, &(hp_attr){"causal", 1});
    return tiny_linear(t, tiny_name(t, l, "o"), o, 3,
                       tiny_param(t, tiny_name(t, l, "o.w"), t->kv, t->group, t->head, t->embed));
}

static int tiny_mlp(tiny *t, int l, int x)
{
    int gate = tiny_linear(t, tiny_name(t, l, "gate"), x, 1,
                           tiny_param(t, tiny_name(t, l, "gate.w"), t->embed, t->ffn));
    int up = tiny_linear(t, tiny_name(t, l, "up"), x, 1,
                         tiny_param(t, tiny_name(t, l, "up.w"), t->embed, t->ffn));
    int a = tiny_add(t, "swiglu", tiny_name(t, l, "act"), 2, (int[]){gate, up}, 0, NULL);
    return tiny_linear(t, tiny_name(t, l, "down"), a, 1,
                       tiny_param(t, tiny_name(t, l, "down.w"), t->ffn, t->embed));
}

static int tiny_moe(tiny *t, int l, int x)
{
    int logits = tiny_linear(t, tiny_name(t, l, "router"), x, 1,
                             tiny_param(t, tiny_name(t, l, "router.w"), t->embed,
                                        tiny_dim(t, "choices", t->g->dim[t->experts].size)));
    int idx = tiny_add(t, "router", tiny_name(t, l, "choice"), 1, (int[]){logits}, 1,
                       &(hp_attr){"d", t->k});
    int weights = t->g->node[t->g->n_nodes - 1].arg[2];
    int rows = tiny_add(t, "dispatch", tiny_name(t, l, "dispatch"), 2, (int[]){x, idx}, 1,
                        &(hp_attr){"d", t->experts});
    int up = tiny_add(
        t, "grouped", tiny_name(t, l, "expert_up"), 3,
        (int[]){rows, tiny_param(t, tiny_name(t, l, "up.w"), t->experts, t->embed, t->ffn), idx}, 0,
        NULL);
    int a = tiny_add(t, "silu", tiny_name(t, l, "expert_act"), 1, (int[]){up}, 0, NULL);
    int down = tiny_add(
        t, "grouped", tiny_name(t, l, "expert_down"), 3,
        (int[]){a, tiny_param(t, tiny_name(t, l, "down.w"), t->experts, t->ffn, t->embed), idx}, 0,
        NULL);
    return tiny_add(t, "combine", tiny_name(t, l, "combine"), 3, (int[]){down, idx, weights}, 0,
                    NULL);
}

static int tiny_block(tiny *t, int l, int x, int positions)
{
    int n1 = tiny_add(t, "rmsnorm", tiny_name(t, l, "norm1"), 2,
                      (int[]){x, tiny_param(t, tiny_name(t, l, "norm1.w"), t->embed)}, 0, NULL);
    int a = tiny_attention(t, l, n1, positions);
    x = tiny_add(t, "add", tiny_name(t, l, "mid"), 2, (int[]){x, a}, 0, NULL);
    int n2 = tiny_add(t, "rmsnorm", tiny_name(t, l, "norm2"), 2,
                      (int[]){x, tiny_param(t, tiny_name(t, l, "norm2.w"), t->embed)}, 0, NULL);
    int m = t->experts >= 0 ? tiny_moe(t, l, n2) : tiny_mlp(t, l, n2);
    return tiny_add(t, "add", tiny_name(t, l, "resid"), 2, (int[]){x, m}, 0, NULL);
}

static int tiny_head(tiny *t, int x, bool lora)
{
    if (lora) {
        x = tiny_linear(t, "head.a", x, 1, tiny_param(t, "head.a.w", t->embed, t->rank));
        return tiny_linear(t, "head.b", x, 1, tiny_param(t, "head.b.w", t->rank, t->vocab));
    }
    return tiny_linear(t, "head", x, 1, tiny_param(t, "head.w", t->embed, t->vocab));
}

/* A decoder with its backward: embedding, layers, head, cross-entropy over the tokens that count. */
static hp_graph *tiny_model(const tiny_sizes *z)
{
    tiny t = {.g = hp_graph_new("tiny", hp_graph_ops())};
    int micro = tiny_dim(&t, "micro", 1);
    t.batch = tiny_dim(&t, "batch", z->batch), t.seq = tiny_dim(&t, "seq", z->seq),
    t.embed = tiny_dim(&t, "embed", z->embed);
    t.kv = tiny_dim(&t, "kv_heads", z->kv_heads), t.group = tiny_dim(&t, "group", z->group),
    t.head = tiny_dim(&t, "head", z->head);
    t.ffn = tiny_dim(&t, "ffn", z->ffn), t.vocab = tiny_dim(&t, "vocab", z->vocab),
    t.rank = tiny_dim(&t, "rank", 4);
    t.experts = z->experts ? tiny_dim(&t, "experts", z->experts) : -1;
    t.k = z->experts ? tiny_dim(&t, "k", z->k) : -1;
    int both[] = {t.batch, t.seq}, all[] = {micro, t.batch, t.seq};
    int tokens = tiny_input(&t, "tokens", 2, both), targets = tiny_input(&t, "targets", 2, both);
    int positions = tiny_input(&t, "positions", 2, both),
        every = tiny_input(&t, "targets.all", 3, all);
    int x = tiny_add(&t, "embedding", "embed", 2,
                     (int[]){tokens, tiny_param(&t, "embed.w", t.vocab, t.embed)}, 0, NULL);
    for (int l = 0; l < z->layers; l++)
        x = tiny_block(&t, l, x, positions);
    x = tiny_add(&t, "rmsnorm", "norm", 2, (int[]){x, tiny_param(&t, "norm.w", t.embed)}, 0, NULL);
    int logits = tiny_head(&t, x, z->lora);
    int count = tiny_add(&t, "count", "count", 1, (int[]){every}, 0, NULL);
    int seed = tiny_add(&t, "recip", "seed", 1, (int[]){count}, 0, NULL);
    int stats = tiny_add(&t, "ce_stats", "stats", 2, (int[]){logits, targets, seed}, 0, NULL);
    int loss = tiny_add(&t, "ce_loss", "loss", 3, (int[]){stats, targets, seed}, 0, NULL);
    if (hp_graph_autodiff(t.g, loss, &t.e))
        bail("%s", t.e.text);
    return t.g;
}

/* --- asking for a placement ---------------------------------------------------------------------- */

/* Sends dimensions of tensors whose names match to axes; the first rule that finds its axes free takes them. */
typedef struct tiny_rule {
    const char *glob, *dim, *axes;
} tiny_rule;

static bool tiny_is_param(const hp_tensor *t)
{
    return t->kind == HP_T_PARAM || t->kind == HP_T_BUFFER;
}

/* Gradients lie as what they are the gradient of. */
static const hp_tensor *tiny_like(const hp_graph *g, const hp_tensor *t)
{
    return t->of >= 0 ? &g->tensor[t->of] : t;
}

static __attribute__((unused)) hp_layout tiny_target(const hp_graph *g, const hp_mesh *m,
                                                     int tensor, int n, const tiny_rule *rule)
{
    const hp_tensor *t = tiny_like(g, &g->tensor[tensor]);
    hp_layout l = hp_layout_replicated(t->nd);
    hp_errmsg e;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < t->nd; d++) {
            uint8_t atom[HP_MAX_ATOMS];
            int k;
            if (strcmp(g->dim[t->dim[d]].name, rule[i].dim) ||
                !hp_glob_match(rule[i].glob, t->name))
                continue;
            if (hp_mesh_atoms(m, rule[i].axes, atom, &k, &e))
                bail("%s", e.text);
            uint32_t mask = hp_layout_split_mask(&l), want = 0;
            for (int a = 0; a < k; a++)
                want |= 1u << atom[a];
            if (!(mask & want))
                hp_layout_append(&l, d, atom, k);
        }
    return l;
}

static double tiny_coll(void *ctx, const hp_mesh *m, hp_coll kind, uint32_t atoms, double bytes)
{
    (void)ctx, (void)m, (void)kind, (void)atoms;
    return 2e-6 + bytes / 200e9;
}

static double tiny_pass(void *ctx, double bytes)
{
    (void)ctx;
    return bytes / 2e12;
}

/* The product of all label lengths is what a matmul multiplies; everything else is memory traffic. */
static double tiny_op(void *ctx, const hp_node *n, const hp_shape *local)
{
    (void)ctx;
    double length[HP_MAX_LABELS] = {0}, flops = 2, bytes = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        double size = 4;
        for (int d = 0; d < local[i].nd; d++) {
            size *= (double)local[i].size[d];
            length[n->label[i][d]] = (double)local[i].size[d];
        }
        bytes += local[i].nd < 0 ? 0 : size;
    }
    for (int l = 0; l < n->n_labels; l++)
        flops *= length[l] > 0 ? length[l] : 1;
    double compute = flops / 300e12, memory = bytes / 2e12;
    return 1e-6 + (compute > memory ? compute : memory);
}

static const hp_price tiny_price = {.coll = tiny_coll, .op = tiny_op, .pass = tiny_pass};

typedef struct tiny_plan {
    hp_shape *shape;
    hp_layout *target;
    int *node;
    hp_place_in in;
    hp_placement out;
} tiny_plan;

/* Shapes and node order of the whole graph; targets still replicated. */
static void tiny_begin(tiny_plan *p, const hp_graph *g, const hp_mesh *m)
{
    *p = (tiny_plan){0};
    p->shape = hp_xcalloc((size_t)g->n_tensors, sizeof *p->shape);
    p->target = hp_xcalloc((size_t)g->n_tensors, sizeof *p->target);
    p->node = hp_xcalloc((size_t)g->n_nodes, sizeof *p->node);
    for (int t = 0; t < g->n_tensors; t++) {
        p->shape[t].nd = g->tensor[t].nd;
        for (int d = 0; d < g->tensor[t].nd; d++)
            p->shape[t].size[d] = g->dim[g->tensor[t].dim[d]].size;
        p->target[t] = hp_layout_replicated(g->tensor[t].nd);
    }
    for (int i = 0; i < g->n_nodes; i++)
        p->node[i] = i;
    p->in = (hp_place_in){.g = g,
                          .mesh = m,
                          .shape = p->shape,
                          .target = p->target,
                          .n_nodes = g->n_nodes,
                          .node = p->node,
                          .price = &tiny_price};
}

static void tiny_end(tiny_plan *p)
{
    hp_placement_fini(&p->out);
    free(p->shape);
    free(p->target);
    free(p->node);
}

/* --- the reference ------------------------------------------------------------------------------- */

typedef struct tiny_truth {
    const hp_graph *g;
    const hp_shape *shape;
    float **dense;       /* by tensor: the whole tensor; routed: with zeros where no row is */
    const int32_t **idx; /* by routed tensor: the choices */
} tiny_truth;

static int64_t tiny_cells(const hp_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->nd; d++)
        n *= s->size[d];
    return n;
}

/* Copies between rows sorted by (expert, token) and the dense box; `idx` are the whole choices, `box` what of them is here. */
static void tiny_rows(const hp_shape *whole, const hp_shape *route, const int32_t *idx,
                      const hp_box *box, float *dense, float *rows, bool to_rows)
{
    int64_t k = route->size[2], seq = whole->size[1], s = box->hi[1] - box->lo[1],
            e_len = box->hi[2] - box->lo[2], w = box->hi[3] - box->lo[3], row = 0;
    for (int64_t e = box->lo[2]; e < box->hi[2]; e++)
        for (int64_t b = box->lo[0]; b < box->hi[0]; b++)
            for (int64_t q = box->lo[1]; q < box->hi[1]; q++)
                for (int64_t i = 0; i < k; i++) {
                    if (idx[(b * seq + q) * k + i] != e)
                        continue;
                    float *at =
                        dense +
                        (((b - box->lo[0]) * s + q - box->lo[1]) * e_len + e - box->lo[2]) * w;
                    memcpy(to_rows ? rows + row * w : at, to_rows ? at : rows + row * w,
                           (size_t)w * sizeof(float));
                    row++;
                }
}

static void tiny_tap(void *ctx, int tensor, int64_t step, int64_t micro, const hp_operand *v)
{
    (void)step, (void)micro;
    tiny_truth *t = ctx;
    int64_t n = tiny_cells(&t->shape[tensor]);
    int route = t->g->tensor[tensor].route;
    t->dense[tensor] = hp_xcalloc((size_t)n + 1, sizeof(float));
    if (route < 0) {
        memcpy(t->dense[tensor], v->data, (size_t)n * sizeof(float));
        return;
    }
    hp_box box = {.nd = 4};
    memcpy(box.hi, t->shape[tensor].size, sizeof box.hi);
    t->idx[tensor] = (const int32_t *)(const void *)t->dense[route];
    tiny_rows(&t->shape[tensor], &t->shape[route], t->idx[tensor], &box, t->dense[tensor], v->data,
              false);
}

static tiny_truth tiny_reference(const hp_graph *g, const hp_shape *shape, uint64_t seed)
{
    tiny_truth t = {g, shape, hp_xcalloc((size_t)g->n_tensors, sizeof(float *)),
                    hp_xcalloc((size_t)g->n_tensors, sizeof(int32_t *))};
    hp_corpus corpus;
    hp_errmsg e;
    hp_data_options opt = {
        .seed = seed, .vocab = g->dim[hp_map_get(&g->dim_id, "vocab", 0)].size, .ignore = 0.2};
    if (hp_corpus_open(&corpus, NULL, &opt, &e))
        bail("%s", e.text);
    hp_interp_in in = {.g = g,
                       .seed = seed,
                       .fill = hp_corpus_fill,
                       .fill_ctx = &corpus,
                       .tap = tiny_tap,
                       .tap_ctx = &t};
    hp_interp *it = hp_interp_new(&in);
    if (hp_interp_gradients(it, 0, &e))
        bail("%s", e.text);
    for (int i = 0; i < g->n_tensors; i++)
        if (tiny_is_param(&g->tensor[i])) {
            t.dense[i] = hp_xcalloc((size_t)tiny_cells(&shape[i]), sizeof(float));
            memcpy(t.dense[i], hp_interp_param(it, i),
                   (size_t)tiny_cells(&shape[i]) * sizeof(float));
        }
    hp_interp_free(it);
    hp_corpus_fini(&corpus);
    return t;
}

static void tiny_truth_fini(tiny_truth *t)
{
    for (int i = 0; i < t->g->n_tensors; i++)
        free(t->dense[i]);
    free(t->dense);
    free(t->idx);
}

/* --- the simulator ------------------------------------------------------------------------------- */

typedef struct tiny_sim {
    const tiny_plan *p;
    const tiny_truth *truth;
    const hp_mesh *m;
    float **value; /* [copy * ranks + rank]: the local box */
    char wrong[256];
} tiny_sim;

static hp_box tiny_box(const tiny_sim *s, int copy, int rank)
{
    const hp_copy *c = &s->p->out.copy[copy];
    return hp_layout_box(s->m, &c->layout, &s->p->shape[c->tensor], rank);
}

static float **tiny_value(tiny_sim *s, int copy, int rank)
{
    float **v = &s->value[copy * s->m->n_ranks + rank];
    hp_box b = tiny_box(s, copy, rank);
    if (!*v)
        *v = hp_xcalloc((size_t)hp_box_size(&b) + 1, sizeof(float));
    return v;
}

/* The next cell of a box in row-major order; false at the end. Begin with at = lo. */
static bool tiny_next(const hp_box *b, int64_t *at)
{
    for (int d = b->nd - 1; d >= 0; d--) {
        if (++at[d] < b->hi[d])
            return true;
        at[d] = b->lo[d];
    }
    return false;
}

/* The place of a global cell in a box, -1 outside. */
static int64_t tiny_offset(const hp_box *b, const int64_t *at)
{
    int64_t o = 0;
    for (int d = 0; d < b->nd; d++) {
        if (at[d] < b->lo[d] || at[d] >= b->hi[d])
            return -1;
        o = o * (b->hi[d] - b->lo[d]) + at[d] - b->lo[d];
    }
    return o;
}

/* Merges log-sum-exp triples (max, sum relative to max, picked logit). */
static void tiny_lse(const float *x, float *sum)
{
    float top = fmaxf(x[0], sum[0]);
    float a = x[1] > 0 ? x[1] * expf(x[0] - top) : 0,
          b = sum[1] > 0 ? sum[1] * expf(sum[0] - top) : 0;
    sum[0] = top, sum[1] = a + b, sum[2] += x[2];
}

static void tiny_merge(int red, int64_t n, const float *x, float *sum)
{
    for (int64_t i = 0; i < n && red == HP_RED_LSE; i += 3)
        tiny_lse(x + i, sum + i);
    for (int64_t i = 0; i < n && red == HP_RED_SUM; i++)
        sum[i] += x[i];
}

/* The cells of `want` as a group holds copy `c`, reduced over `reduced`; false when somebody is missing. */
static bool tiny_fetch(tiny_sim *s, int c, int rank, uint32_t group_atoms, uint32_t reduced,
                       const hp_box *want, float *out)
{
    int member[64], n = hp_mesh_group(s->m, rank, group_atoms & ~reduced, member),
                    parts = hp_mesh_group_size(s->m, reduced);
    int64_t cells = hp_box_size(want);
    float *part = hp_xcalloc((size_t)cells + 1, sizeof *part);
    const hp_layout *l = &s->p->out.copy[c].layout;
    int red = HP_RED_NONE;
    bool whole = true;
    for (int a = 0; a < s->m->n_atoms; a++)
        red = reduced >> a & 1 ? l->partial[a] : red;
    for (int k = 0; k < parts; k++) {
        int64_t at[HP_MAX_DIMS], o = 0;
        memcpy(at, want->lo, sizeof at);
        hp_box box[64];
        const float *value[64];
        for (int i = 0; i < n; i++) {
            int all[64];
            hp_mesh_group(s->m, member[i], reduced, all);
            box[i] = tiny_box(s, c, all[k]);
            value[i] = *tiny_value(s, c, all[k]);
        }
        if (cells)
            do {
                int64_t from = -1;
                for (int i = 0; i < n && from < 0; i++)
                    if ((from = tiny_offset(&box[i], at)) >= 0)
                        part[o] = value[i][from];
                whole &= from >= 0;
                o++;
            } while (tiny_next(want, at));
        if (k == 0)
            memcpy(out, part, (size_t)cells * sizeof *out);
        else
            tiny_merge(red, cells, part, out);
    }
    free(part);
    return whole;
}

static bool tiny_move(tiny_sim *s, const hp_step *st)
{
    uint32_t reduced =
        hp_layout_partial_mask(&st->move.from) & ~hp_layout_partial_mask(&st->move.to);
    uint32_t group = st->move.kind == HP_COLL_SLICE ? 0 : st->move.atoms;
    for (int r = 0; r < s->m->n_ranks; r++) {
        hp_box want = tiny_box(s, st->copy[1], r);
        if (!tiny_fetch(s, st->copy[0], r, group, reduced, &want, *tiny_value(s, st->copy[1], r)))
            return false;
    }
    return true;
}

/* Cuts the whole tensor into the boxes of a copy. */
static void tiny_load(tiny_sim *s, int copy)
{
    int t = s->p->out.copy[copy].tensor;
    hp_box all = {.nd = s->p->shape[t].nd};
    memcpy(all.hi, s->p->shape[t].size, sizeof all.hi);
    for (int r = 0; r < s->m->n_ranks; r++) {
        hp_box b = tiny_box(s, copy, r);
        int64_t at[HP_MAX_DIMS], o = 0;
        memcpy(at, b.lo, sizeof at);
        float *v = *tiny_value(s, copy, r);
        if (hp_box_size(&b))
            do
                v[o++] = s->truth->dense[t][tiny_offset(&all, at)];
            while (tiny_next(&b, at));
    }
}

/* One operand of a call: dense boxes as they are, routed ones as rows in memory of their own. */
static hp_operand tiny_operand(tiny_sim *s, int copy, int rank, bool output)
{
    int t = s->p->out.copy[copy].tensor, route = s->p->in.g->tensor[t].route;
    const hp_shape *shape = &s->p->shape[t];
    hp_box b = tiny_box(s, copy, rank);
    hp_operand o = {
        .data = *tiny_value(s, copy, rank), .dtype = s->p->in.g->tensor[t].dtype, .nd = b.nd};
    for (int d = 0; d < b.nd; d++)
        o.lo[d] = b.lo[d], o.len[d] = b.hi[d] - b.lo[d], o.full[d] = shape->size[d];
    if (route < 0)
        return o;
    const int32_t *idx = s->truth->idx[t];
    for (int64_t i = b.lo[0]; i < b.hi[0]; i++)
        o.rows += hp_route_rows(o.len[1], s->p->shape[route].size[2],
                                idx + (i * shape->size[1] + b.lo[1]) * s->p->shape[route].size[2],
                                b.lo[2], o.len[2]);
    float *rows = hp_xcalloc((size_t)(o.rows * o.len[3]) + 1, sizeof *rows);
    if (!output)
        tiny_rows(shape, &s->p->shape[route], idx, &b, o.data, rows, true);
    o.data = rows;
    return o;
}

static void tiny_settle(tiny_sim *s, int copy, int rank, hp_operand *o, bool output)
{
    int t = s->p->out.copy[copy].tensor, route = s->p->in.g->tensor[t].route;
    if (route < 0)
        return;
    hp_box b = tiny_box(s, copy, rank);
    if (output)
        tiny_rows(&s->p->shape[t], &s->p->shape[route], s->truth->idx[t], &b,
                  *tiny_value(s, copy, rank), o->data, false);
    free(o->data);
}

static bool tiny_run(tiny_sim *s, const hp_step *st, int rank)
{
    const hp_node *n = &s->p->in.g->node[st->node];
    const hp_op *op = hp_op_find(s->p->in.g->ops[n->kind]->name);
    hp_call c = {.name = n->name,
                 .n_in = n->n_in,
                 .n_out = n->n_out,
                 .n_attrs = n->n_attrs,
                 .attr = n->attr,
                 .kernels = HP_KERN_REFERENCE,
                 .threads = 1};
    hp_errmsg e = {0};
    for (int i = 0; i < n->n_in + n->n_out; i++)
        c.arg[i] = st->copy[i] < 0 ? (hp_operand){.nd = -1}
                                   : tiny_operand(s, st->copy[i], rank, i >= n->n_in);
    hp_op_work w = {0};
    op->work(&c, &w);
    c.scratch = aligned_alloc(64, ((size_t)w.scratch_bytes + 127) / 64 * 64);
    hp_err err = op->run(&c, &e);
    free(c.scratch);
    for (int i = 0; i < n->n_in + n->n_out; i++)
        if (st->copy[i] >= 0)
            tiny_settle(s, st->copy[i], rank, &c.arg[i], i >= n->n_in);
    if (err)
        snprintf(s->wrong, sizeof s->wrong, "%s: %.200s", n->name, e.text);
    return !err;
}

/* The largest error of a copy against the whole tensor, in the tensor's largest value; -1 when it cannot be put together. */
static double tiny_error(tiny_sim *s, int copy)
{
    const hp_copy *c = &s->p->out.copy[copy];
    hp_box all = {.nd = s->p->shape[c->tensor].nd};
    memcpy(all.hi, s->p->shape[c->tensor].size, sizeof all.hi);
    int64_t n = hp_box_size(&all);
    float *got = hp_xcalloc((size_t)n + 1, sizeof *got);
    const float *want = s->truth->dense[c->tensor];
    uint32_t partial = hp_layout_partial_mask(&c->layout), split = hp_layout_split_mask(&c->layout);
    bool whole = tiny_fetch(s, copy, 0, split, partial, &all, got),
         same = s->p->in.g->tensor[c->tensor].dtype == HP_I32;
    double worst = 0, top = 1e-3;
    for (int64_t i = 0; i < n && !same; i++) {
        top = fmax(top, fabs((double)want[i]));
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
    }
    if (same)
        worst = memcmp(got, want, (size_t)n * sizeof *got) ? 1 : 0;
    free(got);
    return whole ? worst / top : -1;
}

/* Carries out the placement; every copy is judged when made. False: `wrong` says what. */
static bool tiny_simulate(tiny_sim *s)
{
    const hp_placement *o = &s->p->out;
    for (int c = 0; c < o->n_copies; c++)
        if (o->copy[c].step < 0)
            tiny_load(s, c);
    for (int i = 0; i < o->n_steps; i++) {
        const hp_step *st = &o->step[i];
        const hp_node *n = &s->p->in.g->node[st->consumer];
        bool done = st->node >= 0 || tiny_move(s, st);
        for (int r = 0; r < s->m->n_ranks && st->node >= 0 && done; r++)
            done = tiny_run(s, st, r);
        int first = st->node < 0 ? 1 : n->n_in, last = st->node < 0 ? 1 : n->n_in + n->n_out - 1;
        for (int k = first; k <= last && done; k++) {
            double err = tiny_error(s, st->copy[k]);
            done = err >= 0 && err < 2e-4;
            if (!done)
                snprintf(s->wrong, sizeof s->wrong, "step %d, %s of \"%s\": error %g", i,
                         st->node < 0 ? "a move" : "the node", n->name, err);
        }
        if (!done) {
            if (!s->wrong[0])
                snprintf(s->wrong, sizeof s->wrong, "step %d for \"%s\" lacks data", i, n->name);
            return false;
        }
    }
    return true;
}

static void tiny_sim_fini(tiny_sim *s)
{
    for (int i = 0; i < s->p->out.n_copies * s->m->n_ranks; i++)
        free(s->value[i]);
    free(s->value);
}

/* Places, simulates and compares; returns NULL, or what is wrong (in *s, which the caller reads before the next call). */
static const char *tiny_check(tiny_plan *p, uint64_t seed)
{
    static tiny_sim s;
    hp_errmsg e = {0};
    s = (tiny_sim){.p = p, .m = p->in.mesh};
    if (hp_place(&p->in, &p->out, &e)) {
        snprintf(s.wrong, sizeof s.wrong, "%.200s", e.text);
        return s.wrong;
    }
    tiny_truth truth = tiny_reference(p->in.g, p->shape, seed);
    s.truth = &truth;
    s.value = hp_xcalloc((size_t)(p->out.n_copies * s.m->n_ranks) + 1, sizeof(float *));
    bool right = tiny_simulate(&s);
    tiny_sim_fini(&s);
    tiny_truth_fini(&truth);
    return right ? NULL : s.wrong;
}

#endif

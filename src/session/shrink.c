/* shrink.c -- sizes follow from atoms: every atom of the big mesh becomes 2 (or its smallest odd
 * factor), and an axis is the product of its atoms in every view, so that views keep agreeing.
 * What an atom split before it splits after. */
#include "session/shrink.h"

#include "plan/resolve.h"
#include "script/cluster.h"
#include "script/model.h"
#include "script/source.h"
#include "script/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 64, MAX_SIZES = 32 };

static int small_factor(int n)
{
    if (n <= 1 || n % 2 == 0)
        return n <= 1 ? 1 : 2;
    for (int f = 3; f * f <= n; f += 2)
        if (n % f == 0)
            return f;
    return n;
}

static int small_axis(const hp_mesh *m, const hp_axis *a)
{
    int n = 1;
    for (int i = 0; i < a->n; i++)
        n *= small_factor(m->size[a->atom[i]]);
    return n;
}

/* --- what splits a dimension --- */

/* The splits of one dimension in all layouts: big and small products, whether each divides. */
typedef struct splits {
    int64_t big, small; /* least common multiples */
    bool even;
} splits;

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

static int64_t lcm(int64_t a, int64_t b)
{
    return a / gcd(a, b) * b;
}

static void add_layout(const hp_resolved *r, int tensor, const hp_layout *l, splits *s)
{
    const hp_tensor *t = &r->g->tensor[tensor];
    for (int d = 0; d < l->nd && d < t->nd; d++) {
        int64_t big = 1, small = 1;
        for (int i = 0; i < l->n[d]; i++) {
            big *= r->mesh[0].size[l->split[d][i]];
            small *= small_factor(r->mesh[0].size[l->split[d][i]]);
        }
        splits *x = &s[t->dim[d]];
        x->even = x->even && r->g->dim[t->dim[d]].size % big == 0;
        x->big = lcm(x->big, big);
        x->small = lcm(x->small, small);
    }
}

static splits *find_splits(const hp_resolved *r)
{
    splits *s = hp_xmalloc(sizeof *s * ((size_t)r->g->n_dims + 1));
    for (int d = 0; d < r->g->n_dims; d++)
        s[d] = (splits){1, 1, true};
    for (int t = 0; t < r->g->n_tensors; t++) {
        add_layout(r, t, &r->target[t], s);
        if (r->g->tensor[t].kind != HP_T_PARAM)
            continue;
        add_layout(r, t, &r->state[t].store, s);
        add_layout(r, t, &r->state[t].accumulate, s);
        add_layout(r, t, &r->state[t].optimizer, s);
    }
    return s;
}

/* --- the model --- */

typedef struct sizes {
    int n;
    char key[MAX_SIZES][32], value[MAX_SIZES][24];
} sizes;

static void set_size(sizes *z, const char *name, int64_t v)
{
    if (z->n == MAX_SIZES)
        return;
    snprintf(z->key[z->n], sizeof z->key[0], "model.%s", name);
    snprintf(z->value[z->n++], sizeof z->value[0], "%lld", (long long)v);
}

/* The smallest size from `least` on (or the big one where that is smaller) on which the small
 * splits do what the big ones did. */
static int64_t small_size(const splits *s, int64_t big, int64_t least)
{
    int64_t step = s->small, want = big < least ? big : least;
    int64_t n = (want + step - 1) / step * step;
    n = n > 0 ? n : step;
    if (!s->even)
        n += 1;
    return n < big ? n : big;
}

/* What a dimension needs for the model to make sense; the rest may be as small as its splits
 * allow. */
static int64_t least_size(const char *name)
{
    static const struct {
        const char *name;
        int64_t least;
    } rows[] = {{"embed", 16},     {"ffn", 16},       {"vocab", 32}, {"head", 8},    {"seq", 8},
                {"positions", 8},  {"kv_rank", 8},    {"q_rank", 8}, {"nope", 8},    {"rope", 4},
                {"expert_ffn", 8}, {"shared_ffn", 8}, {"v_head", 8}, {"experts", 8}, {"group", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].least;
    return 1;
}

static int find_dim(const hp_graph *g, const char *name)
{
    return hp_map_get(&g->dim_id, name, -1);
}

static int64_t small_dim(const hp_resolved *r, const splits *s, const char *name)
{
    int d = find_dim(r->g, name);
    return d < 0 ? 1 : small_size(&s[d], r->g->dim[d].size, least_size(name));
}

static int small_stages(const hp_resolved *r)
{
    return small_factor(r->pp) * (r->vpp > 1 ? 2 : 1);
}

/* "7+9+9+7": stages of their own sizes stay so, the first with a layer more than the others. */
static bool lists_layers(const hp_strategy *s)
{
    return s->pipeline.stages && strchr(s->pipeline.stages, '+');
}

/* Keys of families (models/) that are no dimensions of the same name. */
static void size_special(const hp_resolved *r, const splits *s, sizes *z)
{
    int stages = small_stages(r);
    int layers = lists_layers(r->s) ? stages + 1 : stages > 1 || r->g->n_layers < 2 ? stages : 2;
    set_size(z, "layers", layers < r->g->n_layers ? layers : r->g->n_layers);
    set_size(z, "heads", small_dim(r, s, "kv_heads") * small_dim(r, s, "group"));
    if (find_dim(r->g, "experts") < 0)
        return;
    set_size(z, "top", 2);
    set_size(z, "dense_layers", layers > 1 ? 1 : 0);
    set_size(z, "groups", 0);
    set_size(z, "top_groups", 0);
}

static void list_sizes(const hp_resolved *r, const splits *s, sizes *z)
{
    int64_t seq = small_dim(r, s, "seq");
    seq = r->zigzag > 1 ? 2 * seq : seq;
    size_special(r, s, z);
    for (int d = 0; d < r->g->n_dims; d++) {
        const char *name = r->g->dim[d].name;
        if (strcmp(name, "batch") == 0 || strcmp(name, "micro") == 0)
            continue;
        int64_t n = small_size(&s[d], r->g->dim[d].size, least_size(name));
        if (strcmp(name, "seq") == 0 || (strcmp(name, "positions") == 0 && n < seq))
            n = seq;
        set_size(z, name, n);
    }
}

/* A family has no key for some of the sizes: those are its own business, and left out. */
static bool drop_unknown(sizes *z, const hp_errmsg *e)
{
    for (int i = 0; i < z->n && strstr(e->text, "unknown key"); i++) {
        size_t len = strlen(z->key[i]);
        const char *at = strstr(e->text, z->key[i]);
        if (!at || (at[len] != ':' && at[len] != ' ' && at[len] != '\''))
            continue;
        z->n--;
        memmove(z->key[i], z->key[z->n], sizeof z->key[0]);
        memmove(z->value[i], z->value[z->n], sizeof z->value[0]);
        return true;
    }
    return false;
}

static hp_err load_small(const hp_ask *ask, sizes *z, hp_graph **g, hp_errmsg *e)
{
    for (;;) {
        hp_ask small = *ask;
        hp_err err = HP_OK;
        for (int i = 0; i < z->n && !err; i++)
            err = hp_ask_over(&small, z->key[i], z->value[i], e);
        if (!err)
            err = hp_script_model(small.model, small.n_over, small.over, g, e);
        if (!err || !drop_unknown(z, e))
            return err;
    }
}

/* --- the strategy --- */

/* "ulysses:8", "shard:8": the number becomes small. */
static const char *small_suffix(hp_arena *a, const char *text)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    if (!colon || atoi(colon + 1) < 1)
        return text;
    return hp_arena_printf(a, "%.*s:%d", (int)(colon - text), text, small_factor(atoi(colon + 1)));
}

static hp_err write_meshes(const hp_resolved *r, hp_strategy *s, int *devices, hp_str *said,
                           hp_errmsg *e)
{
    const hp_mesh *m = &r->mesh[0];
    *devices = small_factor(r->pp);
    for (int i = 0; i < m->n_atoms; i++)
        *devices *= small_factor(m->size[i]);
    if (*devices > MAX_DEVICES)
        return hp_fail(e, HP_EINFEASIBLE,
                       "--shrink: the mesh has so many axes that even its smallest likeness needs "
                       "%d devices; %d are the most",
                       *devices, MAX_DEVICES);
    for (int v = 0; v < s->n_views; v++) {
        hp_str text = {0};
        if (s->pipeline.over && r->pp > 1)
            hp_str_add(&text, "%s=%d", s->pipeline.over, small_factor(r->pp));
        for (int a = 0; a < m->n_axes; a++)
            if (strcmp(m->axis[a].view, s->view_name[v]) == 0)
                hp_str_add(&text, "%s%s=%d", text.len ? ", " : "", m->axis[a].name,
                           small_axis(m, &m->axis[a]));
        hp_str_add(said, "mesh%s%s: %s -> %s\n", s->view_name[v][0] ? "." : "", s->view_name[v],
                   s->view_mesh[v], hp_str_text(&text));
        s->view_mesh[v] = hp_arena_strdup(&s->arena, hp_str_text(&text));
        hp_str_fini(&text);
    }
    return HP_OK;
}

static hp_err shrink_strategy(const hp_resolved *r, const splits *sp, hp_strategy *s, int *devices,
                              hp_str *said, hp_errmsg *e)
{
    if (s->pipeline.n_stages > 0)
        return hp_fail(e, HP_EINFEASIBLE,
                       "--shrink: the strategy lists its stages by layer numbers, which a smaller "
                       "model has not; use stages = \"even\"");
    int batch = find_dim(r->g, "batch");
    int64_t each = r->batch / (batch >= 0 ? sp[batch].big : 1),
            copies = batch >= 0 ? sp[batch].small : 1;
    int64_t micros = r->micro == 1 ? 1 : 2 * small_factor(r->pp);
    each = each > 2 ? 2 : each < 1 ? 1 : each;
    micros = micros < r->micro ? micros : r->micro;
    hp_err err = write_meshes(r, s, devices, said, e);
    s->batch.micro = each;
    s->batch.accum = 0;
    s->batch.global = copies * each * micros;
    s->pipeline.vpp = r->vpp > 1 ? 2 : s->pipeline.vpp;
    if (lists_layers(s)) {
        hp_str stages = {0};
        for (int i = 0; i < small_stages(r); i++)
            hp_str_add(&stages, i ? "+1" : "2");
        s->pipeline.stages = hp_arena_strdup(&s->arena, hp_str_text(&stages));
        hp_str_fini(&stages);
    }
    s->hbm_bytes = 0;
    s->cp.inner = small_suffix(&s->arena, s->cp.inner);
    s->states.after_forward = small_suffix(&s->arena, s->states.after_forward);
    hp_str_add(said, "batch: %lld in %lld microbatches -> %lld in %lld\n", (long long)r->global,
               (long long)r->micro, (long long)s->batch.global, (long long)micros);
    return err;
}

/* --- the whole --- */

static hp_err load_host(int devices, hp_cluster **c, hp_errmsg *e)
{
    char spec[32];
    snprintf(spec, sizeof spec, "host:%d", devices);
    return hp_script_cluster(spec, 0, NULL, c, e);
}

static void say_sizes(const hp_graph *big, const hp_graph *small, hp_str *said)
{
    hp_str_add(said, "model: %lld parameters, %d layers -> %lld, %d\nsizes:",
               (long long)hp_graph_params(big), big->n_layers, (long long)hp_graph_params(small),
               small->n_layers);
    for (int d = 0; d < small->n_dims; d++) {
        int was = find_dim(big, small->dim[d].name);
        if (was >= 0 && big->dim[was].size != small->dim[d].size && small->dim[d].size > 0)
            hp_str_add(said, " %s %lld -> %lld", small->dim[d].name, (long long)big->dim[was].size,
                       (long long)small->dim[d].size);
    }
    hp_str_put(said, "\n", 1);
}

static hp_err shrink_case(const hp_ask *ask, hp_case *big, const hp_resolved *r, hp_case *out,
                          hp_str *said, hp_errmsg *e)
{
    splits *s = find_splits(r);
    sizes z = {0};
    int devices = 0;
    list_sizes(r, s, &z);
    hp_err err = shrink_strategy(r, s, big->strategy, &devices, said, e);
    if (!err)
        err = load_host(devices, &out->cluster, e);
    if (!err)
        err = load_small(ask, &z, &out->graph, e);
    if (!err) {
        say_sizes(big->graph, out->graph, said);
        out->strategy = big->strategy;
        big->strategy = NULL;
        err = hp_build(out->graph, out->cluster, out->strategy, &out->built, e);
    }
    free(s);
    return err;
}

hp_err hp_shrink_load(const hp_ask *ask, hp_case *c, hp_str *said, hp_errmsg *e)
{
    hp_case big = {0};
    hp_resolved r = {0};
    hp_err err = hp_case_open(ask, &big, e);
    if (!err)
        err = hp_resolve(big.graph, big.cluster, big.strategy, &r, e);
    if (!err)
        err = shrink_case(ask, &big, &r, c, said, e);
    hp_resolved_fini(&r);
    hp_case_fini(&big);
    return err;
}

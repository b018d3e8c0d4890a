/* resolve_stage.c -- which virtual stage every node belongs to.
 *
 * The unit of placement is what stands at the top of the model: "embed", "layers.3", "norm", "head", "loss". Virtual stage v runs
 * on stage v mod pp as its chunk v / pp. Backward nodes follow their forward node.
 */
#include "plan/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    int vstage; /* -1: not placed yet */
    bool layer;
} unit;

typedef struct units {
    int n, cap;
    unit *unit;
    int *of_node; /* forward nodes: unit, else -1 */
    hp_map id;
} units;

/* The top of a dotted name, with its number if it has one: "layers.3.attn.q" -> "layers.3". */
static void unit_name(const char *node, char *buf, size_t n)
{
    snprintf(buf, n, "%s", node);
    char *dot = strchr(buf, '.');
    if (!dot)
        return;
    char *end = dot + 1;
    while (isdigit((unsigned char)*end))
        end++;
    if (end > dot + 1 && (*end == '.' || !*end))
        *end = 0;
    else
        *dot = 0;
}

static void find_units(hp_resolved *r, units *u)
{
    const hp_graph *g = r->g;
    u->of_node = hp_arena_alloc(&r->arena, (size_t)g->n_nodes * sizeof *u->of_node);
    for (int i = 0; i < g->n_nodes; i++) {
        u->of_node[i] = -1;
        if (g->node[i].phase != HP_P_FWD)
            continue;
        char buf[128];
        unit_name(g->node[i].name, buf, sizeof buf);
        int id = hp_map_get(&u->id, buf, -1);
        if (id < 0) {
            id = u->n++;
            u->unit = hp_grow(u->unit, &u->cap, u->n, sizeof *u->unit);
            u->unit[id] = (unit){hp_arena_strdup(&r->arena, buf), -1, strchr(buf, '.') != NULL};
            hp_map_put(&u->id, buf, id);
        }
        u->of_node[i] = id;
    }
}

static void free_units(units *u)
{
    free(u->unit);
    hp_map_fini(&u->id);
}

/* Layers a virtual stage when they are counted; units before the first layer join the first stage, those after the last the last. */
static void deal_layers(units *u, const int *count, int n_stages)
{
    int v = 0, left = count[0];
    for (int i = 0; i < u->n; i++) {
        if (u->unit[i].layer) {
            while (!left && v + 1 < n_stages)
                left = count[++v];
            left--;
        }
        u->unit[i].vstage = v;
    }
    bool seen = false;
    for (int i = u->n - 1; i >= 0; i--) {
        seen = seen || u->unit[i].layer;
        if (!seen)
            u->unit[i].vstage = n_stages - 1;
    }
}

static int count_layers(const units *u)
{
    int n = 0;
    for (int i = 0; i < u->n; i++)
        n += u->unit[i].layer;
    return n;
}

static void even_counts(int layers, int n, int *count)
{
    for (int i = 0; i < n; i++)
        count[i] = layers / n + (i < layers % n);
}

/* "3 or 5": values next to `now` (from 1) by which, times `other`, the layers divide; "" when there are none. */
static char *nearest_factor(int layers, int other, int now, char *buf, size_t cap)
{
    int low = now - 1, high = now + 1;
    while (low > 0 && layers % (low * other))
        low--;
    while (high * other <= layers && layers % (high * other))
        high++;
    bool above = high * other <= layers;
    *buf = 0;
    if (low > 0 && above)
        snprintf(buf, cap, "%d or %d", low, high);
    else if (low > 0 || above)
        snprintf(buf, cap, "%d", low > 0 ? low : high);
    return buf;
}

static hp_err refuse_remainder(const hp_resolved *r, int layers, hp_errmsg *e)
{
    int v = r->pp * r->vpp, count[16];
    char chunks[32], stages[32];
    hp_str near = {0};
    nearest_factor(layers, r->pp, r->vpp, chunks, sizeof chunks);
    nearest_factor(layers, r->vpp, r->pp, stages, sizeof stages);
    if (*chunks)
        hp_str_add(&near, "vpp=%s with pp=%d, ", chunks, r->pp);
    if (*stages)
        hp_str_add(&near, "pp=%s with vpp=%d, ", stages, r->vpp);
    if (v <= layers && v <= 16) {
        even_counts(layers, v, count);
        for (int i = 0; i < v; i++)
            hp_str_add(&near, "%s%d", i ? "+" : "stages=", count[i]);
        hp_str_add(&near, ", ");
    }
    hp_err err = hp_fail(e, HP_EINFEASIBLE,
                         "%d layers do not divide over %d virtual stages (pp=%d x vpp=%d): %d would be dropped; nearest legal: %sor uneven stages (`uneven`)",
                         layers, v, r->pp, r->vpp, layers % v, hp_str_text(&near));
    hp_str_fini(&near);
    return err;
}

static hp_err stages_even(hp_resolved *r, units *u, hp_errmsg *e)
{
    int v = r->pp * r->vpp, layers = count_layers(u);
    if (v > 1 && layers < v)
        return hp_fail(e, HP_EINFEASIBLE, "%d layers are fewer than the %d virtual stages (pp=%d x vpp=%d); nearest legal: %d virtual stages", layers, v, r->pp,
                       r->vpp, layers);
    if (layers % v && !r->s->uneven)
        return refuse_remainder(r, layers, e);
    int *count = hp_arena_alloc(&r->arena, (size_t)v * sizeof *count);
    even_counts(layers, v, count);
    deal_layers(u, count, v);
    return HP_OK;
}

/* Stages that place another number of layers than there are: the same shares of all of them are legal. */
static hp_err refuse_sum(const char *text, const int *count, int n, int sum, int layers, hp_errmsg *e)
{
    hp_str near = {0};
    for (int i = 0, before = 0, placed = 0; i < n && sum; i++) {
        before += count[i];
        int until = (int)(((int64_t)before * layers + sum / 2) / sum);
        hp_str_add(&near, "%s%d", i ? "+" : "", until - placed);
        placed = until;
    }
    hp_err err = hp_fail(e, HP_EINFEASIBLE, "stages \"%s\" place %d layers, the model has %d%s%s", text, sum, layers, sum ? "; nearest legal: " : "",
                         hp_str_text(&near));
    hp_str_fini(&near);
    return err;
}

/* "7+9+9+7": layers a virtual stage. */
static hp_err stages_counted(hp_resolved *r, units *u, const char *text, hp_errmsg *e)
{
    int v = r->pp * r->vpp, n = 0, sum = 0, layers = count_layers(u);
    int *count = hp_arena_alloc(&r->arena, (size_t)v * sizeof *count);
    for (const char *s = text; *s; n++) {
        char *end;
        long k = strtol(s, &end, 10);
        if (end == s || k < 0 || k > layers || (*end && *end != '+'))
            return hp_fail(e, hp_resolve_bad(r), "stages \"%s\" are not numbers of layers joined by +", text);
        if (n < v)
            count[n] = (int)k;
        sum += (int)k;
        s = *end ? end + 1 : end;
    }
    if (n != v)
        return hp_fail(e, HP_EINFEASIBLE, "stages \"%s\" name %d stages, pp=%d with vpp=%d has %d", text, n, r->pp, r->vpp, v);
    if (sum != layers)
        return refuse_sum(text, count, n, sum, layers, e);
    deal_layers(u, count, v);
    return HP_OK;
}

static const char *near_unit(hp_resolved *r, const units *u, const char *word)
{
    const char **name = hp_arena_alloc(&r->arena, (size_t)u->n * sizeof *name);
    for (int i = 0; i < u->n; i++)
        name[i] = u->unit[i].name;
    return hp_near(word, name, u->n);
}

static bool is_glue(const hp_graph *g, const hp_node *n)
{
    static const char *const ops[] = {"add", "mul", "scale", "dropout"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(g->ops[n->kind]->name, ops[i]))
            return true;
    return false;
}

/* Sums and products that a script wrote between modules have names that nobody knows: a unit of nothing else stands with the last of what it reads. */
static void follow_inputs(hp_resolved *r, units *u)
{
    const hp_graph *g = r->g;
    bool *named = hp_arena_alloc(&r->arena, (size_t)u->n * sizeof *named);
    for (int i = 0; i < g->n_nodes; i++)
        if (u->of_node[i] >= 0 && !is_glue(g, &g->node[i]))
            named[u->of_node[i]] = true;
    for (int i = 0; i < g->n_nodes; i++) {
        int id = u->of_node[i], v = -1;
        const hp_node *n = &g->node[i];
        if (id < 0 || named[id] || u->unit[id].vstage >= 0)
            continue;
        for (int k = 0; k < n->n_in; k++) {
            int made = n->arg[k] < 0 ? -1 : g->tensor[n->arg[k]].producer;
            int from = made < 0 || u->of_node[made] < 0 ? -1 : u->unit[u->of_node[made]].vstage;
            v = from > v ? from : v;
        }
        u->unit[id].vstage = v;
    }
}

/* { "embed layers[0:7]", ... }: every unit in exactly one. */
static hp_err stages_listed(hp_resolved *r, units *u, hp_errmsg *e)
{
    int v = r->pp * r->vpp;
    if (r->s->pipeline.n_stages != v)
        return hp_fail(e, HP_EINFEASIBLE, "stages list %d entries, pp=%d with vpp=%d has %d", r->s->pipeline.n_stages, r->pp, r->vpp, v);
    for (int i = 0; i < v; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s", r->s->pipeline.stage[i]);
        for (char *save, *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
            bool any = false;
            for (int k = 0; k < u->n; k++) {
                char pattern[160];
                snprintf(pattern, sizeof pattern, "%s", w);
                if (!hp_glob_match(pattern, u->unit[k].name))
                    continue;
                if (u->unit[k].vstage >= 0 && u->unit[k].vstage != i)
                    return hp_fail(e, HP_EINFEASIBLE, "module %s is on two stages, %d and %d", u->unit[k].name, u->unit[k].vstage, i);
                u->unit[k].vstage = i;
                any = true;
            }
            if (!any) {
                const char *near = near_unit(r, u, w);
                return hp_fail(e, hp_resolve_bad(r), "stage %d: \"%s\" names no module%s%s", i, w, near ? ", nearest: " : "", near ? near : "");
            }
        }
    }
    follow_inputs(r, u);
    for (int k = 0; k < u->n; k++)
        if (u->unit[k].vstage < 0)
            return hp_fail(e, HP_EINFEASIBLE, "module %s is on no stage", u->unit[k].name);
    return HP_OK;
}

/* The first virtual stage on which a part of a sum of gradients is made: backward comes there last. */
static int last_reached(const hp_resolved *r, const hp_node *n)
{
    int v = -1;
    for (int i = 0; i < n->n_in; i++) {
        int made = r->g->tensor[n->arg[i]].producer;
        if (made >= 0 && (v < 0 || r->vstage[made] < v))
            v = r->vstage[made];
    }
    return v;
}

/* A backward node stands with its forward node; a sum of gradients where its last part is made, so that one message goes on to the stage before instead
 * of several, some of which would skip stages and hold their bytes until a later turn of the schedule. */
static int backward_stage(const hp_resolved *r, const hp_node *n)
{
    int v = strcmp(r->g->ops[n->kind]->name, "add") ? -1 : last_reached(r, n);
    return v >= 0 ? v : n->fwd >= 0 ? r->vstage[n->fwd] : r->pp * r->vpp - 1;
}

hp_err hp_resolve_stages(hp_resolved *r, hp_errmsg *e)
{
    const hp_graph *g = r->g;
    units u = {0};
    find_units(r, &u);
    const char *stages = r->s->pipeline.stages;
    hp_err err;
    if (r->s->pipeline.n_stages)
        err = stages_listed(r, &u, e);
    else if (stages && isdigit((unsigned char)*stages))
        err = stages_counted(r, &u, stages, e);
    else
        err = stages_even(r, &u, e);
    int last = r->pp * r->vpp - 1;
    r->vstage = hp_arena_alloc(&r->arena, (size_t)g->n_nodes * sizeof *r->vstage);
    for (int i = 0; i < g->n_nodes && !err; i++) {
        if (g->node[i].phase == HP_P_INIT)
            r->vstage[i] = last;
        else if (g->node[i].phase == HP_P_FWD)
            r->vstage[i] = u.unit[u.of_node[i]].vstage;
        else
            r->vstage[i] = backward_stage(r, &g->node[i]);
    }
    free_units(&u);
    return err;
}

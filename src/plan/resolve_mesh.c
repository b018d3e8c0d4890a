/* resolve_mesh.c -- "pp=4, dp=*, tp=2" against a device count: sizes, stages, atoms.
 *
 * The pipeline axis is cut off first (it is the outermost, so that a stage's devices are neighbours); the rest of every view must make the
 * same number of devices. Axes that split heads beyond the number of key/value heads are factored, so that key and value replicate over the inner part.
 */
#include "plan/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AXES = 12 };

typedef struct axis_size {
    char name[16];
    int64_t size; /* 0: `*` */
} axis_size;

typedef struct view {
    int n;
    axis_size axis[MAX_AXES];
} view;

hp_err hp_resolve_bad(const hp_resolved *r)
{
    return r->s->shorthand ? HP_EUSAGE : HP_EINPUT;
}

static bool read_axis(const char **s, axis_size *a)
{
    while (isspace((unsigned char)**s) || **s == ',')
        (*s)++;
    size_t n = 0;
    while (isalnum((unsigned char)**s) || **s == '_') {
        if (n + 1 >= sizeof a->name)
            return false;
        a->name[n++] = *(*s)++;
    }
    a->name[n] = 0;
    while (isspace((unsigned char)**s))
        (*s)++;
    if (!n || *(*s)++ != '=')
        return false;
    while (isspace((unsigned char)**s))
        (*s)++;
    if (**s == '*') {
        (*s)++;
        a->size = 0;
    } else {
        char *end;
        a->size = strtoll(*s, &end, 10);
        if (end == *s || a->size < 1 || a->size > 1 << 24)
            return false;
        *s = end;
    }
    while (isspace((unsigned char)**s))
        (*s)++;
    return !**s || **s == ',';
}

static hp_err read_view(const hp_resolved *r, const char *text, view *v, hp_errmsg *e)
{
    const char *s = text;
    v->n = 0;
    while (*s) {
        if (v->n == MAX_AXES)
            return hp_fail(e, hp_resolve_bad(r), "mesh \"%s\" has more than %d axes", text, MAX_AXES);
        if (!read_axis(&s, &v->axis[v->n]))
            return hp_fail(e, hp_resolve_bad(r),
                           "mesh \"%s\": axis %d is not of the form name=size or name=* (sizes from 1)", text, v->n + 1);
        for (int i = 0; i < v->n; i++)
            if (!strcmp(v->axis[i].name, v->axis[v->n].name))
                return hp_fail(e, hp_resolve_bad(r), "mesh \"%s\" names axis %s twice", text, v->axis[i].name);
        v->n++;
    }
    return HP_OK;
}

/* Fills the one `*` so that the sizes make n devices. */
static hp_err fill_star(const hp_resolved *r, view *v, const char *text, int64_t n, hp_errmsg *e)
{
    int64_t known = 1;
    int star = -1;
    for (int i = 0; i < v->n; i++) {
        if (v->axis[i].size)
            known *= v->axis[i].size;
        else if (star >= 0)
            return hp_fail(e, hp_resolve_bad(r), "mesh \"%s\" has more than one `*`", text);
        else
            star = i;
    }
    if (star >= 0 && n % known == 0) {
        v->axis[star].size = n / known;
        return HP_OK;
    }
    if (star < 0 && known == n)
        return HP_OK;
    int64_t below = known;
    while (below > 1 && n % below)
        below--;
    if (star >= 0)
        return hp_fail(e, HP_EINFEASIBLE,
                       "mesh \"%s\": the fixed axes make %lld, which does not divide the %lld devices of %s; nearest legal product: %lld",
                       text, (long long)known, (long long)n, r->cluster->spec, (long long)below);
    int grow = 0;
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->axis[i].name, "dp"))
            grow = i;
    int64_t rest = known / v->axis[grow].size;
    if (n % rest == 0)
        return hp_fail(e, HP_EINFEASIBLE, "mesh \"%s\" makes %lld devices, %s has %lld; nearest legal: %s=%lld", text,
                       (long long)known, r->cluster->spec, (long long)n, v->axis[grow].name, (long long)(n / rest));
    return hp_fail(e, HP_EINFEASIBLE, "mesh \"%s\" makes %lld devices, %s has %lld; nearest legal product: %lld", text,
                   (long long)known, r->cluster->spec, (long long)n, (long long)below);
}

/* Cuts the pipeline axis off a view; it must stand first. A stage of one device keeps a mesh of one axis. */
static hp_err cut_pipeline(view *v, const char *text, const char *over, int *pp, hp_errmsg *e)
{
    for (int i = 0; over && i < v->n; i++) {
        if (strcmp(v->axis[i].name, over))
            continue;
        if (i && v->axis[i].size > 1)
            return hp_fail(e, HP_EINFEASIBLE,
                           "mesh \"%s\": the pipeline axis %s must be the outermost (first); write \"%s=%lld, ...\"", text,
                           over, over, (long long)v->axis[i].size);
        *pp = (int)v->axis[i].size;
        v->n--;
        memmove(v->axis + i, v->axis + i + 1, (size_t)(v->n - i) * sizeof *v->axis);
        if (!v->n)
            v->axis[v->n++] = (axis_size){"dp", 1};
        return HP_OK;
    }
    return HP_OK;
}

static void print_view(const view *v, hp_str *out)
{
    for (int i = 0; i < v->n; i++)
        hp_str_add(out, "%s%s=%lld", i ? "," : "", v->axis[i].name, (long long)v->axis[i].size);
}

static int64_t dim_size(const hp_graph *g, const char *name)
{
    for (int i = 0; i < g->n_dims; i++)
        if (!strcmp(g->dim[i].name, name))
            return g->dim[i].size;
    return 0;
}

/* Which axes of the first view the words `heads` and `kv_heads` are split by, and where one must be cut so that key and value heads
 * replicate over its inner part. Returns the number of cuts (0 or 1). */
static int head_factor(const hp_resolved *r, const view *v, const char **axis, int *outer)
{
    int64_t left = dim_size(r->g, "kv_heads"), group = dim_size(r->g, "group");
    const char *axes = NULL;
    for (int i = 0; i < r->s->split.n; i++)
        if (!strcmp(r->s->split.rule[i].dim, "heads") || (!axes && !strcmp(r->s->split.rule[i].dim, "kv_heads")))
            axes = r->s->split.rule[i].axes;
    if (!left || group < 2 || !axes)
        return 0;
    char word[128];
    snprintf(word, sizeof word, "%s", axes);
    for (char *save, *w = strtok_r(word, "+ ", &save); w; w = strtok_r(NULL, "+ ", &save))
        for (int i = 0; i < v->n; i++) {
            if (strcmp(v->axis[i].name, w) || left == 1)
                continue;
            int64_t t = v->axis[i].size;
            if (left % t == 0) {
                left /= t;
            } else if (t % left == 0) {
                *axis = v->axis[i].name;
                *outer = (int)left;
                return 1;
            }
        }
    return 0;
}

static void note_view(hp_resolved *r, int i, const view *v, int pp, const char *over)
{
    hp_str t = {0}, name = {0};
    if (pp > 1)
        hp_str_add(&t, "%s=%d,", over, pp);
    print_view(v, &t);
    hp_str_add(&name, "mesh%s%s", *r->s->view_name[i] ? "." : "", r->s->view_name[i]);
    bool derived = strchr(r->s->view_mesh[i], '*') != NULL;
    hp_str source = {0};
    if (derived)
        hp_str_add(&source, "derived from %d devices", r->cluster->n_devices);
    hp_resolved_note(r, hp_str_text(&name), hp_str_text(&t), derived ? hp_str_text(&source) : "given");
    hp_str_fini(&t);
    hp_str_fini(&name);
    hp_str_fini(&source);
}

/* Says how many ranks hold the same keys, values and their weights. */
static void note_copies(hp_resolved *r, const view *v, const char *axis, int outer)
{
    for (int i = 0; i < v->n; i++) {
        char copies[24], source[160];
        if (strcmp(v->axis[i].name, axis))
            continue;
        snprintf(copies, sizeof copies, "%lld", (long long)v->axis[i].size / outer);
        snprintf(source, sizeof source, "%s=%lld over %lld key/value heads: keys, values, their weights and gradients are held that often", axis,
                 (long long)v->axis[i].size, (long long)dim_size(r->g, "kv_heads"));
        hp_resolved_note(r, "kv_heads.copies", copies, source);
    }
}

/* Reads every view, fills its sizes and cuts its pipeline axis off; r->pp is what all have. */
static hp_err read_views(hp_resolved *r, view *views, hp_errmsg *e)
{
    const hp_strategy *s = r->s;
    const char *over = s->pipeline.over ? s->pipeline.over : "pp";
    for (int i = 0; i < s->n_views; i++) {
        int pp = 1;
        hp_err err = read_view(r, s->view_mesh[i], &views[i], e);
        if (!err)
            err = fill_star(r, &views[i], s->view_mesh[i], r->cluster->n_devices, e);
        if (!err)
            err = cut_pipeline(&views[i], s->view_mesh[i], over, &pp, e);
        if (!err && i && pp != r->pp)
            err = hp_fail(e, HP_EINFEASIBLE, "view %s has %s=%d where the first has %s=%d: an axis of equal name has equal groups", s->view_name[i], over, pp,
                          over, r->pp);
        if (err)
            return err;
        r->pp = pp;
        note_view(r, i, &views[i], pp, over);
    }
    return HP_OK;
}

static hp_err build_meshes(hp_resolved *r, const view *views, hp_errmsg *e)
{
    hp_str spec[8] = {{0}};
    const char *specs[8], *factor_axis = NULL;
    int n = r->s->n_views, outer = 0, n_factors = head_factor(r, &views[0], &factor_axis, &outer);
    if (n_factors)
        note_copies(r, &views[0], factor_axis, outer);
    for (int i = 0; i < n; i++) {
        print_view(&views[i], &spec[i]);
        specs[i] = hp_str_text(&spec[i]);
    }
    r->mesh = hp_arena_alloc(&r->arena, (size_t)r->pp * sizeof *r->mesh);
    hp_err err = hp_mesh_build(&r->mesh[0], n, (const char *const *)r->s->view_name, specs, n_factors, &factor_axis, &outer, e);
    for (int i = 1; i < r->pp && !err; i++) {
        r->mesh[i] = r->mesh[0];
        r->mesh[i].first = i * r->mesh[0].n_ranks;
    }
    for (int i = 0; i < n; i++)
        hp_str_fini(&spec[i]);
    return err;
}

hp_err hp_resolve_mesh(hp_resolved *r, hp_errmsg *e)
{
    view views[8];
    if (r->s->n_views < 1)
        return hp_fail(e, hp_resolve_bad(r), "the strategy has no mesh; write mesh = \"dp=*\" or so");
    hp_err err = read_views(r, views, e);
    if (err)
        return err;
    r->vpp = r->s->pipeline.vpp > 0 && r->pp > 1 ? r->s->pipeline.vpp : 1;
    if (r->vpp > HP_MAX_CHUNKS)
        return hp_fail(e, HP_EINFEASIBLE, "vpp=%d: a stage has at most %d chunks", r->vpp, HP_MAX_CHUNKS);
    return build_meshes(r, views, e);
}

hp_err hp_resolve_atoms(const hp_resolved *r, const char *axes, uint8_t *atom, int *n, hp_errmsg *e)
{
    char word[160];
    *n = 0;
    if (!axes || !strcmp(axes, "whole"))
        return HP_OK;
    if (strlen(axes) >= sizeof word)
        return hp_fail(e, hp_resolve_bad(r), "axes \"%.40s...\" are longer than %zu characters", axes, sizeof word - 1);
    strcpy(word, axes);
    const hp_mesh *m = &r->mesh[0];
    for (char *save, *w = strtok_r(word, "+ ", &save); w; w = strtok_r(NULL, "+ ", &save)) {
        const hp_axis *a = hp_mesh_axis(m, w);
        if (!a) {
            const char *known[HP_MAX_AXES];
            for (int i = 0; i < m->n_axes; i++)
                known[i] = m->axis[i].name;
            const char *near = hp_near(w, known, m->n_axes);
            return hp_fail(e, hp_resolve_bad(r), "unknown axis \"%s\" in \"%s\"; the mesh has no such axis%s%s", w, axes,
                           near ? ", nearest: " : "", near ? near : "");
        }
        for (int i = 0; i < a->n; i++) {
            for (int j = 0; j < *n; j++)
                if (atom[j] == a->atom[i])
                    return hp_fail(e, hp_resolve_bad(r), "\"%s\" names devices of axis %s twice", axes, w);
            atom[(*n)++] = a->atom[i];
        }
    }
    return HP_OK;
}

/* layout.c -- boxes by folding, and layouts as text. */
#include "shard/layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

hp_layout hp_layout_replicated(int nd)
{
    hp_layout l = {0};
    l.nd = (uint8_t)nd;
    return l;
}

bool hp_layout_equal(const hp_layout *a, const hp_layout *b)
{
    if (a->nd != b->nd || memcmp(a->partial, b->partial, sizeof a->partial) != 0)
        return false;
    for (int d = 0; d < a->nd; d++)
        if (a->n[d] != b->n[d] || memcmp(a->split[d], b->split[d], a->n[d]) != 0)
            return false;
    return true;
}

hp_layout hp_layout_clean(const hp_layout *l)
{
    hp_layout c = hp_layout_replicated(l->nd);
    for (int d = 0; d < l->nd; d++) {
        c.n[d] = l->n[d];
        memcpy(c.split[d], l->split[d], l->n[d]);
    }
    memcpy(c.partial, l->partial, sizeof c.partial);
    return c;
}

void hp_layout_append(hp_layout *l, int d, const uint8_t *atom, int n)
{
    assert(d < l->nd && l->n[d] + n <= HP_MAX_ATOMS);
    memmove(l->split[d] + l->n[d], atom, (size_t)n);
    l->n[d] = (uint8_t)(l->n[d] + n);
}

void hp_layout_remove(hp_layout *l, int d, int n)
{
    assert(n <= l->n[d]);
    l->n[d] = (uint8_t)(l->n[d] - n);
    memset(l->split[d] + l->n[d], 0, (size_t)n);
}

/* Sum and average commute with each other; no other two reductions do. */
static bool commute(int a, int b)
{
    bool linear_a = a == HP_RED_SUM || a == HP_RED_AVG,
         linear_b = b == HP_RED_SUM || b == HP_RED_AVG;
    return a == b || (linear_a && linear_b);
}

static hp_err check_partial(const hp_mesh *m, const hp_layout *l, hp_errmsg *e)
{
    int first = HP_RED_NONE;
    for (int i = 0; i < HP_MAX_ATOMS; i++) {
        if (l->partial[i] == HP_RED_NONE)
            continue;
        if (i >= m->n_atoms)
            return hp_fail(e, HP_EINTERNAL,
                           "a layout is partial over part %d of a mesh with %d parts", i,
                           m->n_atoms);
        if (first != HP_RED_NONE && !commute(first, l->partial[i]))
            return hp_fail(
                e, HP_EINFEASIBLE,
                "a value cannot be partial by %s and by %s at once: the order would matter",
                hp_reduce_name((hp_reduce)first), hp_reduce_name((hp_reduce)l->partial[i]));
        first = l->partial[i];
    }
    return HP_OK;
}

hp_err hp_layout_check(const hp_mesh *m, const hp_layout *l, hp_errmsg *e)
{
    uint32_t seen = 0;
    char name[64];
    if (l->nd > HP_MAX_DIMS)
        return hp_fail(e, HP_EINTERNAL, "a layout has %d dimensions, more than %d", l->nd,
                       HP_MAX_DIMS);
    for (int d = 0; d < l->nd; d++)
        for (int i = 0; i < l->n[d]; i++) {
            int a = l->split[d][i];
            if (a >= m->n_atoms)
                return hp_fail(e, HP_EINTERNAL, "a layout names part %d of a mesh with %d parts", a,
                               m->n_atoms);
            if (seen >> a & 1)
                return hp_fail(e, HP_EINFEASIBLE, "axis \"%s\" splits a tensor twice",
                               hp_mesh_name(m, 1u << a, name, sizeof name));
            if (l->partial[a] != HP_RED_NONE)
                return hp_fail(e, HP_EINFEASIBLE, "axis \"%s\" is both split and partial",
                               hp_mesh_name(m, 1u << a, name, sizeof name));
            seen |= 1u << a;
        }
    return check_partial(m, l, e);
}

/* --- boxes --------------------------------------------------------------------------------------- */

int hp_layout_run(const hp_mesh *m, const hp_layout *l, int d, int i)
{
    const uint8_t *s = l->split[d];
    int n = 1;
    while (i + n < l->n[d] && s[i + n] == s[i + n - 1] + 1 && m->joined[s[i + n]])
        n++;
    return n;
}

static int run_size(const hp_mesh *m, const hp_layout *l, int d, int i, int n)
{
    int parts = 1;
    for (int k = 0; k < n; k++)
        parts *= m->size[l->split[d][i + k]];
    return parts;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void fold_chunk(int64_t *lo, int64_t *hi, int n, int i)
{
    int64_t chunk = (*hi - *lo + n - 1) / n, begin = *lo + i * chunk;
    *lo = least(begin, *hi);
    *hi = least(begin + chunk, *hi);
}

static void fold_balanced(int64_t *lo, int64_t *hi, int n, int i)
{
    int64_t part = (*hi - *lo) / n, more = (*hi - *lo) % n, begin = *lo + i * part + least(i, more);
    *lo = begin;
    *hi = begin + part + (i < more);
}

static void fold_sizes(int64_t *lo, int64_t *hi, const hp_cut *c, int i)
{
    int64_t begin = *lo;
    for (int k = 0; k < i; k++)
        begin += c->size[k];
    *lo = least(begin, *hi);
    *hi = least(begin + c->size[i], *hi);
}

/* A list of sizes made for another number of parts than the outermost run has does not apply. */
static hp_cut_kind cut_kind(const hp_cut *c, int parts)
{
    if (!c || (c->kind == HP_CUT_SIZES && c->n != parts))
        return HP_CUT_CHUNK;
    return c->kind;
}

static void fold_dim(const hp_mesh *m, const hp_layout *l, const hp_cut *cut, int d,
                     const int *coord, int64_t *lo, int64_t *hi)
{
    for (int i = 0, n; i < l->n[d]; i += n) {
        n = hp_layout_run(m, l, d, i);
        int parts = run_size(m, l, d, i, n), at = 0;
        for (int k = 0; k < n; k++)
            at = at * m->size[l->split[d][i + k]] + coord[l->split[d][i + k]];
        hp_cut_kind kind = i ? HP_CUT_CHUNK : cut_kind(cut, parts);
        if (kind == HP_CUT_BALANCED)
            fold_balanced(lo, hi, parts, at);
        else if (kind == HP_CUT_SIZES)
            fold_sizes(lo, hi, cut, at);
        else
            fold_chunk(lo, hi, parts, at);
    }
}

hp_box hp_layout_box(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int rank)
{
    int coord[HP_MAX_ATOMS];
    hp_mesh_coord(m, rank, coord);
    hp_box b = {.nd = shape->nd};
    for (int d = 0; d < shape->nd; d++) {
        b.hi[d] = shape->size[d];
        fold_dim(m, l, shape->cut[d], d, coord, &b.lo[d], &b.hi[d]);
    }
    return b;
}

int64_t hp_box_size(const hp_box *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->nd; d++)
        n *= b->hi[d] > b->lo[d] ? b->hi[d] - b->lo[d] : 0;
    return n;
}

hp_box hp_box_meet(const hp_box *a, const hp_box *b)
{
    hp_box c = {.nd = a->nd};
    for (int d = 0; d < a->nd; d++) {
        c.lo[d] = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        c.hi[d] = least(a->hi[d], b->hi[d]);
        if (c.hi[d] < c.lo[d])
            c.hi[d] = c.lo[d];
    }
    return c;
}

int64_t hp_layout_max_len(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int d)
{
    int64_t len = shape->size[d];
    for (int i = 0, n; i < l->n[d];
         i += n) { /* the first part of a chunk or balanced fold is a largest one */
        n = hp_layout_run(m, l, d, i);
        int parts = run_size(m, l, d, i, n);
        if (i == 0 && cut_kind(shape->cut[d], parts) == HP_CUT_SIZES) {
            int64_t largest = 0;
            for (int k = 0; k < parts; k++)
                largest = shape->cut[d]->size[k] > largest ? shape->cut[d]->size[k] : largest;
            len = least(len, largest);
        } else
            len = (len + parts - 1) / parts;
    }
    return len;
}

int64_t hp_layout_max_size(const hp_mesh *m, const hp_layout *l, const hp_shape *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->nd; d++)
        n *= hp_layout_max_len(m, l, shape, d);
    return n;
}

/* Whether the first `n` atoms of the dimension, which end a run, cut every length without remainder. */
static bool even_prefix(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int d, int n)
{
    if (n == 0)
        return true;
    int64_t size = shape->size[d];
    int first = run_size(m, l, d, 0, hp_layout_run(m, l, d, 0));
    if (cut_kind(shape->cut[d], first) == HP_CUT_SIZES)
        for (int k = 0; k < first; k++)
            if (shape->cut[d]->size[k] * first != size)
                return false;
    return size % run_size(m, l, d, 0, n) == 0;
}

bool hp_layout_even(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int *dim)
{
    for (int d = 0; d < shape->nd; d++)
        if (!even_prefix(m, l, shape, d, l->n[d])) {
            *dim = d;
            return false;
        }
    return true;
}

/* Whether the first run of a dimension, cut by chunk into outer x inner parts, cuts the chunks of the outer parts alone. */
static bool nested_chunks(int64_t size, int outer, int inner)
{
    int parts = outer * inner;
    return (size + parts - 1) / parts * inner == (size + outer - 1) / outer;
}

bool hp_layout_seam(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int d, int k)
{
    const hp_cut *cut = shape->cut[d];
    int at = 0, begin = 0;
    while (at < k)
        begin = at, at += hp_layout_run(m, l, d, at);
    if (at == k)
        return true;
    if (cut && cut->kind == HP_CUT_SIZES)
        return false;
    if (even_prefix(m, l, shape, d, at))
        return true;
    int outer = run_size(m, l, d, begin, k - begin), inner = run_size(m, l, d, k, at - k);
    return begin == 0 && !cut && nested_chunks(shape->size[d], outer, inner);
}

uint32_t hp_layout_mask(const hp_layout *l, int d)
{
    uint32_t mask = 0;
    for (int i = 0; i < l->n[d]; i++)
        mask |= 1u << l->split[d][i];
    return mask;
}

uint32_t hp_layout_split_mask(const hp_layout *l)
{
    uint32_t mask = 0;
    for (int d = 0; d < l->nd; d++)
        mask |= hp_layout_mask(l, d);
    return mask;
}

uint32_t hp_layout_partial_mask(const hp_layout *l)
{
    uint32_t mask = 0;
    for (int i = 0; i < HP_MAX_ATOMS; i++)
        if (l->partial[i] != HP_RED_NONE)
            mask |= 1u << i;
    return mask;
}

bool hp_layout_tensor_map(const hp_mesh *m, const hp_layout *l, int *map)
{
    int n_main = 0;
    while (n_main < m->n_axes && !m->axis[n_main].view[0])
        n_main++;
    for (int d = 0; d < l->nd; d++) {
        map[d] = -1;
        for (int i = 0; i < n_main && l->n[d]; i++)
            if (m->axis[i].n == l->n[d] && memcmp(m->axis[i].atom, l->split[d], l->n[d]) == 0)
                map[d] = n_main - 1 - i;
        if (l->n[d] && map[d] < 0)
            return false;
    }
    return true;
}

/* --- text ---------------------------------------------------------------------------------------- */

static hp_err parse_partial(const hp_mesh *m, const char *text, hp_layout *l, hp_errmsg *e)
{
    char kind[16] = "", axes[128] = "", end = 0;
    if (sscanf(text, "%15[a-z](%127[^)]%c", kind, axes, &end) != 3 || end != ')')
        return hp_fail(
            e, HP_EINPUT,
            "\"partial:%s\": expected a reduction and its axes, as in \"partial:sum(tp)\"", text);
    int red = hp_reduce_find(kind);
    if (red <= HP_RED_NONE)
        return hp_fail(e, HP_EINPUT,
                       "\"partial:%s\": no reduction is called \"%s\"; there are sum, max, min, "
                       "avg, prod, all, lse",
                       text, kind);
    uint8_t atom[HP_MAX_ATOMS];
    int n;
    hp_err err = hp_mesh_atoms(m, axes, atom, &n, e);
    for (int i = 0; i < n && !err; i++)
        l->partial[atom[i]] = (uint8_t)red;
    return err;
}

static hp_err parse_word(const hp_mesh *m, int nd, const char *const *dims, const char *word,
                         hp_layout *l, hp_errmsg *e)
{
    const char *colon = strchr(word, ':');
    if (!colon || colon == word || !colon[1])
        return hp_fail(e, HP_EINPUT, "layout word \"%s\": expected \"dimension:axes\"", word);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(colon - word), word);
    if (strcmp(name, "partial") == 0)
        return parse_partial(m, colon + 1, l, e);
    int d = 0;
    while (d < nd && strcmp(dims[d], name) != 0)
        d++;
    if (d == nd) {
        const char *near = hp_near(name, dims, nd);
        return hp_fail(
            e, HP_EINPUT,
            "layout word \"%s\": the tensor has no dimension \"%s\"; the nearest is \"%s\"", word,
            name, near ? near : "none");
    }
    if (l->n[d])
        return hp_fail(e, HP_EINPUT, "layout word \"%s\": dimension \"%s\" is there twice", word,
                       name);
    int n;
    hp_err err = hp_mesh_atoms(m, colon + 1, l->split[d], &n, e);
    l->n[d] = (uint8_t)n;
    return err;
}

hp_err hp_layout_parse(const hp_mesh *m, int nd, const char *const *dims, const char *s,
                       hp_layout *l, hp_errmsg *e)
{
    hp_layout made = hp_layout_replicated(nd);
    hp_err err = HP_OK;
    while (!err && *(s += strspn(s, " \t"))) {
        size_t n = strcspn(s, " \t");
        char word[256];
        snprintf(word, sizeof word, "%.*s", (int)n, s);
        if (strcmp(word, "-") != 0)
            err = parse_word(m, nd, dims, word, &made, e);
        s += n;
    }
    if (!err)
        err = hp_layout_check(m, &made, e);
    if (!err)
        *l = hp_layout_clean(&made);
    return err;
}

static void print_partial(const hp_mesh *m, const hp_layout *l, hp_str *out)
{
    for (int red = HP_RED_SUM; red <= HP_RED_LSE; red++) {
        uint8_t atom[HP_MAX_ATOMS];
        int n = 0;
        for (int i = 0; i < m->n_atoms; i++)
            if (l->partial[i] == red)
                atom[n++] = (uint8_t)i;
        if (n == 0)
            continue;
        hp_str_add(out, "%spartial:%s(", out->len ? " " : "", hp_reduce_name((hp_reduce)red));
        hp_mesh_print_atoms(m, atom, n, out);
        hp_str_add(out, ")");
    }
}

void hp_layout_print(const hp_mesh *m, const hp_layout *l, const char *const *dims, hp_str *out)
{
    hp_str text = {0};
    for (int d = 0; d < l->nd; d++) {
        if (l->n[d] == 0)
            continue;
        hp_str_add(&text, "%s%s:", text.len ? " " : "", dims[d]);
        hp_mesh_print_atoms(m, l->split[d], l->n[d], &text);
    }
    print_partial(m, l, &text);
    hp_str_add(out, "%s", text.len ? text.s : "-");
    hp_str_fini(&text);
}

/* mesh.c -- several factorisations of the same ranks become one list of atoms.
 *
 * Every axis covers a range [stride, stride * size) of rank strides. All ends of all ranges, sorted, are the atoms' strides;
 * a common refinement exists exactly when each end divides the next.
 */
#include "shard/layout.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 1 << 22 };

/* A range of strides with the axis that owns it; the parts of a factored axis are ranges too. */
typedef struct range {
    const char *name, *view;
    int64_t lo, hi;
} range;

typedef struct ranges {
    int n;
    range r[2 * HP_MAX_AXES];
} ranges;

static int role_of(const char *name)
{
    static const struct {
        const char *name;
        int role;
    } known[] = {{"dp", HP_ROLE_DP}, {"rep", HP_ROLE_DP}, {"fsdp", HP_ROLE_DP}, {"edp", HP_ROLE_DP},
                 {"tp", HP_ROLE_TP}, {"etp", HP_ROLE_TP}, {"pp", HP_ROLE_PP},   {"cp", HP_ROLE_CP},
                 {"sp", HP_ROLE_CP}, {"ep", HP_ROLE_EP}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t n = strlen(known[i].name);
        if (strncmp(name, known[i].name, n) == 0 && !isalpha((unsigned char)name[n]))
            return known[i].role;
    }
    return HP_ROLE_OTHER;
}

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* Reads "tp=2" at *at into the next axis. */
static hp_err parse_axis(hp_mesh *m, const char *view, const char *spec, const char **at,
                         hp_errmsg *e)
{
    const char *p = skip_space(*at), *begin = p;
    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    size_t n = (size_t)(p - begin);
    if (n == 0 || isdigit((unsigned char)*begin))
        return hp_fail(e, HP_EINPUT,
                       "mesh \"%s\": an axis name is missing at \"%s\"; write \"dp=4,tp=2\"", spec,
                       begin);
    if (n >= sizeof m->axis[0].name)
        return hp_fail(e, HP_EINPUT, "mesh \"%s\": axis name \"%.*s\" is longer than %zu letters",
                       spec, (int)n, begin, sizeof m->axis[0].name - 1);
    if (m->n_axes == HP_MAX_AXES)
        return hp_fail(e, HP_EINFEASIBLE, "mesh \"%s\": more than %d axes in all views", spec,
                       HP_MAX_AXES);
    const char *number = skip_space(p);
    char *end = NULL;
    long size = *number == '=' ? strtol(number + 1, &end, 10) : 0;
    if (!end || size < 1 || size > MAX_RANKS)
        return hp_fail(e, HP_EINPUT,
                       "mesh \"%s\": axis \"%.*s\" needs a size from 1 to %d, as in \"%.*s=2\"",
                       spec, (int)n, begin, MAX_RANKS, (int)n, begin);
    hp_axis *a = &m->axis[m->n_axes++];
    memcpy(a->name, begin, n);
    strncpy(a->view, view, sizeof a->view - 1);
    a->size = (int)size;
    a->role = role_of(a->name);
    *at = skip_space(end);
    return HP_OK;
}

static hp_err parse_view(hp_mesh *m, const char *view, const char *spec, hp_errmsg *e)
{
    int first = m->n_axes;
    if (strlen(view) >= sizeof m->axis[0].view)
        return hp_fail(e, HP_EINPUT, "view name \"%s\" is longer than %zu letters", view,
                       sizeof m->axis[0].view - 1);
    int64_t product = 1;
    for (const char *p = spec; *spec;) {
        hp_err err = parse_axis(m, view, spec, &p, e);
        if (err)
            return err;
        const hp_axis *a = &m->axis[m->n_axes - 1];
        for (int i = first; i < m->n_axes - 1; i++)
            if (strcmp(m->axis[i].name, a->name) == 0)
                return hp_fail(e, HP_EINPUT, "mesh \"%s\": axis \"%s\" is there twice", spec,
                               a->name);
        product *= a->size;
        if (product > MAX_RANKS)
            return hp_fail(e, HP_EINFEASIBLE, "mesh \"%s\" has more than %d ranks", spec,
                           MAX_RANKS);
        if (*p == '\0')
            break;
        if (*p != ',')
            return hp_fail(e, HP_EINPUT, "mesh \"%s\": expected \",\" at \"%s\"", spec, p);
        p++;
    }
    if (m->n_ranks == 0)
        m->n_ranks = (int)product;
    else if (product != m->n_ranks)
        return hp_fail(e, HP_EINFEASIBLE, "view \"%s\" (%s) has %lld ranks, the main mesh has %d",
                       view, spec, (long long)product, m->n_ranks);
    return HP_OK;
}

static void add_range(ranges *all, const hp_axis *a, int64_t lo, int64_t hi)
{
    if (lo < hi && all->n < 2 * HP_MAX_AXES)
        all->r[all->n++] = (range){a->name, a->view, lo, hi};
}

/* The range of axis i: the axes inside it are those after it in its view. */
static range axis_range(const hp_mesh *m, int i)
{
    int64_t lo = 1;
    for (int j = i + 1; j < m->n_axes && strcmp(m->axis[j].view, m->axis[i].view) == 0; j++)
        lo *= m->axis[j].size;
    return (range){m->axis[i].name, m->axis[i].view, lo, lo * m->axis[i].size};
}

static hp_err add_factor(const hp_mesh *m, ranges *all, const char *name, int outer, hp_errmsg *e)
{
    for (int i = 0; i < m->n_axes; i++) {
        const hp_axis *a = &m->axis[i];
        if (a->view[0] || strcmp(a->name, name) != 0)
            continue;
        if (outer < 1 || a->size % outer)
            return hp_fail(e, HP_EINFEASIBLE,
                           "axis \"%s\" of size %d cannot be cut into %d equal parts", name,
                           a->size, outer);
        range r = axis_range(m, i);
        add_range(all, a, r.lo, r.hi / outer);
        add_range(all, a, r.hi / outer, r.hi);
        return HP_OK;
    }
    return hp_fail(e, HP_EINPUT, "no axis of the main mesh is called \"%s\"", name);
}

static const char *range_name(const range *r, char *buf, size_t n)
{
    snprintf(buf, n, "%s%s%s", r->view, r->view[0] ? "." : "", r->name);
    return buf;
}

/* Two ranges that overlap cross when their four ends, sorted, do not each divide the next. */
static bool crossing(const range *a, const range *b)
{
    int64_t lo = a->lo > b->lo ? a->lo : b->lo, hi = a->hi < b->hi ? a->hi : b->hi;
    int64_t least = a->lo < b->lo ? a->lo : b->lo, most = a->hi > b->hi ? a->hi : b->hi;
    return lo < hi && (lo % least || hi % lo || most % hi);
}

static hp_err check_crossing(const ranges *all, hp_errmsg *e)
{
    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < i; j++) {
            const range *a = &all->r[j], *b = &all->r[i];
            char an[40], bn[40];
            if (crossing(a, b))
                return hp_fail(e, HP_EINFEASIBLE,
                               "axes \"%s\" (strides %lld to %lld) and \"%s\" (%lld to %lld) have "
                               "no common refinement",
                               range_name(a, an, sizeof an), (long long)a->lo, (long long)a->hi,
                               range_name(b, bn, sizeof bn), (long long)b->lo, (long long)b->hi);
        }
    return HP_OK;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Writes all range ends, largest first, each once. */
static int range_ends(const ranges *all, int n_ranks, int64_t *end)
{
    int n = 0;
    end[n++] = n_ranks;
    end[n++] = 1;
    for (int i = 0; i < all->n; i++)
        end[n++] = all->r[i].lo, end[n++] = all->r[i].hi;
    qsort(end, (size_t)n, sizeof *end, descending);
    int k = 1;
    for (int i = 1; i < n; i++)
        if (end[i] != end[k - 1])
            end[k++] = end[i];
    return k;
}

static void give_atoms(hp_mesh *m, const int64_t *end)
{
    int owner[HP_MAX_ATOMS];
    for (int i = 0; i < m->n_axes; i++) {
        range r = axis_range(m, i);
        hp_axis *a = &m->axis[i];
        for (int k = 0; k < m->n_atoms; k++)
            if (end[k + 1] >= r.lo && end[k] <= r.hi) {
                a->atom[a->n++] = (uint8_t)k;
                if (!a->view[0])
                    owner[k] = i;
            }
    }
    for (int k = 1; k < m->n_atoms; k++)
        m->joined[k] = owner[k] == owner[k - 1];
}

static hp_err check_same_names(const hp_mesh *m, hp_errmsg *e)
{
    for (int i = 0; i < m->n_axes; i++)
        for (int j = 0; j < i; j++) {
            const hp_axis *a = &m->axis[i], *b = &m->axis[j];
            if (strcmp(a->name, b->name) == 0 &&
                (a->n != b->n || memcmp(a->atom, b->atom, (size_t)a->n) != 0))
                return hp_fail(e, HP_EINFEASIBLE,
                               "axis \"%s\" is %d ranks in view \"%s\" and %d in view \"%s\", or "
                               "other ranks: give one of them a name of its own",
                               a->name, a->size, a->view, b->size, b->view);
        }
    return HP_OK;
}

hp_err hp_mesh_build(hp_mesh *m, int n_views, const char *const *view, const char *const *spec,
                     int n_factors, const char *const *factor_axis, const int *factor, hp_errmsg *e)
{
    *m = (hp_mesh){0};
    hp_err err = HP_OK;
    for (int i = 0; i < n_views && !err; i++)
        err = parse_view(m, i ? view[i] : "", spec[i], e);
    ranges all = {0};
    for (int i = 0; i < m->n_axes && !err; i++) {
        range r = axis_range(m, i);
        add_range(&all, &m->axis[i], r.lo, r.hi);
    }
    for (int i = 0; i < n_factors && !err; i++)
        err = add_factor(m, &all, factor_axis[i], factor[i], e);
    if (!err)
        err = check_crossing(&all, e);
    if (err)
        return err;
    int64_t end[4 * HP_MAX_AXES + 2];
    int n = range_ends(&all, m->n_ranks, end);
    if (n - 1 > HP_MAX_ATOMS)
        return hp_fail(e, HP_EINFEASIBLE,
                       "mesh \"%s\" and its views refine into %d parts, more than %d", spec[0],
                       n - 1, HP_MAX_ATOMS);
    m->n_atoms = n - 1;
    for (int i = 0; i < m->n_atoms; i++)
        m->size[i] = (int)(end[i] / end[i + 1]);
    give_atoms(m, end);
    return check_same_names(m, e);
}

const hp_axis *hp_mesh_axis(const hp_mesh *m, const char *name)
{
    const char *dot = strchr(name, '.');
    const hp_axis *found = NULL;
    for (int i = 0; i < m->n_axes; i++) {
        const hp_axis *a = &m->axis[i];
        if (dot) {
            size_t n = (size_t)(dot - name);
            if (strlen(a->view) == n && memcmp(a->view, name, n) == 0 &&
                strcmp(a->name, dot + 1) == 0)
                return a;
        } else if (strcmp(a->name, name) == 0 && (!found || !a->view[0]))
            found = a; /* equal names have equal atoms, so any view will do */
    }
    return found;
}

/* One word of "dp+tp.0": a whole axis, or part k of one. */
static bool find_word(const hp_mesh *m, const char *word, const uint8_t **atom, int *n)
{
    const hp_axis *a = hp_mesh_axis(m, word);
    if (a) {
        *atom = a->atom, *n = a->n;
        return true;
    }
    const char *dot = strrchr(word, '.');
    char head[40];
    if (!dot || !isdigit((unsigned char)dot[1]) || (size_t)(dot - word) >= sizeof head)
        return false;
    snprintf(head, sizeof head, "%.*s", (int)(dot - word), word);
    char *end;
    long k = strtol(dot + 1, &end, 10);
    a = hp_mesh_axis(m, head);
    if (!a || *end || k >= a->n)
        return false;
    *atom = &a->atom[k], *n = 1;
    return true;
}

static const char *nearest_axis(const hp_mesh *m, const char *word)
{
    const char *name[HP_MAX_AXES];
    for (int i = 0; i < m->n_axes; i++)
        name[i] = m->axis[i].name;
    const char *near = hp_near(word, name, m->n_axes);
    return near ? near : "none";
}

hp_err hp_mesh_atoms(const hp_mesh *m, const char *axes, uint8_t *atom, int *n, hp_errmsg *e)
{
    *n = 0;
    for (const char *p = axes;;) {
        size_t len = strcspn(p, "+");
        char word[40];
        snprintf(word, sizeof word, "%.*s", (int)len, p);
        const uint8_t *part = NULL;
        int k = 0;
        if (len >= sizeof word || !find_word(m, word, &part, &k))
            return hp_fail(e, HP_EINPUT,
                           "\"%s\": the mesh has no axis \"%.*s\"; the nearest is \"%s\"", axes,
                           (int)len, p, nearest_axis(m, word));
        for (int i = 0; i < k; i++) {
            if (memchr(atom, part[i], (size_t)*n))
                return hp_fail(e, HP_EINPUT, "\"%s\" names axis \"%s\" or a part of it twice", axes,
                               word);
            atom[(*n)++] = part[i];
        }
        if (p[len] == '\0')
            return HP_OK;
        p += len + 1;
    }
}

void hp_mesh_coord(const hp_mesh *m, int rank, int *coord)
{
    for (int i = m->n_atoms - 1; i >= 0; i--) {
        coord[i] = rank % m->size[i];
        rank /= m->size[i];
    }
}

int hp_mesh_group_size(const hp_mesh *m, uint32_t mask)
{
    int n = 1;
    for (int i = 0; i < m->n_atoms; i++)
        if (mask >> i & 1)
            n *= m->size[i];
    return n;
}

int hp_mesh_group(const hp_mesh *m, int rank, uint32_t mask, int *out)
{
    int coord[HP_MAX_ATOMS], stride = m->n_ranks, n = 1;
    hp_mesh_coord(m, rank, coord);
    out[0] = rank;
    for (int i = 0, s = m->n_ranks; i < m->n_atoms; i++) {
        s /= m->size[i];
        if (mask >> i & 1)
            out[0] -= coord[i] * s;
    }
    for (int i = 0; i < m->n_atoms;
         i++) { /* outer to inner: every rank so far becomes size[i] ranks, still in order */
        stride /= m->size[i];
        if (!(mask >> i & 1))
            continue;
        for (int k = n - 1; k >= 0; k--)
            for (int c = m->size[i] - 1; c >= 0; c--)
                out[k * m->size[i] + c] = out[k] + c * stride;
        n *= m->size[i];
    }
    return n;
}

/* The axis of most atoms that `atom` begins with; the main view before others. */
static const hp_axis *longest_axis(const hp_mesh *m, const uint8_t *atom, int n, bool main_view)
{
    const hp_axis *best = NULL;
    for (int i = 0; i < m->n_axes; i++) {
        const hp_axis *a = &m->axis[i];
        if (a->n == 0 || a->n > n || (a->view[0] == '\0') != main_view ||
            memcmp(a->atom, atom, (size_t)a->n) != 0)
            continue;
        if (!best || a->n > best->n)
            best = a;
    }
    return best;
}

static void print_part(const hp_mesh *m, int atom, hp_str *out)
{
    for (int i = 0; i < m->n_axes; i++)
        for (int k = 0; k < m->axis[i].n; k++)
            if (m->axis[i].atom[k] == atom) { /* the main view comes first and has every atom */
                hp_str_add(out, "%s.%d", m->axis[i].name, k);
                return;
            }
}

void hp_mesh_print_atoms(const hp_mesh *m, const uint8_t *atom, int n, hp_str *out)
{
    for (int at = 0; at < n;) {
        const hp_axis *a = longest_axis(m, atom + at, n - at, true),
                      *other = longest_axis(m, atom + at, n - at, false);
        if (other && other->n == n && (!a || a->n < n))
            a = other; /* one name for all of them */
        if (!a)
            a = other;
        hp_str_add(out, at ? "+" : "");
        if (a && a->view[0])
            hp_str_add(out, "%s.%s", a->view, a->name);
        else if (a)
            hp_str_add(out, "%s", a->name);
        else
            print_part(m, atom[at], out);
        at += a ? a->n : 1;
    }
}

char *hp_mesh_name(const hp_mesh *m, uint32_t mask, char *buf, size_t n)
{
    uint8_t atom[HP_MAX_ATOMS];
    int k = 0;
    for (int i = 0; i < m->n_atoms; i++)
        if (mask >> i & 1)
            atom[k++] = (uint8_t)i;
    hp_str text = {0};
    hp_mesh_print_atoms(m, atom, k, &text);
    snprintf(buf, n, "%s", hp_str_text(&text));
    hp_str_fini(&text);
    return buf;
}

/* group.c -- where a group of devices lies. Sorted device numbers make each unit's members
 * neighbours, so spans are counts of runs. */
#include "cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Returns the largest number of distinct sub-units (of `inner` devices) used within one unit (of
 * `outer`). */
static int span_of(const int *d, int n, int inner, int outer)
{
    int most = 0, here = 0;
    for (int i = 0; i < n; i++) {
        if (i == 0 || d[i] / outer != d[i - 1] / outer)
            here = 0;
        if (i == 0 || here == 0 || d[i] / inner != d[i - 1] / inner)
            here++;
        if (here > most)
            most = here;
    }
    return most;
}

/* Devices of one position of the torus at level l: a unit of the next inner level with links. */
static int position_size(const hp_cluster *c, int l)
{
    while (--l >= 0)
        if (c->level[l].topology != HP_TOPO_PART)
            return c->level[l].size;
    return 1;
}

/* Counts the coordinates of each torus axis that the members within the first one's torus use. */
static void torus_axes(const hp_cluster *c, int l, const int *d, int n, int *axis)
{
    const hp_level *t = &c->level[l];
    int size = position_size(c, l), total = 0;
    for (int i = 0; i < t->n_dims; i++)
        total += t->dims[i];
    bool *used = hp_xcalloc((size_t)total, sizeof *used);
    for (int i = 0; i < n && d[i] / t->size == d[0] / t->size; i++) {
        int at = d[i] % t->size / size, base = total;
        for (int k = t->n_dims - 1; k >= 0; k--) {
            base -= t->dims[k];
            used[base + at % t->dims[k]] = true;
            at /= t->dims[k];
        }
    }
    for (int k = 0, base = 0; k < t->n_dims; base += t->dims[k++])
        for (int i = 0; i < t->dims[k]; i++)
            axis[k] += used[base + i];
    free(used);
}

/* Returns the innermost level with links whose one unit holds both devices. */
static int level_of(const hp_cluster *c, int first, int last)
{
    int l = 0;
    while (l < c->n_levels - 1 && (c->level[l].topology == HP_TOPO_PART ||
                                   first / c->level[l].size != last / c->level[l].size))
        l++;
    return l;
}

static hp_group describe(const hp_cluster *c, const int *sorted, int n)
{
    hp_group g = {.n = n, .outer = n > 1 ? level_of(c, sorted[0], sorted[n - 1]) : -1};
    int inner = 1;
    for (int l = 0; l < c->n_levels; l++) {
        g.span[l] = span_of(sorted, n, inner, c->level[l].size);
        inner = c->level[l].size;
        if (c->level[l].topology == HP_TOPO_TORUS)
            torus_axes(c, l, sorted, n, g.axis);
    }
    return g;
}

hp_group hp_cluster_group(const hp_cluster *c, const int *device, int n)
{
    int *d = hp_xmalloc((size_t)n * sizeof *d);
    memcpy(d, device, (size_t)n * sizeof *d);
    qsort(d, (size_t)n, sizeof *d, ascending);
    hp_group g = describe(c, d, n);
    free(d);
    return g;
}

hp_group hp_cluster_group_strided(const hp_cluster *c, int first, int stride, int count)
{
    int *d = hp_xmalloc((size_t)count * sizeof *d);
    for (int i = 0; i < count; i++)
        d[i] = first + i * stride;
    hp_group g = describe(c, d, count);
    free(d);
    return g;
}

int hp_cluster_level_of(const hp_cluster *c, int first, int stride, int count)
{
    return count < 2 ? -1 : level_of(c, first, first + stride * (count - 1));
}

/* classes.c -- colours are numbered afresh after every round; a round hashes what a rank sees.
 * Hashes of multisets are sums of mixed colours, so they do not depend on order. */
#include "sim/classes.h"
#include "base/rng.h"
#include "sim/pairs.h"
#include "trace/owners.h"
#include "trace/work.h"

#include <stdlib.h>
#include <string.h>

enum { MANY_RANKS = 128 };

typedef struct group_ids { /* of one set of atoms over ranks */
    uint32_t atoms;
    int n, size;
    int *of_rank;
    int *member;     /* group * size + i */
    uint64_t *shape; /* hash of how a group lies */
    hp_group *lies;
} group_ids;

typedef struct message {
    int src, dst;
    int64_t bytes;
} message;

typedef struct messages {
    int from, to, n;
    const hp_task *send, *recv;
    message *m;
} messages;

typedef struct finder {
    const hp_plan *p;
    const hp_cluster *c;
    hp_classes *k;
    int *n_ids; /* per program */
    group_ids **ids;
    int n_links, cap_links;
    messages *link;
    int **colour;    /* per program and rank */
    uint64_t **sees; /* what a rank sees in this round */
    int n_colours;
} finder;

static uint64_t mix(uint64_t a, uint64_t b)
{
    return hp_rng_u64(hp_rng_key(a, b), 0);
}

/* --- groups
 * ---------------------------------------------------------------------------------------------- */

static uint64_t hash_shape(const hp_group *g)
{
    uint64_t h = mix((uint64_t)g->n, (uint64_t)g->outer);
    for (int i = 0; i < HP_MAX_LEVELS; i++)
        h = mix(h, (uint64_t)g->span[i]);
    for (int i = 0; i < HP_MAX_TORUS; i++)
        h = mix(h, (uint64_t)g->axis[i]);
    return h;
}

static void find_groups(const finder *f, const hp_program *p, uint32_t atoms, group_ids *g)
{
    size_t ranks = (size_t)p->mesh.n_ranks;
    *g = (group_ids){.atoms = atoms, .size = hp_mesh_group_size(&p->mesh, atoms)};
    g->of_rank = hp_xmalloc(ranks * sizeof(int));
    g->member = hp_xmalloc(ranks * sizeof(int));
    g->shape = hp_xcalloc(ranks / (size_t)g->size, sizeof *g->shape);
    g->lies = hp_xcalloc(ranks / (size_t)g->size, sizeof *g->lies);
    int *device = hp_xmalloc((size_t)g->size * sizeof *device);
    memset(g->of_rank, 0xff, ranks * sizeof(int));
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        if (g->of_rank[r] >= 0)
            continue;
        int *m = g->member + (size_t)g->n * (size_t)g->size;
        hp_mesh_group(&p->mesh, r, atoms, m);
        for (int i = 0; i < g->size; i++) {
            g->of_rank[m[i]] = g->n;
            device[i] = p->mesh.first + m[i];
        }
        g->lies[g->n] = hp_cluster_group(f->c, device, g->size);
        g->shape[g->n] = hash_shape(&g->lies[g->n]);
        g->n++;
    }
    free(device);
}

static bool is_transfer(const hp_task *t)
{
    return t->kind == HP_TASK_COLL && hp_task_class_of(t) == HP_TC_TRANSFER;
}

static void collect_groups(finder *f, int program)
{
    const hp_program *p = &f->p->program[program];
    int cap = 0;
    for (int i = 0; i < p->n_templates; i++)
        for (int k = 0; k < p->tmpl[i].n_tasks; k++) {
            const hp_task *t = &p->tmpl[i].task[k];
            int g = 0;
            while (g < f->n_ids[program] && f->ids[program][g].atoms != t->atoms)
                g++;
            if (!is_transfer(t) || g < f->n_ids[program])
                continue;
            f->ids[program] = hp_grow(f->ids[program], &cap, g + 1, sizeof(group_ids));
            find_groups(f, p, t->atoms, &f->ids[program][f->n_ids[program]++]);
        }
}

/* --- messages
 * ---------------------------------------------------------------------------------------------- */

/* Equal meshes and layouts send rank to rank; with very many ranks that is not searched for. */
static bool straight(const hp_program *a, const hp_buffer *x, const hp_program *b,
                     const hp_buffer *y)
{
    return a->mesh.n_ranks > MANY_RANKS && a->mesh.n_ranks == b->mesh.n_ranks &&
           a->mesh.n_atoms == b->mesh.n_atoms &&
           memcmp(a->mesh.size, b->mesh.size, (size_t)a->mesh.n_atoms * sizeof(int)) == 0 &&
           hp_layout_equal(&x->layout, &y->layout);
}

static hp_err cross(const finder *f, messages *l, const hp_buffer *x, const hp_buffer *y,
                    hp_errmsg *e)
{
    const hp_program *a = &f->p->program[l->from], *b = &f->p->program[l->to];
    hp_xmove *mv = NULL;
    int elem = hp_dtype_bytes(x->dtype);
    if (straight(a, x, b, y)) {
        l->n = a->mesh.n_ranks;
        l->m = hp_xmalloc((size_t)l->n * sizeof *l->m);
        for (int r = 0; r < l->n; r++)
            l->m[r] = (message){r, r, hp_buffer_rank_bytes(a, (int)(x - a->buffer), r)};
        return HP_OK;
    }
    hp_err err =
        hp_redist_cross(&a->mesh, &x->layout, &b->mesh, &y->layout, &x->shape, &mv, &l->n, e);
    if (err)
        return err;
    l->m = hp_xmalloc((size_t)l->n * sizeof *l->m);
    for (int i = 0; i < l->n; i++)
        l->m[i] = (message){mv[i].src, mv[i].dst, hp_box_size(&mv[i].box) * elem};
    free(mv);
    return HP_OK;
}

static hp_err collect_messages(finder *f, const hp_expansion *x, hp_errmsg *e)
{
    hp_pair *pair = NULL;
    int n = 0;
    hp_err err = hp_pairs_find(f->p, x, &pair, &n, e);
    for (int i = 0; i < n && !err; i++) {
        const hp_program *a = &f->p->program[pair[i].from], *b = &f->p->program[pair[i].to];
        const hp_task *s = hp_inst_task(a, &x[pair[i].from].inst[pair[i].send]);
        const hp_task *r = hp_inst_task(b, &x[pair[i].to].inst[pair[i].recv]);
        int l = 0;
        while (l < f->n_links && (f->link[l].send != s || f->link[l].recv != r))
            l++;
        if (l < f->n_links)
            continue;
        f->link = hp_grow(f->link, &f->cap_links, l + 1, sizeof *f->link);
        f->link[f->n_links++] =
            (messages){.from = pair[i].from, .to = pair[i].to, .send = s, .recv = r};
        err = cross(f, &f->link[l], &a->buffer[s->buf[0]], &b->buffer[r->buf[r->n_in]], e);
        if (err)
            hp_fail_at(e, "task %s of %s", s->name, a->name);
    }
    free(pair);
    return err;
}

/* --- colours
 * ------------------------------------------------------------------------------------------------ */

/* Marks the atoms that split some dimension unevenly: ranks that differ in them hold boxes of
 * different sizes. */
static uint32_t uneven_atoms(const hp_program *p)
{
    uint32_t mask = 0;
    for (int i = 0; i < p->n_buffers; i++) {
        const hp_buffer *b = &p->buffer[i];
        int dim;
        if (!hp_layout_even(&p->mesh, &b->layout, &b->shape, &dim))
            mask |= hp_layout_split_mask(&b->layout);
    }
    return mask;
}

static bool same_work(const hp_program *p, const hp_task *t, int a, int b)
{
    hp_op_work x = hp_task_work(p, t, a), y = hp_task_work(p, t, b);
    return x.matmul_flops == y.matmul_flops && x.other_flops == y.other_flops && x.bytes == y.bytes;
}

/* Says whether work depends on the place along an atom (causal attention over a split sequence):
 * first against second, middle and last. */
static bool work_differs(const hp_program *p, int stride, int size)
{
    int at[] = {1, size / 2, size - 1};
    for (int i = 0; i < p->n_templates; i++)
        for (int k = 0; k < p->tmpl[i].n_tasks; k++) {
            const hp_task *t = &p->tmpl[i].task[k];
            for (int j = 0; j < 3 && t->kind == HP_TASK_OP; j++)
                if (!same_work(p, t, 0, at[j] * stride))
                    return true;
        }
    return false;
}

static uint32_t telling_atoms(const hp_program *p)
{
    uint32_t mask = uneven_atoms(p);
    int stride = 1;
    for (int a = p->mesh.n_atoms - 1; a >= 0; a--) {
        if (!(mask & 1u << a) && work_differs(p, stride, p->mesh.size[a]))
            mask |= 1u << a;
        stride *= p->mesh.size[a];
    }
    return mask;
}

/* What tells ranks apart before any communication. */
static void first_colours(const finder *f, int program, bool fold)
{
    const hp_program *p = &f->p->program[program];
    uint32_t telling = fold ? telling_atoms(p) : 0;
    int coord[HP_MAX_ATOMS];
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        uint64_t h = mix((uint64_t)program, fold ? 0 : (uint64_t)r + 1);
        hp_mesh_coord(&p->mesh, r, coord);
        for (int a = 0; a < p->mesh.n_atoms; a++)
            h = mix(h, telling & 1u << a ? (uint64_t)coord[a] : 0);
        double slow = hp_cluster_slowness(f->c, p->mesh.first + r);
        uint64_t bits;
        memcpy(&bits, &slow, sizeof bits);
        f->sees[program][r] = mix(h, bits);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int place(const uint64_t *sorted, int n, uint64_t v)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (sorted[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Numbers what ranks see; returns how many different sights there are. */
static int number_colours(finder *f)
{
    int n = 0, total = 0;
    for (int i = 0; i < f->p->n_programs; i++)
        total += f->p->program[i].mesh.n_ranks;
    uint64_t *all = hp_xmalloc((size_t)total * sizeof *all);
    for (int i = 0; i < f->p->n_programs; i++)
        for (int r = 0; r < f->p->program[i].mesh.n_ranks; r++)
            all[n++] = f->sees[i][r];
    qsort(all, (size_t)total, sizeof *all, by_value);
    n = 0;
    for (int i = 0; i < total; i++)
        if (n == 0 || all[i] != all[n - 1])
            all[n++] = all[i];
    for (int i = 0; i < f->p->n_programs; i++)
        for (int r = 0; r < f->p->program[i].mesh.n_ranks; r++)
            f->colour[i][r] = place(all, n, f->sees[i][r]);
    free(all);
    return n;
}

static void see_groups(finder *f, int program)
{
    for (int i = 0; i < f->n_ids[program]; i++) {
        const group_ids *g = &f->ids[program][i];
        uint64_t *sum = hp_xcalloc((size_t)g->n, sizeof *sum);
        for (int r = 0; r < f->p->program[program].mesh.n_ranks; r++)
            sum[g->of_rank[r]] += mix((uint64_t)f->colour[program][r], 1);
        for (int r = 0; r < f->p->program[program].mesh.n_ranks; r++)
            f->sees[program][r] =
                mix(mix(f->sees[program][r], sum[g->of_rank[r]]), g->shape[g->of_rank[r]]);
        free(sum);
    }
}

/* Partners at another level of the cluster are other partners. */
static uint64_t partner(const finder *f, const messages *l, const message *m, int program, int rank)
{
    int a = f->p->program[l->from].mesh.first + m->src,
        b = f->p->program[l->to].mesh.first + m->dst;
    int first = a < b ? a : b,
        level = a == b ? -1 : hp_cluster_level_of(f->c, first, a + b - 2 * first, 2);
    return mix(mix((uint64_t)f->colour[program][rank], (uint64_t)m->bytes), (uint64_t)(level + 1));
}

static void see_messages(finder *f)
{
    for (int i = 0; i < f->n_links; i++) {
        const messages *l = &f->link[i];
        size_t from = (size_t)f->p->program[l->from].mesh.n_ranks,
               to = (size_t)f->p->program[l->to].mesh.n_ranks;
        uint64_t *out = hp_xcalloc(from, sizeof *out), *in = hp_xcalloc(to, sizeof *in);
        for (int k = 0; k < l->n; k++) {
            out[l->m[k].src] += partner(f, l, &l->m[k], l->to, l->m[k].dst);
            in[l->m[k].dst] += partner(f, l, &l->m[k], l->from, l->m[k].src);
        }
        for (size_t r = 0; r < from; r++)
            f->sees[l->from][r] = mix(f->sees[l->from][r], out[r]);
        for (size_t r = 0; r < to; r++)
            f->sees[l->to][r] = mix(f->sees[l->to][r], in[r]);
        free(out);
        free(in);
    }
}

static void refine(finder *f, bool fold)
{
    for (int i = 0; i < f->p->n_programs; i++)
        first_colours(f, i, fold);
    int n = number_colours(f), before = -1;
    while (n != before) {
        before = n;
        for (int i = 0; i < f->p->n_programs; i++)
            for (int r = 0; r < f->p->program[i].mesh.n_ranks; r++)
                f->sees[i][r] = mix((uint64_t)f->colour[i][r], 2);
        for (int i = 0; i < f->p->n_programs; i++)
            see_groups(f, i);
        see_messages(f);
        n = number_colours(f);
    }
    f->n_colours = n;
}

/* --- rows
 * ---------------------------------------------------------------------------------------------------- */

static void fill_rows(const finder *f, int program)
{
    int ranks = f->p->program[program].mesh.n_ranks;
    hp_program_rows *out = &f->k->program[program];
    int *row_of = hp_xmalloc((size_t)f->n_colours * sizeof *row_of);
    memset(row_of, 0xff, (size_t)f->n_colours * sizeof *row_of);
    out->row = hp_arena_alloc(&f->k->arena, (size_t)ranks * sizeof(int));
    out->rep = hp_arena_alloc(&f->k->arena, (size_t)ranks * sizeof(int));
    for (int r = 0; r < ranks; r++) {
        int *row = &row_of[f->colour[program][r]];
        if (*row < 0) {
            *row = out->n++;
            out->rep[*row] = r;
        }
        out->row[r] = *row;
    }
    free(row_of);
}

/* Rows of the group that `rep` belongs to; every rank of the row has a group with the same rows. */
static void fill_group(const finder *f, int program, const group_ids *g, int row,
                       hp_row_groups *out)
{
    const hp_program_rows *k = &f->k->program[program];
    int id = g->of_rank[k->rep[row]];
    hp_row_group *o = &out->group[out->n];
    o->row = hp_arena_alloc(&f->k->arena, (size_t)g->size * sizeof(int));
    o->shape = g->lies[id];
    const int *member = g->member + (size_t)id * (size_t)g->size;
    o->probe[0] = member[0];
    o->probe[1] = member[g->size > 1 ? g->size - 2 : 0];
    o->probe[2] = member[g->size - 1];
    for (int i = 0; i < g->size; i++) {
        int other = k->row[member[i]];
        if (out->of_row[other] == out->n)
            continue;
        out->of_row[other] = out->n;
        o->row[o->n++] = other;
    }
    out->n++;
}

static void fill_groups(const finder *f, int program)
{
    hp_program_rows *k = &f->k->program[program];
    k->n_groups = f->n_ids[program];
    k->groups = hp_arena_alloc(&f->k->arena, (size_t)k->n_groups * sizeof *k->groups);
    for (int i = 0; i < k->n_groups; i++) {
        hp_row_groups *out = &k->groups[i];
        out->atoms = f->ids[program][i].atoms;
        out->group = hp_arena_alloc(&f->k->arena, (size_t)k->n * sizeof *out->group);
        out->of_row = hp_arena_alloc(&f->k->arena, (size_t)k->n * sizeof(int));
        memset(out->of_row, 0xff, (size_t)k->n * sizeof(int));
        for (int r = 0; r < k->n; r++)
            if (out->of_row[r] < 0)
                fill_group(f, program, &f->ids[program][i], r, out);
    }
}

static int by_rows(const void *a, const void *b)
{
    const hp_row_message *x = a, *y = b;
    return x->dst != y->dst ? x->dst - y->dst : x->src - y->src;
}

/* Joins messages of the same two rows (the sorted list's neighbours); their bytes add up. */
static int join(hp_row_message *m, int n)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (k > 0 && m[k - 1].dst == m[i].dst && m[k - 1].src == m[i].src)
            m[k - 1].bytes += m[i].bytes;
        else
            m[k++] = m[i];
    }
    return k;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static hp_row_message *message_of(const hp_row_link *l, int src, int dst)
{
    for (int i = l->first_of_dst[dst]; i < l->first_of_dst[dst + 1]; i++)
        if (l->message[i].src == src)
            return &l->message[i];
    return NULL;
}

/* What one rank of each source row sends: bytes, and to how many ranks of each destination row. */
static void count_takers(const messages *l, const hp_program_rows *a, const hp_program_rows *b,
                         hp_row_link *out)
{
    for (int i = 0; i < out->n; i++)
        out->n_dst[out->message[i].src]++;
    int *taker = hp_xmalloc((size_t)l->n * sizeof *taker);
    for (int r = 0, i = 0; r < a->n; r++, i = 0) {
        int n = 0;
        for (; i < l->n; i++) {
            if (l->m[i].src != a->rep[r])
                continue;
            out->sent[r] += l->m[i].bytes;
            taker[n++] = l->m[i].dst;
        }
        if (n > 1)
            qsort(taker, (size_t)n, sizeof *taker, ascending);
        for (int k = 0; k < n; k++)
            if (k == 0 || taker[k] != taker[k - 1])
                message_of(out, r, b->row[taker[k]])->takers++;
    }
    free(taker);
}

static void fill_link(const finder *f, const messages *l, hp_row_link *out)
{
    const hp_program_rows *a = &f->k->program[l->from], *b = &f->k->program[l->to];
    hp_arena *arena = &f->k->arena;
    *out = (hp_row_link){.send = l->send, .recv = l->recv, .from = l->from, .to = l->to};
    int first_a = f->p->program[l->from].mesh.first, first_b = f->p->program[l->to].mesh.first;
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += b->rep[b->row[l->m[i].dst]] == l->m[i].dst;
    out->message = hp_arena_alloc(arena, (size_t)(n + 1) * sizeof *out->message);
    for (int i = 0; i < l->n; i++) {
        const message *m = &l->m[i];
        if (b->rep[b->row[m->dst]] == m->dst)
            out->message[out->n++] = (hp_row_message){
                a->row[m->src], b->row[m->dst], first_a + m->src, first_b + m->dst, m->bytes, 0};
    }
    qsort(out->message, (size_t)out->n, sizeof *out->message, by_rows);
    out->n = join(out->message, out->n);
    out->first_of_dst = hp_arena_alloc(arena, (size_t)(b->n + 1) * sizeof(int));
    out->n_dst = hp_arena_alloc(arena, (size_t)a->n * sizeof(int));
    out->sent = hp_arena_alloc(arena, (size_t)a->n * sizeof(int64_t));
    for (int r = 0, i = 0; r <= b->n; r++) {
        while (i < out->n && out->message[i].dst < r)
            i++;
        out->first_of_dst[r] = i;
    }
    count_takers(l, a, b, out);
}

static void fill_all(finder *f)
{
    for (int i = 0; i < f->p->n_programs; i++)
        fill_rows(f, i);
    for (int i = 0; i < f->p->n_programs; i++)
        fill_groups(f, i);
    f->k->n_links = f->n_links;
    f->k->link = hp_arena_alloc(&f->k->arena, (size_t)(f->n_links + 1) * sizeof *f->k->link);
    for (int i = 0; i < f->n_links; i++)
        fill_link(f, &f->link[i], &f->k->link[i]);
}

static void finder_init(finder *f)
{
    size_t n = (size_t)f->p->n_programs;
    f->n_ids = hp_xcalloc(n, sizeof *f->n_ids);
    f->ids = hp_xcalloc(n, sizeof *f->ids);
    f->colour = hp_xcalloc(n, sizeof *f->colour);
    f->sees = hp_xcalloc(n, sizeof *f->sees);
    for (int i = 0; i < f->p->n_programs; i++) {
        size_t ranks = (size_t)f->p->program[i].mesh.n_ranks;
        f->colour[i] = hp_xcalloc(ranks, sizeof(int));
        f->sees[i] = hp_xcalloc(ranks, sizeof(uint64_t));
        collect_groups(f, i);
    }
}

static void finder_fini(finder *f)
{
    for (int i = 0; i < f->p->n_programs; i++) {
        for (int g = 0; g < f->n_ids[i]; g++) {
            free(f->ids[i][g].of_rank);
            free(f->ids[i][g].member);
            free(f->ids[i][g].shape);
            free(f->ids[i][g].lies);
        }
        free(f->ids[i]);
        free(f->colour[i]);
        free(f->sees[i]);
    }
    for (int i = 0; i < f->n_links; i++)
        free(f->link[i].m);
    free(f->link);
    free(f->n_ids);
    free(f->ids);
    free(f->colour);
    free(f->sees);
}

hp_err hp_classes_find(const hp_plan *p, const hp_expansion *x, const hp_cluster *c, bool fold,
                       hp_classes *k, hp_errmsg *e)
{
    *k = (hp_classes){.n_programs = p->n_programs};
    k->program = hp_arena_alloc(&k->arena, (size_t)p->n_programs * sizeof *k->program);
    finder f = {.p = p, .c = c, .k = k};
    finder_init(&f);
    hp_err err = collect_messages(&f, x, e);
    if (!err) {
        refine(&f, fold);
        fill_all(&f);
    }
    finder_fini(&f);
    if (err)
        hp_classes_fini(k);
    return err;
}

void hp_classes_fini(hp_classes *k)
{
    hp_arena_fini(&k->arena);
    *k = (hp_classes){0};
}

const hp_row_groups *hp_classes_groups(const hp_classes *k, int program, uint32_t atoms)
{
    const hp_program_rows *p = &k->program[program];
    for (int i = 0; i < p->n_groups; i++)
        if (p->groups[i].atoms == atoms)
            return &p->groups[i];
    return NULL;
}

int hp_classes_link(const hp_classes *k, const hp_task *send, const hp_task *recv)
{
    for (int i = 0; i < k->n_links; i++)
        if (k->link[i].send == send && k->link[i].recv == recv)
            return i;
    return -1;
}

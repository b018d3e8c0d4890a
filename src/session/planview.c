/* planview.c -- sums over the schedule's entries; nothing here is computed twice by another rule than exec and sim use. */
#include "session/planview.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const template_name[] = {"I", "F", "B", "W", "O"};

bool hp_planview_runs(const hp_task *t, const hp_entry *e)
{
    switch (t->when) {
    case HP_W_FIRST:
        return e->first;
    case HP_W_REST:
        return !e->first;
    case HP_W_LAST:
        return e->last;
    default:
        return true;
    }
}

static void program_title(const hp_program *p, hp_str *out)
{
    hp_str_add(out, "%s: %d device%s from %d on\n", p->name, p->mesh.n_ranks,
               p->mesh.n_ranks == 1 ? "" : "s", p->mesh.first);
}

/* --- memory --- */

static void memory_by_kind(const hp_program *p, hp_str *out)
{
    char buf[32];
    hp_str_add(out, "  %-12s", "");
    for (int s = 0; s < HP_S_SCOPES; s++)
        hp_str_add(out, " %13s", hp_scope_name((hp_scope)s));
    hp_str_put(out, "\n", 1);
    for (int k = 0; k < HP_B_KINDS; k++) {
        int64_t sum[HP_S_SCOPES] = {0}, any = 0;
        for (int b = 0; b < p->n_buffers; b++) {
            const hp_buffer *buf_b = &p->buffer[b];
            if (buf_b->kind != (hp_bkind)k || buf_b->alias >= 0 || buf_b->tier != HP_TIER_HBM)
                continue;
            sum[buf_b->scope] += buf_b->bytes;
            any += buf_b->bytes;
        }
        if (any == 0)
            continue;
        hp_str_add(out, "  %-12s", hp_bkind_name((hp_bkind)k));
        for (int s = 0; s < HP_S_SCOPES; s++)
            hp_str_add(out, " %13s",
                       sum[s] ? hp_format_bytes((double)sum[s], buf, sizeof buf) : "-");
        hp_str_put(out, "\n", 1);
    }
    hp_str_add(out, "  %-12s", "laid out");
    for (int s = 0; s < HP_S_SCOPES; s++)
        hp_str_add(out, " %13s", hp_format_bytes((double)p->scope_bytes[s], buf, sizeof buf));
    hp_str_add(out, "\n  arena %s: persist + step + %d x frame + run",
               hp_format_bytes((double)hp_program_arena(p), buf, sizeof buf), p->n_frames);
    if (p->host_bytes)
        hp_str_add(out, "; %s in other tiers",
                   hp_format_bytes((double)p->host_bytes, buf, sizeof buf));
    hp_str_put(out, "\n", 1);
}

static void largest_buffers(const hp_program *p, int n, hp_str *out)
{
    char buf[32];
    bool *said = hp_xcalloc((size_t)p->n_buffers + 1, sizeof *said);
    hp_str_add(out, "  largest buffers\n");
    for (int i = 0; i < n; i++) {
        int most = -1;
        for (int b = 0; b < p->n_buffers; b++)
            if (!said[b] && p->buffer[b].alias < 0 &&
                (most < 0 || p->buffer[b].bytes > p->buffer[most].bytes))
                most = b;
        if (most < 0)
            break;
        const hp_buffer *b = &p->buffer[most];
        said[most] = true;
        hp_str_add(out, "    %10s  %-11s %-7s %s\n",
                   hp_format_bytes((double)b->bytes, buf, sizeof buf), hp_bkind_name(b->kind),
                   hp_scope_name(b->scope), b->name);
    }
    free(said);
}

void hp_planview_memory(const hp_plan *p, hp_str *out)
{
    char a[32], b[32];
    for (int i = 0; i < p->n_programs; i++) {
        const hp_program *prog = &p->program[i];
        program_title(prog, out);
        memory_by_kind(prog, out);
        largest_buffers(prog, 10, out);
        double arena = (double)hp_program_arena(prog);
        hp_str_add(out, "  %s of a budget of %s\n\n", hp_format_bytes(arena, a, sizeof a),
                   hp_format_bytes((double)p->budget_bytes, b, sizeof b));
    }
}

/* --- groups --- */

static uint32_t axis_mask(const hp_axis *a)
{
    uint32_t mask = 0;
    for (int i = 0; i < a->n; i++)
        mask |= 1u << a->atom[i];
    return mask;
}

/* The first few groups of an axis: those of the lowest ranks that no earlier group holds. */
static void say_axis_groups(const hp_mesh *m, const hp_axis *a, hp_str *out)
{
    enum { SHOWN = 4, MEMBERS = 8 };
    int *member = hp_xmalloc(sizeof *member * (size_t)m->n_ranks);
    bool *seen = hp_xcalloc((size_t)m->n_ranks, sizeof *seen);
    int groups = 0;
    for (int r = 0; r < m->n_ranks; r++) {
        if (seen[r])
            continue;
        int n = hp_mesh_group(m, r, axis_mask(a), member);
        if (groups < SHOWN)
            hp_str_add(out, " [");
        for (int i = 0; i < n; i++) {
            seen[member[i]] = true;
            if (groups < SHOWN && i < MEMBERS)
                hp_str_add(out, "%s%d", i ? " " : "", m->first + member[i]);
        }
        if (groups < SHOWN)
            hp_str_add(out, n > MEMBERS ? " ..]" : "]");
        groups++;
    }
    hp_str_add(out, groups > SHOWN ? " .. %d groups\n" : "\n", groups);
    free(seen);
    free(member);
}

void hp_planview_groups(const hp_plan *p, hp_str *out)
{
    static const char *const role[] = {"dp", "tp", "pp", "cp", "ep", "other"};
    for (int i = 0; i < p->n_programs; i++) {
        const hp_mesh *m = &p->program[i].mesh;
        program_title(&p->program[i], out);
        for (int a = 0; a < m->n_axes; a++) {
            const hp_axis *x = &m->axis[a];
            char name[40];
            snprintf(name, sizeof name, "%s%s%s", x->view, x->view[0] ? "." : "", x->name);
            hp_str_add(out, "  %-10s %5d  role %-5s", name, x->size, role[x->role]);
            say_axis_groups(m, x, out);
        }
        hp_str_put(out, "\n", 1);
    }
}

/* --- communication --- */

typedef struct traffic {
    char axis[32], what[20];
    int tmpl; /* hp_tmpl_kind */
    int64_t times;
    double bytes;
} traffic;

typedef struct traffic_list {
    int n, cap;
    traffic *row;
} traffic_list;

static traffic *find_traffic(traffic_list *l, const char *axis, const char *what, int tmpl)
{
    for (int i = 0; i < l->n; i++)
        if (l->row[i].tmpl == tmpl && strcmp(l->row[i].axis, axis) == 0 &&
            strcmp(l->row[i].what, what) == 0)
            return &l->row[i];
    l->row = hp_grow(l->row, &l->cap, l->n + 1, sizeof *l->row);
    traffic *t = &l->row[l->n++];
    *t = (traffic){.tmpl = tmpl};
    snprintf(t->axis, sizeof t->axis, "%s", axis);
    snprintf(t->what, sizeof t->what, "%s", what);
    return t;
}

static double largest_bytes(const hp_program *p, const hp_task *t)
{
    double most = 0;
    for (int r = 0; r < p->mesh.n_ranks; r++) {
        double b = t->kind == HP_TASK_SEND ? (double)hp_buffer_rank_bytes(p, t->buf[0], r)
                                           : hp_task_bytes(p, t, r);
        most = b > most ? b : most;
    }
    return most;
}

static void add_task(const hp_program *p, const hp_template *tmpl, const hp_task *t, int64_t times,
                     traffic_list *l)
{
    char axis[64] = "pp";
    if (t->kind == HP_TASK_COLL)
        hp_mesh_name(&p->mesh, t->atoms, axis, sizeof axis);
    traffic *row = find_traffic(l, axis, t->kind == HP_TASK_SEND ? "send" : hp_coll_name(t->coll),
                                (int)tmpl->kind);
    row->times += times;
    row->bytes += (double)times * largest_bytes(p, t);
}

static void list_traffic(const hp_program *p, traffic_list *l)
{
    for (int k = 0; k < p->n_templates; k++) {
        const hp_template *tmpl = &p->tmpl[k];
        for (int i = 0; i < tmpl->n_tasks; i++) {
            const hp_task *t = &tmpl->task[i];
            int64_t times = 0;
            if ((t->kind != HP_TASK_COLL || t->coll == HP_COLL_SLICE) && t->kind != HP_TASK_SEND)
                continue;
            for (int e = 0; e < p->n_entries; e++)
                times += p->entry[e].tmpl == k && hp_planview_runs(t, &p->entry[e]);
            add_task(p, tmpl, t, times, l);
        }
    }
}

static int more_bytes(const void *pa, const void *pb)
{
    const traffic *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    int c = strcmp(a->axis, b->axis);
    return c ? c : a->tmpl - b->tmpl;
}

void hp_planview_comm(const hp_plan *p, hp_str *out)
{
    char buf[32];
    for (int i = 0; i < p->n_programs; i++) {
        traffic_list l = {0};
        double sum = 0;
        program_title(&p->program[i], out);
        list_traffic(&p->program[i], &l);
        if (l.n)
            qsort(l.row, (size_t)l.n, sizeof *l.row, more_bytes);
        hp_str_add(out, "  %-14s %-15s %-8s %8s %16s\n", "axis", "what", "template", "a step",
                   "bytes a device");
        for (int k = 0; k < l.n; k++) {
            const traffic *t = &l.row[k];
            sum += t->bytes;
            hp_str_add(out, "  %-14s %-15s %-8s %8" PRId64 " %16s\n", t->axis, t->what,
                       template_name[t->tmpl], t->times,
                       hp_format_bytes(t->bytes, buf, sizeof buf));
        }
        hp_str_add(out, "  %-14s %-15s %-8s %8s %16s\n\n", "all", "", "", "",
                   hp_format_bytes(sum, buf, sizeof buf));
        free(l.row);
    }
}

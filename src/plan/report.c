/* report.c -- figures come from plan.h's own functions, so that reports, exec and sim can't disagree. */
#include "plan/report.h"

#include <stdlib.h>
#include <string.h>

int hp_task_runs(const hp_program *p, int tmpl, const hp_task *t)
{
    int n = 0;
    for (int i = 0; i < p->n_entries; i++)
        n += p->entry[i].tmpl == tmpl && hp_task_due(t, &p->entry[i]);
    return n;
}

static bool is_transfer(const hp_task *t)
{
    return (t->kind == HP_TASK_COLL && t->coll != HP_COLL_SLICE) || t->kind == HP_TASK_SEND || t->kind == HP_TASK_COPY;
}

static const char *axis_name(const hp_program *p, const hp_task *t, char *buf, size_t n)
{
    if (t->kind == HP_TASK_COLL)
        return hp_coll_axis_name(p, t, buf, n);
    return t->kind == HP_TASK_SEND ? "pp" : "offload";
}

static const char *kind_name(const hp_task *t)
{
    return t->kind == HP_TASK_COLL ? hp_coll_name(t->coll) : t->kind == HP_TASK_SEND ? "send" : "copy";
}

/* Bytes of a message or copy: what the rank holds of the buffer. */
static double transfer_bytes(const hp_program *p, const hp_task *t)
{
    return t->kind == HP_TASK_COLL ? hp_task_bytes(p, t, 0) : (double)hp_buffer_rank_bytes(p, t->buf[0], 0);
}

void hp_report_why(const hp_plan *p, hp_str *out)
{
    static const char tmpl[] = "IFBWO";
    for (int i = 0; i < p->n_programs; i++) {
        const hp_program *g = &p->program[i];
        for (int k = 0; k < g->n_templates; k++)
            for (int j = 0; j < g->tmpl[k].n_tasks; j++) {
                const hp_task *t = &g->tmpl[k].task[j];
                char axis[64], bytes[32];
                if (!is_transfer(t))
                    continue;
                hp_str_add(out, "%s %c%d %-14s %-8s %10s x%-4d %s: %s\n", g->name, tmpl[g->tmpl[k].kind], g->tmpl[k].chunk, kind_name(t),
                           axis_name(g, t, axis, sizeof axis), hp_format_bytes(transfer_bytes(g, t), bytes, sizeof bytes),
                           hp_task_runs(g, k, t), t->name, t->why ? t->why : "");
            }
    }
}

typedef struct total {
    char axis[64];
    const char *kind;
    int count;
    double bytes;
} total;

void hp_report_comm(const hp_plan *p, hp_str *out)
{
    hp_str_add(out, "%-8s %-10s %-14s %8s %14s\n", "program", "axis", "kind", "a step", "bytes/device");
    for (int i = 0; i < p->n_programs; i++) {
        const hp_program *g = &p->program[i];
        total sum[64] = {{{0}, 0, 0, 0}};
        int n = 0;
        for (int k = 0; k < g->n_templates; k++)
            for (int j = 0; j < g->tmpl[k].n_tasks; j++) {
                const hp_task *t = &g->tmpl[k].task[j];
                char buf[64];
                if (!is_transfer(t))
                    continue;
                const char *axis = axis_name(g, t, buf, sizeof buf);
                int s = 0, runs = hp_task_runs(g, k, t);
                while (s < n && (strcmp(sum[s].axis, axis) || strcmp(sum[s].kind, kind_name(t))))
                    s++;
                if (s == 64)
                    continue;
                if (s == n) {
                    n++;
                    strcpy(sum[s].axis, axis);
                    sum[s].kind = kind_name(t);
                }
                sum[s].count += runs;
                sum[s].bytes += runs * transfer_bytes(g, t);
            }
        for (int s = 0; s < n; s++)
            hp_str_add(out, "%-8s %-10s %-14s %8d %14.0f\n", g->name, sum[s].axis, sum[s].kind, sum[s].count, sum[s].bytes);
    }
}

static void largest(const hp_program *g, hp_str *out)
{
    bool *used = hp_xcalloc((size_t)g->n_buffers + 1, sizeof *used);
    for (int k = 0; k < 10; k++) {
        int best = -1;
        for (int b = 0; b < g->n_buffers; b++)
            if (!used[b] && g->buffer[b].alias < 0 && (best < 0 || g->buffer[b].bytes > g->buffer[best].bytes))
                best = b;
        if (best < 0)
            break;
        char bytes[32];
        used[best] = true;
        const hp_buffer *b = &g->buffer[best];
        hp_str_add(out, "  %10s  %-11s %-7s %s\n", hp_format_bytes((double)b->bytes, bytes, sizeof bytes), hp_bkind_name(b->kind),
                   hp_scope_name(b->scope), b->name);
    }
    free(used);
}

void hp_report_memory(const hp_plan *p, hp_str *out)
{
    for (int i = 0; i < p->n_programs; i++) {
        const hp_program *g = &p->program[i];
        char a[32], b[32];
        double kind[HP_B_KINDS] = {0};
        hp_str_add(out, "%s: arena %s of %s a device\n", g->name, hp_format_bytes((double)hp_program_arena(g), a, sizeof a),
                   p->budget_bytes ? hp_format_bytes((double)p->budget_bytes, b, sizeof b) : "no budget");
        for (int s = 0; s < HP_S_SCOPES; s++)
            hp_str_add(out, "  %10s  %s%s\n", hp_format_bytes((double)g->scope_bytes[s], a, sizeof a), hp_scope_name((hp_scope)s),
                       s == HP_S_FRAME ? " (each)" : "");
        hp_str_add(out, "  %10d  frames\n", g->n_frames);
        for (int k = 0; k < g->n_buffers; k++)
            if (g->buffer[k].alias < 0 && g->buffer[k].tier == HP_TIER_HBM && g->buffer[k].scope <= HP_S_STEP)
                kind[g->buffer[k].kind] += (double)g->buffer[k].bytes;
        for (int k = 0; k < HP_B_KINDS; k++)
            if (kind[k] > 0)
                hp_str_add(out, "  %10s  %s held all step\n", hp_format_bytes(kind[k], a, sizeof a), hp_bkind_name((hp_bkind)k));
        hp_str_add(out, " largest buffers\n");
        largest(g, out);
    }
}

static void print_axis(const hp_program *g, const hp_axis *a, hp_str *out)
{
    uint32_t mask = 0;
    int *rank = hp_xmalloc((size_t)g->mesh.n_ranks * sizeof *rank);
    bool *seen = hp_xcalloc((size_t)g->mesh.n_ranks, sizeof *seen);
    for (int i = 0; i < a->n; i++)
        mask |= 1u << a->atom[i];
    hp_str_add(out, "%s %s%s%s=%d:", g->name, a->view, *a->view ? "." : "", a->name, a->size);
    int shown = 0;
    for (int r = 0; r < g->mesh.n_ranks && shown < 64; r++) {
        if (seen[r])
            continue;
        int n = hp_mesh_group(&g->mesh, r, mask, rank);
        hp_str_add(out, " [");
        for (int i = 0; i < n; i++) {
            seen[rank[i]] = true;
            hp_str_add(out, "%s%d", i ? " " : "", g->mesh.first + rank[i]);
        }
        hp_str_add(out, "]");
        shown++;
    }
    hp_str_add(out, shown == 64 ? " ...\n" : "\n");
    free(rank);
    free(seen);
}

void hp_report_groups(const hp_plan *p, hp_str *out)
{
    for (int i = 0; i < p->n_programs; i++)
        for (int k = 0; k < p->program[i].mesh.n_axes; k++)
            if (p->program[i].mesh.axis[k].size > 1)
                print_axis(&p->program[i], &p->program[i].mesh.axis[k], out);
}

/* text.c -- a plan printed: one line a thing, words between blanks (plan/words.h); plan/parse.c reads it.
 *
 * Buffers are referred to by name, streams too; templates, cuts and atoms by number. */
#include "plan/text.h"

#include "plan/words.h"

#include <inttypes.h>
#include <string.h>

static int cut_index(const hp_plan *p, const hp_cut *c)
{
    for (int i = 0; i < p->n_cuts; i++)
        if (c == &p->cut[i])
            return i;
    return -1;
}

static void print_head(const hp_plan *p, hp_str *o)
{
    hp_str_add(o, "hpbench-plan 1\nmodel");
    hp_words_put(o, p->model);
    hp_str_add(o, " cluster");
    hp_words_put(o, p->cluster);
    hp_str_add(o, " strategy");
    hp_words_put(o, p->strategy);
    hp_str_add(o, " hash %016" PRIx64 "\n", p->strategy_hash);
    hp_str_add(o,
               "sizes devices %d batch %" PRId64 " micro %" PRId64 " global %" PRId64
               " seq %" PRId64 " vocab %" PRId64 " zigzag %d\n",
               p->n_devices, p->batch, p->micro, p->global_batch, p->seq, p->vocab, p->zigzag);
    hp_str_add(o, "budget %" PRId64 " flops %.17g %.17g\n", p->budget_bytes, p->model_flops_causal,
               p->model_flops_full);
    for (int i = 0; i < p->n_cuts; i++) {
        hp_str_add(o, "cut %s", hp_text_cut[p->cut[i].kind]);
        for (int k = 0; p->cut[i].kind == HP_CUT_SIZES && k < p->cut[i].n; k++)
            hp_str_add(o, " %" PRId64, p->cut[i].size[k]);
        hp_str_add(o, "\n");
    }
}

static void print_mesh(const hp_mesh *m, hp_str *o)
{
    hp_str_add(o, "mesh first %d ranks %d atoms", m->first, m->n_ranks);
    for (int i = 0; i < m->n_atoms; i++)
        hp_str_add(o, " %d%s", m->size[i], m->joined[i] ? "+" : "");
    hp_str_add(o, "\n");
    for (int i = 0; i < m->n_axes; i++) {
        const hp_axis *a = &m->axis[i];
        hp_str_add(o, "axis");
        hp_words_put(o, a->name);
        hp_words_put(o, a->view);
        hp_str_add(o, " %s size %d atoms", hp_text_role[a->role], a->size);
        for (int k = 0; k < a->n; k++)
            hp_str_add(o, " %d", a->atom[k]);
        hp_str_add(o, "\n");
    }
}

/* "16/0:2.1": size 16, cut 0, split by atoms 2 and 1; "~3:sum": partial over atom 3. */
static void print_shape(const hp_plan *p, const hp_buffer *b, hp_str *o)
{
    for (int d = 0; d < b->shape.nd; d++) {
        hp_str_add(o, " %" PRId64, b->shape.size[d]);
        if (b->shape.cut[d])
            hp_str_add(o, "/%d", cut_index(p, b->shape.cut[d]));
        for (int k = 0; k < b->layout.n[d]; k++)
            hp_str_add(o, "%c%d", k ? '.' : ':', b->layout.split[d][k]);
    }
    for (int a = 0; a < HP_MAX_ATOMS; a++)
        if (b->layout.partial[a] != HP_RED_NONE)
            hp_str_add(o, " ~%d:%s", a, hp_reduce_name((hp_reduce)b->layout.partial[a]));
}

static void print_buffer(const hp_plan *p, const hp_program *g, const hp_buffer *b, hp_str *o)
{
    hp_str_put(o, "buffer", 6);
    hp_words_put(o, b->name);
    hp_words_put(o, b->tensor);
    hp_str_add(o, " %s %s %s %s bytes %" PRId64 " at %" PRId64, hp_dtype_name(b->dtype),
               hp_bkind_name(b->kind), hp_scope_name(b->scope), hp_tier_name(b->tier), b->bytes,
               b->offset);
    if (b->init != HP_INIT_NONE || b->init_std != 0.0f)
        hp_str_add(o, " init %s %.9g", hp_text_init[b->init], (double)b->init_std);
    if (b->turn)
        hp_str_add(o, " turn %x %d", b->turn_atoms, b->turn);
    if (b->alias >= 0) {
        hp_str_add(o, " alias");
        hp_words_put(o, g->buffer[b->alias].name);
    }
    if (b->route >= 0) {
        hp_str_add(o, " route");
        hp_words_put(o, g->buffer[b->route].name);
        hp_str_add(o, " %" PRId64, b->rows);
    }
    hp_str_add(o, " shape");
    print_shape(p, b, o);
    hp_str_put(o, "\n", 1);
}

static void print_operands(const hp_program *g, const hp_task *t, hp_str *o)
{
    hp_str_put(o, " :", 2);
    for (int i = 0; i < t->n_in + t->n_out; i++) {
        if (i == t->n_in)
            hp_str_put(o, " ->", 3);
        hp_words_put(o, t->buf[i] < 0 ? NULL : g->buffer[t->buf[i]].name);
    }
    if (t->n_out == 0)
        hp_str_put(o, " ->", 3);
    hp_str_put(o, "\n", 1);
}

static void print_task(const hp_program *g, const hp_task *t, hp_str *o)
{
    hp_str_add(o, " %s", hp_text_task[t->kind]);
    hp_words_put(o, t->name);
    hp_words_put(o, g->stream[t->stream].name);
    hp_str_add(o, " %s", hp_text_when[t->when]);
    switch (t->kind) {
    case HP_TASK_OP:
        hp_words_put(o, t->op);
        hp_words_put(o, t->node);
        hp_str_add(o, "%s%s", t->accumulate ? " accumulate" : "", t->recompute ? " recompute" : "");
        for (int i = 0; i < t->n_attrs; i++) {
            hp_str_put(o, " @", 2);
            hp_words_put(o, t->attr[i].key);
            hp_str_add(o, " %.17g", t->attr[i].value);
        }
        break;
    case HP_TASK_COLL:
        hp_str_add(o, " %s %x", hp_coll_name(t->coll), t->atoms);
        hp_words_put(o, t->why);
        break;
    case HP_TASK_SEND:
    case HP_TASK_RECV:
        hp_str_add(o, " peer %d edge %d", t->peer, t->edge);
        hp_words_put(o, t->why);
        break;
    case HP_TASK_COPY:
        hp_words_put(o, t->why);
        break;
    case HP_TASK_LOAD:
        break;
    }
    print_operands(g, t, o);
}

static void print_schedule(const hp_program *g, hp_str *o)
{
    for (int i = 0; i < g->n_entries; i++) {
        const hp_entry *e = &g->entry[i];
        hp_str_add(o, "entry %d micro %d frame %d%s%s\n", e->tmpl, e->micro, e->frame,
                   e->first ? " first" : "", e->last ? " last" : "");
    }
}

static void print_program(const hp_plan *p, const hp_program *g, hp_str *o)
{
    hp_str_add(o, "program");
    hp_words_put(o, g->name);
    hp_str_add(o, " stage %d frames %d host %" PRId64 " scopes", g->stage, g->n_frames,
               g->host_bytes);
    for (int i = 0; i < HP_S_SCOPES; i++)
        hp_str_add(o, " %" PRId64, g->scope_bytes[i]);
    hp_str_add(o, "\n");
    print_mesh(&g->mesh, o);
    for (int i = 0; i < g->n_streams; i++) {
        hp_str_add(o, "stream");
        hp_words_put(o, g->stream[i].name);
        hp_str_add(o, " %s %s\n", g->stream[i].comm ? "transfer" : "compute",
                   g->stream[i].role < 0 ? "-" : hp_text_role[g->stream[i].role]);
    }
    for (int i = 0; i < g->n_buffers; i++)
        print_buffer(p, g, &g->buffer[i], o);
    for (int i = 0; i < g->n_templates; i++) {
        hp_str_add(o, "template %s chunk %d\n", hp_text_tmpl[g->tmpl[i].kind], g->tmpl[i].chunk);
        for (int k = 0; k < g->tmpl[i].n_tasks; k++)
            print_task(g, &g->tmpl[i].task[k], o);
    }
    print_schedule(g, o);
}

void hp_plan_print(const hp_plan *p, hp_str *o)
{
    print_head(p, o);
    for (int i = 0; i < p->n_programs; i++)
        print_program(p, &p->program[i], o);
    hp_str_add(o, "end\n");
}

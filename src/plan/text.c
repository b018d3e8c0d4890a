/* text.c -- one line a thing, words between blanks.
 *
 * A word is bare, or quoted where it would not survive bare; an unquoted "-" is an absent string. Buffers are referred to by name, streams too;
 * templates, cuts and atoms by number. The parser copies the text once into the plan's arena, cuts it into words in place and lets names point into it. */
#include "plan/text.h"

#include "base/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_name[] = {"dp", "tp", "pp", "cp", "ep", "other"};
static const char *const when_name[] = {"always", "first", "rest", "last"};
static const char *const init_name[] = {"none", "zeros", "ones", "normal"};
static const char *const tmpl_name[] = {"I", "F", "B", "W", "O"};
static const char *const task_name[] = {"op", "coll", "load", "send", "recv", "copy"};
static const char *const cut_name[] = {"chunk", "balanced", "sizes"};

enum { N_ROLES = 6, N_WHEN = 4, N_INIT = 4, N_TMPL = 5, N_TASK = 6, N_CUT = 3 };

/* --- printing --- */

static bool is_bare(const char *s)
{
    if (!*s || *s == '"' || *s == '@' || strcmp(s, "-") == 0 || strcmp(s, "->") == 0 || strcmp(s, ":") == 0)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 127)
            return false;
    return true;
}

static void put_word(hp_str *o, const char *s)
{
    if (!s || is_bare(s)) {
        const char *w = s ? s : "-";
        hp_str_put(o, " ", 1);
        hp_str_put(o, w, strlen(w));
        return;
    }
    hp_str_put(o, " \"", 2);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            hp_str_add(o, "\\%c", c);
        else if (c < ' ' || c == 127)
            hp_str_add(o, "\\x%02x", c);
        else
            hp_str_put(o, s, 1);
    }
    hp_str_put(o, "\"", 1);
}

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
    put_word(o, p->model);
    hp_str_add(o, " cluster");
    put_word(o, p->cluster);
    hp_str_add(o, " strategy");
    put_word(o, p->strategy);
    hp_str_add(o, " hash %016" PRIx64 "\n", p->strategy_hash);
    hp_str_add(o, "sizes devices %d batch %" PRId64 " micro %" PRId64 " global %" PRId64 " seq %" PRId64 " vocab %" PRId64 " zigzag %d\n",
               p->n_devices, p->batch, p->micro, p->global_batch, p->seq, p->vocab, p->zigzag);
    hp_str_add(o, "budget %" PRId64 " flops %.17g %.17g\n", p->budget_bytes, p->model_flops_causal, p->model_flops_full);
    for (int i = 0; i < p->n_cuts; i++) {
        hp_str_add(o, "cut %s", cut_name[p->cut[i].kind]);
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
        put_word(o, a->name);
        put_word(o, a->view);
        hp_str_add(o, " %s size %d atoms", role_name[a->role], a->size);
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
    put_word(o, b->name);
    put_word(o, b->tensor);
    hp_str_add(o, " %s %s %s %s bytes %" PRId64 " at %" PRId64, hp_dtype_name(b->dtype), hp_bkind_name(b->kind), hp_scope_name(b->scope),
               hp_tier_name(b->tier), b->bytes, b->offset);
    if (b->init != HP_INIT_NONE || b->init_std != 0.0f)
        hp_str_add(o, " init %s %.9g", init_name[b->init], (double)b->init_std);
    if (b->turn)
        hp_str_add(o, " turn %x %d", b->turn_atoms, b->turn);
    if (b->alias >= 0) {
        hp_str_add(o, " alias");
        put_word(o, g->buffer[b->alias].name);
    }
    if (b->route >= 0) {
        hp_str_add(o, " route");
        put_word(o, g->buffer[b->route].name);
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
        put_word(o, t->buf[i] < 0 ? NULL : g->buffer[t->buf[i]].name);
    }
    if (t->n_out == 0)
        hp_str_put(o, " ->", 3);
    hp_str_put(o, "\n", 1);
}

static void print_task(const hp_program *g, const hp_task *t, hp_str *o)
{
    hp_str_add(o, " %s", task_name[t->kind]);
    put_word(o, t->name);
    put_word(o, g->stream[t->stream].name);
    hp_str_add(o, " %s", when_name[t->when]);
    switch (t->kind) {
    case HP_TASK_OP:
        put_word(o, t->op);
        put_word(o, t->node);
        hp_str_add(o, "%s%s", t->accumulate ? " accumulate" : "", t->recompute ? " recompute" : "");
        for (int i = 0; i < t->n_attrs; i++) {
            hp_str_put(o, " @", 2);
            put_word(o, t->attr[i].key);
            hp_str_add(o, " %.17g", t->attr[i].value);
        }
        break;
    case HP_TASK_COLL:
        hp_str_add(o, " %s %x", hp_coll_name(t->coll), t->atoms);
        put_word(o, t->why);
        break;
    case HP_TASK_SEND:
    case HP_TASK_RECV:
        hp_str_add(o, " peer %d edge %d", t->peer, t->edge);
        put_word(o, t->why);
        break;
    case HP_TASK_COPY:
        put_word(o, t->why);
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
        hp_str_add(o, "entry %d micro %d frame %d%s%s\n", e->tmpl, e->micro, e->frame, e->first ? " first" : "", e->last ? " last" : "");
    }
}

static void print_program(const hp_plan *p, const hp_program *g, hp_str *o)
{
    hp_str_add(o, "program");
    put_word(o, g->name);
    hp_str_add(o, " stage %d frames %d host %" PRId64 " scopes", g->stage, g->n_frames, g->host_bytes);
    for (int i = 0; i < HP_S_SCOPES; i++)
        hp_str_add(o, " %" PRId64, g->scope_bytes[i]);
    hp_str_add(o, "\n");
    print_mesh(&g->mesh, o);
    for (int i = 0; i < g->n_streams; i++) {
        hp_str_add(o, "stream");
        put_word(o, g->stream[i].name);
        hp_str_add(o, " %s %s\n", g->stream[i].comm ? "transfer" : "compute", g->stream[i].role < 0 ? "-" : role_name[g->stream[i].role]);
    }
    for (int i = 0; i < g->n_buffers; i++)
        print_buffer(p, g, &g->buffer[i], o);
    for (int i = 0; i < g->n_templates; i++) {
        hp_str_add(o, "template %s chunk %d\n", tmpl_name[g->tmpl[i].kind], g->tmpl[i].chunk);
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

/* --- words --- */

typedef struct reader {
    hp_plan *p;
    char *at;          /* where the next word begins */
    char held;         /* the blank or newline that a cut word's NUL replaced */
    int line;
    hp_errmsg *e;
    hp_program g;      /* being read; arrays are heap until close_program */
    hp_map buffer_id, task_id;
    int cap_programs, cap_cuts, cap_streams, cap_buffers, cap_templates, cap_entries, cap_tasks, cap_bufs, cap_attrs;
    hp_cut *cut;       /* until the first program */
    hp_task *task;     /* of the open template */
    const char **route;/* per buffer: name of its route, NULL */
    int cap_routes;
    int *buf;          /* operands of the open task */
    hp_attr *attr;     /* attributes of the open task */
    int n_bufs, n_attrs;
} reader;

typedef struct word {
    char *s; /* NULL at the line's end */
    bool quoted;
} word;

static hp_err bad(reader *r, const char *what, const char *got, const char *legal)
{
    return hp_fail(r->e, HP_EINPUT, "plan, line %d: %s \"%.80s\": legal is %s", r->line, what, got ? got : "end of line", legal);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes put_word's quotes in place; *end is set behind the closing quote. False when the quote never closes or an escape is unknown. */
static bool unquote(char *from, char **end)
{
    char *out = from, *s = from + 1;
    for (; *s && *s != '"' && *s != '\n'; s++) {
        if (*s != '\\') {
            *out++ = *s;
        } else if (s[1] == '"' || s[1] == '\\') {
            *out++ = *++s;
        } else if (s[1] == 'x' && hex(s[2]) >= 0 && hex(s[3]) >= 0) {
            *out++ = (char)(hex(s[2]) * 16 + hex(s[3]));
            s += 3;
        } else {
            return false;
        }
    }
    if (*s != '"')
        return false;
    *end = s + 1;
    *out = '\0';
    return true;
}


/* Takes the next word of the line; {NULL} at its end. The blank behind it is a NUL until the next call, so words stay cut except for the last
 * of a line, whose newline is needed once more: skip_line moves past it without putting it back. */
static hp_err next(reader *r, word *w)
{
    if (r->held == '\n' || (r->held == '\0' && (*r->at == '\n' || *r->at == '\0'))) {
        *w = (word){0};
        return HP_OK;
    }
    if (r->held)
        r->at++;
    r->held = '\0';
    while (*r->at == ' ')
        r->at++;
    if (*r->at == '\n' || *r->at == '\0') {
        *w = (word){0};
        return HP_OK;
    }
    *w = (word){r->at, *r->at == '"'};
    char *end = r->at + strcspn(r->at, " \n");
    if (w->quoted && !unquote(r->at, &end))
        return bad(r, "quoted word", "", "\"...\" on one line, with \\\\, \\\" and \\xhh only");
    if (*end && *end != ' ' && *end != '\n')
        return bad(r, "behind a quoted word", end, "a blank");
    r->held = *end;
    *end = '\0';
    r->at = end;
    return HP_OK;
}

static void skip_line(reader *r)
{
    if (r->held)
        r->at++;
    else if (*r->at == '\n')
        r->at++;
    r->held = '\0';
    r->line++;
}

/* Each `take_*` reads one word into *out or says what would be legal. */

static hp_err take_string(reader *r, const char *what, const char **out)
{
    word w;
    hp_err rc = next(r, &w);
    if (rc)
        return rc;
    if (!w.s)
        return bad(r, what, NULL, "a word, or - for none");
    *out = !w.quoted && strcmp(w.s, "-") == 0 ? NULL : w.s;
    return HP_OK;
}

static hp_err take_name(reader *r, const char *what, const char **out)
{
    hp_err rc = take_string(r, what, out);
    return rc ? rc : *out ? HP_OK : bad(r, what, "-", "a name");
}

static hp_err take_literal(reader *r, const char *literal)
{
    word w;
    hp_err rc = next(r, &w);
    if (rc)
        return rc;
    return w.s && !w.quoted && strcmp(w.s, literal) == 0 ? HP_OK : bad(r, "word", w.s, literal);
}

static hp_err read_int(reader *r, const char *what, const char *s, int64_t lo, int64_t hi, int64_t *out)
{
    char *end, range[64];
    errno = 0;
    long long v = s ? strtoll(s, &end, 10) : 0;
    if (!s || end == s || *end || errno || v < lo || v > hi) {
        snprintf(range, sizeof range, "an integer from %" PRId64 " to %" PRId64, lo, hi);
        return bad(r, what, s, range);
    }
    *out = v;
    return HP_OK;
}

static hp_err take_int64(reader *r, const char *what, int64_t lo, int64_t hi, int64_t *out)
{
    word w;
    hp_err rc = next(r, &w);
    return rc ? rc : read_int(r, what, w.s, lo, hi, out);
}

static hp_err take_int(reader *r, const char *what, int lo, int hi, int *out)
{
    int64_t v = 0;
    hp_err rc = take_int64(r, what, lo, hi, &v);
    *out = (int)v;
    return rc;
}

static hp_err take_double(reader *r, const char *what, double *out)
{
    word w;
    char *end;
    hp_err rc = next(r, &w);
    if (rc)
        return rc;
    *out = w.s ? strtod(w.s, &end) : 0;
    return !w.s || end == w.s || *end ? bad(r, what, w.s, "a number") : HP_OK;
}

static hp_err take_hex(reader *r, const char *what, uint64_t *out)
{
    word w;
    char *end;
    hp_err rc = next(r, &w);
    if (rc)
        return rc;
    errno = 0;
    *out = w.s ? strtoull(w.s, &end, 16) : 0;
    return !w.s || end == w.s || *end || errno ? bad(r, what, w.s, "a hexadecimal number") : HP_OK;
}

static int find_word(const char *const *names, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], s) == 0)
            return i;
    return -1;
}

static hp_err take_choice(reader *r, const char *what, const char *const *names, int n, int *out)
{
    word w;
    char legal[160] = "one of";
    hp_err rc = next(r, &w);
    if (rc)
        return rc;
    *out = w.s && !w.quoted ? find_word(names, n, w.s) : -1;
    if (*out >= 0)
        return HP_OK;
    for (int i = 0; i < n; i++)
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), " %s", names[i]);
    return bad(r, what, w.s, legal);
}

typedef int find_fn(const char *s);

static hp_err take_found(reader *r, const char *what, find_fn *find, const char *legal, int *out)
{
    word w;
    hp_err rc = next(r, &w);
    if (rc)
        return rc;
    *out = w.s && !w.quoted ? find(w.s) : -1;
    return *out < 0 ? bad(r, what, w.s, legal) : HP_OK;
}

static hp_err end_of_line(reader *r)
{
    word w;
    hp_err rc = next(r, &w);
    return rc ? rc : w.s ? bad(r, "word", w.s, "the end of the line") : HP_OK;
}

/* Runs takes in order and returns the first error. */
#define TRY(call)               \
    do {                        \
        hp_err try_rc = (call); \
        if (try_rc)             \
            return try_rc;      \
    } while (0)

/* --- the head --- */

enum { MAX_COUNT = 1 << 28 };

static hp_err read_model(reader *r)
{
    hp_plan *p = r->p;
    TRY(take_string(r, "model", &p->model));
    TRY(take_literal(r, "cluster"));
    TRY(take_string(r, "cluster", &p->cluster));
    TRY(take_literal(r, "strategy"));
    TRY(take_string(r, "strategy", &p->strategy));
    TRY(take_literal(r, "hash"));
    return take_hex(r, "hash", &p->strategy_hash);
}

static hp_err read_sizes(reader *r)
{
    hp_plan *p = r->p;
    TRY(take_literal(r, "devices"));
    TRY(take_int(r, "devices", 0, MAX_COUNT, &p->n_devices));
    TRY(take_literal(r, "batch"));
    TRY(take_int64(r, "batch", 0, INT64_MAX, &p->batch));
    TRY(take_literal(r, "micro"));
    TRY(take_int64(r, "micro", 0, INT64_MAX, &p->micro));
    TRY(take_literal(r, "global"));
    TRY(take_int64(r, "global", 0, INT64_MAX, &p->global_batch));
    TRY(take_literal(r, "seq"));
    TRY(take_int64(r, "seq", 0, INT64_MAX, &p->seq));
    TRY(take_literal(r, "vocab"));
    TRY(take_int64(r, "vocab", 0, INT64_MAX, &p->vocab));
    TRY(take_literal(r, "zigzag"));
    return take_int(r, "zigzag", 0, MAX_COUNT, &p->zigzag);
}

static hp_err read_budget(reader *r)
{
    TRY(take_int64(r, "budget", 0, INT64_MAX, &r->p->budget_bytes));
    TRY(take_literal(r, "flops"));
    TRY(take_double(r, "flops", &r->p->model_flops_causal));
    return take_double(r, "flops", &r->p->model_flops_full);
}

/* Buffers point at cuts, so all cuts stand before the first program. */
static hp_err read_cut(reader *r)
{
    hp_plan *p = r->p;
    if (p->n_programs > 0)
        return bad(r, "line", "cut", "a cut before the first program");
    r->cut = hp_grow(r->cut, &r->cap_cuts, p->n_cuts + 1, sizeof *r->cut);
    hp_cut *c = &r->cut[p->n_cuts++];
    *c = (hp_cut){0};
    int kind = 0;
    TRY(take_choice(r, "cut", cut_name, N_CUT, &kind));
    c->kind = (hp_cut_kind)kind;
    for (;;) {
        word w;
        TRY(next(r, &w));
        if (!w.s)
            return HP_OK;
        if (c->kind != HP_CUT_SIZES || c->n == 64)
            return bad(r, "word", w.s, "the end of the line (a cut has up to 64 sizes)");
        TRY(read_int(r, "size", w.s, 0, INT64_MAX, &c->size[c->n]));
        c->n++;
    }
}

/* --- a program --- */

/* Moves a heap array into the plan's arena. */
static void *keep(reader *r, void *heap, int n, size_t size)
{
    void *p = hp_arena_alloc(&r->p->arena, (size_t)n * size);
    if (n)
        memcpy(p, heap, (size_t)n * size);
    free(heap);
    return p;
}

static void close_cuts(reader *r)
{
    if (!r->p->cut)
        r->p->cut = keep(r, r->cut, r->p->n_cuts, sizeof *r->cut);
    r->cut = NULL;
}

static void close_template(reader *r)
{
    if (r->g.n_templates == 0 || !r->task)
        return;
    hp_template *t = &r->g.tmpl[r->g.n_templates - 1];
    t->task = keep(r, r->task, t->n_tasks, sizeof *t->task);
    r->task = NULL;
    r->cap_tasks = 0;
}

static hp_err resolve_routes(reader *r)
{
    for (int i = 0; i < r->g.n_buffers; i++) {
        if (!r->route[i])
            continue;
        int id = hp_map_get(&r->buffer_id, r->route[i], -1);
        if (id < 0 || r->g.buffer[id].dtype != HP_I32 || r->g.buffer[id].shape.nd != 3 || r->g.buffer[i].shape.nd != 4)
            return bad(r, "route of a buffer", r->route[i], "an i32 buffer [batch, seq, k] of the program, for a buffer of 4 dimensions");
        r->g.buffer[i].route = id;
    }
    return HP_OK;
}

static hp_err close_program(reader *r)
{
    if (r->p->n_programs == 0)
        return HP_OK;
    close_template(r);
    TRY(resolve_routes(r));
    hp_program *g = &r->g;
    for (int i = 0; i < g->n_entries; i++)
        if (g->entry[i].tmpl >= g->n_templates || g->entry[i].frame >= g->n_frames)
            return bad(r, "schedule of program", g->name, "entries with a template and a frame that exist");
    g->stream = keep(r, g->stream, g->n_streams, sizeof *g->stream);
    g->buffer = keep(r, g->buffer, g->n_buffers, sizeof *g->buffer);
    g->tmpl = keep(r, g->tmpl, g->n_templates, sizeof *g->tmpl);
    g->entry = keep(r, g->entry, g->n_entries, sizeof *g->entry);
    r->p->program[r->p->n_programs - 1] = *g;
    *g = (hp_program){0};
    r->cap_streams = r->cap_buffers = r->cap_templates = r->cap_entries = 0;
    hp_map_fini(&r->buffer_id);
    hp_map_fini(&r->task_id);
    return HP_OK;
}

static hp_err read_program(reader *r)
{
    hp_plan *p = r->p;
    TRY(close_program(r));
    close_cuts(r);
    p->program = hp_grow(p->program, &r->cap_programs, p->n_programs + 1, sizeof *p->program);
    p->program[p->n_programs++] = (hp_program){0};
    hp_program *g = &r->g;
    TRY(take_string(r, "program", &g->name));
    TRY(take_literal(r, "stage"));
    TRY(take_int(r, "stage", 0, MAX_COUNT, &g->stage));
    TRY(take_literal(r, "frames"));
    TRY(take_int(r, "frames", 0, 1 << 16, &g->n_frames));
    TRY(take_literal(r, "host"));
    TRY(take_int64(r, "host", 0, INT64_MAX, &g->host_bytes));
    TRY(take_literal(r, "scopes"));
    for (int i = 0; i < HP_S_SCOPES; i++)
        TRY(take_int64(r, "scope", 0, INT64_MAX / 8 / (g->n_frames + 1), &g->scope_bytes[i]));
    return HP_OK;
}

static hp_err read_mesh(reader *r)
{
    hp_mesh *m = &r->g.mesh;
    int64_t product = 1;
    TRY(take_literal(r, "first"));
    TRY(take_int(r, "first", 0, MAX_COUNT, &m->first));
    TRY(take_literal(r, "ranks"));
    TRY(take_int(r, "ranks", 1, 1 << 20, &m->n_ranks));
    TRY(take_literal(r, "atoms"));
    for (m->n_atoms = 0;; m->n_atoms++) {
        word w;
        int64_t size = 0;
        TRY(next(r, &w));
        if (!w.s)
            break;
        if (m->n_atoms == HP_MAX_ATOMS)
            return bad(r, "atom", w.s, "up to 12 atoms");
        size_t n = strlen(w.s);
        m->joined[m->n_atoms] = n > 1 && w.s[n - 1] == '+';
        if (m->joined[m->n_atoms])
            w.s[n - 1] = '\0';
        TRY(read_int(r, "atom", w.s, 2, m->n_ranks, &size));
        m->size[m->n_atoms] = (int)size;
        product *= size;
        if (product > m->n_ranks)
            break;
    }
    return product == m->n_ranks ? HP_OK : bad(r, "mesh", "atoms", "sizes whose product is the number of ranks");
}

static hp_err take_axis_name(reader *r, const char *what, char *out, size_t n)
{
    const char *s;
    TRY(take_name(r, what, &s));
    if (strlen(s) >= n)
        return bad(r, what, s, "up to 15 letters");
    strcpy(out, s);
    return HP_OK;
}

static hp_err read_axis(reader *r)
{
    hp_mesh *m = &r->g.mesh;
    if (m->n_axes == HP_MAX_AXES)
        return bad(r, "line", "axis", "up to 24 axes");
    hp_axis *a = &m->axis[m->n_axes++];
    TRY(take_axis_name(r, "axis", a->name, sizeof a->name));
    TRY(take_axis_name(r, "view", a->view, sizeof a->view));
    TRY(take_choice(r, "role", role_name, N_ROLES, &a->role));
    TRY(take_literal(r, "size"));
    TRY(take_int(r, "size", 1, 1 << 20, &a->size));
    TRY(take_literal(r, "atoms"));
    for (a->n = 0;; a->n++) {
        word w;
        int64_t atom = 0;
        TRY(next(r, &w));
        if (!w.s)
            return HP_OK;
        TRY(read_int(r, "atom", a->n < HP_MAX_ATOMS ? w.s : NULL, 0, m->n_atoms - 1, &atom));
        a->atom[a->n] = (uint8_t)atom;
    }
}

static hp_err read_stream(reader *r)
{
    static const char *const kind[] = {"compute", "transfer"};
    hp_program *g = &r->g;
    word w;
    int comm = 0;
    g->stream = hp_grow(g->stream, &r->cap_streams, g->n_streams + 1, sizeof *g->stream);
    hp_stream *s = &g->stream[g->n_streams++];
    *s = (hp_stream){.role = -1};
    TRY(take_name(r, "stream", &s->name));
    TRY(take_choice(r, "kind of stream", kind, 2, &comm));
    s->comm = comm == 1;
    TRY(next(r, &w));
    if (w.s && strcmp(w.s, "-") == 0)
        return HP_OK;
    s->role = w.s ? find_word(role_name, N_ROLES, w.s) : -1;
    return s->role < 0 ? bad(r, "role", w.s, "dp, tp, pp, cp, ep, other or -") : HP_OK;
}

/* --- buffers --- */

static hp_err read_partial(reader *r, hp_buffer *b, char *s)
{
    char *colon = strchr(s, ':');
    int64_t atom = 0;
    if (colon)
        *colon = '\0';
    TRY(read_int(r, "partial atom", s + 1, 0, r->g.mesh.n_atoms - 1, &atom));
    int red = colon ? hp_reduce_find(colon + 1) : -1;
    if (red <= 0)
        return bad(r, "reduction", colon ? colon + 1 : "", "~ATOM:sum, max, min, avg, prod, all or lse");
    b->layout.partial[atom] = (uint8_t)red;
    return HP_OK;
}

static hp_err read_dim(reader *r, hp_buffer *b, char *s)
{
    int d = b->shape.nd;
    if (d == HP_MAX_DIMS)
        return bad(r, "dimension", s, "up to 6 dimensions");
    char *atoms = strchr(s, ':');
    if (atoms)
        *atoms++ = '\0';
    char *cut = strchr(s, '/');
    if (cut)
        *cut++ = '\0';
    TRY(read_int(r, "size", s, 0, INT64_MAX / 64, &b->shape.size[d]));
    if (cut) {
        int64_t i = 0;
        TRY(read_int(r, "cut", cut, 0, r->p->n_cuts - 1, &i));
        b->shape.cut[d] = &r->p->cut[i];
    }
    while (atoms) {
        char *dot = strchr(atoms, '.');
        int64_t atom = 0;
        if (dot)
            *dot++ = '\0';
        TRY(read_int(r, "atom", b->layout.n[d] < HP_MAX_ATOMS ? atoms : NULL, 0, r->g.mesh.n_atoms - 1, &atom));
        b->layout.split[d][b->layout.n[d]++] = (uint8_t)atom;
        atoms = dot;
    }
    b->shape.nd++;
    b->layout.nd++;
    return HP_OK;
}

static hp_err read_shape(reader *r, hp_buffer *b)
{
    for (;;) {
        word w;
        TRY(next(r, &w));
        if (!w.s)
            return HP_OK;
        TRY(*w.s == '~' ? read_partial(r, b, w.s) : read_dim(r, b, w.s));
    }
}

static hp_err read_buffer_where(reader *r, hp_buffer *b)
{
    int v = 0;
    TRY(take_found(r, "dtype", hp_dtype_find, "f32, bf16 or i32", &v));
    b->dtype = (hp_dtype)v;
    TRY(take_found(r, "kind of buffer", hp_bkind_find, "params, grads, optimizer, activations, logits, workspace, comm or kv", &v));
    b->kind = (hp_bkind)v;
    TRY(take_found(r, "scope", hp_scope_find, "persist, step, frame or run", &v));
    b->scope = (hp_scope)v;
    TRY(take_found(r, "tier", hp_tier_find, "hbm, host, pool or file", &v));
    b->tier = (hp_tier)v;
    TRY(take_literal(r, "bytes"));
    TRY(take_int64(r, "bytes", 0, INT64_MAX / 8, &b->bytes));
    TRY(take_literal(r, "at"));
    return take_int64(r, "offset", 0, INT64_MAX / 8, &b->offset);
}

static hp_err read_buffer_rest(reader *r, int id)
{
    hp_buffer *b = &r->g.buffer[id];
    for (;;) {
        word w;
        TRY(next(r, &w));
        if (w.s && strcmp(w.s, "init") == 0) {
            int init = 0;
            double std = 0;
            TRY(take_choice(r, "init", init_name, N_INIT, &init));
            TRY(take_double(r, "std", &std));
            b->init = (hp_init)init;
            b->init_std = (float)std;
        } else if (w.s && strcmp(w.s, "turn") == 0) {
            uint64_t atoms = 0;
            TRY(take_hex(r, "atoms of the ring", &atoms));
            if (atoms >> r->g.mesh.n_atoms)
                return bad(r, "atoms of the ring", "", "a mask of atoms that the mesh has");
            b->turn_atoms = (uint32_t)atoms;
            TRY(take_int(r, "turn", 1, MAX_COUNT, &b->turn));
        } else if (w.s && strcmp(w.s, "alias") == 0) {
            const char *name;
            TRY(take_name(r, "alias", &name));
            b->alias = hp_map_get(&r->buffer_id, name, -1);
            if (b->alias < 0 || b->alias == id || r->g.buffer[b->alias].scope != b->scope)
                return bad(r, "alias of a buffer", name, "an earlier buffer of the same scope");
        } else if (w.s && strcmp(w.s, "route") == 0) {
            TRY(take_name(r, "route", &r->route[id]));
            TRY(take_int64(r, "rows", 0, INT64_MAX / 64, &b->rows));
        } else if (w.s && strcmp(w.s, "shape") == 0) {
            return read_shape(r, b);
        } else {
            return bad(r, "word", w.s, "init, turn, alias, route or shape");
        }
    }
}

static hp_err read_buffer(reader *r)
{
    hp_program *g = &r->g;
    int id = g->n_buffers;
    g->buffer = hp_grow(g->buffer, &r->cap_buffers, id + 1, sizeof *g->buffer);
    r->route = hp_grow(r->route, &r->cap_routes, id + 1, sizeof *r->route);
    g->n_buffers++;
    r->route[id] = NULL;
    hp_buffer *b = &g->buffer[id];
    *b = (hp_buffer){.route = -1, .alias = -1};
    TRY(take_name(r, "buffer", &b->name));
    if (hp_map_get(&r->buffer_id, b->name, -1) >= 0)
        return bad(r, "buffer", b->name, "a name that no other buffer of the program has");
    hp_map_put(&r->buffer_id, b->name, id);
    TRY(take_string(r, "tensor", &b->tensor));
    TRY(read_buffer_where(r, b));
    return read_buffer_rest(r, id);
}

/* --- tasks --- */

static hp_err read_template(reader *r)
{
    hp_program *g = &r->g;
    int kind = 0;
    close_template(r);
    g->tmpl = hp_grow(g->tmpl, &r->cap_templates, g->n_templates + 1, sizeof *g->tmpl);
    hp_template *t = &g->tmpl[g->n_templates++];
    *t = (hp_template){0};
    TRY(take_choice(r, "template", tmpl_name, N_TMPL, &kind));
    t->kind = (hp_tmpl_kind)kind;
    TRY(take_literal(r, "chunk"));
    return take_int(r, "chunk", 0, MAX_COUNT, &t->chunk);
}

static hp_err read_attr(reader *r)
{
    r->attr = hp_grow(r->attr, &r->cap_attrs, r->n_attrs + 1, sizeof *r->attr);
    hp_attr *a = &r->attr[r->n_attrs++];
    TRY(take_name(r, "attribute", &a->key));
    return take_double(r, "value", &a->value);
}

/* Reads "IN... -> OUT..." behind the colon. */
static hp_err read_operands(reader *r, hp_task *t)
{
    bool outputs = false;
    r->n_bufs = 0;
    for (;;) {
        word w;
        TRY(next(r, &w));
        if (!w.s)
            break;
        if (!w.quoted && strcmp(w.s, "->") == 0 && !outputs) {
            outputs = true;
            t->n_in = r->n_bufs;
            continue;
        }
        int id = !w.quoted && strcmp(w.s, "-") == 0 ? -1 : hp_map_get(&r->buffer_id, w.s, -2);
        if (id == -2)
            return bad(r, "operand", w.s, "a buffer of the program, or -");
        r->buf = hp_grow(r->buf, &r->cap_bufs, r->n_bufs + 1, sizeof *r->buf);
        r->buf[r->n_bufs++] = id;
    }
    if (!outputs)
        return bad(r, "operands", NULL, "IN... -> OUT...");
    t->n_out = r->n_bufs - t->n_in;
    t->buf = hp_arena_alloc(&r->p->arena, (size_t)r->n_bufs * sizeof *t->buf);
    if (r->n_bufs)
        memcpy(t->buf, r->buf, (size_t)r->n_bufs * sizeof *t->buf);
    return HP_OK;
}

static hp_err read_op(reader *r, hp_task *t)
{
    TRY(take_name(r, "operation", &t->op));
    TRY(take_string(r, "node", &t->node));
    r->n_attrs = 0;
    for (;;) {
        word w;
        TRY(next(r, &w));
        if (w.s && strcmp(w.s, "accumulate") == 0)
            t->accumulate = true;
        else if (w.s && strcmp(w.s, "recompute") == 0)
            t->recompute = true;
        else if (w.s && strcmp(w.s, "@") == 0)
            TRY(read_attr(r));
        else if (w.s && strcmp(w.s, ":") == 0)
            break;
        else
            return bad(r, "word", w.s, "accumulate, recompute, @ KEY VALUE or :");
    }
    t->n_attrs = r->n_attrs;
    t->attr = r->n_attrs ? hp_arena_alloc(&r->p->arena, (size_t)r->n_attrs * sizeof *t->attr) : NULL;
    if (r->n_attrs)
        memcpy(t->attr, r->attr, (size_t)r->n_attrs * sizeof *t->attr);
    return HP_OK;
}

static hp_err read_coll(reader *r, hp_task *t)
{
    uint64_t atoms = 0;
    int coll = 0;
    TRY(take_found(r, "collective", hp_coll_find, "slice, all-gather, reduce-scatter, all-reduce, all-to-all or permute", &coll));
    t->coll = (hp_coll)coll;
    TRY(take_hex(r, "atoms", &atoms));
    if (atoms >> r->g.mesh.n_atoms)
        return bad(r, "atoms", "", "a mask of atoms that the mesh has");
    t->atoms = (uint32_t)atoms;
    TRY(take_string(r, "why", &t->why));
    return take_literal(r, ":");
}

static hp_err read_message(reader *r, hp_task *t)
{
    TRY(take_literal(r, "peer"));
    TRY(take_int(r, "peer", 0, MAX_COUNT, &t->peer));
    TRY(take_literal(r, "edge"));
    TRY(take_int(r, "edge", 0, INT32_MAX, &t->edge));
    TRY(take_string(r, "why", &t->why));
    return take_literal(r, ":");
}

static hp_err read_kind(reader *r, hp_task *t)
{
    switch (t->kind) {
    case HP_TASK_OP:
        return read_op(r, t);
    case HP_TASK_COLL:
        return read_coll(r, t);
    case HP_TASK_SEND:
    case HP_TASK_RECV:
        return read_message(r, t);
    case HP_TASK_COPY:
        TRY(take_string(r, "why", &t->why));
        return take_literal(r, ":");
    default:
        return take_literal(r, ":");
    }
}

/* What each kind of task must have; the operands of OP are the operation's own business. */
static hp_err check_operands(reader *r, const hp_task *t)
{
    bool right = true;
    for (int i = 0; i < t->n_in + t->n_out && t->kind != HP_TASK_OP; i++)
        right = right && t->buf[i] >= 0;
    if (t->kind == HP_TASK_OP)
        right = t->n_in + t->n_out <= HP_MAX_OPERANDS;
    else if (t->kind == HP_TASK_COLL)
        right = right && t->n_in >= 1 && t->n_in == t->n_out;
    else if (t->kind != HP_TASK_LOAD)
        right = right && t->n_in == (t->kind != HP_TASK_RECV) && t->n_out == (t->kind != HP_TASK_SEND);
    return right ? HP_OK
                 : bad(r, "operands of", t->name, "14 for op, pairs for coll, -> OUT... for load, IN -> for send, -> OUT for recv, IN -> OUT for copy");
}

static hp_err read_task(reader *r, int kind)
{
    hp_program *g = &r->g;
    if (g->n_templates == 0)
        return bad(r, "line", task_name[kind], "a task behind a template");
    hp_template *tm = &g->tmpl[g->n_templates - 1];
    r->task = hp_grow(r->task, &r->cap_tasks, tm->n_tasks + 1, sizeof *r->task);
    hp_task *t = &r->task[tm->n_tasks++];
    *t = (hp_task){.kind = (hp_task_kind)kind};
    int when = 0;
    const char *stream;
    TRY(take_name(r, "task", &t->name));
    if (hp_map_get(&r->task_id, t->name, -1) >= 0)
        return bad(r, "task", t->name, "a name that no other task of the program has");
    hp_map_put(&r->task_id, t->name, 0);
    TRY(take_name(r, "stream", &stream));
    t->stream = -1;
    for (int i = 0; i < g->n_streams && t->stream < 0; i++)
        if (strcmp(g->stream[i].name, stream) == 0)
            t->stream = i;
    if (t->stream < 0)
        return bad(r, "stream", stream, "a stream of the program");
    TRY(take_choice(r, "when", when_name, N_WHEN, &when));
    t->when = (hp_when)when;
    TRY(read_kind(r, t));
    TRY(read_operands(r, t));
    return check_operands(r, t);
}

static hp_err read_entry(reader *r)
{
    hp_program *g = &r->g;
    g->entry = hp_grow(g->entry, &r->cap_entries, g->n_entries + 1, sizeof *g->entry);
    hp_entry *e = &g->entry[g->n_entries++];
    *e = (hp_entry){0};
    TRY(take_int(r, "template", 0, MAX_COUNT, &e->tmpl));
    TRY(take_literal(r, "micro"));
    TRY(take_int(r, "micro", -1, MAX_COUNT, &e->micro));
    TRY(take_literal(r, "frame"));
    TRY(take_int(r, "frame", -1, MAX_COUNT, &e->frame));
    for (;;) {
        word w;
        TRY(next(r, &w));
        if (!w.s)
            return HP_OK;
        if (strcmp(w.s, "first") == 0)
            e->first = true;
        else if (strcmp(w.s, "last") == 0)
            e->last = true;
        else
            return bad(r, "word", w.s, "first or last");
    }
}

/* --- the whole --- */

typedef struct line_kind {
    const char *word;
    hp_err (*read)(reader *r);
    bool in_program;
} line_kind;

static const line_kind lines[] = {
    {"buffer", read_buffer, true},   {"entry", read_entry, true}, {"template", read_template, true}, {"program", read_program, false},
    {"mesh", read_mesh, true},       {"axis", read_axis, true},   {"stream", read_stream, true},     {"model", read_model, false},
    {"sizes", read_sizes, false},    {"budget", read_budget, false}, {"cut", read_cut, false},
};

static hp_err read_line(reader *r, const char *first)
{
    int task = find_word(task_name, N_TASK, first);
    if (task >= 0)
        return read_task(r, task);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(lines[i].word, first) != 0)
            continue;
        if (lines[i].in_program && r->p->n_programs == 0)
            return bad(r, "line", first, "a program line before it");
        return lines[i].read(r);
    }
    return bad(r, "line", first, "model, sizes, budget, cut, program, mesh, axis, stream, buffer, template, entry, a task or end");
}

static hp_err read_all(reader *r)
{
    const char *version;
    r->line = 1;
    TRY(take_literal(r, "hpbench-plan"));
    TRY(take_name(r, "version", &version));
    if (strcmp(version, "1") != 0)
        return bad(r, "version", version, "1");
    for (;;) {
        TRY(end_of_line(r));
        if (r->held == '\0' && *r->at == '\0')
            return bad(r, "text", NULL, "a last line \"end\"");
        skip_line(r);
        word w;
        TRY(next(r, &w));
        if (w.s && strcmp(w.s, "end") == 0)
            break;
        if (w.s)
            TRY(read_line(r, w.s));
    }
    TRY(end_of_line(r));
    close_cuts(r);
    return close_program(r);
}

static void drop(reader *r)
{
    free(r->g.stream);
    free(r->g.buffer);
    free(r->g.tmpl);
    free(r->g.entry);
    free(r->cut);
    free(r->task);
    free(r->route);
    free(r->buf);
    free(r->attr);
    hp_map_fini(&r->buffer_id);
    hp_map_fini(&r->task_id);
}

hp_err hp_plan_parse(const char *text, hp_plan **plan, hp_errmsg *e)
{
    reader r = {.p = hp_plan_new(), .e = e};
    r.at = hp_arena_strdup(&r.p->arena, text);
    hp_err rc = read_all(&r);
    r.p->program = keep(&r, r.p->program, r.p->n_programs, sizeof *r.p->program);
    drop(&r);
    if (rc)
        hp_plan_free(r.p);
    else
        *plan = r.p;
    return rc;
}

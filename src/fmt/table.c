/* table.c -- one function a paragraph of the report; a paragraph without figures is left out
 * whole. */
#include "fmt/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, BAR = 76, SHORT_BAR = 34 };

/* --- pieces --- */

char *hp_table_count(double v, char *buf, size_t n)
{
    char digits[400];
    if (!isfinite(v)) {
        snprintf(buf, n, "-");
        return buf;
    }
    int len = snprintf(digits, sizeof digits, "%.0f", fabs(v));
    size_t at = 0;
    if (v < 0 && n > 1)
        buf[at++] = '-';
    for (int i = 0; i < len && at + 2 < n; i++) {
        buf[at++] = digits[i];
        if ((len - 1 - i) % 3 == 0 && i + 1 < len)
            buf[at++] = ',';
    }
    buf[at] = '\0';
    return buf;
}

static const char *seconds(double s, char *buf, size_t n)
{
    return isnan(s) ? "-" : hp_format_seconds(s, buf, n);
}

static const char *bytes(double b, char *buf, size_t n)
{
    return isnan(b) ? "-" : hp_format_bytes(b, buf, n);
}

static const char *percent(double ratio, char *buf, size_t n)
{
    if (isnan(ratio))
        return "-";
    snprintf(buf, n, "%.1f %%", 100 * ratio);
    return buf;
}

static void repeat(hp_str *out, const char *glyph, int n)
{
    for (int i = 0; i < n; i++)
        hp_str_add(out, "%s", glyph);
}

static int cells(double part, double whole, int width)
{
    double c = whole > 0 ? part / whole * width : 0;
    return c > width ? width : c > 0 ? (int)(c + 0.5) : 0;
}

/* Two blanks and a bar of part/whole of `width` cells; nothing at all when that is less than
 * half a cell. */
static void bar(hp_str *out, hp_table_style s, double part, double whole, int width)
{
    int n = cells(part, whole, width);
    if (n > 0)
        hp_str_put(out, "  ", 2);
    repeat(out, s.utf8 ? "█" : "#", n);
}

void hp_table_spark(const double *v, int n, int width, bool utf8, hp_str *out)
{
    static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    double lo = INFINITY, hi = -INFINITY;
    for (int i = 0; i < n; i++) {
        lo = fmin(lo, v[i]);
        hi = fmax(hi, v[i]);
    }
    int w = n < width ? n : width;
    for (int c = 0; c < w; c++) {
        int from = (int)((int64_t)c * n / w), to = (int)((int64_t)(c + 1) * n / w);
        double sum = 0;
        for (int i = from; i < to; i++)
            sum += v[i];
        double mean = sum / (to - from);
        int level = hi > lo ? (int)((mean - lo) / (hi - lo) * 7.999) : 0;
        hp_str_add(out, "%s", !isfinite(mean) ? " " : utf8 ? block[level] : ascii[level]);
    }
}

/* --- paragraphs of a result --- */

static void say_head(const hp_result *r, hp_str *out)
{
    const char *strategy = r->strategy_shorthand ? r->strategy_shorthand : r->strategy_name;
    bool run = r->mode && strcmp(r->mode, "run") == 0;
    hp_str_add(out, "%s on %s, %s\n", r->model, r->cluster, strategy ? strategy : "-");
    hp_str_add(out, "%s on the %s clock, %d device%s, seed %llu", run ? "trained" : "predicted",
               r->clock ? r->clock : "model", r->n_devices, r->n_devices == 1 ? "" : "s",
               (unsigned long long)r->seed);
    if (run)
        hp_str_add(out, ", %d step%s", r->n_steps, r->n_steps == 1 ? "" : "s");
    else if (r->grain)
        hp_str_add(out, ", grain %s", r->grain);
    hp_str_put(out, "\n\n", 2);
}

static void say_loss(const hp_result *r, hp_table_style s, hp_str *out)
{
    if (r->n_steps == 0 || !r->loss)
        return;
    hp_str_add(out, "loss      %8.4f ", r->loss[0]);
    hp_table_spark(r->loss, r->n_steps, 48, s.utf8, out);
    hp_str_add(out, " %.4f\n", r->loss[r->n_steps - 1]);
    if (r->grad_norm) {
        hp_str_add(out, "grad norm %8.4f ", r->grad_norm[0]);
        hp_table_spark(r->grad_norm, r->n_steps, 48, s.utf8, out);
        hp_str_add(out, " %.4f\n", r->grad_norm[r->n_steps - 1]);
    }
}

static void say_speed(const hp_result *r, hp_table_style s, hp_str *out)
{
    char a[32], b[32];
    hp_str_add(out, "step      %8s", seconds(r->step_s, a, sizeof a));
    if (!isnan(r->step_s_ci))
        hp_str_add(out, " %s %s", s.utf8 ? "±" : "+-", seconds(r->step_s_ci, a, sizeof a));
    if (!isnan(r->tokens_per_s))
        hp_str_add(out, "   %s tokens/s, %s a device", hp_table_count(r->tokens_per_s, a, sizeof a),
                   hp_table_count(r->tokens_per_s_per_device, b, sizeof b));
    if (!isnan(r->band_low_s))
        hp_str_add(out, "\nband      %8s to %s (%s)", seconds(r->band_low_s, a, sizeof a),
                   seconds(r->band_high_s, b, sizeof b), r->band_source ? r->band_source : "-");
    if (!isnan(r->mfu))
        hp_str_add(out, "\nMFU       %8s of %.4g TFLOP/s %s a device, HFU %s",
                   percent(r->mfu, a, sizeof a), r->mfu_peak_tflops,
                   r->mfu_dtype ? r->mfu_dtype : "", percent(r->hfu, b, sizeof b));
    hp_str_put(out, "\n\n", 2);
}

static const char *const exposed_name[HP_OWN_ROLES] = {
    "exposed dp", "exposed tp", "exposed pp", "exposed cp", "exposed ep", "exposed offload"};

typedef struct owner {
    const char *name, *utf8, *ascii;
    double s;
} owner;

enum { OWNERS = 6 + HP_OWN_ROLES };

static void list_owners(const hp_owned_time *t, owner *o)
{
    int n = 0;
    o[n++] = (owner){"compute", "█", "#", t->compute_s};
    o[n++] = (owner){"overlapped", "▓", "=", t->overlapped_s};
    for (int i = 0; i < HP_OWN_ROLES; i++)
        o[n++] = (owner){exposed_name[i], "▒", ":", t->exposed_s[i]};
    o[n++] = (owner){"bubble", "░", ".", t->bubble_s};
    o[n++] = (owner){"wait", "▪", "w", t->wait_s};
    o[n++] = (owner){"host", "▫", "h", t->host_s};
    o[n++] = (owner){"free", "·", "-", t->free_s};
}

/* One bar divided so that every cell boundary is the rounded sum of what stands before it: the
 * whole is always `BAR` cells. */
static void stack_owners(const owner *o, double whole, hp_table_style s, hp_str *out)
{
    double sum = 0;
    int drawn = 0;
    hp_str_put(out, "  ", 2);
    for (int i = 0; i < OWNERS; i++) {
        if (!(o[i].s > 0))
            continue;
        sum += o[i].s;
        int to = cells(sum, whole, BAR);
        repeat(out, s.utf8 ? o[i].utf8 : o[i].ascii, to - drawn);
        drawn = to;
    }
    hp_str_put(out, "\n", 1);
}

static void say_time(const hp_result *r, hp_table_style s, hp_str *out)
{
    if (!(r->time.step_s > 0))
        return;
    owner o[OWNERS];
    char buf[32], share[32];
    list_owners(&r->time, o);
    hp_str_add(out, "WHERE A STEP GOES%s%s\n", r->n_classes > 1 ? ", critical class of " : "",
               r->n_classes > 1 ? "devices" : "");
    stack_owners(o, r->time.step_s, s, out);
    for (int i = 0; i < OWNERS; i++)
        if (o[i].s > 0)
            hp_str_add(out, "  %s %-16s %10s %8s\n", s.utf8 ? o[i].utf8 : o[i].ascii, o[i].name,
                       seconds(o[i].s, buf, sizeof buf),
                       percent(o[i].s / r->time.step_s, share, sizeof share));
    hp_str_put(out, "\n", 1);
}

static void say_comm(const hp_result *r, hp_table_style s, hp_str *out)
{
    char masked[32], time[32], sent[32];
    if (r->n_axes == 0) {
        hp_str_add(out, "COMMUNICATION: none\n\n");
        return;
    }
    hp_str_add(out, "COMMUNICATION        masked       time   sent a device a step\n");
    for (int i = 0; i < r->n_axes; i++) {
        const hp_axis_figures *a = &r->axis[i];
        hp_str_add(out, "  %-14s %10s %10s %11s", a->axis,
                   percent(a->masking_ratio, masked, sizeof masked),
                   seconds(a->comm_s, time, sizeof time), bytes(a->bytes, sent, sizeof sent));
        bar(out, s, a->masking_ratio, 1, 26);
        hp_str_put(out, "\n", 1);
    }
    hp_str_add(out, "  %-14s %10s\n", "all", percent(r->masking_ratio, masked, sizeof masked));
    if (!isnan(r->copy_masking_ratio))
        hp_str_add(out, "  %-14s %10s\n", "copies",
                   percent(r->copy_masking_ratio, masked, sizeof masked));
    hp_str_put(out, "\n", 1);
}

static void say_memory(const hp_result *r, hp_table_style s, hp_str *out)
{
    const hp_memory_figures *m = &r->memory;
    char a[32], b[32], c[32];
    if (isnan(m->peak_bytes))
        return;
    hp_str_add(out, "MEMORY of the fullest device: peak %s, arena %s of %s, %s\n",
               bytes(m->peak_bytes, a, sizeof a), bytes(m->arena_bytes, b, sizeof b),
               bytes(m->capacity_bytes, c, sizeof c), m->fits ? "fits" : "DOES NOT FIT");
    if (m->peak_at)
        hp_str_add(out, "  peak at %.66s\n", m->peak_at);
    for (int i = 0; i < HP_MEM_KINDS; i++) {
        if (!(m->by_kind[i] > 0))
            continue;
        hp_str_add(out, "  %-14s %10s %8s", hp_mem_kind_name[i], bytes(m->by_kind[i], a, sizeof a),
                   percent(m->by_kind[i] / m->peak_bytes, b, sizeof b));
        bar(out, s, m->by_kind[i], m->peak_bytes, SHORT_BAR);
        hp_str_put(out, "\n", 1);
    }
    hp_str_put(out, "\n", 1);
}

static void say_classes(const hp_result *r, hp_table_style s, hp_str *out)
{
    char step[32], masked[32], peak[32];
    double most = 0;
    if (r->n_classes < 2)
        return;
    for (int i = 0; i < r->n_classes; i++)
        most = fmax(most, r->cls[i].memory.peak_bytes);
    hp_str_add(out, "CLASSES        devices       busy    masked       peak\n");
    for (int i = 0; i < r->n_classes; i++) {
        const hp_class_figures *c = &r->cls[i];
        hp_str_add(out, "  %-14.14s %5d %10s %9s %10s", c->name, c->devices,
                   seconds(c->time.compute_s + c->time.overlapped_s, step, sizeof step),
                   percent(c->masking_ratio, masked, sizeof masked),
                   bytes(c->memory.peak_bytes, peak, sizeof peak));
        bar(out, s, c->memory.peak_bytes, most, 24);
        hp_str_put(out, "\n", 1);
    }
    hp_str_put(out, "\n", 1);
}

/* Appends words of `text`, breaking lines before column 80; continued lines are indented. */
static void wrap(hp_str *out, const char *head, const char *text)
{
    size_t at = strlen(head);
    hp_str_add(out, "%s", head);
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (at > 4 && at + word + 1 > COLUMNS) {
            hp_str_put(out, "\n   ", 4);
            at = 3;
        }
        hp_str_put(out, " ", 1);
        hp_str_put(out, text, word);
        at += word + 1;
        text += word;
        text += strspn(text, " \n");
    }
    hp_str_put(out, "\n", 1);
}

static bool same_source(const hp_assumption *a, const hp_assumption *b)
{
    const char *x = a->source ? a->source : "", *y = b->source ? b->source : "";
    return a->unverified == b->unverified && strcmp(x, y) == 0;
}

/* Appends assumption i and all later ones of the same source as one sentence, and marks them as
 * said. */
static void say_source(const hp_result *r, int i, bool *said, hp_str *out)
{
    const hp_assumption *a = &r->assumption[i];
    hp_str text = {0};
    for (int k = i; k < r->n_assumptions; k++) {
        if (said[k] || !same_source(a, &r->assumption[k]))
            continue;
        hp_str_add(&text, "%s%s = %s", text.len ? ", " : "", r->assumption[k].name,
                   r->assumption[k].value);
        said[k] = true;
    }
    hp_str_add(&text, " (%s%s)", a->source ? a->source : "-", a->unverified ? "; unverified" : "");
    wrap(out, "assumed:", hp_str_text(&text));
    hp_str_fini(&text);
}

static void say_remarks(const hp_result *r, hp_table_style s, hp_str *out)
{
    int kept_back = 0;
    bool *said = hp_xcalloc((size_t)r->n_assumptions + 1, sizeof *said);
    for (int i = 0; i < r->n_warnings; i++)
        wrap(out, "warning:", r->warning[i]);
    for (int i = 0; i < r->n_assumptions; i++) {
        if (!s.verbose && !r->assumption[i].unverified)
            kept_back++;
        else if (!said[i])
            say_source(r, i, said, out);
    }
    if (kept_back)
        hp_str_add(out, "%d more assumption%s with sources: -v or --format=json\n", kept_back,
                   kept_back == 1 ? "" : "s");
    free(said);
}

void hp_table_result(const hp_result *r, hp_table_style s, hp_str *out)
{
    say_head(r, out);
    say_loss(r, s, out);
    say_speed(r, s, out);
    say_time(r, s, out);
    say_comm(r, s, out);
    say_memory(r, s, out);
    say_classes(r, s, out);
    say_remarks(r, s, out);
}

/* --- comparison --- */

typedef const char *show_fn(double v, char *buf, size_t n);

static const char *show_count(double v, char *buf, size_t n)
{
    return hp_table_count(v, buf, n);
}

static const char *show_plain(double v, char *buf, size_t n)
{
    snprintf(buf, n, "%.5g", v);
    return isnan(v) ? "-" : buf;
}

typedef struct figure {
    const char *name;
    show_fn *show;
    double v;
} figure;

enum { FIGURES = 18 + HP_OWN_ROLES + HP_MEM_KINDS };

static int list_figures(const hp_result *r, figure *f)
{
    int n = 0;
    f[n++] = (figure){"step", seconds, r->step_s};
    f[n++] = (figure){"tokens/s", show_count, r->tokens_per_s};
    f[n++] =
        (figure){"last loss", show_plain, r->n_steps && r->loss ? r->loss[r->n_steps - 1] : NAN};
    f[n++] = (figure){"masked", percent, r->masking_ratio};
    f[n++] = (figure){"MFU", percent, r->mfu};
    f[n++] = (figure){"HFU", percent, r->hfu};
    f[n++] = (figure){"compute", seconds, r->time.compute_s};
    f[n++] = (figure){"overlapped", seconds, r->time.overlapped_s};
    for (int i = 0; i < HP_OWN_ROLES; i++)
        f[n++] = (figure){exposed_name[i], seconds, r->time.exposed_s[i]};
    f[n++] = (figure){"bubble", seconds, r->time.bubble_s};
    f[n++] = (figure){"wait", seconds, r->time.wait_s};
    f[n++] = (figure){"host", seconds, r->time.host_s};
    f[n++] = (figure){"free", seconds, r->time.free_s};
    f[n++] = (figure){"flops executed", show_plain, r->flops_executed};
    f[n++] = (figure){"memory peak", bytes, r->memory.peak_bytes};
    f[n++] = (figure){"memory arena", bytes, r->memory.arena_bytes};
    for (int i = 0; i < HP_MEM_KINDS; i++)
        f[n++] = (figure){hp_mem_kind_name[i], bytes, r->memory.by_kind[i]};
    return n;
}

/* A word that differs (model, cluster, strategy) explains the figures below it, so words come
 * first. */
static void compare_words(int n, const hp_result *const *r, hp_str *out)
{
    static const char *const label[] = {"model", "cluster", "strategy", "mode"};
    for (int w = 0; w < 4; w++) {
        const char *word[64];
        bool differ = false;
        for (int i = 0; i < n; i++) {
            const char *strategy =
                r[i]->strategy_shorthand ? r[i]->strategy_shorthand : r[i]->strategy_name;
            const char *all[] = {r[i]->model, r[i]->cluster, strategy, r[i]->mode};
            word[i] = all[w] ? all[w] : "-";
            differ |= strcmp(word[i], word[0]) != 0;
        }
        if (!differ)
            continue;
        hp_str_add(out, "%-16s", label[w]);
        for (int i = 0; i < n; i++)
            hp_str_add(out, "%s%s", i ? "  |  " : "", word[i]);
        hp_str_put(out, "\n", 1);
    }
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare_line(int n, const figure (*f)[FIGURES], int row, hp_str *out)
{
    char buf[64];
    double first = f[0][row].v;
    hp_str_add(out, "%-16s", f[0][row].name);
    for (int i = 0; i < n; i++) {
        hp_str_add(out, " %14s", f[i][row].show(f[i][row].v, buf, sizeof buf));
        if (i > 0 && first != 0 && isfinite(first) && isfinite(f[i][row].v))
            hp_str_add(out, " %+8.1f %%", 100 * (f[i][row].v - first) / fabs(first));
        else if (i > 0)
            hp_str_add(out, " %10s", "");
    }
    hp_str_put(out, "\n", 1);
}

void hp_table_compare(int n, const char *const *name, const hp_result *const *r, hp_str *out)
{
    figure f[64][FIGURES];
    int rows = 0, equal = 0;
    n = n > 64 ? 64 : n;
    for (int i = 0; i < n; i++)
        rows = list_figures(r[i], f[i]);
    compare_words(n, r, out);
    hp_str_add(out, "%-16s", "");
    for (int i = 0; i < n; i++)
        hp_str_add(out, i ? " %14.14s %10s" : " %14.14s", name[i], "");
    hp_str_put(out, "\n", 1);
    for (int row = 0; row < rows; row++) {
        bool differ = false;
        for (int i = 1; i < n; i++)
            differ |= !same(f[i][row].v, f[0][row].v);
        if (differ)
            compare_line(n, (const figure(*)[FIGURES])f, row, out);
    }
    for (int row = 0; row < rows; row++) {
        bool differ = isnan(f[0][row].v) || f[0][row].v == 0;
        for (int i = 1; i < n; i++)
            differ |= !same(f[i][row].v, f[0][row].v);
        if (!differ)
            hp_str_add(out, "%s%s", equal++ ? ", " : "equal: ", f[0][row].name);
    }
    if (equal)
        hp_str_put(out, "\n", 1);
}

/* catalog.c -- names that are files in a data folder; a name with ':' is a cluster, one with '='
 * a shorthand. */
#include "session/catalog.h"

#include "base/mem.h"
#include "base/paths.h"
#include "plan/strategy.h"
#include "script/cluster.h"
#include "script/model.h"
#include "script/source.h"
#include "script/strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const hp_catalogs[hp_n_catalogs] = {"models", "clusters", "strategies"};
static const char *const folders[hp_n_catalogs] = {"models", "share/hardware", "share/strategies"};

/* --- lists --- */

static void list_names(int kind, char **names, int n, const char *data, hp_str *out)
{
    for (int i = 0; i < n; i++) {
        char file[512];
        snprintf(file, sizeof file, "%s/%s.lua", folders[kind], names[i]);
        char *path = hp_paths_join(data, file);
        char *about = hp_script_about(path);
        hp_str_add(out, "  %-20s %.57s\n", names[i], about);
        free(about);
        free(path);
    }
    if (kind == 1) {
        hp_str_add(out, "  %-20s %s\n", "host", "virtual devices of this machine: host:8");
        hp_str_add(out, "  %-20s %s\n", "ideal",
                   "1 PFLOP/s, 1 TB/s, 100 GB/s links, no latency, no losses");
    }
}

hp_err hp_catalog_list(const char *kind, bool titled, hp_str *out, hp_errmsg *e)
{
    int k = 0, n = 0;
    char **names = NULL, *data = NULL;
    while (k < hp_n_catalogs && strcmp(hp_catalogs[k], kind) != 0)
        k++;
    if (k == hp_n_catalogs)
        return hp_fail(e, HP_EUSAGE, "there is no list of \"%s\": models, clusters or strategies",
                       kind);
    hp_err err = hp_paths_data(&data, e);
    if (!err)
        err = hp_script_list(folders[k], &names, &n, e);
    if (!err && titled)
        hp_str_add(out, "%s%s\n", k ? "\n" : "", kind);
    if (!err)
        list_names(k, names, n, data, out);
    hp_script_list_free(names, n);
    free(data);
    return err;
}

/* --- a model --- */

/* The part of a parameter's name that people call a module: without a layer's number and the
 * last word. */
static void module_of(const char *name, char *out, size_t n)
{
    const char *p = name, *last = strrchr(name, '.');
    size_t at = 0;
    while (p < last && at + 1 < n) {
        if (*p >= '0' && *p <= '9' && (p == name || p[-1] == '.')) {
            out[at++] = '*';
            p += strspn(p, "0123456789");
        } else {
            out[at++] = *p++;
        }
    }
    out[at] = '\0';
}

typedef struct module {
    char name[96];
    int tensors;
    int64_t elements;
} module;

static int list_modules(const hp_graph *g, module **out)
{
    hp_map index = {0};
    module *m = NULL;
    int n = 0, cap = 0;
    for (int t = 0; t < g->n_tensors; t++) {
        if (g->tensor[t].kind != HP_T_PARAM && g->tensor[t].kind != HP_T_BUFFER)
            continue;
        char name[96];
        module_of(g->tensor[t].name, name, sizeof name);
        int at = hp_map_get(&index, name, -1);
        if (at < 0) {
            m = hp_grow(m, &cap, n + 1, sizeof *m);
            m[n] = (module){.tensors = 0};
            snprintf(m[n].name, sizeof m[n].name, "%s", name);
            hp_map_put(&index, name, at = n++);
        }
        m[at].tensors++;
        m[at].elements += hp_graph_size(g, t);
    }
    hp_map_fini(&index);
    *out = m;
    return n;
}

static void describe_model(const hp_graph *g, hp_str *out)
{
    module *m;
    int n = list_modules(g, &m);
    int64_t all = hp_graph_params(g);
    hp_str_add(out,
               "model %s: %" PRId64
               " parameters, %d layers, %d operations with the backward\n\ndimensions\n",
               g->name, all, g->n_layers, g->n_nodes);
    for (int d = 0; d < g->n_dims; d++) {
        if (g->dim[d].size > 0)
            hp_str_add(out, "  %-16s %12" PRId64 "\n", g->dim[d].name, g->dim[d].size);
        else
            hp_str_add(out, "  %-16s %12s\n", g->dim[d].name, "free");
    }
    hp_str_add(out, "\nparameters by module\n");
    for (int i = 0; i < n; i++)
        hp_str_add(out, "  %-36s %5d tensor%s %15" PRId64 " %5.1f %%\n", m[i].name, m[i].tensors,
                   m[i].tensors == 1 ? " " : "s", m[i].elements,
                   100.0 * (double)m[i].elements / (double)all);
    free(m);
    const hp_train *t = &g->train;
    hp_str_add(out, "\ntraining: %s, lr %g, betas %g %g, eps %g, decay %g, clip %g, warmup %d\n",
               t->sgd ? "sgd" : "adamw", t->lr, t->beta1, t->beta2, t->eps, t->decay, t->clip,
               t->warmup);
}

static hp_err show_model(const char *name, hp_str *out, hp_errmsg *e)
{
    hp_graph *g = NULL;
    hp_err err = hp_script_model(name, 0, NULL, &g, e);
    if (!err)
        describe_model(g, out);
    hp_graph_free(g);
    return err;
}

/* --- a cluster, a strategy --- */

static hp_err show_cluster(const char *spec, hp_str *out, hp_errmsg *e)
{
    hp_cluster *c = NULL;
    hp_err err = hp_script_cluster(spec, 0, NULL, &c, e);
    if (err)
        return err;
    hp_str_add(out, "cluster %s: %d devices\n\n", c->spec, c->n_devices);
    hp_cluster_print(c, out);
    if (c->n_notes)
        hp_str_add(out, "\nwhere the figures come from\n");
    for (int i = 0; i < c->n_notes; i++)
        hp_str_add(out, "  %s = %s: %s%s\n", c->note[i].name, c->note[i].value, c->note[i].source,
                   c->note[i].unverified ? " (unverified)" : "");
    hp_cluster_free(c);
    return HP_OK;
}

static hp_err show_file(const char *path, hp_str *out, hp_errmsg *e)
{
    char block[4096];
    size_t n;
    FILE *f = fopen(path, "r");
    if (!f)
        return hp_fail(e, HP_EUSAGE, "%s cannot be read", path);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        hp_str_put(out, block, n);
    fclose(f);
    return HP_OK;
}

static hp_err show_shorthand(const char *text, hp_str *out, hp_errmsg *e)
{
    hp_strategy *s = NULL;
    hp_err err = hp_script_strategy(text, NULL, NULL, 0, NULL, &s, e);
    if (!err)
        hp_strategy_print(s, out);
    hp_strategy_free(s);
    return err;
}

/* --- finding what is meant --- */

static bool is_listed(const char *folder, const char *name)
{
    char *path = NULL;
    bool yes = hp_script_find(folder, "name", name, &path, NULL) == HP_OK;
    free(path);
    return yes;
}

static hp_err nothing_called(const char *name, hp_errmsg *e)
{
    const char *all[512];
    char **names[hp_n_catalogs] = {0};
    int n[hp_n_catalogs] = {0}, count = 0;
    for (int k = 0; k < hp_n_catalogs; k++) {
        if (hp_script_list(folders[k], &names[k], &n[k], NULL))
            n[k] = 0;
        for (int i = 0; i < n[k] && count < 512; i++)
            all[count++] = names[k][i];
    }
    const char *near = hp_near(name, all, count);
    hp_fail(e, HP_EUSAGE,
            "no model, cluster or strategy is called \"%s\"; the nearest is \"%s\" (hpbench list)",
            name, near ? near : "-");
    for (int k = 0; k < hp_n_catalogs; k++)
        hp_script_list_free(names[k], n[k]);
    return HP_EUSAGE;
}

hp_err hp_catalog_show(const char *name, hp_str *out, hp_errmsg *e)
{
    char *path = NULL, spec[256];
    if (strchr(name, '=') && !hp_script_is_path(name))
        return show_shorthand(name, out, e);
    if (strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".json") == 0)
        return show_model(name, out, e);
    if (hp_script_is_path(name))
        return show_file(name, out, e);
    if (strchr(name, ':'))
        return show_cluster(name, out, e);
    if (is_listed("models", name))
        return show_model(name, out, e);
    snprintf(spec, sizeof spec, "%s:1", name);
    if (is_listed("share/hardware", name) || strcmp(name, "host") == 0 ||
        strcmp(name, "ideal") == 0)
        return show_cluster(spec, out, e);
    if (hp_script_find("share/strategies", "strategy", name, &path, NULL) != HP_OK)
        return nothing_called(name, e);
    hp_err err = show_file(path, out, e);
    free(path);
    return err;
}

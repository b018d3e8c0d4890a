/* Every example of share/doc/dsl.md runs: a block says after ```lua whether it is a model, a cluster or a strategy (and for which model). */
#include "script/cluster.h"
#include "script/model.h"
#include "script/strategy.h"

#include "base/paths.h"
#include "plan/build.h"
#include "tap.h"

#include <unistd.h>

static hp_cluster *eight;

static hp_err try_model(const char *path, hp_errmsg *e)
{
    hp_graph *g;
    hp_err err = hp_script_model(path, 0, NULL, &g, e);
    if (!err)
        hp_graph_free(g);
    return err;
}

static hp_err try_cluster(const char *path, hp_errmsg *e)
{
    hp_cluster *c;
    hp_err err = hp_script_cluster(path, 0, NULL, &c, e);
    if (!err)
        hp_cluster_free(c);
    return err;
}

/* Compiles a strategy and plans a step with it. */
static hp_err try_strategy(const char *path, const char *model, hp_errmsg *e)
{
    hp_graph *g;
    hp_strategy *s;
    hp_override few = {"model.seq", "64"};
    hp_err err = hp_script_model(model, 1, &few, &g, e);
    if (err)
        return err;
    err = hp_script_strategy(path, g, eight, 0, NULL, &s, e);
    if (!err) {
        hp_built b = {0};
        err = hp_build(g, eight, s, &b, e);
        hp_built_fini(&b);
        hp_strategy_free(s);
    }
    hp_graph_free(g);
    return err;
}

static void run_block(const char *kind, const char *text, int line)
{
    char path[] = "/tmp/hp-doc-XXXXXX.lua";
    char what[32] = "", model[32] = "llama-small";
    hp_errmsg e = {0};
    int fd = mkstemps(path, 4);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("no temporary file");
    close(fd);
    sscanf(kind, "%31s %31s", what, model);
    hp_err err = strcmp(what, "model") == 0     ? try_model(path, &e)
                 : strcmp(what, "cluster") == 0 ? try_cluster(path, &e)
                                                : try_strategy(path, model, &e);
    ok(err == HP_OK, "the %s on line %d of dsl.md runs", what, line);
    if (err)
        diag("%s", e.text);
    unlink(path);
}

int main(void)
{
    hp_errmsg e = {0};
    char *data, line[1024], kind[64] = "";
    if (hp_paths_data(&data, &e) || hp_script_cluster("ideal:8", 0, NULL, &eight, &e))
        bail("%s", e.text);
    char *path = hp_paths_join(data, "share/doc/dsl.md");
    FILE *f = fopen(path, "r");
    if (!f)
        bail("%s cannot be opened", path);
    hp_str text = {0};
    int at = 0, start = 0, blocks = 0;
    while (fgets(line, sizeof line, f)) {
        at++;
        if (strncmp(line, "```lua ", 7) == 0) {
            snprintf(kind, sizeof kind, "%s", line + 7);
            start = at;
        } else if (strncmp(line, "```", 3) == 0 && kind[0]) {
            run_block(kind, hp_str_text(&text), start);
            hp_str_fini(&text);
            kind[0] = 0;
            blocks++;
        } else if (kind[0]) {
            hp_str_add(&text, "%s", line);
        }
    }
    ok(blocks >= 9, "dsl.md has examples");
    fclose(f);
    free(path);
    free(data);
    hp_cluster_free(eight);
    return done_testing();
}

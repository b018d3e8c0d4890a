#include "base/paths.h"

#include "tap.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[64] = "/tmp/hp-paths-XXXXXX";

/* below returns "ROOT/name" in a buffer that the next call overwrites. */
static const char *below(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void test_data(void)
{
    hp_errmsg e = {0};
    char *dir = NULL;
    setenv("HPBENCH_DATA", root, 1);
    is_int(hp_paths_data(&dir, &e), HP_EUSAGE,
           "a named folder without lua/ and models/ is refused");
    ok(strstr(e.text, root) != NULL, "and named in the message");
    mkdir(below("lua"), 0700);
    mkdir(below("models"), 0700);
    is_int(hp_paths_data(&dir, &e), HP_OK, "with both it is the data folder");
    is_str(dir, root, "as named");
    free(dir);
}

static void test_own(void)
{
    char *dir = NULL;
    setenv("HOME", "/home/ada", 1);
    unsetenv("XDG_CONFIG_HOME");
    is_int(hp_paths_config(&dir, NULL), HP_OK, "a home gives a configuration folder");
    is_str(dir, "/home/ada/.config/hpbench", "at its usual place");
    free(dir);
    setenv("XDG_CONFIG_HOME", "/etc/ada", 1);
    hp_paths_config(&dir, NULL);
    is_str(dir, "/etc/ada/hpbench", "XDG_CONFIG_HOME moves it");
    free(dir);
    setenv("XDG_STATE_HOME", "relative", 1);
    hp_paths_state(&dir, NULL);
    is_str(dir, "/home/ada/.local/state/hpbench", "a relative XDG folder is ignored");
    free(dir);
    setenv("XDG_STATE_HOME", "/var/ada", 1);
    hp_paths_state(&dir, NULL);
    is_str(dir, "/var/ada/hpbench", "XDG_STATE_HOME moves the state folder");
    free(dir);
}

static void test_make(void)
{
    hp_errmsg e = {0};
    struct stat st;
    is_int(hp_paths_make(below("a/b/c"), &e), HP_OK, "a folder is made with those above it");
    ok(stat(below("a/b/c"), &st) == 0 && (st.st_mode & 0777) == 0700, "for the user alone");
    is_int(hp_paths_make(below("a/b/c"), &e), HP_OK, "one that is there is fine");
    fclose(fopen(below("file"), "w"));
    is_int(hp_paths_make(below("file/x"), &e), HP_EINTERNAL, "a file in the way is an error");
    ok(strstr(e.text, below("file")) != NULL, "which names it");
}

int main(void)
{
    if (!mkdtemp(root))
        bail("no temporary folder");
    test_data();
    test_own();
    test_make();
    char *s = hp_paths_join("/a", "b/c");
    is_str(s, "/a/b/c", "names are joined");
    free(s);
    s = hp_paths_join("/a", "/b");
    is_str(s, "/b", "an absolute name stands alone");
    free(s);
    static const char *const made[] = {"file", "a/b/c", "a/b", "a", "lua", "models", ""};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        remove(below(made[i]));
    return done_testing();
}

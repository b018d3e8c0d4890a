/* paths.c -- a folder counts as data when lua/ and models/ are in it; no other mark is looked for. */
#include "base/paths.h"

#include "base/mem.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HP_DATADIR
#error "HP_DATADIR: the Makefile passes the installed data folder"
#endif

enum { PATH_BYTES = 4096 };

char *hp_paths_join(const char *dir, const char *name)
{
    if (name[0] == '/')
        return hp_xstrdup(name);
    size_t n = strlen(dir) + strlen(name) + 2;
    char *s = hp_xmalloc(n);
    snprintf(s, n, "%s/%s", dir, name);
    return s;
}

static bool has_folder(const char *dir, const char *name)
{
    char *path = hp_paths_join(dir, name);
    struct stat st;
    bool yes = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return yes;
}

static bool holds_data(const char *dir)
{
    return has_folder(dir, "lua") && has_folder(dir, "models");
}

/* Goes up from the executable until a folder holds data (a checkout) or has it in share/hpbench
 * (an installation, wherever it was moved to); NULL when none does. */
static char *find_above_executable(void)
{
    char path[PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
        *slash = '\0';
        if (holds_data(path))
            return hp_xstrdup(path);
        char *installed = hp_paths_join(path, "share/hpbench");
        if (holds_data(installed))
            return installed;
        free(installed);
    }
    return NULL;
}

hp_err hp_paths_data(char **dir, hp_errmsg *e)
{
    const char *asked = getenv("HPBENCH_DATA");
    if (asked && *asked) {
        if (!holds_data(asked))
            return hp_fail(e, HP_EUSAGE, "HPBENCH_DATA=%s: no folder with lua/ and models/ in it",
                           asked);
        *dir = hp_xstrdup(asked);
        return HP_OK;
    }
    char *found = find_above_executable();
    if (found) {
        *dir = found;
        return HP_OK;
    }
    if (!holds_data(HP_DATADIR))
        return hp_fail(
            e, HP_EINTERNAL,
            "no data folder: neither above the executable nor %s holds lua/ and models/; "
            "set HPBENCH_DATA or run make install",
            HP_DATADIR);
    *dir = hp_xstrdup(HP_DATADIR);
    return HP_OK;
}

/* The XDG base directory specification: an unset, empty or relative variable means the default. */
static hp_err find_own(const char *variable, const char *below_home, char **dir, hp_errmsg *e)
{
    const char *base = getenv(variable);
    if (base && base[0] == '/') {
        *dir = hp_paths_join(base, "hpbench");
        return HP_OK;
    }
    const char *home = getenv("HOME");
    if (!home || !*home) {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : NULL;
    }
    if (!home || !*home)
        return hp_fail(e, HP_EINTERNAL, "no home folder: set HOME or %s", variable);
    *dir = hp_paths_join(home, below_home);
    return HP_OK;
}

hp_err hp_paths_config(char **dir, hp_errmsg *e)
{
    return find_own("XDG_CONFIG_HOME", ".config/hpbench", dir, e);
}

hp_err hp_paths_state(char **dir, hp_errmsg *e)
{
    return find_own("XDG_STATE_HOME", ".local/state/hpbench", dir, e);
}

static hp_err make_one(const char *dir, hp_errmsg *e)
{
    if (mkdir(dir, 0700) == 0 || (errno == EEXIST && has_folder(dir, ".")))
        return HP_OK;
    return hp_fail(e, HP_EINTERNAL, "folder %s cannot be made: %s", dir, strerror(errno));
}

hp_err hp_paths_make(const char *dir, hp_errmsg *e)
{
    char *path = hp_xstrdup(dir);
    hp_err err = HP_OK;
    for (char *p = path; *p && !err; p++) {
        if (*p != '/' || p == path)
            continue;
        *p = '\0';
        err = make_one(path, e);
        *p = '/';
    }
    if (!err)
        err = make_one(path, e);
    free(path);
    return err;
}

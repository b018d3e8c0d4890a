/* source.c -- folders are read whole and sorted: a listing and a search give the same answer everywhere. */
#include "script/source.h"

#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcasecmp(s + n - m, end) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

hp_err hp_script_list(const char *folder, char ***names, int *n, hp_errmsg *e)
{
    char *data;
    hp_err err = hp_paths_data(&data, e);
    if (err)
        return err;
    char *path = hp_paths_join(data, folder);
    DIR *dir = opendir(path);
    int cap = 0;
    *names = NULL;
    *n = 0;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (!ends_with(d->d_name, ".lua"))
            continue;
        *names = hp_grow(*names, &cap, *n + 1, sizeof **names);
        (*names)[*n] = hp_xstrdup(d->d_name);
        (*names)[(*n)++][strlen(d->d_name) - 4] = 0;
    }
    if (dir)
        closedir(dir);
    if (*n)
        qsort(*names, (size_t)*n, sizeof **names, by_name);
    free(path);
    free(data);
    return HP_OK;
}

void hp_script_list_free(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

char *hp_script_about(const char *path)
{
    char line[256] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    line[strcspn(line, "\r\n")] = 0;
    const char *text = line;
    if (strncmp(text, "--", 2) != 0)
        return hp_xstrdup("");
    const char *name = strstr(text, ".lua: ");
    text = name ? name + 6 : text + 2;
    return hp_xstrdup(text + strspn(text, " "));
}

hp_err hp_script_find(const char *folder, const char *what, const char *name, char **path,
                      hp_errmsg *e)
{
    char **names;
    int n;
    hp_err err = hp_script_list(folder, &names, &n, e);
    if (err)
        return err;
    const char *found = NULL;
    for (int i = 0; i < n; i++)
        if (strcasecmp(names[i], name) == 0)
            found = names[i];
    if (!found) {
        const char *near = hp_near(name, (const char *const *)names, n);
        err = hp_fail(e, HP_EUSAGE, "no %s is called '%s'; the nearest is '%s'", what, name,
                      near ? near : "none");
    } else {
        char *data;
        err = hp_paths_data(&data, e);
        hp_str t = {0};
        if (!err) {
            hp_str_add(&t, "%s/%s/%s.lua", data, folder, found);
            free(data);
            *path = hp_str_take(&t);
        }
    }
    hp_script_list_free(names, n);
    return err;
}

bool hp_script_is_path(const char *text)
{
    return strchr(text, '/') || ends_with(text, ".lua") || ends_with(text, ".json");
}

hp_err hp_script_overrides(int n, const hp_override *over, hp_errmsg *e)
{
    for (int i = 0; i < n; i++)
        if (strncmp(over[i].key, "model.", 6) && strncmp(over[i].key, "cluster.", 8) &&
            strncmp(over[i].key, "strategy.", 9))
            return hp_fail(e, HP_EUSAGE, "-o %s: a key begins with model., cluster. or strategy.",
                           over[i].key);
    return HP_OK;
}

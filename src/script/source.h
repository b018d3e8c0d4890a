/* source.h -- where scripts lie: names of files in a data folder, matched without case. Room: script; uses base, cluster. */
#ifndef HP_SCRIPT_SOURCE_H
#define HP_SCRIPT_SOURCE_H

#include "cluster/cluster.h"

/* hp_script_list lists the scripts of a data folder ("models", "share/strategies", "share/hardware"), sorted, without ".lua". *names is one
 * owned heap array of owned strings: hp_script_list_free. A folder that is not there has none. */
hp_err hp_script_list(const char *folder, char ***names, int *n, hp_errmsg *e);
void hp_script_list_free(char **names, int n);

/* hp_script_about returns the text of a script's first comment line without "-- name.lua:", "" where it has none; an owned heap string. */
char *hp_script_about(const char *path);

/* hp_script_find sets *path (owned heap string) to folder/NAME.lua where NAME equals `name` without case. HP_EUSAGE names `what` and the nearest. */
hp_err hp_script_find(const char *folder, const char *what, const char *name, char **path,
                      hp_errmsg *e);

/* hp_script_is_path says whether `text` names a file rather than a name or a list: it has a '/' or ends with .lua or .json. */
bool hp_script_is_path(const char *text);

/* hp_script_overrides checks that every `-o` key begins with "model.", "cluster." or "strategy."; HP_EUSAGE names the first that does not. */
hp_err hp_script_overrides(int n, const hp_override *over, hp_errmsg *e);

#endif

/* paths.h -- where the program finds its data and keeps its own files.
 *
 * The data folder holds lua/, share/ and models/, in a checkout and installed alike, so a file is
 * named "share/hardware/x.lua" below it everywhere. Results are owned heap strings. Room: base.
 */
#ifndef HP_BASE_PATHS_H
#define HP_BASE_PATHS_H

#include "base/err.h"

/* hp_paths_data sets *dir to the data folder: $HPBENCH_DATA; else the nearest folder above the
 * executable with lua/ and models/, or with share/hpbench that has them; else where `make install` put it. HP_EUSAGE when the
 * variable names a folder without them, HP_EINTERNAL when there is none anywhere. */
hp_err hp_paths_data(char **dir, hp_errmsg *e);

/* hp_paths_config sets *dir to $XDG_CONFIG_HOME/hpbench (default ~/.config/hpbench), which may not
 * exist. HP_EINTERNAL when there is no home. */
hp_err hp_paths_config(char **dir, hp_errmsg *e);

/* hp_paths_state sets *dir to $XDG_STATE_HOME/hpbench (default ~/.local/state/hpbench), which may
 * not exist. HP_EINTERNAL when there is no home. */
hp_err hp_paths_state(char **dir, hp_errmsg *e);

/* hp_paths_join returns "dir/name"; `name` alone when it is absolute. */
char *hp_paths_join(const char *dir, const char *name);

/* hp_paths_make makes a folder and those above it, for the user alone; one that is there is fine.
 * HP_EINTERNAL names the folder that could not be made and why. */
hp_err hp_paths_make(const char *dir, hp_errmsg *e);

#endif

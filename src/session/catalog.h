/* catalog.h -- what there is to choose from: lists of names and one thing in full. Room:
 * session. */
#ifndef HP_SESSION_CATALOG_H
#define HP_SESSION_CATALOG_H

#include "base/str.h"

#include <stdbool.h>

/* hp_catalogs are the kinds of things that can be listed: "models", "clusters", "strategies". */
enum { hp_n_catalogs = 3 };
extern const char *const hp_catalogs[hp_n_catalogs];

/* hp_catalog_list appends the names of a kind, each with its one-line description; `titled` puts
 * the kind above. HP_EUSAGE names the nearest kind. */
hp_err hp_catalog_list(const char *kind, bool titled, hp_str *out, hp_errmsg *e);

/* hp_catalog_show appends a description of a model ("gpt2-small"), a cluster ("host:4",
 * "h100-sxm:512") or a strategy ("dp=2,tp=2", "zero1", a .lua file). HP_EUSAGE when nothing is
 * called so. */
hp_err hp_catalog_show(const char *name, hp_str *out, hp_errmsg *e);

#endif

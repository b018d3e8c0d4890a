/* hfconfig.h -- a Hugging Face config.json as a model family of ours and the settings it overrides.
 *
 * Decoders only: the text decoder of a vision-language configuration is read from its `text_config` or `language_config`, and the name
 * says so. What has no place in a graph (sliding windows, logit caps, rotary scaling, dropout, extra prediction heads) does not change it; share/doc/dsl.md
 * lists it. Keys: FORMATS of the configuration classes of the transformers library. Room: fmt; uses base, cluster.
 */
#ifndef HP_FMT_HFCONFIG_H
#define HP_FMT_HFCONFIG_H

#include "base/mem.h"
#include "cluster/cluster.h"

enum { HP_HF_MAX_KEYS = 64 };

typedef struct hp_hfconfig {
    hp_arena arena;
    const char *model_type; /* "qwen3_moe" */
    const char *family;     /* file in models/: "llama", "mixtral", ... */
    int n;
    hp_override set[HP_HF_MAX_KEYS]; /* keys of the family and their values as text */
} hp_hfconfig;

/* hp_hfconfig_read reads the file into *out (zeroed; freed by hp_hfconfig_fini). HP_EINPUT: not JSON (with line and column), no or an unknown
 * model_type (with the known ones), a needed key that is missing or is no number, a mixture this program has no operation for. */
hp_err hp_hfconfig_read(const char *path, hp_hfconfig *out, hp_errmsg *e);

/* hp_hfconfig_fini frees what a reading left; zeroed = nothing. */
void hp_hfconfig_fini(hp_hfconfig *c);

#endif

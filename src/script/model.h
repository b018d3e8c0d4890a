/* model.h -- from a model's name to its graph, with the backward in it.
 *
 *     hp_graph *g;
 *     hp_override o = {"model.seq", "64"};
 *     hp_err err = hp_script_model("gpt2-small", 1, &o, &g, &e);
 *
 * The graph has the inputs tokens, targets, positions (and docs when documents are packed), the once-a-step nodes that count the valid targets of
 * the global batch (`targets.all`) and seed the backward with 1/count, the scalar `loss`, the training settings, and has been through
 * hp_graph_autodiff: ready for hp_build. Dimensions `batch` and `micro` are free. Room: script.
 */
#ifndef HP_SCRIPT_MODEL_H
#define HP_SCRIPT_MODEL_H

#include "cluster/cluster.h"
#include "graph/graph.h"

/* hp_script_model builds the graph of `name`: a file in models/ (without case and ".lua"), a path of a .lua file, or a path of a
 * Hugging Face config.json. Of `over` the keys "model.KEY" are used, others are ignored. HP_EUSAGE: no such model or key (with near
 * names); HP_EINPUT: the file is wrong. The caller frees *out. */
hp_err hp_script_model(const char *name, int n_over, const hp_override *over, hp_graph **out,
                       hp_errmsg *e);

#endif

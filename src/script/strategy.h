/* strategy.h -- from a script or a shorthand to a strategy in normal form. Room: script. */
#ifndef HP_SCRIPT_STRATEGY_H
#define HP_SCRIPT_STRATEGY_H

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/strategy.h"

/* hp_script_strategy compiles `text`: a path of a .lua file, a name in share/strategies (without case and ".lua"), or a shorthand list
 * ("dp=2,tp=2,sp"). The script can look at `model` (from `g`: its dimensions, layers, name, params) and `cluster` (from `c`); either may be NULL, then looking at it
 * is an error. Of `over` the keys "strategy.KEY" are used ("strategy.batch.micro"). HP_EUSAGE: unknown shorthand key, no such file or
 * override; HP_EINPUT: a script's fault, "file:line: what"; HP_EINFEASIBLE: degrees that do not fit the number of devices, with the nearest
 * that do. The caller frees *out with hp_strategy_free. */
hp_err hp_script_strategy(const char *text, const hp_graph *g, const hp_cluster *c, int n_over,
                          const hp_override *over, hp_strategy **out, hp_errmsg *e);

#endif

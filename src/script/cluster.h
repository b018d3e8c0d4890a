/* cluster.h -- from "h100-sxm:512" or a cluster script to a cluster. Room: script. */
#ifndef HP_SCRIPT_CLUSTER_H
#define HP_SCRIPT_CLUSTER_H

#include "cluster/cluster.h"

/* hp_script_cluster makes the cluster that `spec` names: "NAME:COUNT" with NAME one of `ideal`, `host` or a file in share/hardware, or a path of a
 * .lua file ("my.lua", "my.lua:64"). Of `over` the keys "cluster.KEY" are used. HP_EUSAGE: not of that form, unknown name;
 * HP_EINPUT: the file or an override is wrong. The caller frees *out with hp_cluster_free. */
hp_err hp_script_cluster(const char *spec, int n_over, const hp_override *over, hp_cluster **out,
                         hp_errmsg *e);

#endif

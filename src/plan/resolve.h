/* resolve.h -- a written strategy against a model and a cluster: sizes, meshes, and a layout for every tensor.
 *
 * Resolving decides everything that does not need placement: the mesh of a stage and its atoms, how many microbatches, which virtual
 * stage every node belongs to, the wished layout of every activation (its `target`), and the four layouts of every parameter. What cannot be is
 * refused here, before anything is planned, with tensor, axis, sizes and the nearest legal value.
 *
 * Parameters (C = compute layout, +dp = the ZeRO axes appended last on one dimension), SHARDING.md's table:
 *     plain  store C      accumulate C      optimizer C            zero-1  store C      accumulate C      optimizer C+dp
 *     zero-2 store C      accumulate C+dp   optimizer C+dp         zero-3  store C+dp   accumulate C+dp   optimizer C+dp
 * Source: Rajbhandari et al., ZeRO (SC 2020). Room: plan.
 */
#ifndef HP_PLAN_RESOLVE_H
#define HP_PLAN_RESOLVE_H

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/note.h"
#include "plan/plan.h"
#include "plan/strategy.h"

enum { HP_MAX_CHUNKS = 31 }; /* chunks a stage: its templates are I, O and two a chunk */

/* hp_param_state is the splits of a parameter's four layouts; which atoms an accumulator is partial over follows from placement. */
typedef struct hp_param_state {
    hp_layout compute, store, accumulate, optimizer;
    bool keep; /* gathered once a step and kept, instead of gathered anew for every use */
} hp_param_state;

typedef struct hp_resolved {
    hp_arena arena;
    const hp_graph *g;
    const hp_cluster *cluster;
    const hp_strategy *s;
    int pp, vpp;            /* stages, chunks a stage */
    hp_mesh *mesh;          /* one a stage */
    hp_shape *shape;        /* by tensor */
    hp_layout *target;      /* by tensor; parameters: compute */
    hp_param_state *state;  /* by tensor, for parameters */
    int *vstage;            /* by node: chunk * pp + stage */
    int64_t batch, micro, global; /* sequences a microbatch, microbatches, sequences a step */
    uint32_t ring;          /* atoms along which keys and values circulate; 0: they are gathered */
    int8_t *ring_from, *ring_to; /* by node: the labels of queries' and keys' positions, -1 */
    bool all_rows;          /* routed buffers have room for every row that can come, whatever the headroom */
    int zigzag;             /* > 0: sequences are permuted in head and tail pairs for that many ranks */
    int n_cuts;
    hp_cut *cut;
    int n_notes, cap_notes;
    hp_note *note;          /* what was derived; strings in the arena */
} hp_resolved;

/* hp_resolve fills *r (zeroed); binds the graph's `batch` and `micro` dimensions. HP_EINFEASIBLE, HP_EINPUT and HP_EUSAGE as plan/build.h says. */
hp_err hp_resolve(hp_graph *g, const hp_cluster *c, const hp_strategy *s, hp_resolved *r, hp_errmsg *e);

/* hp_resolved_fini frees what resolving allocated. */
void hp_resolved_fini(hp_resolved *r);

/* hp_resolved_note adds a note; the strings are copied. */
void hp_resolved_note(hp_resolved *r, const char *name, const char *value, const char *source);

/* hp_resolved_print appends one line for every derived value, module and parameter. */
void hp_resolved_print(const hp_resolved *r, hp_str *out);

/* --- pieces, one file each -------------------------------------------------------------------------------- */

/* hp_resolve_mesh reads the views, fills `*` and sizes, and makes the stage meshes (resolve_mesh.c). */
hp_err hp_resolve_mesh(hp_resolved *r, hp_errmsg *e);

/* hp_resolve_atoms writes the atoms of "a+b" ("whole" and "" = none); HP_EINPUT with near names for an unknown axis. */
hp_err hp_resolve_atoms(const hp_resolved *r, const char *axes, uint8_t *atom, int *n, hp_errmsg *e);

/* hp_resolve_layouts fills target and state (resolve_layout.c). */
hp_err hp_resolve_layouts(hp_resolved *r, hp_errmsg *e);

/* hp_resolve_stages fills vstage (resolve_stage.c). */
hp_err hp_resolve_stages(hp_resolved *r, hp_errmsg *e);

/* hp_resolve_ring decides which atoms are a ring for attention (resolve_ring.c). */
hp_err hp_resolve_ring(hp_resolved *r, hp_errmsg *e);

/* hp_resolved_seq_multiple returns what the sequence must be a multiple of to be cut evenly by all that splits it: zigzag order over c ranks with sequence
 * parallelism over t makes that c lcm(2, t). */
int64_t hp_resolved_seq_multiple(const hp_resolved *r);

/* hp_resolve_bad is the error of a wrong word in a strategy: exit 2 for a shorthand, 3 for a file. */
hp_err hp_resolve_bad(const hp_resolved *r);

/* hp_glob_covers says whether `glob` names `name`, one of its ancestors ("layers.3.attn" covers "layers.3.attn.q.w") or its alias. */
bool hp_glob_covers(const char *glob, const char *name, const char *alias);

#endif

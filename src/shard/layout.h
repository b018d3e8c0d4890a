/* layout.h -- meshes and layouts: how a tensor lies over the devices of one group.
 *
 * A mesh is an ordered list of *atoms* (outer to inner) over n ranks; rank = mixed-radix number of its atom coordinates.
 * The axes that people name (dp, tp, and in another view edp, ep, etp over the same ranks) are ordered lists of atoms:
 * the atoms are the common refinement of all views, plus the factors that key/value replication needs. Layouts, search and plans know
 * atoms only; names come back in text and in metrics.
 *
 * A layout says, per dimension, the atoms that split it in order (outer to inner), and the atoms over which the value is partial,
 * with the reduction; all other atoms replicate. No atom occurs twice. Atoms of size 1 do not exist.
 *
 * The box of a rank folds over the dimension's atoms: n parts of (lo,hi): chunk = ceil((hi-lo)/n), part i = (min(lo+i chunk,hi),
 * min(lo+(i+1) chunk, hi)): nested uneven and empty parts come for free. Consecutive atoms of one named axis (`joined`) that stand next to
 * each other in a split fold as one number, so that an axis means the same however it was refined. A `cut` changes the outermost fold of a
 * dimension: balanced (sizes differ by at most one) or explicit sizes (which apply where the outermost fold has exactly that many parts; any other
 * fold of that dimension, as it can come up on the way of a redistribution, is by chunk).
 *
 * Source: the Layout arithmetic of HyperShard (arXiv 2603.03731). Room: shard; uses base, graph.
 */
#ifndef HP_SHARD_LAYOUT_H
#define HP_SHARD_LAYOUT_H

#include "base/err.h"
#include "base/str.h"
#include "graph/graph.h"

enum { HP_MAX_ATOMS = 12, HP_MAX_AXES = 24 };

/* hp_axis is a name for an ordered list of atoms, in one view ("" = the main one). */
typedef struct hp_axis {
    char name[16], view[16];
    int role; /* HP_ROLE_* */
    int n;
    uint8_t atom[HP_MAX_ATOMS];
    int size;
} hp_axis;

enum { HP_ROLE_DP, HP_ROLE_TP, HP_ROLE_PP, HP_ROLE_CP, HP_ROLE_EP, HP_ROLE_OTHER };

typedef struct hp_mesh {
    int n_atoms;
    int size[HP_MAX_ATOMS];
    bool joined[HP_MAX_ATOMS]; /* continues the axis of the atom before it (in the main view) */
    int n_ranks;               /* product of sizes */
    int first; /* global device number of rank 0; ranks are first .. first + n_ranks - 1 times `stride` */
    int n_axes;
    hp_axis axis[HP_MAX_AXES];
} hp_mesh;

typedef struct hp_layout {
    uint8_t nd;
    uint8_t n[HP_MAX_DIMS];                   /* how many atoms split the dimension */
    uint8_t split[HP_MAX_DIMS][HP_MAX_ATOMS]; /* which, outer to inner */
    uint8_t partial[HP_MAX_ATOMS];            /* hp_reduce per atom, HP_RED_NONE = not partial */
} hp_layout;

typedef enum hp_cut_kind { HP_CUT_CHUNK, HP_CUT_BALANCED, HP_CUT_SIZES } hp_cut_kind;

/* hp_cut says how the outermost axis of a dimension is cut; NULL means HP_CUT_CHUNK. */
typedef struct hp_cut {
    hp_cut_kind kind;
    int n; /* HP_CUT_SIZES: how many parts */
    int64_t size[64];
} hp_cut;

/* hp_shape is the global shape of a tensor with its cuts (borrowed, NULL = chunk). */
typedef struct hp_shape {
    int nd;
    int64_t size[HP_MAX_DIMS];
    const hp_cut *cut[HP_MAX_DIMS];
} hp_shape;

typedef struct hp_box {
    int nd;
    int64_t lo[HP_MAX_DIMS], hi[HP_MAX_DIMS];
} hp_box;

/* hp_mesh_build makes a mesh from views. `spec[i]` is "pp=2,dp=4,tp=2" (outer to inner, product = n_ranks each; "" = one rank), view names are
 * `view[i]` ("" for the first). Axes of equal name in two views must have equal groups. `factor` (may be NULL) asks that axis
 * factor_axis[j] of the main view be cut into outer x inner with outer = factor[j]. HP_EINFEASIBLE names two axes without a common refinement. */
hp_err hp_mesh_build(hp_mesh *m, int n_views, const char *const *view, const char *const *spec,
                     int n_factors, const char *const *factor_axis, const int *factor,
                     hp_errmsg *e);

/* hp_mesh_axis finds axis "tp" of the main view or "moe.ep" of another (a name that only one view has needs no prefix); NULL when unknown. */
const hp_axis *hp_mesh_axis(const hp_mesh *m, const char *name);

/* hp_mesh_atoms resolves "dp+cp", "moe.ep" or "tp.0" (part 0 of a refined axis) into atoms in the written order; HP_EINPUT names an unknown
 * axis with the nearest one, or an axis named twice. `atom` has room for HP_MAX_ATOMS. */
hp_err hp_mesh_atoms(const hp_mesh *m, const char *axes, uint8_t *atom, int *n, hp_errmsg *e);

/* hp_mesh_print_atoms appends the names of an ordered list of atoms, so that hp_mesh_atoms reads them back. */
void hp_mesh_print_atoms(const hp_mesh *m, const uint8_t *atom, int n, hp_str *out);

/* hp_mesh_coord writes the atom coordinates of a rank. */
void hp_mesh_coord(const hp_mesh *m, int rank, int *coord);

/* hp_mesh_group_size returns how many ranks differ in the atoms of `mask` only. */
int hp_mesh_group_size(const hp_mesh *m, uint32_t mask);

/* hp_mesh_group writes the ranks that differ from `rank` only in the atoms of `mask`, in rank order, and returns how many. */
int hp_mesh_group(const hp_mesh *m, int rank, uint32_t mask, int *out);

/* hp_mesh_name writes the name people know a set of atoms by ("tp", "dp+cp", "moe.ep"; the smallest axis that holds it, "tp.0" for a part) and returns buf. */
char *hp_mesh_name(const hp_mesh *m, uint32_t mask, char *buf, size_t n);

/* hp_layout_replicated returns the layout with nothing split. */
hp_layout hp_layout_replicated(int nd);

/* hp_layout_equal compares. */
bool hp_layout_equal(const hp_layout *a, const hp_layout *b);

/* hp_layout_clean returns a copy whose unused places are zero, so that equal layouts have equal bytes. */
hp_layout hp_layout_clean(const hp_layout *l);

/* hp_layout_append splits dimension d further by `n` atoms, hp_layout_remove takes its last `n` atoms away; neither looks at boxes (hp_layout_seam does). */
void hp_layout_append(hp_layout *l, int d, const uint8_t *atom, int n);
void hp_layout_remove(hp_layout *l, int d, int n);

/* hp_layout_check refuses (HP_EINFEASIBLE) atoms that occur twice or that the mesh lacks, a split and partial atom, and different reductions at once
 * (sum and avg go together, no other two commute). */
hp_err hp_layout_check(const hp_mesh *m, const hp_layout *l, hp_errmsg *e);

/* hp_layout_parse reads "batch:dp+cp seq:tp partial:sum(tp)"; dimension words are looked up in `dims`. hp_layout_print is its inverse ("-" = replicated). */
hp_err hp_layout_parse(const hp_mesh *m, int nd, const char *const *dims, const char *s,
                       hp_layout *l, hp_errmsg *e);
void hp_layout_print(const hp_mesh *m, const hp_layout *l, const char *const *dims, hp_str *out);

/* hp_layout_tensor_map writes HyperShard's map: per dimension n_axes-1-index of the axis, -1 unsplit; only for one whole axis a dimension, else false. */
bool hp_layout_tensor_map(const hp_mesh *m, const hp_layout *l, int *map);

/* hp_layout_box returns what `rank` holds of a tensor of `shape`. */
hp_box hp_layout_box(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int rank);

/* hp_box_size returns the number of elements, 0 when empty. hp_box_meet intersects. */
int64_t hp_box_size(const hp_box *b);
hp_box hp_box_meet(const hp_box *a, const hp_box *b);

/* hp_layout_max_size returns the largest box over all ranks, in elements. */
int64_t hp_layout_max_size(const hp_mesh *m, const hp_layout *l, const hp_shape *shape);

/* hp_layout_even says whether every fold divides without remainder; if not, *dim is the first dimension that does not. */
bool hp_layout_even(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int *dim);

/* hp_layout_run returns how many atoms of dimension d, from place i on, fold as one number because they are joined. */
int hp_layout_run(const hp_mesh *m, const hp_layout *l, int d, int i);

/* hp_layout_seam says whether the boxes of dimension d are parts of the boxes that its first k atoms alone make: always, but inside a joined run of
 * a dimension whose parts do not nest (5 on 2 x 2 is 2, 2, 1, none, which are no parts of 3 and 2). Only at a seam atoms can be removed or appended by themselves. */
bool hp_layout_seam(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int d, int k);

/* hp_layout_max_len returns the largest length of dimension d over all ranks. */
int64_t hp_layout_max_len(const hp_mesh *m, const hp_layout *l, const hp_shape *shape, int d);

/* hp_layout_mask returns the atoms that split dimension d; hp_layout_split_mask those that split any; hp_layout_partial_mask those that are partial. */
uint32_t hp_layout_mask(const hp_layout *l, int d);
uint32_t hp_layout_split_mask(const hp_layout *l);
uint32_t hp_layout_partial_mask(const hp_layout *l);

#endif

/* routes.h -- layouts and shapes as small numbers, and the paths between them, each searched once.
 *
 * Placement asks for the same few paths thousands of times. A hp_routes belongs to one mesh and one price. Room: shard.
 */
#ifndef HP_SHARD_ROUTES_H
#define HP_SHARD_ROUTES_H

#include "shard/redist.h"

/* hp_leg is one move of a route; `to` is the number of the layout it ends in. */
typedef struct hp_leg {
    hp_coll kind;
    uint32_t atoms;
    int to;
    double cost;
} hp_leg;

typedef struct hp_route {
    bool possible; /* false: a value that is not partial would have to become partial */
    double cost;   /* seconds */
    int n;
    hp_leg *leg;
} hp_route;

/* hp_table is a hash set of equally long byte strings, numbered from 0. Zeroed = empty, but for `size`. */
typedef struct hp_table {
    size_t size;
    int n, cap, n_slots;
    char *key;
    int *slot;
} hp_table;

typedef struct hp_routes {
    const hp_mesh *m;
    const hp_price *price;
    hp_table layout, shape, route;
    int cap_routes;
    hp_route **found; /* by number in `route` */
    hp_arena arena;
} hp_routes;

/* hp_routes_init begins an empty book (mesh and price borrowed); hp_routes_fini frees it. */
void hp_routes_init(hp_routes *r, const hp_mesh *m, const hp_price *price);
void hp_routes_fini(hp_routes *r);

/* hp_routes_layout returns the number of a layout, hp_routes_at the layout of a number (valid until the next new layout). */
int hp_routes_layout(hp_routes *r, const hp_layout *l);
const hp_layout *hp_routes_at(const hp_routes *r, int layout);

/* hp_routes_shape returns the number of a shape (cuts are borrowed) with its bytes an element. */
int hp_routes_shape(hp_routes *r, const hp_shape *s, double elem_bytes);

/* hp_routes_find returns the cheapest route between two layouts of a shape; owned by the book. */
const hp_route *hp_routes_find(hp_routes *r, int shape, int from, int to);

#endif

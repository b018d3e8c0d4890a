/* routes.c -- interning by hash tables over plain bytes, so every key is cleaned of unused places first. */
#include "shard/routes.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

typedef struct shape_key {
    hp_shape shape;
    double elem_bytes;
} shape_key;

typedef struct route_key {
    int shape, from, to;
} route_key;

static int *slot_of(hp_table *t, const void *key)
{
    for (uint64_t at = hp_hash64(key, t->size);; at++) {
        int *s = &t->slot[at & (uint64_t)(t->n_slots - 1)];
        if (*s < 0 || memcmp(t->key + (size_t)*s * t->size, key, t->size) == 0)
            return s;
    }
}

static void grow(hp_table *t)
{
    t->n_slots = t->n_slots ? 2 * t->n_slots : 256;
    t->slot = hp_xrealloc(t->slot, (size_t)t->n_slots * sizeof *t->slot);
    memset(t->slot, -1, (size_t)t->n_slots * sizeof *t->slot);
    for (int i = 0; i < t->n; i++)
        *slot_of(t, t->key + (size_t)i * t->size) = i;
}

static int intern(hp_table *t, const void *key)
{
    if (2 * (t->n + 1) > t->n_slots)
        grow(t);
    int *s = slot_of(t, key);
    if (*s >= 0)
        return *s;
    t->key = hp_grow(t->key, &t->cap, t->n + 1, t->size);
    memcpy(t->key + (size_t)t->n * t->size, key, t->size);
    return *s = t->n++;
}

static void table_fini(hp_table *t)
{
    free(t->key);
    free(t->slot);
}

void hp_routes_init(hp_routes *r, const hp_mesh *m, const hp_price *price)
{
    *r = (hp_routes){.m = m, .price = price};
    r->layout.size = sizeof(hp_layout);
    r->shape.size = sizeof(shape_key);
    r->route.size = sizeof(route_key);
}

void hp_routes_fini(hp_routes *r)
{
    table_fini(&r->layout);
    table_fini(&r->shape);
    table_fini(&r->route);
    free(r->found);
    hp_arena_fini(&r->arena);
    *r = (hp_routes){0};
}

int hp_routes_layout(hp_routes *r, const hp_layout *l)
{
    hp_layout key = hp_layout_clean(l);
    return intern(&r->layout, &key);
}

const hp_layout *hp_routes_at(const hp_routes *r, int layout)
{
    return (const hp_layout *)(const void *)(r->layout.key + (size_t)layout * sizeof(hp_layout));
}

int hp_routes_shape(hp_routes *r, const hp_shape *s, double elem_bytes)
{
    shape_key key;
    memset(&key, 0, sizeof key);
    key.shape.nd = s->nd;
    for (int d = 0; d < s->nd; d++) {
        key.shape.size[d] = s->size[d];
        key.shape.cut[d] = s->cut[d];
    }
    key.elem_bytes = elem_bytes;
    return intern(&r->shape, &key);
}

static hp_route *search(hp_routes *r, const route_key *key)
{
    shape_key shape;
    memcpy(&shape, r->shape.key + (size_t)key->shape * sizeof shape, sizeof shape);
    hp_layout from = *hp_routes_at(r, key->from), to = *hp_routes_at(r, key->to);
    hp_route *found = hp_arena_alloc(&r->arena, sizeof *found);
    hp_path path;
    if (hp_redist_search(r->m, &shape.shape, shape.elem_bytes, &from, &to, r->price, &path, NULL))
        return found;
    *found = (hp_route){true, path.cost, path.n,
                        hp_arena_alloc(&r->arena, (size_t)path.n * sizeof(hp_leg) + 1)};
    for (int i = 0; i < path.n; i++) {
        const hp_move *mv = &path.move[i];
        double cost = hp_redist_price(r->m, &shape.shape, shape.elem_bytes, mv, r->price);
        found->leg[i] = (hp_leg){mv->kind, mv->atoms, hp_routes_layout(r, &mv->to), cost};
    }
    return found;
}

const hp_route *hp_routes_find(hp_routes *r, int shape, int from, int to)
{
    static const hp_route stay = {.possible = true};
    route_key key = {shape, from, to};
    if (from == to)
        return &stay;
    int known = r->route.n, i = intern(&r->route, &key);
    if (i == known) {
        r->found = hp_grow(r->found, &r->cap_routes, i + 1, sizeof(hp_route *));
        r->found[i] = search(r, &key);
    }
    return r->found[i];
}

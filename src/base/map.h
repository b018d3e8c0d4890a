/* map.h -- a hash map from strings to ints: names to indices, the one map every room needs. Room: base. */
#ifndef HP_BASE_MAP_H
#define HP_BASE_MAP_H

#include <stdbool.h>

/* hp_map maps copied strings to ints. Zeroed struct = empty. */
typedef struct hp_map {
    struct hp_map_slot *slot;
    int n, cap;
} hp_map;

/* hp_map_put sets `key` to `value`, replacing an older one. */
void hp_map_put(hp_map *m, const char *key, int value);

/* hp_map_get returns the value of `key`, or `missing`. */
int hp_map_get(const hp_map *m, const char *key, int missing);

/* hp_map_fini frees the map; it is empty again. */
void hp_map_fini(hp_map *m);

#endif

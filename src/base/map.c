/* map.c -- open addressing with linear probing over a power of two of slots, at most 3/4 full, so
 * that a probe always meets an empty slot. Nothing is ever removed singly: no tombstones. */
#include "base/map.h"

#include "base/mem.h"
#include "base/rng.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct hp_map_slot {
    char *key; /* owned; NULL = empty */
    uint64_t hash;
    int value;
};

/* The slot of `key`, or the empty one where it belongs. */
static struct hp_map_slot *find(const hp_map *m, const char *key, uint64_t hash)
{
    uint64_t mask = (uint64_t)m->cap - 1;
    uint64_t i = hash & mask;
    while (m->slot[i].key && (m->slot[i].hash != hash || strcmp(m->slot[i].key, key) != 0))
        i = (i + 1) & mask;
    return &m->slot[i];
}

static void grow(hp_map *m)
{
    hp_map bigger = {.n = m->n, .cap = m->cap ? m->cap * 2 : 16};
    bigger.slot = hp_xcalloc((size_t)bigger.cap, sizeof *bigger.slot);
    for (int i = 0; i < m->cap; i++)
        if (m->slot[i].key)
            *find(&bigger, m->slot[i].key, m->slot[i].hash) = m->slot[i];
    free(m->slot);
    *m = bigger;
}

void hp_map_put(hp_map *m, const char *key, int value)
{
    if (m->n >= m->cap / 4 * 3)
        grow(m);
    uint64_t hash = hp_hash_str(key);
    struct hp_map_slot *s = find(m, key, hash);
    if (!s->key) {
        *s = (struct hp_map_slot){.key = hp_xstrdup(key), .hash = hash};
        m->n++;
    }
    s->value = value;
}

int hp_map_get(const hp_map *m, const char *key, int missing)
{
    if (m->n == 0)
        return missing;
    const struct hp_map_slot *s = find(m, key, hp_hash_str(key));
    return s->key ? s->value : missing;
}

void hp_map_fini(hp_map *m)
{
    for (int i = 0; i < m->cap; i++)
        free(m->slot[i].key);
    free(m->slot);
    *m = (hp_map){0};
}

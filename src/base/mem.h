/* mem.h -- memory that never fails (it ends the process with a message instead), arenas, arrays.
 *
 * Running out of memory in a workbench is not a case a caller can handle better than ending: the
 * engine runs in a child of its own and the store is transactional, so nothing is lost. Room: base.
 */
#ifndef HP_BASE_MEM_H
#define HP_BASE_MEM_H

#include <stddef.h>

/* hp_xmalloc, hp_xcalloc, hp_xrealloc and hp_xstrdup are their namesakes; they end the process with
 * exit status 5 when memory is out. The caller owns the result and frees it with free(). */
void *hp_xmalloc(size_t bytes);
void *hp_xcalloc(size_t n, size_t size);
void *hp_xrealloc(void *p, size_t bytes);
char *hp_xstrdup(const char *s);

/* hp_grow returns `p` (an owned heap array of *cap elements of `size` bytes) with room for at least
 * `need` elements, doubling; *cap is updated and new elements are uninitialised. */
void *hp_grow(void *p, int *cap, int need, size_t size);

/* hp_arena hands out memory that dies all at once. Zeroed struct = empty arena. */
typedef struct hp_arena {
    struct hp_arena_block *head;
} hp_arena;

/* hp_arena_alloc returns `bytes` zeroed bytes aligned to 16, owned by the arena. */
void *hp_arena_alloc(hp_arena *a, size_t bytes);

/* hp_arena_strdup copies `s` into the arena. */
char *hp_arena_strdup(hp_arena *a, const char *s);

/* hp_arena_printf formats into the arena. */
char *hp_arena_printf(hp_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* hp_arena_fini frees everything the arena handed out; the arena is empty again afterwards. */
void hp_arena_fini(hp_arena *a);

#endif

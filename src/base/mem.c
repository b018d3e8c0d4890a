/* mem.c -- arena blocks form a list, newest first; a request larger than a block gets its own. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

struct hp_arena_block {
    struct hp_arena_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char data[];
};

static void die(size_t bytes)
{
    fprintf(stderr, "hpbench: out of memory (asked for %zu bytes)\n", bytes);
    exit(5);
}

void *hp_xmalloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        die(bytes);
    return p;
}

void *hp_xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        die(n * size);
    return p;
}

void *hp_xrealloc(void *p, size_t bytes)
{
    void *q = realloc(p, bytes ? bytes : 1);
    if (!q)
        die(bytes);
    return q;
}

char *hp_xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(hp_xmalloc(n), s, n);
}

void *hp_grow(void *p, int *cap, int need, size_t size)
{
    if (need <= *cap)
        return p;
    int n = *cap ? *cap : 8;
    while (n < need)
        n = n > INT32_MAX / 2 ? INT32_MAX : n * 2;
    *cap = n;
    return hp_xrealloc(p, (size_t)n * size);
}

void *hp_arena_alloc(hp_arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->head || a->head->cap - a->head->used < bytes) {
        size_t cap = bytes > BLOCK ? bytes : BLOCK;
        struct hp_arena_block *b = hp_xmalloc(sizeof *b + cap);
        *b = (struct hp_arena_block){.next = a->head, .used = 0, .cap = cap};
        a->head = b;
    }
    void *p = a->head->data + a->head->used;
    a->head->used += bytes;
    return memset(p, 0, bytes);
}

char *hp_arena_strdup(hp_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(hp_arena_alloc(a, n), s, n);
}

char *hp_arena_printf(hp_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = hp_arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

void hp_arena_fini(hp_arena *a)
{
    while (a->head) {
        struct hp_arena_block *b = a->head;
        a->head = b->next;
        free(b);
    }
}

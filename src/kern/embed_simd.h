/* embed_simd.h -- part of embed.h for every level. */
#ifndef HP_KERN_EMBED_SIMD_H
#define HP_KERN_EMBED_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* Adds columns c0 .. c1-1 of every dy[i] to its row of dw. */
HP_SIMD_DECLARE(void, hp_embed_columns,
                (int64_t n, int64_t width, int64_t c0, int64_t c1, int64_t lo, int64_t len,
                 const int32_t *token, hp_num dy, hp_num dw));

#endif

/* rope_simd.h -- part of rope.h for every level. */
#ifndef HP_KERN_ROPE_SIMD_H
#define HP_KERN_ROPE_SIMD_H

#include "kern/level.h"
#include "kern/num.h"

/* Rotates pairs i0 .. i0+n-1 of all heads of some rows; turns [n]: full circles a position. */
HP_SIMD_DECLARE(void, hp_rope_rows,
                (int64_t rows, int64_t heads, int64_t d, int64_t i0, int64_t n, const double *turns,
                 const int32_t *pos, bool inverse, hp_num x, hp_num y));

enum { HP_ROPE_PAIRS = 128 }; /* n at most */

#endif

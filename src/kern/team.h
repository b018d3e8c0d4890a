/* team.h -- a loop whose iterations an OpenMP team shares, and how much of the work one iteration takes.
 *
 * Iterations write disjoint outputs, so that their distribution never shows in the bits. Small work
 * stays on the calling thread: waking a team costs as much as touching some ten thousand numbers.
 */
#ifndef HP_KERN_TEAM_H
#define HP_KERN_TEAM_H

#include <stdint.h>

enum { HP_TEAM_BLOCK = 4096, HP_TEAM_COLUMNS = 64, HP_TEAM_WORK = 16384 };

#define HP_TEAM_PRAGMA(text) _Pragma(#text)

/* HP_TEAM_FOR(threads, work) goes before a for loop; `work` is the whole loop's elements. */
#define HP_TEAM_FOR(threads, work)                                                                 \
    HP_TEAM_PRAGMA(omp parallel for schedule(static) num_threads(threads)                          \
                       if ((threads) > 1 && (work) >= HP_TEAM_WORK))

/* hp_team_min returns the smaller of two numbers. */
static inline int64_t hp_team_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* hp_team_rows returns how many rows of `width` make a block, at least 1. */
static inline int64_t hp_team_rows(int64_t width)
{
    return width > 0 && width < HP_TEAM_BLOCK ? HP_TEAM_BLOCK / width : 1;
}

#endif

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

/* HP_TEAM_FOR(threads, work, for (...) ...) shares the loop's iterations among a team where `work`, the elements of the
 * whole loop, is worth it. Alone it is the plain loop: even a team of one costs OpenMP a microsecond and an allocation.
 * HP_TEAM_TASKS does so for `count` long iterations of unequal length. */
#define HP_TEAM_FOR(threads, work, ...)                                                            \
    do {                                                                                           \
        if ((threads) > 1 && (work) >= HP_TEAM_WORK) {                                             \
            HP_TEAM_PRAGMA(omp parallel for schedule(static) num_threads(threads))                 \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

#define HP_TEAM_TASKS(threads, count, ...)                                                         \
    do {                                                                                           \
        if ((threads) > 1 && (count) > 1) {                                                        \
            HP_TEAM_PRAGMA(omp parallel for schedule(dynamic, 1) num_threads(threads))             \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

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

/* level.h -- which instruction-set level the vectorised kernels use.
 *
 * Every *_simd.c is compiled once a level with HP_LEVEL = v2, v3, v4 (x86-64 psABI levels) or generic
 * (any other machine); its functions carry the level as a suffix. A kernel asks HP_SIMD_PICK for the one
 * that fits this machine. Levels differ in the last bits; within one level results are exact copies.
 * Room: kern.
 */
#ifndef HP_KERN_LEVEL_H
#define HP_KERN_LEVEL_H

#include <stdbool.h>

typedef enum hp_level { HP_LEVEL_GENERIC, HP_LEVEL_V2, HP_LEVEL_V3, HP_LEVEL_V4 } hp_level;

/* hp_level_name returns "generic", "v2", "v3" or "v4". */
const char *hp_level_name(hp_level l);

/* hp_level_has says whether this machine runs code of a level and the program contains it. */
bool hp_level_has(hp_level l);

/* hp_level_now returns the level in use: chosen before main by cpuid, or by HPBENCH_ISA where that names a
 * level this machine has. */
hp_level hp_level_now(void);

/* hp_level_choose chooses again from the environment; for tests, while no kernel runs. */
void hp_level_choose(void);

/* HP_SIMD(name) is the name with the level's suffix, inside a *_simd.c; HP_SIMD_DECLARE declares a function for
 * every level; HP_SIMD_PICK is the function of the level in use. */
#define HP_SIMD_JOIN(name, level) name##_##level
#define HP_SIMD_SUFFIX(name, level) HP_SIMD_JOIN(name, level)
#define HP_SIMD(name) HP_SIMD_SUFFIX(name, HP_LEVEL)

#if defined(__x86_64__)
#define HP_SIMD_DECLARE(type, name, args)                                                          \
    type name##_v2 args;                                                                           \
    type name##_v3 args;                                                                           \
    type name##_v4 args
#define HP_SIMD_PICK(name)                                                                         \
    (hp_level_now() == HP_LEVEL_V4   ? name##_v4                                                   \
     : hp_level_now() == HP_LEVEL_V3 ? name##_v3                                                   \
                                     : name##_v2)
#else
#define HP_SIMD_DECLARE(type, name, args) type name##_generic args
#define HP_SIMD_PICK(name) (name##_generic)
#endif

#endif

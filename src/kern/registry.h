/* registry.h -- the kernels there are: a row a variant, with the error a variant may have.
 *
 * Variants of a kernel are its plain reference and one vectorised version a level; the matrix product also names
 * the library it was linked with. `tolerance` bounds max |x - reference| / max |reference| for float storage;
 * with bf16 storage a result may also be off by one rounding, 2^-7. Formulas for flops and bytes live in the op
 * room. Room: kern.
 */
#ifndef HP_KERN_REGISTRY_H
#define HP_KERN_REGISTRY_H

#include "kern/level.h"

typedef struct hp_kern_row {
    const char *name;    /* "gemm", "attention", ... */
    const char *variant; /* "reference", "v2", "v3", "v4", "generic", "onednn", "openblas" */
    hp_level level;      /* what the machine must have */
    double tolerance;    /* 0: exact */
} hp_kern_row;

/* hp_kern_row_at fills *row with row i of the registry, in a fixed order; false beyond the last. */
bool hp_kern_row_at(int i, hp_kern_row *row);

/* hp_kern_tolerance returns the tolerance of a kernel's vectorised variants, -1 for an unknown name. */
double hp_kern_tolerance(const char *name);

#endif

/* init.h -- how parameters start: a value depends on seed, tensor name and global element index alone, so that every split
 * and the reference interpreter begin with the same model. Room: op. */
#ifndef HP_OP_INIT_H
#define HP_OP_INIT_H

#include "op/op.h"

/* hp_init_fill writes the box of tensor `name` (f32 or bf16): zeros, ones, or normal numbers times `std` (base/rng.h). HP_INIT_NONE writes
 * zeros too. Elements are numbered row-major over the full tensor. */
void hp_init_fill(const hp_operand *box, const char *name, hp_init init, float std, uint64_t seed);

#endif

/* rope.h -- rotary position embedding (Su et al., arXiv 2104.09864), pairs (i, i + d/2) as Llama's
 * weights in Hugging Face's form expect.
 *
 * y[i] = x[i] cos a - x[i+d/2] sin a, y[i+d/2] = x[i+d/2] cos a + x[i] sin a,
 * a = pos theta^(-2i/d), i < d/2. `inverse` turns the other way: that is the gradient.
 */
#ifndef HP_KERN_ROPE_H
#define HP_KERN_ROPE_H

#include "kern/num.h"

/* hp_rope rotates x [rows, heads, d] into y by pos [rows]; d is even; y may be x. */
void hp_rope(int64_t rows, int64_t heads, int64_t d, const int32_t *pos, double theta, bool inverse,
             hp_num x, hp_num y, int threads);
void hp_rope_ref(int64_t rows, int64_t heads, int64_t d, const int32_t *pos, double theta,
                 bool inverse, hp_num x, hp_num y);

#endif

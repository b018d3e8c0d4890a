/* act.h -- activation functions and their gradients, elementwise over `n`.
 *
 * silu(x) = x / (1 + exp(-x)); swiglu(g, u) = silu(g) u (Shazeer, arXiv 2002.05202); gelu is the tanh
 * approximation that GPT-2 uses: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (arXiv 1606.08415).
 * Gradients take the forward input x, not the output. Outputs may be one of the inputs.
 */
#ifndef HP_KERN_ACT_H
#define HP_KERN_ACT_H

#include "kern/num.h"

/* hp_silu writes y = silu(x); hp_silu_dx writes dx = dy silu'(x). */
void hp_silu(int64_t n, hp_num x, hp_num y, int threads);
void hp_silu_ref(int64_t n, hp_num x, hp_num y);
void hp_silu_dx(int64_t n, hp_num x, hp_num dy, hp_num dx, int threads);
void hp_silu_dx_ref(int64_t n, hp_num x, hp_num dy, hp_num dx);

/* hp_gelu writes y = gelu(x); hp_gelu_dx writes dx = dy gelu'(x). */
void hp_gelu(int64_t n, hp_num x, hp_num y, int threads);
void hp_gelu_ref(int64_t n, hp_num x, hp_num y);
void hp_gelu_dx(int64_t n, hp_num x, hp_num dy, hp_num dx, int threads);
void hp_gelu_dx_ref(int64_t n, hp_num x, hp_num dy, hp_num dx);

/* hp_swiglu writes y = silu(gate) up; hp_swiglu_dx writes dgate = dy up silu'(gate) and
 * dup = dy silu(gate), each unless its pointer is NULL. */
void hp_swiglu(int64_t n, hp_num gate, hp_num up, hp_num y, int threads);
void hp_swiglu_ref(int64_t n, hp_num gate, hp_num up, hp_num y);
void hp_swiglu_dx(int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate, hp_num dup,
                  int threads);
void hp_swiglu_dx_ref(int64_t n, hp_num gate, hp_num up, hp_num dy, hp_num dgate, hp_num dup);

#endif

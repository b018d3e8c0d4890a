/* embed.h -- rows of a table looked up by token, and the gradient of the table.
 *
 * The local table holds rows lo .. lo+len-1 of the vocabulary, [len, width]; a token outside gives a
 * row of zeros, so that the parts of a split vocabulary add up. Learned positions are the same look-up.
 */
#ifndef HP_KERN_EMBED_H
#define HP_KERN_EMBED_H

#include "kern/num.h"

/* hp_embed writes y[i] = table[token[i] - lo], [n, width]. */
void hp_embed(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token, hp_num table,
              hp_num y, int threads);
void hp_embed_ref(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token,
                  hp_num table, hp_num y);

/* hp_embed_dw sums dy [n, width] into the rows of dw [len, width] that the tokens name, in the order
 * of i; rows without a token become 0 unless `accumulate`. */
void hp_embed_dw(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token, hp_num dy,
                 hp_num dw, bool accumulate, int threads);
void hp_embed_dw_ref(int64_t n, int64_t width, int64_t lo, int64_t len, const int32_t *token,
                     hp_num dy, hp_num dw, bool accumulate);

#endif

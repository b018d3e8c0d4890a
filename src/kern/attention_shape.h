/* attention_shape.h -- what an attention call is told besides its tensors; see attention.h. */
#ifndef HP_KERN_ATTENTION_SHAPE_H
#define HP_KERN_ATTENTION_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_attention_shape {
    int64_t b, s, t, k, g, d, dv;
    float scale;
    bool causal;
    const int32_t *pos_q, *pos_k; /* [b, s], [b, t]; read when causal */
    const int32_t *doc_q, *doc_k; /* [b, s], [b, t]; both or neither */
} hp_attention_shape;

#endif

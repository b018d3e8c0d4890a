/* data.h -- what a model is trained on: the bytes of a file, or made-up tokens, one byte a token.
 *
 * Sequence number i of a step (i counts all sequences of the global batch: microbatch times batch plus row) starts at a place of the
 * text that depends on (seed, step, i) alone, so that any split sees the same data. hp_corpus_fill is an hp_fill_fn and knows the inputs
 *   tokens [batch seq]   the text;                        positions [batch seq]  0, 1, ... (within a document);
 *   targets [batch seq]  the next token, -100 = ignored;  docs [batch seq]       which document of a packed sequence;
 *   targets.all [micro batch seq]  the targets of all microbatches.
 * `zigzag` ranks: the sequence is cut into 2 x zigzag chunks and its order permuted to 0, last, 1, last but one, ..., so that equal consecutive
 * pieces of the permuted sequence bear equal causal work (DESIGN.md: a permutation in the loader, boxes stay intervals). A length that
 * 2 x zigzag does not divide has short or empty last chunks. Room: op.
 */
#ifndef HP_OP_DATA_H
#define HP_OP_DATA_H

#include "op/op.h"

typedef struct hp_data_options {
    uint64_t seed;
    int64_t
        vocab; /* tokens are bytes modulo this, at most 256 different; made-up ones use all of it */
    int zigzag;    /* context-parallel ranks to balance for; 0 or 1: natural order */
    int documents; /* documents packed in a sequence, at random cuts; 0 or 1: one */
    double ignore; /* share of targets that are ignored, at random; 0 none */
} hp_data_options;

typedef struct hp_corpus {
    hp_data_options opt;
    unsigned char *text; /* NULL: made-up tokens */
    int64_t bytes;
} hp_corpus;

/* hp_corpus_open reads the whole file `path` (NULL: made-up tokens). HP_EINPUT names a file that cannot be read or is empty, or a wrong option. */
hp_err hp_corpus_open(hp_corpus *c, const char *path, const hp_data_options *opt, hp_errmsg *e);

/* hp_corpus_fini frees the text; zeroed = nothing. */
void hp_corpus_fini(hp_corpus *c);

/* hp_corpus_fill fills a box (ctx is the hp_corpus). HP_EINPUT: an input that the corpus has not. */
hp_err hp_corpus_fill(void *ctx, const char *input, int64_t step, int64_t micro,
                      const hp_operand *box, hp_errmsg *e);

#endif

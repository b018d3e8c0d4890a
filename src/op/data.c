/* data.c -- every element is computed from its global place alone; nothing is kept between calls. */
#include "op/data.h"

#include "base/mem.h"
#include "base/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IGNORED = -100 };
enum { KEY_START = 1, KEY_TOKEN, KEY_CUT, KEY_IGNORE }; /* streams of one sequence */

static hp_err check_options(const hp_data_options *o, hp_errmsg *e)
{
    if (o->vocab < 1)
        return hp_fail(e, HP_EINPUT, "data: a vocabulary of %lld tokens; at least 1",
                       (long long)o->vocab);
    if (!(o->ignore >= 0 && o->ignore <= 1))
        return hp_fail(e, HP_EINPUT, "data: a share of %g ignored targets; between 0 and 1",
                       o->ignore);
    if (o->zigzag < 0 || o->documents < 0)
        return hp_fail(e, HP_EINPUT,
                       "data: zigzag over %d ranks and %d documents; neither can be negative",
                       o->zigzag, o->documents);
    return HP_OK;
}

static hp_err read_all(hp_corpus *c, FILE *in, const char *path, hp_errmsg *e)
{
    size_t cap = 1 << 20, n = 0, got;
    c->text = hp_xmalloc(cap);
    while ((got = fread(c->text + n, 1, cap - n, in)) > 0) {
        n += got;
        if (n == cap)
            c->text = hp_xrealloc(c->text, cap *= 2);
    }
    c->bytes = (int64_t)n;
    if (ferror(in))
        return hp_fail(e, HP_EINPUT, "data: %s cannot be read: %s", path, strerror(errno));
    return n ? HP_OK : hp_fail(e, HP_EINPUT, "data: %s is empty", path);
}

hp_err hp_corpus_open(hp_corpus *c, const char *path, const hp_data_options *opt, hp_errmsg *e)
{
    *c = (hp_corpus){.opt = *opt};
    hp_err err = check_options(opt, e);
    if (err || !path)
        return err;
    FILE *in = fopen(path, "rb");
    if (!in)
        return hp_fail(e, HP_EINPUT, "data: %s cannot be opened: %s", path, strerror(errno));
    err = read_all(c, in, path, e);
    fclose(in);
    if (err)
        hp_corpus_fini(c);
    return err;
}

void hp_corpus_fini(hp_corpus *c)
{
    free(c->text);
    c->text = NULL;
    c->bytes = 0;
}

/* One sequence of a step. */
typedef struct seq {
    const hp_corpus *c;
    uint64_t stream;
    int64_t length, start;
} seq;

static uint64_t draw(const seq *s, int key, int64_t i)
{
    return hp_rng_u64(hp_rng_key(s->stream, (uint64_t)key), (uint64_t)i);
}

static seq find_seq(const hp_corpus *c, int64_t step, int64_t index, int64_t length)
{
    seq s = {c, hp_rng_key(hp_rng_key(c->opt.seed, (uint64_t)step), (uint64_t)index), length, 0};
    if (c->text) {
        int64_t places = c->bytes > length ? c->bytes - length
                                           : 1; /* a text too short is read round and round */
        s.start = (int64_t)(draw(&s, KEY_START, 0) % (uint64_t)places);
    }
    return s;
}

/* Place in the natural order of element j of the permuted sequence. Where 2 x ranks does not divide the length, the last chunks are short or empty. */
static int64_t natural(const seq *s, int64_t j)
{
    int64_t ranks = s->c->opt.zigzag;
    if (ranks <= 1)
        return j;
    int64_t chunk = (s->length + 2 * ranks - 1) / (2 * ranks);
    for (int64_t at = s->length % (2 * ranks) ? 0 : j / chunk, left = j - at * chunk;; at++) {
        int64_t first = (at % 2 ? 2 * ranks - 1 - at / 2 : at / 2) * chunk;
        int64_t len = s->length - first < chunk ? s->length - first : chunk;
        if (left < len)
            return first + left;
        left -= len > 0 ? len : 0;
    }
}

static int32_t token(const seq *s, int64_t i)
{
    uint64_t v = s->c->text ? s->c->text[(s->start + i) % s->c->bytes] : draw(s, KEY_TOKEN, i);
    return (int32_t)(v % (uint64_t)s->c->opt.vocab);
}

/* The document of place i, and where it starts: cuts are drawn independently, a place belongs to the last one before it. */
static int32_t document(const seq *s, int64_t i, int64_t *first)
{
    int32_t doc = 0;
    *first = 0;
    for (int k = 1; k < s->c->opt.documents; k++) {
        int64_t cut = (int64_t)(draw(s, KEY_CUT, k) % (uint64_t)s->length);
        if (cut > i)
            continue;
        doc++;
        *first = cut > *first ? cut : *first;
    }
    return doc;
}

static int32_t target(const seq *s, int64_t i)
{
    int64_t first;
    bool ends = i + 1 < s->length && document(s, i, &first) != document(s, i + 1, &first);
    float chance = hp_rng_f32(hp_rng_key(s->stream, KEY_IGNORE), (uint64_t)i);
    return ends || chance < (float)s->c->opt.ignore ? IGNORED : token(s, i + 1);
}

static int32_t position(const seq *s, int64_t i)
{
    int64_t first;
    document(s, i, &first);
    return (int32_t)(i - first);
}

static int32_t document_id(const seq *s, int64_t i)
{
    int64_t first;
    return document(s, i, &first);
}

typedef int32_t value_fn(const seq *s, int64_t i);

static value_fn *find_input(const char *name)
{
    static const struct {
        const char *name;
        value_fn *fn;
    } known[] = {{"tokens", token},
                 {"targets", target},
                 {"targets.all", target},
                 {"positions", position},
                 {"docs", document_id}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].fn;
    return NULL;
}

hp_err hp_corpus_fill(void *ctx, const char *input, int64_t step, int64_t micro,
                      const hp_operand *box, hp_errmsg *e)
{
    const hp_corpus *c = ctx;
    value_fn *fn = find_input(input);
    if (!fn || box->dtype != HP_I32 || box->nd < 2 || box->nd > 3)
        return hp_fail(e, HP_EINPUT,
                       "the text has no input %s with %d dimensions; it has tokens, targets, "
                       "positions and docs "
                       "[batch seq], and targets.all [micro batch seq], all i32",
                       input, box->nd);
    int b = box->nd - 2, t = box->nd - 1;
    int64_t length = box->full[t], n_micro = box->nd == 3 ? box->len[0] : 1,
            first = box->nd == 3 ? box->lo[0] : micro;
    int32_t *to = box->data;
    for (int64_t m = first; m < first + n_micro; m++)
        for (int64_t row = box->lo[b]; row < box->lo[b] + box->len[b]; row++) {
            seq s = find_seq(c, step, m * box->full[b] + row, length);
            for (int64_t j = box->lo[t]; j < box->lo[t] + box->len[t]; j++)
                *to++ = fn(&s, natural(&s, j));
        }
    return HP_OK;
}

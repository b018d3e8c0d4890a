#include "op/data.h"

#include "tap.h"

#include <unistd.h>

enum { B = 3, S = 24, M = 2 };

static hp_errmsg e;

static hp_operand box3(int32_t *to, int64_t m, int64_t b, int64_t nb, int64_t s, int64_t ns)
{
    return (hp_operand){.data = to,
                        .dtype = HP_I32,
                        .nd = 3,
                        .lo = {m, b, s},
                        .len = {1, nb, ns},
                        .full = {M, B, S}};
}

static hp_operand box(int32_t *to, int64_t b, int64_t nb, int64_t s, int64_t ns)
{
    return (hp_operand){
        .data = to, .dtype = HP_I32, .nd = 2, .lo = {b, s}, .len = {nb, ns}, .full = {B, S}};
}

static void whole(hp_corpus *c, const char *name, int64_t step, int64_t micro, int32_t *to)
{
    hp_operand o = box(to, 0, B, 0, S);
    if (hp_corpus_fill(c, name, step, micro, &o, &e))
        bail("%s", e.text);
}

/* Any split of any input gives what the whole gives. */
static void check_boxes(hp_corpus *c, const char *name)
{
    int32_t all[B * S], part[B * S];
    int wrong = 0;
    for (int64_t micro = 0; micro < M; micro++) {
        whole(c, name, 3, micro, all);
        for (int64_t b = 0; b < B; b++)
            for (int64_t s = 0; s < S; s += 7) {
                int64_t n = s + 7 > S ? S - s : 7;
                hp_operand o = box(part, b, 1, s, n);
                hp_corpus_fill(c, name, 3, micro, &o, &e);
                wrong += memcmp(part, all + b * S + s, (size_t)n * sizeof *part) != 0;
            }
        hp_operand empty = box(NULL, 1, 0, 2, 3);
        wrong += hp_corpus_fill(c, name, 3, micro, &empty, &e) != HP_OK;
    }
    is_int(wrong, 0, "boxes of %s are pieces of the whole", name);
}

static void check_text(const char *path)
{
    hp_corpus c;
    int32_t x[B * S], y[B * S], z[B * S];
    ok(hp_corpus_open(&c, path, &(hp_data_options){.seed = 1, .vocab = 256}, &e) == HP_OK,
       "a file is opened");
    whole(&c, "tokens", 0, 0, x), whole(&c, "targets", 0, 0, y);
    int wrong = 0, off = 0;
    for (int i = 0; i < B * S; i++)
        wrong += i % S + 1 < S && y[i] != x[i + 1];
    is_int(wrong, 0, "targets are the next tokens");
    for (int i = 0; i + 1 < S; i++)
        off += x[i + 1] != (x[i] == 'z' ? 'a' : x[i] + 1);
    is_int(off, 0, "tokens are the bytes of the text in order");
    whole(&c, "tokens", 0, 0, z);
    ok(memcmp(x, z, sizeof x) == 0, "the same step reads the same text");
    whole(&c, "tokens", 1, 0, z);
    ok(memcmp(x, z, sizeof x) != 0, "another step reads elsewhere");
    whole(&c, "tokens", 0, 1, z);
    ok(memcmp(x, z, sizeof x) != 0, "another microbatch too");
    whole(&c, "positions", 0, 0, z);
    ok(z[0] == 0 && z[S - 1] == S - 1 && z[S] == 0, "positions count up in every sequence");
    whole(&c, "targets", 0, 1, z);
    hp_operand o = box3(y, 1, 0, B, 0, S);
    ok(hp_corpus_fill(&c, "targets.all", 0, -1, &o, &e) == HP_OK && memcmp(y, z, sizeof y) == 0,
       "targets.all has every microbatch's targets");
    check_boxes(&c, "tokens"), check_boxes(&c, "targets"), check_boxes(&c, "positions");
    is_int(hp_corpus_fill(&c, "pixels", 0, 0, &o, &e), HP_EINPUT, "an unknown input is refused: %s",
           e.text);
    hp_corpus_fini(&c);
}

static void check_zigzag(void)
{
    hp_corpus c, plain;
    int32_t pos[B * S], x[B * S], y[B * S], bad = 0;
    hp_corpus_open(&plain, NULL, &(hp_data_options){.seed = 1, .vocab = 50}, &e);
    hp_corpus_open(&c, NULL, &(hp_data_options){.seed = 1, .vocab = 50, .zigzag = 3}, &e);
    whole(&c, "positions", 0, 0, pos);
    const int32_t first[] = {0, 20, 4, 16, 8, 12};
    for (int i = 0; i < 6; i++)
        bad += pos[4 * i] != first[i] || pos[4 * i + 3] != first[i] + 3;
    is_int(bad, 0, "zigzag over 3 ranks pairs head and tail");
    whole(&c, "tokens", 0, 0, x), whole(&plain, "tokens", 0, 0, y);
    for (int i = 0; i < B * S; i++)
        bad += x[i] != y[i / S * S + pos[i]];
    is_int(bad, 0, "tokens are permuted as positions say");
    whole(&c, "targets", 0, 0, x), whole(&plain, "targets", 0, 0, y);
    for (int i = 0; i < B * S; i++)
        bad += x[i] != y[i / S * S + pos[i]];
    is_int(bad, 0, "targets too");
    check_boxes(&c, "positions");
    for (c.opt.zigzag = 4; c.opt.zigzag < 30; c.opt.zigzag++) {
        int64_t seen[S] = {0};
        whole(&c, "positions", 0, 0, pos);
        for (int i = 0; i < S; i++)
            seen[pos[i]]++;
        for (int i = 0; i < S; i++)
            bad += seen[i] != 1;
    }
    is_int(bad, 0, "where it does not divide, last chunks are short or empty and every place comes once");
    check_boxes(&c, "positions");
    hp_corpus_fini(&c), hp_corpus_fini(&plain);
}

static void check_packed(void)
{
    hp_corpus c;
    int32_t docs[B * S], pos[B * S], target[B * S], bad = 0, cuts = 0, ignored = 0;
    hp_corpus_open(&c, NULL, &(hp_data_options){.seed = 4, .vocab = 300, .documents = 4}, &e);
    whole(&c, "docs", 0, 0, docs), whole(&c, "positions", 0, 0, pos),
        whole(&c, "targets", 0, 0, target);
    for (int i = 0; i < B * S; i++) {
        bool starts = i % S == 0 || docs[i] != docs[i - 1];
        cuts += starts && i % S;
        bad += pos[i] != (starts ? 0 : pos[i - 1] + 1) || (i % S && docs[i] < docs[i - 1]);
        bool ends = i % S + 1 < S && docs[i] != docs[i + 1];
        bad += ends != (target[i] == -100);
    }
    ok(bad == 0 && cuts >= 3,
       "documents are packed: positions restart, a document's last token has no target");
    check_boxes(&c, "docs");
    hp_corpus_fini(&c);
    hp_corpus_open(&c, NULL, &(hp_data_options){.seed = 4, .vocab = 300, .ignore = 0.5}, &e);
    whole(&c, "targets", 0, 0, target);
    for (int i = 0; i < B * S; i++) {
        ignored += target[i] == -100;
        bad += target[i] < -100 || target[i] >= 300;
    }
    ok(ignored > B * S / 4 && ignored < B * S * 3 / 4, "half of the targets are ignored");
    is_int(bad, 0, "made-up tokens are below the vocabulary");
    check_boxes(&c, "targets");
    hp_corpus_fini(&c);
}

static void check_refusals(const char *path)
{
    hp_corpus c;
    hp_data_options good = {.vocab = 10},
                    bad[] = {{.vocab = 0}, {.vocab = 2, .ignore = 2}, {.vocab = 2, .zigzag = -1}};
    for (int i = 0; i < 3; i++)
        is_int(hp_corpus_open(&c, NULL, &bad[i], &e), HP_EINPUT, "a wrong option is refused: %s",
               e.text);
    is_int(hp_corpus_open(&c, "/nonexistent/text", &good, &e), HP_EINPUT,
           "a missing file is refused: %s", e.text);
    is_int(hp_corpus_open(&c, "/", &good, &e), HP_EINPUT, "a folder is refused: %s", e.text);
    FILE *f = fopen(path, "w");
    fclose(f);
    is_int(hp_corpus_open(&c, path, &good, &e), HP_EINPUT, "an empty file is refused: %s", e.text);
    f = fopen(path, "w");
    fputs("abc", f);
    fclose(f);
    int32_t x[B * S];
    ok(hp_corpus_open(&c, path, &good, &e) == HP_OK, "a text shorter than a sequence is opened");
    whole(&c, "tokens", 0, 0, x);
    ok(x[0] == 'a' % 10 && x[3] == x[0] && x[4] == 'b' % 10, "and read round and round");
    hp_corpus_fini(&c);
    hp_corpus_fini(&c);
}

int main(void)
{
    char path[] = "/tmp/hp-data-XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    for (int i = 0; i < 1000; i++)
        fputc('a' + i % 26, f);
    fclose(f);
    check_text(path);
    check_zigzag();
    check_packed();
    check_refusals(path);
    remove(path);
    return done_testing();
}

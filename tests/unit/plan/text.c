#include "plan/text.h"
#include "base/clock.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* Two programs with everything the form knows: cuts, uneven atoms, views, quotes, routes, absent operands, every kind of task. */
static const char *const whole =
    "hpbench-plan 1\n"
    "model \"tiny gpt\" cluster host strategy - hash 00000000deadbeef\n"
    "sizes devices 5 batch 4 micro 2 global 8 seq 16 vocab 256 zigzag 2\n"
    "budget 1073741824 flops 1234567.125 0.10000000000000001\n"
    "cut balanced\n"
    "cut sizes 3 2 11\n"
    "program stage0 stage 0 frames 2 host 64 scopes 4096 64 512 1024\n"
    "mesh first 0 ranks 4 atoms 2 2+\n"
    "axis tp \"\" tp size 4 atoms 0 1\n"
    "axis ep moe ep size 2 atoms 1\n"
    "stream compute compute -\n"
    "stream tp transfer tp\n"
    "stream h2d transfer -\n"
    "buffer tokens tokens i32 activations frame hbm bytes 256 at 0 shape 4:0 16/1\n"
    "buffer x.w x.w f32 params persist hbm bytes 4096 at 0 init normal 0.0199999996 shape 16/0:0.1 "
    "64\n"
    "buffer \"x y\" - bf16 workspace run hbm bytes 64 at 0 shape ~0:sum ~1:max\n"
    "buffer x.xe - f32 activations run hbm bytes 128 at 64 alias \"x y\" route x.route 8 shape 4:0 "
    "16 8:1 4\n"
    "buffer x.route - i32 activations frame hbm bytes 256 at 256 shape 4:0 16 2\n"
    "buffer far - f32 optimizer persist host bytes 64 at 0 shape 16\n"
    "template F chunk 0\n"
    " load data compute always : -> tokens\n"
    " op x/fwd compute rest matmul x accumulate recompute @ heads 4 @ \"k v\" 0.5 : tokens - x.w "
    "-> \"x y\"\n"
    " coll x>all-to-all tp last all-to-all 3 \"x: batch over tp -> experts, for \\\"x\\\"\\x0a\" : "
    "x.xe -> x.xe\n"
    " send \"x send\" tp always peer 1 edge 7 - : x.w ->\n"
    "template O chunk 0\n"
    " copy c h2d always - : far -> x.w\n"
    "entry 0 micro 0 frame 0 first\n"
    "entry 0 micro 1 frame 1 last\n"
    "entry 1 micro -1 frame -1\n"
    "program \"\" stage 1 frames 0 host 0 scopes 64 0 0 0\n"
    "mesh first 4 ranks 1 atoms\n"
    "stream compute compute -\n"
    "buffer in x f32 activations persist hbm bytes 64 at 0 shape 16\n"
    "template F chunk 1\n"
    " recv r compute always peer 0 edge 7 - : -> in\n"
    "entry 0 micro 0 frame -1 first last\n"
    "end\n";

static char *print(const hp_plan *p)
{
    hp_str s = {0};
    hp_plan_print(p, &s);
    return hp_str_take(&s);
}

static void test_round_trip(void)
{
    hp_plan *p = NULL;
    hp_errmsg e = {0};
    is_int(hp_plan_parse(whole, &p, &e), HP_OK, "a plan with everything is read");
    if (!p) {
        diag("%s", e.text);
        return;
    }
    char *again = print(p);
    is_str(again, whole, "and printed byte for byte as it was");
    free(again);
    const hp_program *g = &p->program[0];
    is_int(p->n_programs, 2, "both programs are there");
    is_int(g->buffer[3].route, 4, "a route may be named before its buffer");
    is_int(g->tmpl[0].task[1].buf[1], -1, "an absent operand is -1");
    is_int(g->tmpl[0].task[1].n_in, 3, "operands before the arrow are inputs");
    is_str(g->tmpl[0].task[2].why, "x: batch over tp -> experts, for \"x\"\n",
           "quotes and controls survive");
    ok(g->buffer[1].shape.cut[0] == &p->cut[0], "a cut points into the plan");
    ok(p->strategy == NULL && p->program[1].name && !*p->program[1].name,
       "absent and empty strings differ");
    ok(g->mesh.joined[1] && !g->mesh.joined[0], "joined atoms are marked");
    hp_plan_free(p);
}

/* Reads `whole` with the first occurrence of `from` replaced. */
static void refused(const char *from, const char *to, const char *expect, const char *name)
{
    const char *at = strstr(whole, from);
    hp_str s = {0};
    hp_plan *p = NULL;
    hp_errmsg e = {0};
    hp_str_put(&s, whole, (size_t)(at - whole));
    hp_str_add(&s, "%s%s", to, at + strlen(from));
    hp_err rc = hp_plan_parse(s.s, &p, &e);
    if (!ok(rc == HP_EINPUT && strstr(e.text, expect), "%s", name))
        diag("rc %d: %s (expected: %s)", (int)rc, e.text, expect);
    if (!rc)
        hp_plan_free(p);
    hp_str_fini(&s);
}

static void test_refusals(void)
{
    refused("hpbench-plan 1", "hpbench-plan 2", "line 1: version \"2\"", "another version");
    refused("devices 5", "devices five", "line 3: devices \"five\"", "a word for a number");
    refused("scopes 4096", "scopes -4096", "an integer from 0", "a negative size");
    refused("shape 4:0 16/1", "shape 4:0 16/2", "line 14: cut \"2\"", "a cut that is not there");
    refused("16/0:0.1", "16/0:0.2", "line 15: atom \"2\"", "an atom that is not there");
    refused("~0:sum", "~0:product", "reduction \"product\"", "an unknown reduction");
    refused("tokens - x.w ->", "tokens - x.v ->", "operand \"x.v\"",
            "an operand that is not there");
    refused("compute rest matmul", "computer rest matmul", "stream \"computer\"",
            "a stream that is not there");
    refused("buffer far", "buffer x.w", "buffer \"x.w\"", "a buffer named twice");
    refused("route x.route", "route x.rout", "route of a buffer \"x.rout\"",
            "a route that is not there");
    refused("route x.route", "route x.w", "route of a buffer \"x.w\"",
            "a route that is no routing table");
    refused("entry 1 micro", "entry 2 micro", "schedule of program \"stage0\"",
            "an entry of no template");
    refused("ranks 4 atoms 2 2+", "ranks 4 atoms 2 3+", "line 8: mesh",
            "a mesh whose atoms do not make its ranks");
    refused("alias \"x y\"", "alias far", "alias of a buffer \"far\"", "an alias that comes later");
    refused(": x.xe -> x.xe", ": x.xe ->", "operands of \"x>all-to-all\"",
            "a collective without a destination");
    refused("end\n", "", "legal is a last line \"end\"", "a text cut short");
    refused("\"tiny gpt\"", "\"tiny gpt", "quoted word", "a quote that never closes");
    refused(" last\n", " least\n", "word \"least\"", "an unknown word at a line's end");
    refused("program stage0", "prog stage0", "line \"prog\"", "an unknown line");
}

/* Every prefix of the text is refused and nothing is read past its end. */
static void test_prefixes(void)
{
    size_t n = strlen(whole);
    int accepted = 0;
    for (size_t i = 0; i + 4 < n; i++) {
        char *s = strndup(whole, i);
        hp_plan *p = NULL;
        hp_errmsg e;
        if (hp_plan_parse(s, &p, &e) == HP_OK) {
            accepted++;
            hp_plan_free(p);
        }
        free(s);
    }
    is_int(accepted, 0, "no prefix of a plan is a plan");
}

static void test_speed(void)
{
    hp_str s = {0};
    hp_str_add(&s, "hpbench-plan 1\nmodel m cluster c strategy s hash 0000000000000001\nprogram p "
                   "stage 0 frames 1 host 0 scopes 0 0 0 0\n"
                   "mesh first 0 ranks 1 atoms\nstream compute compute -\n");
    for (int i = 0; i < 50000; i++)
        hp_str_add(&s, "buffer layers.%d.attn.q - f32 activations run hbm bytes 64 at 0 shape 16\n",
                   i);
    hp_str_add(&s, "template F chunk 0\n");
    for (int i = 1; i < 50000; i++)
        hp_str_add(&s,
                   " op layers.%d.attn.q/fwd compute always add - : layers.%d.attn.q -> "
                   "layers.%d.attn.q\n",
                   i, i - 1, i);
    hp_str_add(&s, "entry 0 micro 0 frame 0 first last\nend\n");
    hp_plan *p = NULL;
    hp_errmsg e = {0};
    int64_t t0 = hp_now_ns();
    hp_err rc = hp_plan_parse(s.s, &p, &e);
    int64_t t1 = hp_now_ns();
    is_int(rc, HP_OK, "a plan of 100,000 lines is read");
    if (!rc) {
        char *again = print(p);
        diag("100,000 lines: read in %.1f ms, printed in %.1f ms", (double)(t1 - t0) / 1e6,
             (double)(hp_now_ns() - t1) / 1e6);
        is_int(p->program[0].tmpl[0].n_tasks, 49999, "with every task");
        free(again);
        hp_plan_free(p);
    }
    hp_str_fini(&s);
}

int main(void)
{
    test_round_trip();
    test_refusals();
    test_prefixes();
    test_speed();
    return done_testing();
}

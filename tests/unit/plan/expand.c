#include "plan/expand.h"
#include "plan/text.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "hpbench-plan 1\nmodel m cluster c strategy s hash 0000000000000001\nprogram p stage 0 "       \
    "frames 2 host 0 scopes 128 0 128 128\n"                                                       \
    "mesh first 0 ranks 1 atoms\nstream c compute -\nstream t transfer -\nstream u transfer -\n"

static hp_plan *parse(const char *text)
{
    hp_plan *p = NULL;
    hp_errmsg e = {0};
    if (hp_plan_parse(text, &p, &e)) {
        diag("%s", e.text);
        exit(1);
    }
    return p;
}

/* "name@micro<prev:dep,dep;" of every instance. */
static char *show(const hp_plan *p)
{
    const hp_program *g = &p->program[0];
    hp_expansion x = {0};
    hp_str s = {0};
    hp_expand(g, &x);
    for (int i = 0; i < x.n; i++) {
        hp_str_add(&s, "%s%s@%d<%d", i ? " " : "", hp_inst_task(g, &x.inst[i])->name,
                   hp_inst_entry(g, &x.inst[i])->micro, x.inst[i].prev);
        for (int k = 0; k < x.inst[i].n_deps; k++)
            hp_str_add(&s, "%c%d", k ? ',' : ':', x.dep[x.inst[i].first_dep + k]);
    }
    hp_expansion_fini(&x);
    return hp_str_take(&s);
}

static void expands(const char *text, const char *expect, const char *name)
{
    hp_plan *p = parse(text);
    char *got = show(p);
    is_str(got, expect, "%s", name);
    free(got);
    hp_plan_free(p);
}

#define BUF(name, scope, at)                                                                       \
    "buffer " name " - f32 activations " scope " hbm bytes 64 at " at " shape 16\n"

int main(void)
{
    expands(HEAD BUF("a", "run", "0") BUF("b", "run", "64") BUF(
                "w", "persist",
                "0") "template F chunk 0\n op one c always f - : w -> a\n op two t always f - : a "
                     "-> b\n op three c always f - : b -> w\nentry 0 micro 0 frame 0\nend\n",
            "one@0<-1 two@0<-1:0 three@0<0:1",
            "a reader waits for the writer on another stream, a writer for the readers");

    expands(HEAD BUF("a", "run", "0") BUF("b", "run", "0")
                BUF("c", "run",
                    "64") "template F chunk 0\n op one c always f - : -> a\n op two t always f - : "
                          "a -> c\n op three u always f - : -> b\nentry 0 micro 0 frame 0\nend\n",
            "one@0<-1 two@0<-1:0 three@0<-1:0,1",
            "another buffer at the same bytes waits for the last writer and the readers since");

    expands(HEAD BUF("a", "frame", "0")
                BUF("w", "persist", "0") "template F chunk 0\n op fwd c always f - : w -> "
                                         "a\ntemplate B chunk 0\n op bwd t always f - : a ->\n"
                                         "entry 0 micro 0 frame 0\nentry 0 micro 1 frame 1\nentry "
                                         "1 micro 0 frame 0\nentry 0 micro 2 frame 0\nend\n",
            "fwd@0<-1 fwd@1<0 bwd@0<-1:0 fwd@2<1:2",
            "a frame used again waits for the backward that emptied it; other frames do not");

    expands(HEAD BUF("a", "run", "0")
                BUF("b", "run",
                    "64") "template F chunk 0\n op one c always f - : -> a\n op two c always f - : "
                          "-> b\n op x t always f - : b ->\n op y t always f - : a ->\n"
                          "entry 0 micro 0 frame 0\nend\n",
            "one@0<-1 two@0<0 x@0<-1:1 y@0<2",
            "what one's own stream has waited for is not listed again");

    expands(
        HEAD BUF("a", "persist",
                 "0") "template F chunk 0\n send s t always peer 0 edge 0 - : a ->\n op n t always "
                      "f - : ->\n op one t always f - : -> a\nentry 0 micro 0 frame 0\nend\n",
        "s@0<-1 n@0<0 one@0<1:0",
        "bytes being sent are waited for even on the sender's own stream");

    expands(HEAD BUF("a", "persist",
                     "0") "template F chunk 0\n op first c first f - : -> a\n op add c always f - "
                          ": a -> a\n op last t last f - : a ->\n"
                          "entry 0 micro 0 frame 0 first\nentry 0 micro 1 frame 1 last\nend\n",
            "first@0<-1 add@0<0 add@1<1 last@1<-1:2",
            "tasks of the first and the last microbatch run there only");

    expands(HEAD "buffer r - i32 activations run hbm bytes 64 at 0 shape 2 2 2\n"
                 "buffer x - f32 activations run hbm bytes 64 at 64 route r 4 shape 2 2 2 2\n"
                 "template F chunk 0\n op route c always f - : -> r\n op disp t always f - : -> "
                 "x\nentry 0 micro 0 frame 0\nend\n",
            "route@0<-1 disp@0<-1:0",
            "a routed operand waits for the choices that say which rows exist");

    expands(HEAD BUF("a", "persist",
                     "0") "buffer h - f32 optimizer persist host bytes 64 at 0 shape 16\n"
                          "template O chunk 0\n op one c always f - : -> a\n op two t always f - : "
                          "h ->\n copy d u always - : a -> h\nentry 0 micro -1 frame -1\nend\n",
            "one@-1<-1 two@-1<-1 d@-1<-1:0,1", "host memory and device memory are different bytes");

    hp_plan *p =
        parse(HEAD BUF("f", "frame", "64") BUF("r", "run", "0") "template F chunk 0\nend\n");
    is_int(hp_program_arena(&p->program[0]), 128 + 2 * 128 + 128,
           "the arena holds every scope and frame");
    is_int(hp_buffer_address(&p->program[0], 0, 1), 128 + 128 + 64,
           "a frame's buffer lies in its frame");
    is_int(hp_buffer_address(&p->program[0], 1, 1), 128 + 256, "run buffers lie behind the frames");
    hp_plan_free(p);
    return done_testing();
}

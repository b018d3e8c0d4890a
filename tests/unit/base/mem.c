#include "base/mem.h"

#include "tap.h"

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

/* The second round is given the first one's memory back by malloc, soiled. */
static void test_arena_is_clean(void)
{
    int odd = 0, dirty = 0;
    for (int round = 0; round < 2; round++) {
        hp_arena a = {0};
        for (size_t i = 1; i < 3000; i++) {
            unsigned char *p = hp_arena_alloc(&a, i % 257);
            odd += (uintptr_t)p % 16 != 0;
            for (size_t k = 0; k < i % 257; k++)
                dirty += p[k] != 0;
            memset(p, 0xff, i % 257);
        }
        hp_arena_fini(&a);
    }
    is_int(odd, 0, "arena memory is aligned to 16");
    is_int(dirty, 0, "arena memory is zeroed and never handed out twice");
}

static void test_arena(void)
{
    hp_arena a = {0};
    char *big = hp_arena_alloc(&a, 1 << 20);
    memset(big, 1, 1 << 20);
    ok(big[(1 << 20) - 1] == 1, "a request larger than a block is met");
    is_str(hp_arena_printf(&a, "%s.%d", hp_arena_strdup(&a, "layers"), 3), "layers.3",
           "text is formatted into the arena");
    hp_arena_fini(&a);
    ok(a.head == NULL, "a finished arena is empty");
    hp_arena_fini(&a);
    is_str(hp_arena_strdup(&a, "x"), "x", "and can be used again");
    hp_arena_fini(&a);
}

static void test_grow(void)
{
    int *v = NULL, cap = 0, n = 0, wrong = 0;
    for (; n < 1000; n++) {
        v = hp_grow(v, &cap, n + 1, sizeof *v);
        v[n] = n;
    }
    for (int i = 0; i < n; i++)
        wrong += v[i] != i;
    is_int(wrong, 0, "a growing array keeps its elements");
    ok(cap >= 1000 && cap <= 2048, "its room doubles");
    free(v);
}

static void test_out_of_memory(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        volatile size_t bytes = SIZE_MAX / 4;
        hp_xmalloc(bytes);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 5,
       "running out of memory ends the process with exit status 5");
}

int main(void)
{
    test_arena_is_clean();
    test_arena();
    test_grow();
    test_out_of_memory();
    void *p = hp_xmalloc(0);
    ok(p != NULL, "no bytes are memory too");
    free(p);
    return done_testing();
}

#include "base/str.h"

#include "tap.h"

static void test_buffer(void)
{
    hp_str t = {0};
    is_str(hp_str_text(&t), "", "an unwritten text is empty");
    for (int i = 0; i < 1000; i++)
        hp_str_add(&t, "%d,", i);
    is_int((long long)t.len, 3890, "a thousand appended numbers are all there");
    ok(strncmp(t.s, "0,1,2,", 6) == 0 && strcmp(t.s + t.len - 4, "999,") == 0,
       "they stand in order");
    hp_str_fini(&t);

    hp_str_put(&t, "a\0b", 3);
    ok(t.len == 3 && memcmp(t.s, "a\0b", 4) == 0, "bytes are put as they are, a NUL after them");
    hp_str_fini(&t);
    hp_str_put(&t, NULL, 0);
    is_str(hp_str_text(&t), "", "no bytes leave an empty text");

    hp_str_add(&t, "%s", "mine");
    char *s = hp_str_take(&t);
    is_str(s, "mine", "the text can be taken");
    is_int((long long)t.len, 0, "what it was taken from is empty");
    free(s);
    s = hp_str_take(&t);
    is_str(s, "", "taking from an empty text gives an empty string");
    free(s);
    hp_str_fini(&t);
}

static void test_glob(void)
{
    static const struct {
        const char *pattern, *name;
        bool match;
    } c[] = {
        {"embed", "embed", true},
        {"embed", "embed.out", false},
        {"layers.*.resid", "layers.12.resid", true},
        {"layers.*.resid", "layers.12.attn.resid", false},
        {"layers.*", "layers.3", true},
        {"layers.*", "layers.3.mlp", false},
        {"layers.**", "layers.3.mlp.up", true},
        {"**.norm*", "layers.0.norm1", true},
        {"**.norm*", "layers.0.norm1.w", false},
        {"**", "anything.at.all", true},
        {"*", "", true},
        {"", "", true},
        {"", "x", false},
        {"*.w", "attn.w", true},
        {"attn.*_proj", "attn.q_proj", true},
        {"layers[3]", "layers.3", true},
        {"layers[3]", "layers.4", false},
        {"layers[3]", "layers.33", false},
        {"layers[3]", "layers3", false},
        {"layers[3:].moe.experts", "layers.60.moe.experts", true},
        {"layers[3:].moe.experts", "layers.2.moe.experts", false},
        {"layers[1:3]", "layers.2", true},
        {"layers[1:3]", "layers.3", false},
        {"layers[0::4]", "layers.8", true},
        {"layers[0::4]", "layers.9", false},
        {"layers[1:9:4].**", "layers.5.mlp.up", true},
        {"layers[:2]", "layers.1", true},
        {"layers[:2]", "layers.2", false},
        {"layers[1:]*", "layers.1x", false},
        {"**[2]", "a.b.2", true},
        {"layers[", "layers.1", false},
        {"layers[]", "layers.1", false},
        {"layers[1:2:0]", "layers.1", false},
        {"layers[x]", "layers.1", false},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
        is_int(hp_glob_match(c[i].pattern, c[i].name), c[i].match, "\"%s\" %s \"%s\"", c[i].pattern,
               c[i].match ? "matches" : "does not match", c[i].name);

    char name[1001];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ok(!hp_glob_match("**a**a**a**a**a**a**a**a**a**a**a**a**a**a**b", name),
       "a pattern of many stars is refused without trying every way");
}

static void test_near(void)
{
    const char *const names[] = {"dp", "tp", "schedule", "states"};
    is_str(hp_near("shedule", names, 4), "schedule", "a lost letter still finds its name");
    is_str(hp_near("STATE", names, 4), "states", "case does not count");
    is_str(hp_near("p", names, 4), "dp", "of two equally near names the first is given");
    ok(hp_near("x", NULL, 0) == NULL, "without names there is none near");
}

static void test_bytes(void)
{
    static const struct {
        const char *text;
        long long bytes;
    } c[] = {{"4096", 4096},
             {"40GiB", 42949672960},
             {"128MiB", 134217728},
             {"16GB", 16000000000},
             {"1.5 KiB", 1536},
             {"2tib", 2199023255552},
             {"0", 0},
             {"7B", 7}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        long long got = -1;
        ok(hp_parse_bytes(c[i].text, &got, NULL) == HP_OK, "\"%s\" is a size", c[i].text);
        is_int(got, c[i].bytes, "\"%s\" has its bytes", c[i].text);
    }
    static const char *const bad[] = {"",    "GiB",         "-1",   "12 apples",
                                      "nan", "99999999TiB", "0x10", "1e"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        long long got = -1;
        hp_errmsg e = {0};
        is_int(hp_parse_bytes(bad[i], &got, &e), HP_EUSAGE, "\"%s\" is no size", bad[i]);
        ok(got == -1 && strstr(e.text, "GiB"),
           "\"%s\" leaves the result alone and says what would be one", bad[i]);
    }
}

static void test_format(void)
{
    char b[32];
    is_str(hp_format_bytes(0, b, sizeof b), "0 B", "no bytes");
    is_str(hp_format_bytes(1023, b, sizeof b), "1023 B", "bytes have no decimals");
    is_str(hp_format_bytes(1024, b, sizeof b), "1.00 KiB", "units are binary");
    is_str(hp_format_bytes(62.8 * 1073741824.0, b, sizeof b), "62.8 GiB",
           "three digits are enough");
    is_str(hp_format_bytes(1048575.9, b, sizeof b), "1.00 MiB",
           "rounding up goes to the next unit");
    is_str(hp_format_bytes(-2048, b, sizeof b), "-2.00 KiB", "a difference may be negative");
    is_str(hp_format_seconds(8.412, b, sizeof b), "8.412 s", "seconds have milliseconds");
    is_str(hp_format_seconds(0.0418, b, sizeof b), "41.8 ms", "milliseconds");
    is_str(hp_format_seconds(3.1e-6, b, sizeof b), "3.10 us", "microseconds");
    is_str(hp_format_seconds(0, b, sizeof b), "0.000 s", "no time");
    is_str(hp_format_seconds(4e-9, b, sizeof b), "4.00 ns", "nanoseconds");
}

int main(void)
{
    test_buffer();
    test_glob();
    test_near();
    test_bytes();
    test_format();
    return done_testing();
}

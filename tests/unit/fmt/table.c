/* The report for people: within 80 columns, every figure there, ASCII where the terminal has nothing else. */
#include "fmt/table.h"

#include "sample.h"

#include "tap.h"

static int widest(const char *text)
{
    int most = 0, at = 0;
    for (; *text; text++) {
        if (*text == '\n')
            at = 0;
        else if (((unsigned char)*text & 0xC0) != 0x80)
            at++;
        most = at > most ? at : most;
    }
    return most;
}

static bool is_ascii(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s >= 128)
            return false;
    return true;
}

static void has(const char *text, const char *what)
{
    if (!ok(strstr(text, what) != NULL, "the report says \"%s\"", what))
        diag("%s", text);
}

static void test_report(void)
{
    hp_result *r = sample_result();
    hp_str t = {0};
    hp_table_result(r, (hp_table_style){.utf8 = true}, &t);
    const char *s = hp_str_text(&t);
    note("%s", s);
    has(s, "gpt2-small on host:4, dp=2,tp=2");
    has(s, "20 steps");
    has(s, "50.0 ms ± 1.00 ms");
    has(s, "10,240 tokens/s, 2,560 a device");
    has(s, "exposed dp");
    has(s, "60.0 %");
    has(s, "peak 47.7 MiB");
    has(s, "fits");
    has(s, "stage1");
    has(s, "█");
    has(s, "unverified");
    ok(strstr(s, " \n") == NULL, "no line ends with a blank");
    ok(strstr(s, "(as said)") == NULL, "verified assumptions are kept back");
    is_int(widest(s) <= 80, 1, "no line is wider than 80 columns (%d)", widest(s));
    hp_str_fini(&t);

    hp_table_result(r, (hp_table_style){.verbose = true}, &t);
    ok(is_ascii(hp_str_text(&t)), "without UTF-8 every character is ASCII");
    has(hp_str_text(&t), "(as said)");
    is_int(widest(hp_str_text(&t)) <= 80, 1, "and still within 80 columns");
    hp_str_fini(&t);
    hp_result_free(r);

    r = hp_result_new();
    r->mode = "sim";
    r->model = "m";
    r->cluster = "c";
    hp_table_result(r, (hp_table_style){.utf8 = true}, &t);
    ok(strstr(hp_str_text(&t), "nan") == NULL, "what has no meaning is never printed as nan");
    hp_str_fini(&t);
    hp_result_free(r);
}

/* The bar of a step is always as long as the step, whatever the shares. */
static void test_bar(void)
{
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        hp_result *r = sample_result();
        double a = (i * 37 % 101) / 1e4, b = (i * 53 % 97) / 1e4;
        r->time = (hp_owned_time){
            .step_s = a + b + 0.001, .compute_s = a, .bubble_s = b, .free_s = 0.001};
        hp_str t = {0};
        hp_table_result(r, (hp_table_style){.utf8 = false}, &t);
        const char *bar = strstr(hp_str_text(&t), "WHERE A STEP GOES");
        bar = bar ? strchr(bar, '\n') : NULL;
        wrong += !bar || strcspn(bar + 1, "\n") != 78;
        hp_str_fini(&t);
        hp_result_free(r);
    }
    is_int(wrong, 0, "the bar of a step always fills its 76 cells");
}

static void test_compare(void)
{
    hp_result *a = sample_result(), *b = sample_result();
    b->step_s = 0.04;
    b->strategy_shorthand = "dp=4";
    const hp_result *both[] = {a, b};
    const char *const names[] = {"3", "4"};
    hp_str t = {0};
    hp_table_compare(2, names, both, &t);
    const char *s = hp_str_text(&t);
    has(s, "dp=2,tp=2  |  dp=4");
    has(s, "-20.0 %");
    ok(strstr(s, "-20.0 %") < strstr(s, "equal:"), "differences come first");
    has(s, "memory peak");
    hp_str_fini(&t);
    hp_result_free(a);
    hp_result_free(b);
}

static void test_spark(void)
{
    static const double v[] = {0, 1, 2, 3, 4, 5, 6, 7}, flat[] = {2, 2, 2};
    hp_str t = {0};
    hp_table_spark(v, 8, 8, true, &t);
    is_str(hp_str_text(&t), "▁▂▃▄▅▆▇█", "a curve shows its levels");
    hp_str_fini(&t);
    hp_table_spark(v, 8, 4, false, &t);
    is_int((long long)t.len, 4, "a long curve is drawn by the mean of each piece");
    hp_str_fini(&t);
    hp_table_spark(flat, 3, 8, false, &t);
    is_str(hp_str_text(&t), "___", "a flat curve is flat");
    hp_str_fini(&t);
}

static void test_count(void)
{
    char buf[64];
    is_str(hp_table_count(1048576, buf, sizeof buf), "1,048,576", "thousands are set apart");
    is_str(hp_table_count(-999, buf, sizeof buf), "-999", "a sign is kept");
    is_str(hp_table_count(NAN, buf, sizeof buf), "-", "nothing is a dash");
    is_int((long long)strlen(hp_table_count(1e300, buf, 16)) < 16, 1,
           "a long number is cut to fit");
}

int main(void)
{
    test_report();
    test_bar();
    test_compare();
    test_spark();
    test_count();
    return done_testing();
}

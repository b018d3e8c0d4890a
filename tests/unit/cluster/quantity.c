/* quantity.c -- figures as data sheets write them, and what is none. */
#include "cluster/quantity.h"

#include "tap.h"

static void reads(const char *s, hp_unit unit, double want)
{
    double v = -1;
    hp_errmsg e = {0};
    ok(!hp_quantity_parse(s, unit, &v, &e) && fabs(v - want) <= 1e-12 * want, "\"%s\" is %g", s,
       want);
}

static void refuses(const char *s, hp_unit unit)
{
    double v = -1;
    hp_errmsg e = {0};
    ok(hp_quantity_parse(s, unit, &v, &e) == HP_EINPUT && v == -1 && strstr(e.text, "write"),
       "\"%s\" is refused: %s", s, e.text);
}

int main(void)
{
    reads("989T", HP_UNIT_FLOPS, 989e12);
    reads("1.5 PFLOP/s", HP_UNIT_FLOPS, 1.5e15);
    reads("80GiB", HP_UNIT_BYTES, 80 * 1073741824.0);
    reads("3.35TB/s", HP_UNIT_BYTES_S, 3.35e12);
    reads("400Gb/s", HP_UNIT_BYTES_S, 50e9);
    reads("450GB", HP_UNIT_BYTES_S, 450e9);
    reads("1.87us", HP_UNIT_SECONDS, 1.87e-6);
    reads("0", HP_UNIT_SECONDS, 0);
    reads("82%", HP_UNIT_FRACTION, 0.82);
    reads("1e3", HP_UNIT_NUMBER, 1000);
    reads("512", HP_UNIT_COUNT, 512);
    refuses("", HP_UNIT_BYTES);
    refuses("80gib", HP_UNIT_BYTES);
    refuses("80GiB/s", HP_UNIT_BYTES);
    refuses("-1", HP_UNIT_NUMBER);
    refuses("inf", HP_UNIT_NUMBER);
    refuses("0x10", HP_UNIT_NUMBER);
    refuses("1.5", HP_UNIT_COUNT);
    refuses("3 apples", HP_UNIT_FLOPS);
    refuses("5min", HP_UNIT_SECONDS);
    return done_testing();
}

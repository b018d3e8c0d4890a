#include "kern/level.h"
#include "kern/registry.h"

#include "tap.h"

int main(void)
{
    hp_level best = hp_level_now();
    ok(hp_level_has(best), "the level in use is one this machine has");
    int tried = 0;
    for (hp_level l = HP_LEVEL_GENERIC; l <= HP_LEVEL_V4; l++) {
        setenv("HPBENCH_ISA", hp_level_name(l), 1);
        hp_level_choose();
        hp_level want = hp_level_has(l) ? l : best;
        tried += hp_level_has(l);
        is_int(hp_level_now(), want, "HPBENCH_ISA=%s is followed where the machine can",
               hp_level_name(l));
    }
    ok(tried > 0, "some level runs here");
    setenv("HPBENCH_ISA", "v9", 1);
    hp_level_choose();
    is_int(hp_level_now(), best, "an unknown level means the best");

    hp_kern_row row;
    int rows = 0, references = 0, strange = 0;
    for (; hp_kern_row_at(rows, &row); rows++) {
        references += strcmp(row.variant, "reference") == 0;
        strange += hp_kern_tolerance(row.name) < 0;
    }
    ok(rows > 2 * references && references > 20,
       "every kernel has a reference and a version a level");
    is_int(strange, 0, "every row has a tolerance");
    ok(!hp_kern_row_at(-1, &row) && hp_kern_tolerance("none") < 0, "there is no kernel but these");
    return done_testing();
}

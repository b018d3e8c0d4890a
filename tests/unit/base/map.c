#include "base/map.h"

#include "tap.h"

int main(void)
{
    hp_map m = {0};
    is_int(hp_map_get(&m, "dp", -1), -1, "an empty map has no keys");
    hp_map_fini(&m);
    hp_map_put(&m, "", 7);
    is_int(hp_map_get(&m, "", -1), 7, "the empty string is a key");

    char key[32];
    int found = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "layers.%d", i);
        hp_map_put(&m, key, i);
        found += hp_map_get(&m, "nowhere", -1) != -1;
    }
    is_int(found, 0, "a key never put is missing, however full the map is");
    is_int(m.n, 5001, "every key is counted once");
    int wrong = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "layers.%d", i);
        wrong += hp_map_get(&m, key, -1) != i;
    }
    is_int(wrong, 0, "every key is found after growing, copied from a buffer that changed");

    hp_map_put(&m, "layers.17", -9);
    is_int(hp_map_get(&m, "layers.17", 0), -9, "a second put replaces the value");
    is_int(m.n, 5001, "and adds no key");
    hp_map_fini(&m);
    is_int(hp_map_get(&m, "layers.17", -1), -1, "a finished map is empty");
    hp_map_put(&m, "again", 1);
    is_int(hp_map_get(&m, "again", -1), 1, "and can be used again");
    hp_map_fini(&m);
    return done_testing();
}

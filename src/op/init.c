/* init.c -- walks the box row by row; within the last dimension global indices are consecutive. */
#include "op/init.h"

#include "base/rng.h"
#include "kern/num.h"

static float value_at(hp_init init, float std, uint64_t stream, int64_t global)
{
    switch (init) {
    case HP_INIT_ONES:
        return 1;
    case HP_INIT_NORMAL:
        return std * hp_rng_normal(stream, (uint64_t)global);
    default:
        return 0;
    }
}

void hp_init_fill(const hp_operand *box, const char *name, hp_init init, float std, uint64_t seed)
{
    uint64_t stream = hp_rng_key(seed, hp_hash_str(name));
    hp_num to = {box->data, (int)box->dtype};
    int64_t at[HP_MAX_DIMS] = {0}, count = 1;
    for (int d = 0; d < box->nd; d++)
        count *= box->len[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t global = 0;
        for (int d = 0; d < box->nd; d++)
            global = global * box->full[d] + box->lo[d] + at[d];
        hp_num_put(to, i, value_at(init, std, stream, global));
        for (int d = box->nd - 1; d >= 0 && ++at[d] == box->len[d]; d--)
            at[d] = 0;
    }
}

/* quantity.h -- numbers with units as data sheets write them: "989T", "3.35TB/s", "400Gb/s",
 * "1.9us", "80GiB", "82%". Room: cluster; uses base.
 */
#ifndef HP_CLUSTER_QUANTITY_H
#define HP_CLUSTER_QUANTITY_H

#include "base/err.h"

#include <stdbool.h>

typedef enum hp_unit {
    HP_UNIT_COUNT,    /* whole number, at least 0 */
    HP_UNIT_NUMBER,   /* at least 0 */
    HP_UNIT_FRACTION, /* "0.82" or "82%", at least 0 */
    HP_UNIT_FLOPS,    /* FLOP/s: k M G T P, then "FLOP/s" or nothing */
    HP_UNIT_BYTES,    /* KB.. decimal, KiB.. binary */
    HP_UNIT_BYTES_S,  /* the same with "/s"; "Gb/s" counts bits */
    HP_UNIT_SECONDS   /* s, ms, us, ns */
} hp_unit;

/* hp_quantity_parse reads `s` into *v in base units; HP_EINPUT says what would be legal. */
hp_err hp_quantity_parse(const char *s, hp_unit unit, double *v, hp_errmsg *e);

#endif

/* rop.h -- how parts of a partial value combine.
 *
 * LSE: the last dimension holds triples (max, sum of exp, picked) and merges as in xent.h. ALL: 1 where all
 * are nonzero, else 0. An average is SUM and a scale. Room: kern.
 */
#ifndef HP_KERN_ROP_H
#define HP_KERN_ROP_H

typedef enum hp_rop {
    HP_ROP_SUM,
    HP_ROP_MAX,
    HP_ROP_MIN,
    HP_ROP_PROD,
    HP_ROP_ALL,
    HP_ROP_LSE
} hp_rop;

#endif

/* shrink.h -- the smallest model and mesh on which a big strategy still does everything it does.
 *
 * The strategy's script sees the big model and the big cluster; then its normal form, the model's
 * dimensions and the number of layers are made small. An axis keeps being split (2 stands for any
 * even size, else its smallest factor), a dimension keeps whether each of its splits divides it,
 * layers keep stages, chunks and what is left over. Degrees written into scripts' glob lists stay
 * as they are. Room: session.
 */
#ifndef HP_SESSION_SHRINK_H
#define HP_SESSION_SHRINK_H

#include "session/load.h"

/* hp_shrink_load loads what is asked for, shrinks and plans it on virtual devices of this host;
 * *said says what became of what, one a line. HP_EINFEASIBLE: the strategy lists its stages by
 * layer numbers, or needs more than 64 devices when shrunk. */
hp_err hp_shrink_load(const hp_ask *ask, hp_case *c, hp_str *said, hp_errmsg *e);

#endif

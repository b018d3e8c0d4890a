/* signals.h -- Ctrl-C and friends, as something that is read instead of something that strikes.
 *
 * SIGINT, SIGTERM and SIGHUP are blocked before the first thread and read from a signalfd by a
 * thread of their own. While a run is *held* the first one only asks: hp_signals_asked() turns true
 * and the run ends at its step's end. A second one, or one without a held run, ends the process at
 * once with exit status 130; the store is transactional, so nothing is lost. SIGPIPE is ignored:
 * writes fail with EPIPE instead. One user a process. Room: session.
 */
#ifndef HP_SESSION_SIGNALS_H
#define HP_SESSION_SIGNALS_H

#include "base/err.h"

#include <stdbool.h>

/* hp_signals_start blocks the signals and starts the reader; before any other thread of the
 * process. */
hp_err hp_signals_start(hp_errmsg *e);

/* hp_signals_hold says that a run is in flight that will look at hp_signals_asked, and which
 * process the second signal shall kill first (0: none); hp_signals_release that it is over. */
void hp_signals_hold(int child);
void hp_signals_release(void);

/* hp_signals_asked says whether the user has asked to stop since hp_signals_hold. */
bool hp_signals_asked(void);

#endif

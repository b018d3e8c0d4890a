/* clock.h -- time in integer nanoseconds. Room: base. */
#ifndef HP_BASE_CLOCK_H
#define HP_BASE_CLOCK_H

#include <stdint.h>

/* hp_now_ns returns the monotonic clock. */
int64_t hp_now_ns(void);

/* hp_sleep_until_ns sleeps until an absolute instant of the monotonic clock. */
void hp_sleep_until_ns(int64_t t_ns);

#endif

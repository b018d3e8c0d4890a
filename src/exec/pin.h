/* pin.h -- workers on cores of their own. Room: exec. */
#ifndef HP_EXEC_PIN_H
#define HP_EXEC_PIN_H

/* hp_pin_cores returns how many cores this process may use. */
int hp_pin_cores(void);

/* hp_pin_thread binds the calling thread to the i-th of n equal parts of the machine as hwloc sees it, near in caches and memory; what cannot be bound
 * stays free. */
void hp_pin_thread(int i, int n);

#endif

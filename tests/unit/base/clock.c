#include "base/clock.h"

#include "tap.h"

#include <signal.h>
#include <sys/time.h>

static void on_alarm(int sig)
{
    (void)sig;
}

int main(void)
{
    int64_t last = hp_now_ns(), back = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t t = hp_now_ns();
        back += t < last;
        last = t;
    }
    is_int(back, 0, "the clock never goes back");

    int64_t until = hp_now_ns() + 5000000;
    hp_sleep_until_ns(until);
    ok(hp_now_ns() >= until, "a sleep lasts to its instant");

    struct sigaction act = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 2000}}, NULL);
    until = hp_now_ns() + 10000000;
    hp_sleep_until_ns(until);
    ok(hp_now_ns() >= until, "a signal does not cut it short");

    int64_t before = hp_now_ns();
    hp_sleep_until_ns(before - 1000000000);
    hp_sleep_until_ns(-5);
    ok(hp_now_ns() - before < 1000000000, "an instant in the past does not sleep");
    return done_testing();
}

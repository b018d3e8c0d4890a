/* signals.c -- three atomics between the reader and everybody else: is a run held, how often was
 * asked, whom to kill. */
#include "session/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static atomic_bool held;
static atomic_int asked, victim;

static void end_now(void)
{
    int child = atomic_load(&victim);
    if (child > 0)
        kill((pid_t)child, SIGKILL);
    _exit(HP_ECANCELLED);
}

static void *read_signals(void *arg)
{
    int fd = (int)(intptr_t)arg;
    struct signalfd_siginfo info;
    for (;;) {
        ssize_t n = read(fd, &info, sizeof info);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof info)
            return NULL;
        if (!atomic_load(&held) || atomic_fetch_add(&asked, 1) > 0)
            end_now();
    }
}

hp_err hp_signals_start(hp_errmsg *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    pthread_t reader;
    int fd = -1, err = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (!err && (fd = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
        err = errno;
    if (!err)
        err = pthread_create(&reader, NULL, read_signals, (void *)(intptr_t)fd);
    if (err)
        return hp_fail(e, HP_EINTERNAL, "signals cannot be watched: %s", strerror(err));
    pthread_detach(reader);
    return HP_OK;
}

void hp_signals_hold(int child)
{
    atomic_store(&asked, 0);
    atomic_store(&victim, child);
    atomic_store(&held, true);
}

void hp_signals_release(void)
{
    atomic_store(&held, false);
    atomic_store(&victim, 0);
}

bool hp_signals_asked(void)
{
    return atomic_load(&asked) > 0;
}

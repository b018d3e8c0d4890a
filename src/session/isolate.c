/* isolate.c -- execve of the own binary, never a bare fork: OpenMP's runtime hangs in a forked
 * child. */
#include "session/isolate.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "session/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The words this process was started with, as the kernel keeps them. */
static hp_err own_words(hp_str *text, char ***words, hp_errmsg *e)
{
    char block[4096];
    ssize_t n;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), count = 0;
    while (fd >= 0 && (n = read(fd, block, sizeof block)) > 0)
        hp_str_put(text, block, (size_t)n);
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < text->len; i++)
        count += text->s[i] == '\0';
    if (count < 2)
        return hp_fail(e, HP_EINTERNAL, "/proc/self/cmdline cannot be read");
    *words = hp_xcalloc((size_t)count + 1, sizeof **words);
    char *at = text->s;
    for (int i = 0; i < count; i++, at += strlen(at) + 1)
        (*words)[i] = at;
    return HP_OK;
}

static hp_err judge(int status, const char *what, hp_errmsg *e)
{
    if (WIFSIGNALED(status))
        return hp_fail(e, HP_EINTERNAL,
                       "%s was ended by signal %d (%s): the engine crashed; nothing else is harmed",
                       what, WTERMSIG(status), strsignal(WTERMSIG(status)));
    e->code = (hp_err)WEXITSTATUS(status);
    e->text[0] = '\0';
    return e->code;
}

/* Waits for the child; the user's wish to stop is passed on. */
static hp_err await(pid_t child, const char *what, hp_errmsg *e)
{
    int status = 0;
    bool told = false;
    hp_signals_hold(child);
    for (pid_t done = 0; done == 0;) {
        done = waitpid(child, &status, WNOHANG);
        if (done < 0 && errno != EINTR)
            break;
        if (hp_signals_asked() && !told)
            told = kill(child, SIGTERM) == 0;
        if (done == 0)
            hp_sleep_until_ns(hp_now_ns() + 2000000);
    }
    hp_signals_release();
    return told ? hp_fail(e, HP_ECANCELLED, "%s was interrupted", what) : judge(status, what, e);
}

hp_err hp_isolate(const char *hidden, const char *what, hp_errmsg *e)
{
    hp_str text = {0};
    char **words = NULL;
    pid_t child = 0;
    hp_err err = own_words(&text, &words, e);
    if (!err) {
        words[1] = (char *)(uintptr_t)hidden;
        int failed = posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ);
        err = failed ? hp_fail(e, HP_EINTERNAL, "%s cannot be started: %s", what, strerror(failed))
                     : await(child, what, e);
    }
    free(words);
    hp_str_fini(&text);
    return err;
}

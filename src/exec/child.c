/* child.c -- both ends of a run in a process of its own.
 *
 * Descriptors in the child: 1 and 2 a log in memory, then in the order of `end` below. The parent keeps the other end of the control pipe; the child's watcher
 * thread turns its bytes into cancel levels and its closing into an exit. */
#include "exec/child.h"

#include "base/clock.h"
#include "exec/options.h"
#include "exec/run.h"
#include "exec/tap.h"
#include "plan/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { FD_PLAN = 3, FD_OPTIONS, FD_SEGMENT, FD_CONTROL, FD_TAP, FD_END, ABOVE = 32 };

struct hp_exec_child {
    const hp_plan *p;
    hp_expansion *x;
    hp_segment *seg;
    pid_t pid;
    int control, log, tap, pidfd; /* -1: none */
    bool ended;
    int status; /* of waitpid */
    int cancels;
    char *taps; /* mapped once it has ended */
    int64_t tap_bytes;
};

/* --- the parent's side --- */

/* A descriptor above all numbers that the child uses, holding a text; -1 on failure. */
static int text_fd(const char *name, const hp_str *text)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && text && done < text->len) {
        ssize_t n = write(fd, text->s + done, text->len - done);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ABOVE);
    if (fd >= 0)
        close(fd);
    return high;
}

/* The environment, with a short spin of OpenMP's teams unless somebody asked otherwise: about as long as waking a thread takes. Its default burns
 * milliseconds, which the machine's other users (and the next worker's team) would rather have. Owned by the caller, the strings are not. */
static char **child_environment(void)
{
    static char spin[] = "GOMP_SPINCOUNT=30000";
    int n = 0;
    while (environ[n])
        n++;
    char **env = hp_xmalloc((size_t)(n + 2) * sizeof *env);
    memcpy(env, environ, (size_t)n * sizeof *env);
    if (!getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY"))
        env[n++] = spin;
    env[n] = NULL;
    return env;
}

static int start_process(pid_t *pid, const int fd[FD_END], int log)
{
    char number[FD_END][8], *argv[FD_END + 3] = {"hpbench", "__exec"};
    posix_spawn_file_actions_t act;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&act);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0); /* a Ctrl-C at the terminal is the parent's */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&act, log, 1);
    posix_spawn_file_actions_adddup2(&act, log, 2);
    for (int i = FD_PLAN; i < FD_END; i++) {
        posix_spawn_file_actions_adddup2(&act, fd[i], i);
        snprintf(number[i], sizeof number[i], "%d", i);
        argv[i - FD_PLAN + 2] = number[i];
    }
    posix_spawn_file_actions_addclosefrom_np(&act, FD_END);
    char **env = child_environment();
    int rc = posix_spawn(pid, "/proc/self/exe", &act, &attr, argv, env);
    free(env);
    posix_spawn_file_actions_destroy(&act);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static hp_err start_child(hp_exec_child *c, const hp_exec_options *o, hp_errmsg *e)
{
    hp_str plan = {0}, options = {0};
    int pipes[2] = {-1, -1}, fd[FD_END], rc = EMFILE;
    hp_plan_print(c->p, &plan);
    hp_exec_options_print(o, &options);
    fd[FD_PLAN] = text_fd("hpbench-plan", &plan);
    fd[FD_OPTIONS] = text_fd("hpbench-options", &options);
    fd[FD_SEGMENT] = fcntl(c->seg->fd, F_DUPFD_CLOEXEC, ABOVE);
    fd[FD_TAP] = c->tap = text_fd("hpbench-tap", NULL);
    c->log = text_fd("hpbench-log", NULL);
    fd[FD_CONTROL] = pipe2(pipes, O_CLOEXEC) == 0 ? fcntl(pipes[0], F_DUPFD_CLOEXEC, ABOVE) : -1;
    c->control = pipes[1];
    bool all = c->log >= 0;
    for (int i = FD_PLAN; i < FD_END; i++)
        all = all && fd[i] >= 0;
    if (all)
        rc = start_process(&c->pid, fd, c->log);
    for (int i = FD_PLAN; i < FD_END; i++)
        if (i != FD_TAP && fd[i] >= 0)
            close(fd[i]);
    if (pipes[0] >= 0)
        close(pipes[0]);
    hp_str_fini(&plan);
    hp_str_fini(&options);
    c->ended = rc != 0;
    if (rc)
        return hp_fail(e, HP_EINTERNAL, "the engine's process could not be started: %s",
                       strerror(rc));
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    return HP_OK;
}

hp_err hp_exec_spawn(const hp_plan *p, const hp_exec_options *o, hp_exec_child **out, hp_errmsg *e)
{
    hp_exec_child *c = hp_xcalloc(1, sizeof *c);
    *c = (hp_exec_child){.p = p,
                         .x = hp_exec_expand(p),
                         .control = -1,
                         .log = -1,
                         .tap = -1,
                         .pidfd = -1,
                         .ended = true};
    hp_err rc = hp_segment_new(p, c->x, o->steps, true, &c->seg, e);
    if (!rc)
        rc = start_child(c, o, e);
    if (rc)
        hp_exec_child_free(c);
    else
        *out = c;
    return rc;
}

int hp_exec_child_fd(const hp_exec_child *c)
{
    return c->pidfd;
}

hp_segment *hp_exec_child_segment(const hp_exec_child *c)
{
    return c->seg;
}

const hp_expansion *hp_exec_child_expansion(const hp_exec_child *c)
{
    return c->x;
}

static void reap(hp_exec_child *c, int flags)
{
    pid_t got;
    do
        got = waitpid(c->pid, &c->status, flags);
    while (got < 0 && errno == EINTR);
    c->ended = got != 0;
}

bool hp_exec_child_ended(hp_exec_child *c, int64_t timeout_ns)
{
    if (c->ended)
        return true;
    reap(c, WNOHANG);
    if (c->ended || timeout_ns <= 0)
        return c->ended;
    struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
    if (c->pidfd >= 0)
        poll(&p, 1, (int)((timeout_ns + 999999) / 1000000));
    else
        hp_sleep_until_ns(hp_now_ns() + timeout_ns);
    reap(c, WNOHANG);
    return c->ended;
}

void hp_exec_child_cancel(hp_exec_child *c)
{
    if (c->ended)
        return;
    if (++c->cancels > 2)
        kill(c->pid, SIGKILL);
    else if (write(c->control, "c", 1) != 1)
        kill(c->pid, SIGKILL);
}

/* The last line that the child wrote, "" when it was silent. */
static void last_words(const hp_exec_child *c, char *out, size_t n)
{
    char buf[2048];
    off_t size = lseek(c->log, 0, SEEK_END);
    off_t from = size > (off_t)sizeof buf - 1 ? size - (off_t)sizeof buf + 1 : 0;
    ssize_t got = pread(c->log, buf, sizeof buf - 1, from);
    while (got > 0 && (buf[got - 1] == '\n' || buf[got - 1] == ' '))
        got--;
    buf[got > 0 ? got : 0] = '\0';
    const char *line = strrchr(buf, '\n');
    snprintf(out, n, "%s%s", *buf ? ": " : "", line ? line + 1 : buf);
}

/* " in step 3, at task x on device 1": the first task that was running. */
static void last_place(const hp_exec_child *c, char *out, size_t n)
{
    int slot = hp_segment_current(c->seg);
    *out = '\0';
    if (slot < 0)
        return;
    snprintf(out, n, " in step %lld", (long long)atomic_load(&c->seg->head->slot[slot].step));
    for (int g = 0; g < c->p->n_programs; g++)
        for (int i = 0; i < c->x[g].n; i++)
            for (int r = 0; r < c->p->program[g].mesh.n_ranks; r++) {
                const hp_task *t = hp_inst_task(&c->p->program[g], &c->x[g].inst[i]);
                if (t->kind != HP_TASK_OP ||
                    atomic_load(&hp_segment_span(c->seg, slot, g, r, i)->state) != 1)
                    continue;
                snprintf(out + strlen(out), n - strlen(out), ", at task %s on device %d", t->name,
                         c->p->program[g].mesh.first + r);
                return;
            }
}

hp_err hp_exec_child_result(hp_exec_child *c, hp_errmsg *e)
{
    char words[512], place[256];
    if (!c->ended)
        reap(c, 0);
    hp_segment_head *h = c->seg->head;
    if (!WIFSIGNALED(c->status) && atomic_load(&h->phase) == HP_RUN_ENDED)
        return h->code ? hp_fail(e, h->code, "%s", h->text) : HP_OK;
    if (c->cancels > 2)
        return hp_fail(e, HP_ECANCELLED, "killed as asked");
    last_words(c, words, sizeof words);
    last_place(c, place, sizeof place);
    if (WIFSIGNALED(c->status))
        return hp_fail(e, HP_EINTERNAL, "the engine was ended by SIG%s%s%s",
                       sigabbrev_np(WTERMSIG(c->status)), place, words);
    return hp_fail(e, HP_EINTERNAL, "the engine ended with status %d before its run did%s%s",
                   WEXITSTATUS(c->status), place, words);
}

bool hp_exec_child_tap(hp_exec_child *c, int64_t *cursor, hp_exec_tap *t)
{
    if (!c->ended)
        return false;
    if (!c->taps) {
        c->tap_bytes = lseek(c->tap, 0, SEEK_END);
        void *map = c->tap_bytes > 0 ? mmap(NULL, (size_t)c->tap_bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE, c->tap, 0)
                                     : MAP_FAILED;
        c->taps = map == MAP_FAILED ? NULL : map;
    }
    return c->taps && hp_tap_read(c->p, c->x, c->taps, c->tap_bytes, cursor, t);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void hp_exec_child_free(hp_exec_child *c)
{
    if (!c)
        return;
    if (!c->ended) {
        kill(c->pid, SIGKILL);
        reap(c, 0);
    }
    if (c->taps)
        munmap(c->taps, (size_t)c->tap_bytes);
    close_fd(c->control);
    close_fd(c->log);
    close_fd(c->tap);
    close_fd(c->pidfd);
    hp_segment_free(c->seg);
    hp_exec_expansions_free(c->p, c->x);
    free(c);
}

/* --- the child's side --- */

static char *read_all(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *s = hp_xmalloc((size_t)(size > 0 ? size : 0) + 1);
    off_t at = 0;
    while (at < size) {
        ssize_t n = pread(fd, s + at, (size_t)(size - at), at);
        if (n <= 0)
            break;
        at += n;
    }
    s[at] = '\0';
    close(fd);
    return s;
}

typedef struct watch {
    int fd;
    _Atomic int *cancel;
} watch;

static void *watch_parent(void *arg)
{
    const watch *w = arg;
    char byte;
    for (;;) {
        ssize_t n = read(w->fd, &byte, 1);
        if (n == 1)
            atomic_fetch_add(w->cancel, 1);
        else if (n == 0 || errno != EINTR)
            _exit(HP_EINTERNAL); /* the parent is gone: nobody wants the result */
    }
}

typedef struct job {
    int fd[FD_END];
    hp_plan *p;
    hp_exec_options o;
    hp_expansion *x;
    hp_segment *seg;
    hp_corpus corpus;
    watch watch;
    hp_tap_writer tap;
} job;

static hp_err open_job(job *j, hp_errmsg *e)
{
    char *plan = read_all(j->fd[FD_PLAN]), *options = read_all(j->fd[FD_OPTIONS]);
    hp_err rc = hp_plan_parse(plan, &j->p, e);
    if (!rc)
        rc = hp_exec_options_parse(options, &j->o, e);
    free(plan);
    free(options);
    if (rc)
        return rc;
    j->x = hp_exec_expand(j->p);
    return hp_segment_open(j->p, j->x, j->fd[FD_SEGMENT], &j->seg, e);
}

static hp_err run_job(job *j, hp_errmsg *e)
{
    hp_data_options data = j->o.data;
    pthread_t watcher;
    data.vocab = data.vocab > 0 ? data.vocab : j->p->vocab > 0 ? j->p->vocab : 256;
    data.zigzag = data.zigzag > 0 ? data.zigzag : j->p->zigzag;
    hp_err rc = hp_corpus_open(&j->corpus, *j->o.corpus ? j->o.corpus : NULL, &data, e);
    if (rc)
        return rc;
    j->watch = (watch){j->fd[FD_CONTROL], &j->seg->head->cancel};
    if (pthread_create(&watcher, NULL, watch_parent, &j->watch) != 0)
        return hp_fail(e, HP_EINTERNAL, "the machine refuses the engine a thread");
    pthread_detach(watcher);
    j->tap = (hp_tap_writer){PTHREAD_MUTEX_INITIALIZER, j->fd[FD_TAP], j->o.tap};
    hp_exec_hooks h = {.ctx = &j->tap,
                       .load = hp_corpus_fill,
                       .load_ctx = &j->corpus,
                       .tap = *j->o.tap ? hp_tap_write : NULL};
    return hp_exec_run_in(j->p, j->x, &j->o, &h, j->seg, e);
}

int hp_exec_child_main(int argc, char **argv)
{
    static job j; /* the watcher thread looks at it until the process ends */
    hp_errmsg e = {0};
    if (argc != FD_END - FD_PLAN + 2) {
        fprintf(stderr, "__exec is for hpbench itself\n");
        return HP_EUSAGE;
    }
    for (int i = FD_PLAN; i < FD_END; i++)
        j.fd[i] = atoi(argv[i - FD_PLAN + 2]);
    hp_err rc = open_job(&j, &e);
    if (!j.seg) {
        fprintf(stderr, "%s\n", e.text);
        return rc;
    }
    if (!rc)
        rc = run_job(&j, &e);
    hp_segment_head *h = j.seg->head;
    h->code = rc;
    snprintf(h->text, sizeof h->text, "%s", rc ? e.text : "");
    atomic_store(&h->phase, HP_RUN_ENDED);
    hp_corpus_fini(&j.corpus);
    return rc;
}

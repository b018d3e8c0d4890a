/* The store under two writers, a killed writer, a full disk, a newer schema. */
#include "store/store.h"

#include "store/schema.h"

#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/hpbench-store-XXXXXX";
static char path[128];

static hp_run_row sample(void)
{
    return (hp_run_row){.mode = "run",
                        .state = "done",
                        .model = "gpt2-small",
                        .cluster = "host:4",
                        .strategy = "dp=2,tp=2",
                        .strategy_hash = 0xFEDCBA9876543210u,
                        .seed = 7,
                        .n_devices = 4,
                        .n_steps = 20,
                        .step_s = 0.25,
                        .tokens_per_s = 1024,
                        .peak_bytes = 5e7,
                        .masking_ratio = NAN,
                        .mfu = 0.4,
                        .loss = 2.5,
                        .result = "{\"schema\": \"x\"}"};
}

static hp_store *opened(const char *at)
{
    hp_store *s = NULL;
    hp_errmsg e = {0};
    if (hp_store_open(at, &s, &e))
        bail("the store opens: %s", e.text);
    return s;
}

static int count(const char *at)
{
    hp_store *s = opened(at);
    hp_run_rows rows = {0};
    hp_errmsg e;
    int n = hp_store_list(s, 0, &rows, &e) ? -1 : rows.n;
    hp_run_rows_fini(&rows);
    hp_store_close(s);
    return n;
}

static void sql(const char *at, const char *text)
{
    sqlite3 *db;
    if (sqlite3_open(at, &db) != SQLITE_OK || sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        bail("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void test_round_trip(void)
{
    hp_store *s = opened(path);
    hp_errmsg e;
    hp_run_row row = sample();
    int64_t first = 0, second = 0;
    is_int(hp_store_add_run(s, &row, &first, &e), HP_OK, "a run is stored");
    row.state = "interrupted";
    row.at = "2026-03-05 14:07:31";
    hp_store_add_run(s, &row, &second, &e);
    ok(second > first && first > 0, "ids grow");

    hp_run_rows rows = {0};
    is_int(hp_store_list(s, 0, &rows, &e), HP_OK, "runs are listed");
    is_int(rows.n, 2, "all of them");
    is_str(rows.row[0].state, "interrupted", "the newest first");
    is_str(rows.row[0].at, "2026-03-05 14:07:31", "with the time they were given");
    is_int((long long)strlen(rows.row[1].at), 19, "or the time they were stored at");
    ok(rows.row[0].result == NULL, "without their JSON");
    ok(rows.row[1].strategy_hash == 0xFEDCBA9876543210u, "a hash keeps all 64 bits");
    ok(isnan(rows.row[1].masking_ratio) && rows.row[1].mfu == 0.4, "what has no meaning stays so");
    hp_run_rows_fini(&rows);
    is_int(hp_store_list(s, 1, &rows, &e), HP_OK, "a list may be limited");
    is_int(rows.n, 1, "to one run");
    hp_run_rows_fini(&rows);

    is_int(hp_store_get(s, first, &rows, &e), HP_OK, "a run is found by its id");
    is_str(rows.row[0].result, "{\"schema\": \"x\"}", "with its JSON");
    is_int(hp_store_get(s, 99, &rows, &e), HP_EUSAGE, "an unknown id is a usage error");
    ok(strstr(e.text, "99") && strstr(e.text, "newest is 2"), "that names it and the newest: %s",
       e.text);
    hp_run_rows_fini(&rows);

    is_int(hp_store_remove(s, first, &e), HP_OK, "a run can be forgotten");
    is_int(hp_store_remove(s, first, &e), HP_EUSAGE, "once");
    hp_store_remove(s, second, &e);
    is_int(hp_store_remove(s, second, &e), HP_EUSAGE, "an empty store says so");
    ok(strstr(e.text, "none yet"), "in words: %s", e.text);
    hp_store_close(s);
    is_int(count(path), 0, "what was removed is gone after opening again");
}

/* A child writes runs until it is killed; says each id it was promised through a pipe. */
static pid_t start_writer(int runs, int *from)
{
    int ends[2];
    if (pipe(ends))
        bail("pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        hp_store *s = NULL;
        hp_errmsg e;
        hp_run_row row = sample();
        int64_t id;
        if (hp_store_open(path, &s, &e))
            _exit(1);
        for (int i = 0; i < runs; i++)
            if (hp_store_add_run(s, &row, &id, &e) || write(ends[1], &id, sizeof id) != sizeof id)
                _exit(1);
        hp_store_close(s);
        _exit(0);
    }
    close(ends[1]);
    *from = ends[0];
    return child;
}

static int drain(int from)
{
    int64_t id;
    int n = 0;
    while (read(from, &id, sizeof id) == sizeof id)
        n++;
    close(from);
    return n;
}

static void test_two_writers(void)
{
    int a, b, status_a, status_b, before = count(path);
    pid_t pa = start_writer(50, &a), pb = start_writer(50, &b);
    int promised = drain(a) + drain(b);
    waitpid(pa, &status_a, 0);
    waitpid(pb, &status_b, 0);
    is_int(promised, 100, "two writers at once both finish");
    ok(status_a == 0 && status_b == 0, "neither fails");
    is_int(count(path) - before, 100, "and every run is there");
}

/* Both make the store that is not there yet. */
static void test_two_openers(void)
{
    int lost = 0;
    for (int turn = 0; turn < 20; turn++) {
        int a, b, status_a, status_b;
        snprintf(path, sizeof path, "%s/fresh%d/store.db", dir, turn);
        pid_t pa = start_writer(1, &a), pb = start_writer(1, &b);
        drain(a);
        drain(b);
        waitpid(pa, &status_a, 0);
        waitpid(pb, &status_b, 0);
        lost += status_a != 0 || status_b != 0 || count(path) != 2;
    }
    is_int(lost, 0, "two processes may make the store at the same moment");
}

static void test_full_disk(void)
{
    char full[160];
    snprintf(full, sizeof full, "%s/full.db", dir);
    hp_store *s = opened(full);
    hp_run_row row = sample();
    hp_errmsg e = {0};
    int64_t id;
    hp_store_add_run(s, &row, &id, &e);
    struct rlimit old, small = {65536, 65536};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    char *big = calloc(1, 1000001);
    memset(big, 'x', 1000000);
    row.result = big;
    is_int(hp_store_add_run(s, &row, &id, &e), HP_EINTERNAL, "a full disk is an error");
    ok(strstr(e.text, "full.db") != NULL, "that names the store: %s", e.text);
    setrlimit(RLIMIT_FSIZE, &old);
    row.result = "{}";
    is_int(hp_store_add_run(s, &row, &id, &e), HP_OK,
           "when there is room again, the store goes on");
    hp_store_close(s);
    is_int(count(full), 2, "and holds what it was promised");
    free(big);
}

static void test_killed_writer(void)
{
    for (int turn = 0; turn < 5; turn++) {
        int from, status, before = count(path);
        int64_t id;
        pid_t child = start_writer(1000000, &from);
        for (int i = 0; i <= turn * 7; i++)
            if (read(from, &id, sizeof id) != sizeof id)
                bail("the writer died early");
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        int promised = turn * 7 + 1 + drain(from), there = count(path) - before;
        ok(there == promised || there == promised + 1,
           "a killed writer loses nothing it was promised (%d, %d there)", promised, there);
    }
}

static char *whole_file(const char *at, size_t *n)
{
    struct stat st;
    int fd = open(at, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        bail("%s can be read", at);
    char *text = malloc((size_t)st.st_size);
    *n = (size_t)read(fd, text, (size_t)st.st_size);
    close(fd);
    return text;
}

static void test_newer_schema(void)
{
    char newer[160], set[64];
    snprintf(newer, sizeof newer, "%s/newer.db", dir);
    hp_store_close(opened(newer));
    snprintf(set, sizeof set, "PRAGMA journal_mode=DELETE; PRAGMA user_version = %d",
             hp_schema_version + 1);
    sql(newer, set);
    size_t n_before, n_after;
    char *before = whole_file(newer, &n_before);
    hp_store *s = NULL;
    hp_errmsg e = {0};
    is_int(hp_store_open(newer, &s, &e), HP_EINTERNAL, "a newer schema is refused");
    ok(s == NULL && strstr(e.text, "newer"), "in words: %s", e.text);
    char *after = whole_file(newer, &n_after);
    ok(n_before == n_after && memcmp(before, after, n_before) == 0, "and the file is untouched");
    free(before);
    free(after);
}

static void test_not_ours(void)
{
    char other[160];
    hp_store *s = NULL;
    hp_errmsg e = {0};
    snprintf(other, sizeof other, "%s/other.db", dir);
    sql(other, "CREATE TABLE theirs (x)");
    is_int(hp_store_open(other, &s, &e), HP_EINTERNAL, "another program's database is refused");
    ok(strstr(e.text, "another program"), "in words: %s", e.text);
    snprintf(other, sizeof other, "%s/text.db", dir);
    FILE *f = fopen(other, "w");
    for (int i = 0; i < 400; i++)
        fputs("this is no database\n", f);
    fclose(f);
    is_int(hp_store_open(other, &s, &e), HP_EINTERNAL, "a file that is no database is refused");
    is_int(hp_store_open("/proc/hpbench/store.db", &s, &e), HP_EINTERNAL,
           "a folder that cannot be made is an error");
    ok(strstr(e.text, "/proc/hpbench"), "that names it: %s", e.text);
}

static void test_migration(void)
{
    char old[160];
    snprintf(old, sizeof old, "%s/old.db", dir);
    sql(old, "PRAGMA application_id = 1752195633"); /* a store before its first table */
    hp_store *s = opened(old);
    hp_errmsg e;
    int64_t id;
    hp_run_row row = sample();
    is_int(hp_store_add_run(s, &row, &id, &e), HP_OK, "a store of version 0 is brought up to date");
    hp_store_close(s);
}

static void test_file_systems(void)
{
    ok(hp_store_wal_works(0xEF53) && hp_store_wal_works(0x01021994), "ext4 and tmpfs hold a WAL");
    ok(!hp_store_wal_works(0x6969) && !hp_store_wal_works(0x0BD00BD0), "NFS and Lustre do not");
    ok(!hp_store_wal_works((long)0xFF534D42) && !hp_store_wal_works((long)(int)0xFF534D42),
       "nor CIFS, however its number is signed");
}

int main(void)
{
    if (!mkdtemp(dir))
        bail("a folder for the test");
    snprintf(path, sizeof path, "%s/state/store.db", dir);
    test_round_trip();
    test_two_writers();
    test_full_disk();
    test_killed_writer();
    test_two_openers();
    test_newer_schema();
    test_not_ours();
    test_migration();
    test_file_systems();
    char command[192];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command))
        diag("%s stays", dir);
    return done_testing();
}

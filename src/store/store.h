/* store.h -- what the workbench remembers: runs with their results, in one SQLite file.
 *
 *     hp_store *s;
 *     if (hp_store_open(NULL, &s, &e) == HP_OK) {
 *         hp_store_add_run(s, &row, &id, &e);
 *         hp_store_close(s);
 *     }
 *
 * A row is written in one transaction after its run has ended, so kill -9 at any moment loses at
 * most the run in flight. Several processes may use one store: writers wait for each other up to
 * ten seconds. The schema has a version: an older file is migrated when it is opened, a newer one
 * is refused and left as it is. Journal: WAL on local disks, rollback on network file systems,
 * where WAL's shared memory does not work (sqlite.org/wal.html). A handle belongs to one thread.
 * Every error is HP_EINTERNAL with the file's name unless said otherwise; callers that can go on
 * without a store turn it into a warning. Room: store; uses base only.
 */
#ifndef HP_STORE_STORE_H
#define HP_STORE_STORE_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_store hp_store;

/* hp_run_row is a run or prediction with the figures that lists show and filters use; NAN and
 * NULL = not known. */
typedef struct hp_run_row {
    int64_t id;        /* given by the store */
    const char *at;    /* UTC, "2026-03-05 14:07:31"; given by the store when NULL */
    const char *mode;  /* "run", "sim", "check" */
    const char *state; /* "done", "interrupted", "failed" */
    const char *model, *cluster, *strategy; /* as asked for */
    uint64_t strategy_hash, seed;
    int n_devices, n_steps;
    double step_s, tokens_per_s, peak_bytes, masking_ratio, mfu, loss;
    const char *result; /* the JSON record; NULL in lists */
} hp_run_row;

typedef struct hp_run_rows {
    int n, cap;
    hp_run_row *row;
    hp_arena arena; /* owns the strings */
} hp_run_rows;

/* hp_store_path sets *path (owned by the caller) to $HPBENCH_STORE, or store.db in the state
 * folder. */
hp_err hp_store_path(char **path, hp_errmsg *e);

/* hp_store_open opens the store at `path` (NULL: hp_store_path), making it and its folder when
 * missing, and migrates an older schema. */
hp_err hp_store_open(const char *path, hp_store **s, hp_errmsg *e);

/* hp_store_close closes; NULL is nothing. */
void hp_store_close(hp_store *s);

/* hp_store_add_run writes a row durably and sets *id. */
hp_err hp_store_add_run(hp_store *s, const hp_run_row *row, int64_t *id, hp_errmsg *e);

/* hp_store_list reads the newest `limit` runs (0 = all), newest first, without their JSON, into
 * *out (zeroed; hp_run_rows_fini). */
hp_err hp_store_list(hp_store *s, int limit, hp_run_rows *out, hp_errmsg *e);

/* hp_store_get appends the run `id` with its JSON to *out; HP_EUSAGE when there is none, naming
 * the newest. */
hp_err hp_store_get(hp_store *s, int64_t id, hp_run_rows *out, hp_errmsg *e);

/* hp_store_remove forgets a run; HP_EUSAGE when there is none. */
hp_err hp_store_remove(hp_store *s, int64_t id, hp_errmsg *e);

/* hp_run_rows_fini frees rows; zeroed = empty. */
void hp_run_rows_fini(hp_run_rows *r);

/* hp_store_wal_works says whether a file system of this statfs type can hold a WAL journal
 * (false for those shared over a network). */
bool hp_store_wal_works(long fs_type);

#endif

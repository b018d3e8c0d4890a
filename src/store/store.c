/* store.c -- the version is read before anything that writes, so that a newer file is never
 * touched; every change runs inside BEGIN IMMEDIATE, so that two writers wait for each other
 * instead of failing half-way. */
#include "store/store.h"

#include "base/paths.h"
#include "store/schema.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

enum { BUSY_MS = 10000, APPLICATION_ID = 0x68706231 /* "hpb1" */ };

struct hp_store {
    sqlite3 *db;
    char *path;
};

static hp_err fail(const hp_store *s, hp_errmsg *e)
{
    return hp_fail(e, HP_EINTERNAL, "store %s: %s", s->path,
                   s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static hp_err run_sql(hp_store *s, const char *sql, hp_errmsg *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? HP_OK : fail(s, e);
}

static hp_err prepare(hp_store *s, const char *sql, sqlite3_stmt **q, hp_errmsg *e)
{
    return sqlite3_prepare_v2(s->db, sql, -1, q, NULL) == SQLITE_OK ? HP_OK : fail(s, e);
}

static hp_err read_pragma(hp_store *s, const char *sql, int *value, hp_errmsg *e)
{
    sqlite3_stmt *q;
    hp_err err = prepare(s, sql, &q, e);
    if (err)
        return err;
    if (sqlite3_step(q) == SQLITE_ROW)
        *value = sqlite3_column_int(q, 0);
    else
        err = fail(s, e);
    sqlite3_finalize(q);
    return err;
}

/* Ends the transaction that is open: commits, or takes everything back where something failed. */
static hp_err end_change(hp_store *s, hp_err err, hp_errmsg *e)
{
    if (!err)
        err = run_sql(s, "COMMIT", e);
    if (err && !sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

/* --- opening --- */

bool hp_store_wal_works(long fs_type)
{
    static const unsigned long shared[] = {
        0x6969,     /* NFS */
        0x0BD00BD0, /* Lustre */
        0xFF534D42, /* CIFS */
        0xFE534D42, /* SMB2 */
        0x517B,     /* SMB */
        0x01021997, /* 9p */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x00C36400, /* Ceph */
        0x5346414F, /* AFS */
        0x65735546, /* FUSE: may be sshfs */
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (((unsigned long)fs_type & 0xFFFFFFFFul) == shared[i])
            return false;
    return true;
}

hp_err hp_store_path(char **path, hp_errmsg *e)
{
    const char *asked = getenv("HPBENCH_STORE");
    if (asked && *asked) {
        *path = hp_xstrdup(asked);
        return HP_OK;
    }
    char *state;
    hp_err err = hp_paths_state(&state, e);
    if (err)
        return err;
    *path = hp_paths_join(state, "store.db");
    free(state);
    return HP_OK;
}

static hp_err make_folder(const char *path, hp_errmsg *e)
{
    char *dir = hp_xstrdup(path);
    char *slash = strrchr(dir, '/');
    hp_err err = HP_OK;
    if (slash && slash != dir) {
        *slash = '\0';
        err = hp_paths_make(dir, e);
    }
    free(dir);
    return err ? hp_fail_at(e, "store %s", path) : HP_OK;
}

/* Refuses files that are not ours to change: another program's, or a newer schema's. */
static hp_err check_ours(hp_store *s, int *version, hp_errmsg *e)
{
    int id = 0, pages = 0;
    hp_err err = run_sql(s, "BEGIN", e); /* the three belong to one moment */
    if (!err)
        err = read_pragma(s, "PRAGMA user_version", version, e);
    if (!err)
        err = read_pragma(s, "PRAGMA application_id", &id, e);
    if (!err)
        err = read_pragma(s, "PRAGMA page_count", &pages, e);
    err = end_change(s, err, e);
    if (err)
        return err;
    if (pages > 0 && id != APPLICATION_ID)
        return hp_fail(
            e, HP_EINTERNAL,
            "store %s: this is another program's database; set HPBENCH_STORE to another file",
            s->path);
    if (*version > hp_schema_version)
        return hp_fail(e, HP_EINTERNAL,
                       "store %s: its schema %d is newer than this program's (%d) and is left "
                       "alone; use a newer hpbench, or set "
                       "HPBENCH_STORE to another file",
                       s->path, *version, hp_schema_version);
    return HP_OK;
}

static hp_err migrate(hp_store *s, hp_errmsg *e)
{
    int version = 0;
    hp_err err = run_sql(s, "BEGIN IMMEDIATE", e);
    if (err)
        return err;
    err = read_pragma(s, "PRAGMA user_version", &version,
                      e); /* again: another process may have been first */
    for (; !err && version < hp_schema_version; version++)
        err = run_sql(s, hp_schema[version], e);
    if (!err) {
        char set[96];
        snprintf(set, sizeof set, "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
                 APPLICATION_ID);
        err = run_sql(s, set, e);
    }
    return end_change(s, err, e);
}

/* The mode cannot change while another process has the file open; then the one it has serves as
 * well. */
static void set_journal(hp_store *s)
{
    struct statfs fs;
    bool wal = statfs(s->path, &fs) == 0 && hp_store_wal_works((long)fs.f_type);
    sqlite3_exec(s->db, wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE", NULL,
                 NULL, NULL);
}

static hp_err open_checked(hp_store *s, hp_errmsg *e)
{
    int version = 0;
    if (sqlite3_open_v2(s->path, &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return fail(s, e);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    hp_err err = check_ours(s, &version, e);
    if (err)
        return err;
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    if (version < hp_schema_version && (err = migrate(s, e)) != HP_OK)
        return err;
    set_journal(s);
    return run_sql(s, "PRAGMA synchronous = FULL", e);
}

hp_err hp_store_open(const char *path, hp_store **out, hp_errmsg *e)
{
    hp_store *s = hp_xcalloc(1, sizeof *s);
    hp_err err = HP_OK;
    if (path)
        s->path = hp_xstrdup(path);
    else
        err = hp_store_path(&s->path, e);
    if (!err)
        err = make_folder(s->path, e);
    if (!err)
        err = open_checked(s, e);
    if (err)
        hp_store_close(s);
    else
        *out = s;
    return err;
}

void hp_store_close(hp_store *s)
{
    if (!s)
        return;
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

/* --- runs --- */

static void bind_real(sqlite3_stmt *q, int at, double v)
{
    if (isnan(v))
        sqlite3_bind_null(q, at);
    else
        sqlite3_bind_double(q, at, v);
}

static void bind_text(sqlite3_stmt *q, int at, const char *s)
{
    sqlite3_bind_text(q, at, s ? s : "", -1, SQLITE_STATIC);
}

static void bind_row(sqlite3_stmt *q, const hp_run_row *r)
{
    const char *const text[] = {r->mode, r->state, r->model, r->cluster, r->strategy};
    const double real[] = {r->step_s,        r->tokens_per_s, r->peak_bytes,
                           r->masking_ratio, r->mfu,          r->loss};
    int at = 1;
    for (int i = 0; i < 5; i++)
        bind_text(q, at++, text[i]);
    sqlite3_bind_int64(q, at++, (int64_t)r->strategy_hash);
    sqlite3_bind_int64(q, at++, (int64_t)r->seed);
    sqlite3_bind_int(q, at++, r->n_devices);
    sqlite3_bind_int(q, at++, r->n_steps);
    for (int i = 0; i < 6; i++)
        bind_real(q, at++, real[i]);
    bind_text(q, at++, r->result);
    if (r->at)
        bind_text(q, at, r->at);
}

hp_err hp_store_add_run(hp_store *s, const hp_run_row *row, int64_t *id, hp_errmsg *e)
{
    sqlite3_stmt *q = NULL;
    hp_err err = run_sql(s, "BEGIN IMMEDIATE", e);
    if (err)
        return err;
    err = prepare(s,
                  "INSERT INTO runs (mode, state, model, cluster, strategy, strategy_hash, seed, "
                  "n_devices, n_steps, step_s,"
                  " tokens_per_s, peak_bytes, masking_ratio, mfu, loss, result, at)"
                  " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,coalesce(?,datetime('now')))",
                  &q, e);
    if (!err) {
        bind_row(q, row);
        err = sqlite3_step(q) == SQLITE_DONE ? HP_OK : fail(s, e);
        sqlite3_finalize(q);
    }
    int64_t added = sqlite3_last_insert_rowid(s->db);
    err = end_change(s, err, e);
    if (!err)
        *id = added;
    return err;
}

static double column_real(sqlite3_stmt *q, int at)
{
    return sqlite3_column_type(q, at) == SQLITE_NULL ? NAN : sqlite3_column_double(q, at);
}

#define RUN_COLUMNS                                                                                \
    "id, at, mode, state, model, cluster, strategy, strategy_hash, seed, n_devices, n_steps, "     \
    "step_s, tokens_per_s, peak_bytes, "                                                           \
    "masking_ratio, mfu, loss"

static hp_run_row read_row(sqlite3_stmt *q, hp_arena *a)
{
    hp_run_row r = {.id = sqlite3_column_int64(q, 0)};
    const char **text[] = {&r.at, &r.mode, &r.state, &r.model, &r.cluster, &r.strategy};
    for (int i = 0; i < 6; i++) {
        const char *s = (const char *)sqlite3_column_text(q, 1 + i);
        *text[i] = hp_arena_strdup(a, s ? s : "");
    }
    r.strategy_hash = (uint64_t)sqlite3_column_int64(q, 7);
    r.seed = (uint64_t)sqlite3_column_int64(q, 8);
    r.n_devices = sqlite3_column_int(q, 9);
    r.n_steps = sqlite3_column_int(q, 10);
    double *real[] = {&r.step_s, &r.tokens_per_s, &r.peak_bytes, &r.masking_ratio, &r.mfu, &r.loss};
    for (int i = 0; i < 6; i++)
        *real[i] = column_real(q, 11 + i);
    const char *json =
        sqlite3_column_count(q) > 17 ? (const char *)sqlite3_column_text(q, 17) : NULL;
    r.result = json ? hp_arena_strdup(a, json) : NULL;
    return r;
}

/* Steps through a query of RUN_COLUMNS with one bound number and finalizes it. */
static hp_err read_rows(hp_store *s, const char *sql, int64_t bound, hp_run_rows *out, hp_errmsg *e)
{
    sqlite3_stmt *q;
    hp_err err = prepare(s, sql, &q, e);
    if (err)
        return err;
    sqlite3_bind_int64(q, 1, bound);
    int got;
    while ((got = sqlite3_step(q)) == SQLITE_ROW) {
        out->row = hp_grow(out->row, &out->cap, out->n + 1, sizeof *out->row);
        out->row[out->n++] = read_row(q, &out->arena);
    }
    if (got != SQLITE_DONE)
        err = fail(s, e);
    sqlite3_finalize(q);
    return err;
}

hp_err hp_store_list(hp_store *s, int limit, hp_run_rows *out, hp_errmsg *e)
{
    return read_rows(s, "SELECT " RUN_COLUMNS " FROM runs ORDER BY id DESC LIMIT ?",
                     limit > 0 ? limit : -1, out, e);
}

static hp_err no_such_run(hp_store *s, int64_t id, hp_errmsg *e)
{
    int newest = 0;
    hp_err err = read_pragma(s, "SELECT coalesce(max(id), 0) FROM runs", &newest, e);
    if (err)
        return err;
    if (newest == 0)
        return hp_fail(e, HP_EUSAGE, "no run %lld: the store holds none yet", (long long)id);
    return hp_fail(e, HP_EUSAGE, "no run %lld in the store; the newest is %d", (long long)id,
                   newest);
}

hp_err hp_store_get(hp_store *s, int64_t id, hp_run_rows *out, hp_errmsg *e)
{
    int before = out->n;
    hp_err err = read_rows(s, "SELECT " RUN_COLUMNS ", result FROM runs WHERE id = ?", id, out, e);
    return err || out->n > before ? err : no_such_run(s, id, e);
}

hp_err hp_store_remove(hp_store *s, int64_t id, hp_errmsg *e)
{
    sqlite3_stmt *q = NULL;
    hp_err err = run_sql(s, "BEGIN IMMEDIATE", e);
    if (err)
        return err;
    err = prepare(s, "DELETE FROM runs WHERE id = ?", &q, e);
    if (!err) {
        sqlite3_bind_int64(q, 1, id);
        err = sqlite3_step(q) == SQLITE_DONE ? HP_OK : fail(s, e);
        sqlite3_finalize(q);
    }
    int gone = sqlite3_changes(s->db);
    err = end_change(s, err, e);
    return err || gone > 0 ? err : no_such_run(s, id, e);
}

void hp_run_rows_fini(hp_run_rows *r)
{
    free(r->row);
    hp_arena_fini(&r->arena);
    *r = (hp_run_rows){0};
}

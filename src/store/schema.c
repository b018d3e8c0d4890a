/* schema.c -- a released entry never changes: stores that have run it exist. */
#include "store/schema.h"

const char *const hp_schema[] = {
    "CREATE TABLE runs ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  at TEXT NOT NULL DEFAULT (datetime('now')),"
    "  mode TEXT NOT NULL, state TEXT NOT NULL,"
    "  model TEXT NOT NULL, cluster TEXT NOT NULL, strategy TEXT NOT NULL,"
    "  strategy_hash INTEGER NOT NULL, seed INTEGER NOT NULL,"
    "  n_devices INTEGER NOT NULL, n_steps INTEGER NOT NULL,"
    "  step_s REAL, tokens_per_s REAL, peak_bytes REAL, masking_ratio REAL, mfu REAL, loss REAL,"
    "  result TEXT NOT NULL"
    ");"
    "CREATE INDEX runs_by_strategy ON runs (strategy_hash);",
};

const int hp_schema_version = sizeof hp_schema / sizeof *hp_schema;

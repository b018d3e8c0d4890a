/* meter.h -- what a script may still spend, and how C ends it.
 *
 * One meter belongs to one Lua state. It is the state's allocator and its count hook; C functions that loop charge it. Once something is
 * spent it stays spent: every further instruction raises. Room: script.
 */
#ifndef HP_SCRIPT_METER_H
#define HP_SCRIPT_METER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct lua_State;

/* hp_sandbox_limits are the budgets; zero means the default: 20 million instructions, 256 MiB, 32 MiB a block, 1.5 s. */
typedef struct hp_sandbox_limits {
    int64_t instructions;
    size_t bytes, block_bytes;
    double seconds;
} hp_sandbox_limits;

typedef struct hp_meter {
    hp_sandbox_limits limit;
    int64_t left;       /* instructions */
    size_t bytes;       /* allocated now */
    const char *spent;  /* what ran out, NULL while nothing did; sticky */
    int64_t started_ns; /* of the outermost call, 0 outside */
    int64_t used_ns;    /* by calls that are over */
    char *script;       /* the chunk that runs, for errors behind a tail call; owned */
    hp_err raised;      /* code of the last hp_script_raise, and its text; owned */
    char *raised_text;
} hp_meter;

/* hp_meter_init sets the limits (NULL or zero: defaults); hp_meter_fini frees the texts. */
void hp_meter_init(hp_meter *m, const hp_sandbox_limits *limits);
void hp_meter_fini(hp_meter *m);

/* hp_meter_allocate is the lua_Alloc of a state whose `ud` is its meter. */
void *hp_meter_allocate(void *ud, void *p, size_t old, size_t size);

/* hp_meter_watch starts counting the instructions of L, whose allocator is the meter's. */
void hp_meter_watch(struct lua_State *L);

/* hp_meter_begin and hp_meter_end bracket a call from outside; begin says whether it is the outermost, end takes that answer. */
int hp_meter_begin(hp_meter *m);
void hp_meter_end(hp_meter *m, int outermost);

/* hp_script_raise ends the running script with `code` and a message at the script's line; for C functions called by Lua. */
int hp_script_raise(struct lua_State *L, hp_err code, const char *fmt, ...) HP_PRINTF(3, 4);

/* hp_script_where pushes "file:line: " of the innermost script function ("file: " where a tail call dropped it). */
void hp_script_where(struct lua_State *L);

/* hp_script_charge takes `units` from the instruction budget and raises when it is spent; for C functions that loop. */
void hp_script_charge(struct lua_State *L, int64_t units);

#endif

/* sandbox.h -- a Lua state in which a script can do nothing but compute, for a bounded time.
 *
 * No files, processes, network, os, io, debug, coroutines, random numbers or loading of code; `require` finds the modules of lua/ alone. Four
 * budgets hold for a sandbox's whole life, and once one is spent every further instruction raises, so that no pcall loop outlives it:
 * instructions (functions written in C charge what they cost: pattern steps, moved elements, allocated bytes), bytes in all, bytes in one
 * block, and seconds as the last resort. Metatables with `__gc` are refused; string.find, match, gmatch and gsub are a matcher of our own that
 * charges every step (script/pattern.h).
 *
 * A script runs in an environment of *words* that its kind of script has (model, strategy, cluster ...): an unknown word is an error with
 * the nearest known one. Modules of lua/ are trusted: an error that they raise by hp_script_raise (script/meter.h), or by the word `fail`, names the script's
 * line, not theirs. Not for several threads at once. Room: script; uses base.
 */
#ifndef HP_SCRIPT_SANDBOX_H
#define HP_SCRIPT_SANDBOX_H

#include "base/err.h"
#include "script/meter.h"

#include <stddef.h>
#include <stdint.h>

struct lua_State;

typedef struct hp_sandbox hp_sandbox;

/* hp_sandbox_new makes a sandbox with the safe words of Lua; `limits` may be NULL. HP_EINTERNAL where the data folder is missing. */
hp_err hp_sandbox_new(const hp_sandbox_limits *limits, hp_sandbox **out, hp_errmsg *e);

/* hp_sandbox_free ends the state and everything in it; NULL is nothing. */
void hp_sandbox_free(hp_sandbox *sb);

/* hp_sandbox_lua returns the Lua state, for C functions that a kind of script adds; borrowed. */
struct lua_State *hp_sandbox_lua(hp_sandbox *sb);

/* hp_sandbox_of returns the sandbox that a Lua state belongs to. */
hp_sandbox *hp_sandbox_of(struct lua_State *L);

/* hp_sandbox_module leaves the value of module lua/NAME.lua on the stack; it runs the first time it is asked for. */
hp_err hp_sandbox_module(hp_sandbox *sb, const char *name, hp_errmsg *e);

/* hp_sandbox_words adds the fields of the table `words` of module lua/NAME.lua to the words of scripts. */
hp_err hp_sandbox_words(hp_sandbox *sb, const char *name, hp_errmsg *e);

/* hp_sandbox_function gives the modules of lua/ (not scripts) a function of C: `fn` finds `ctx` (borrowed) as its first upvalue, a
 * light userdata. */
void hp_sandbox_function(hp_sandbox *sb, const char *name, int (*fn)(struct lua_State *L),
                         void *ctx);

/* hp_sandbox_file runs the script at `path` with the words so far and leaves its one result on the stack. HP_EINPUT: cannot be read,
 * is longer than 1 MiB, is a binary chunk, does not parse, or raises: "file:line: what". */
hp_err hp_sandbox_file(hp_sandbox *sb, const char *path, hp_errmsg *e);

/* hp_sandbox_text does the same for `n` bytes of text; `name` stands before its lines in messages. */
hp_err hp_sandbox_text(hp_sandbox *sb, const char *name, const char *text, size_t n, hp_errmsg *e);

/* hp_sandbox_call calls the function and `n_args` arguments on top of the stack in protected mode and leaves one result. */
hp_err hp_sandbox_call(hp_sandbox *sb, int n_args, hp_errmsg *e);

#endif

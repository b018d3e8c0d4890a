/* pattern.h -- Lua's patterns with a budget: string.find, match, gmatch and gsub whose every step is charged.
 *
 * The same language as Lua 5.4's own (classes, sets, * + - ?, %b, %f, captures, anchors). The stock matcher runs between two instructions,
 * where no hook reaches it, and backtracks polynomially: a pattern bomb would hang. Room: script.
 */
#ifndef HP_SCRIPT_PATTERN_H
#define HP_SCRIPT_PATTERN_H

struct lua_State;

/* hp_pattern_open puts find, match, gmatch, gsub and a bounded rep into the table on top of the stack. */
void hp_pattern_open(struct lua_State *L);

#endif

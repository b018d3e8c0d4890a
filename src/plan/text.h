/* text.h -- a plan as text, and back: what exec's child process is given, what people and diffs read. Room: plan. */
#ifndef HP_PLAN_TEXT_H
#define HP_PLAN_TEXT_H

#include "plan/plan.h"

/* hp_plan_print appends the whole plan. */
void hp_plan_print(const hp_plan *p, hp_str *out);

/* hp_plan_parse reads what hp_plan_print wrote; HP_EINPUT names line, word and what would be legal. The caller frees *plan. */
hp_err hp_plan_parse(const char *text, hp_plan **plan, hp_errmsg *e);

#endif

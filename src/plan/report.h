/* report.h -- a plan for people: what moves and why, what lies where, who talks to whom. Room: plan. */
#ifndef HP_PLAN_REPORT_H
#define HP_PLAN_REPORT_H

#include "plan/plan.h"

/* hp_report_why appends one line for every transfer of a plan: name, kind, axis, bytes a device sends, tensor, from, to, consumer. */
void hp_report_why(const hp_plan *p, hp_str *out);

/* hp_report_comm appends bytes and counts a device and step, by program, axis and kind. */
void hp_report_comm(const hp_plan *p, hp_str *out);

/* hp_report_memory appends the arena of every program by scope and kind, and its largest buffers. */
void hp_report_memory(const hp_plan *p, hp_str *out);

/* hp_report_groups appends every axis with its groups of device numbers. */
void hp_report_groups(const hp_plan *p, hp_str *out);

/* hp_task_runs returns how often a task of a template runs in one step of a program. */
int hp_task_runs(const hp_program *p, int tmpl, const hp_task *t);

#endif

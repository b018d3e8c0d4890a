/* child.h -- a run in a process of its own, so that a crash of the engine takes nothing with it.
 *
 *     hp_exec_child *c;
 *     if (!hp_exec_spawn(plan, &options, &c, &e)) {
 *         while (!hp_exec_child_ended(c, 100000000))      // or poll hp_exec_child_fd
 *             look_at(hp_exec_child_segment(c));           // metrics, spans of the running step
 *         rc = hp_exec_child_result(c, &e);                // e names the signal after a crash
 *         ... the segment and the taps stay readable ...
 *         hp_exec_child_free(c);
 *     }
 *
 * The child is this binary again (execve of /proc/self/exe with `__exec`, handled by hp_exec_child_main); it is given the plan and the options as text,
 * the segment, and a control pipe. When the parent dies, the child sees the pipe close and ends. Not thread-safe: one owner a child. Room: exec.
 */
#ifndef HP_EXEC_CHILD_H
#define HP_EXEC_CHILD_H

#include "exec/segment.h"

typedef struct hp_exec_child hp_exec_child;

/* hp_exec_spawn starts a run of `p`, which must outlive the child's handle. LOAD tasks read o->corpus with o->data (vocab and zigzag default to the
 * plan's). HP_EINTERNAL when the machine refuses. */
hp_err hp_exec_spawn(const hp_plan *p, const hp_exec_options *o, hp_exec_child **out, hp_errmsg *e);

/* hp_exec_child_fd returns a descriptor that polls readable once the child has ended; -1 on kernels without. */
int hp_exec_child_fd(const hp_exec_child *c);

/* hp_exec_child_ended says whether the child has ended, waiting up to timeout_ns for it. */
bool hp_exec_child_ended(hp_exec_child *c, int64_t timeout_ns);

/* hp_exec_child_cancel asks the run to end: the first call at the step's end, the second at once, the third kills it. */
void hp_exec_child_cancel(hp_exec_child *c);

/* hp_exec_child_result waits for the end and returns the run's own error, or HP_EINTERNAL with signal, step, task and last words of a child that
 * crashed. */
hp_err hp_exec_child_result(hp_exec_child *c, hp_errmsg *e);

/* hp_exec_child_segment and hp_exec_child_expansion are borrowed until hp_exec_child_free. */
hp_segment *hp_exec_child_segment(const hp_exec_child *c);
const hp_expansion *hp_exec_child_expansion(const hp_exec_child *c);

/* hp_exec_child_tap reads the next kept output (options.tap) of a child that has ended; *cursor starts at 0. False behind the last. The
 * operand's data is borrowed until hp_exec_child_free. */
bool hp_exec_child_tap(hp_exec_child *c, int64_t *cursor, hp_exec_tap *t);

/* hp_exec_child_free ends the child if it still runs, and frees all; NULL is nothing. */
void hp_exec_child_free(hp_exec_child *c);

/* hp_exec_child_main is the child's side: what main does with `__exec` as first argument. Returns the exit status. */
int hp_exec_child_main(int argc, char **argv);

#endif

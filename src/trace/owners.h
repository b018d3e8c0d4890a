/* owners.h -- who owns each instant of a device's step.
 *
 * Every nanosecond of [0, step) has exactly one owner, so the owners add up to the step: `compute`
 * (a compute lane is busy, nothing is in transfer), `overlapped` (compute and transfer), and while
 * compute is idle what is missing for the compute task that starts next (the first of all lanes):
 * of its dependencies the one satisfied last. Data in flight on a collective or send is `exposed`
 * by the role of its axis; a copy between tiers is exposed[offload]; a message that its stage has
 * not sent yet (or its receiver not yet taken) is `bubble`; a partner that has not arrived at a
 * collective is `wait`; when everything was there, it is `host`. What has not begun either is
 * traced through what *it* lacks. After the last compute task the unfinished task that ends last is
 * asked; after that, `free`.
 *
 * A transfer runs from the last participant's arrival to done. Masking ratio = |transfers ∩
 * compute| / |transfers| on unions of intervals. A COLL that only slices moves nothing: it is
 * compute. Times are integer nanoseconds throughout. Room: trace; uses plan.
 */
#ifndef HP_TRACE_OWNERS_H
#define HP_TRACE_OWNERS_H

#include "trace/result.h"
#include "trace/trace.h"

typedef enum hp_owner {
    HP_OWNER_COMPUTE,
    HP_OWNER_OVERLAPPED,
    HP_OWNER_BUBBLE,
    HP_OWNER_WAIT,
    HP_OWNER_HOST,
    HP_OWNER_FREE,
    HP_OWNER_EXPOSED, /* + role: HP_OWNER_EXPOSED + HP_ROLE_TP, ..., + HP_OWN_OFFLOAD */
    HP_OWNERS = HP_OWNER_EXPOSED + HP_OWN_ROLES
} hp_owner;

enum { HP_OWN_OFFLOAD = HP_OWN_ROLES - 1 };

/* hp_owner_name returns "compute", "overlapped", "bubble", "wait", "host", "free", "exposed.tp",
 * ... */
const char *hp_owner_name(hp_owner o);

/* hp_owner_fn is told [from, to) and who owns it; `inst` is the task to blame (the one running, or
 * the one that is missing), -1 for free. */
typedef void hp_owner_fn(void *ctx, int64_t from, int64_t to, hp_owner owner, int inst);

/* hp_owners_visit tells the owners of a device's step in ascending order, without gaps. `spans` are
 * the device's instances; those that never ended are passed over, times beyond [0, step_ns) are cut
 * off. */
void hp_owners_visit(const hp_program *p, const hp_expansion *x, const hp_span *spans,
                     int64_t step_ns, hp_owner_fn *fn, void *ctx);

/* hp_axis_use sums the transfers of one axis, under the name people know it by. */
typedef struct hp_axis_use {
    char name[32];
    int64_t comm_ns, masked_ns; /* unions of intervals; what compute hides of them */
    int64_t bytes;              /* sent */
} hp_axis_use;

enum { HP_MAX_AXIS_USES = 24 };

typedef struct hp_owned {
    int64_t step_ns;
    int64_t ns[HP_OWNERS];
    int64_t comm_ns, masked_ns;      /* all transfers together */
    int64_t copy_ns, copy_masked_ns; /* copies between tiers */
    int n_axes;
    hp_axis_use axis[HP_MAX_AXIS_USES]; /* by name */
} hp_owned;

/* hp_owners_sum returns the owners of a device's step, summed. */
hp_owned hp_owners_sum(const hp_program *p, const hp_expansion *x, const hp_span *spans,
                       int64_t step_ns);

/* hp_owned_seconds converts; the fields add up to step_s within rounding of doubles. */
hp_owned_time hp_owned_seconds(const hp_owned *o);

/* hp_ratio returns part / whole in [0,1], NAN for whole = 0. */
double hp_ratio(int64_t part, int64_t whole);

/* What a task is to a timeline. */
typedef enum hp_task_class { HP_TC_COMPUTE, HP_TC_TRANSFER, HP_TC_COPY } hp_task_class;
hp_task_class hp_task_class_of(const hp_task *t);

/* hp_task_role returns the HP_OWN index of a transfer's or copy's axis; hp_task_axis writes the
 * axis' name and returns buf. */
int hp_task_role(const hp_program *p, const hp_task *t);
char *hp_task_axis(const hp_program *p, const hp_task *t, char *buf, size_t n);

#endif

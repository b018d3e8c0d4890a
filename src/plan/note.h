/* note.h -- something a build decided or assumed, and says. Room: plan. */
#ifndef HP_PLAN_NOTE_H
#define HP_PLAN_NOTE_H

/* hp_note is one derived value: ("dp", "4", "derived from 8 devices"). */
typedef struct hp_note {
    const char *name, *value, *source;
} hp_note;

#endif

/* table.h -- the result record for people: plain text of at most 80 columns, figures right-aligned
 * with their unit, bars for what is divided, nothing by colour.
 *
 * UTF-8 block characters where the reader's terminal has them, else ASCII that shows the same.
 * Room: fmt.
 */
#ifndef HP_FMT_TABLE_H
#define HP_FMT_TABLE_H

#include "base/str.h"
#include "trace/result.h"

#include <stdbool.h>

typedef struct hp_table_style {
    bool utf8;    /* block characters may be used */
    bool verbose; /* every assumption, not only the unverified ones */
} hp_table_style;

/* hp_table_result appends the report of a run or prediction. */
void hp_table_result(const hp_result *r, hp_table_style style, hp_str *out);

/* hp_table_compare appends 2 to 64 results side by side: what differs first, with the change
 * against the first, then what is equal. name[i] heads a column. */
void hp_table_compare(int n, const char *const *name, const hp_result *const *r, hp_str *out);

/* hp_table_spark appends a curve of n values as `width` characters at most, the mean of each
 * piece; NAN leaves a blank. */
void hp_table_spark(const double *v, int n, int width, bool utf8, hp_str *out);

/* hp_table_count writes a number with thousands set apart ("1,048,576") into buf and returns
 * buf; "-" for NAN. */
char *hp_table_count(double v, char *buf, size_t n);

#endif

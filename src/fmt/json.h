/* json.h -- the result record as JSON, schema `hpbench.result.v1`, and back.
 *
 * The schema is in share/doc/cli.md: every key is there, null where it has no meaning, units in the
 * names. Reading accepts what writing made, of this and of older versions (an absent key has no
 * meaning), so that stored runs stay readable. Room: fmt.
 */
#ifndef HP_FMT_JSON_H
#define HP_FMT_JSON_H

#include "base/err.h"
#include "base/str.h"
#include "trace/result.h"

#define HP_RESULT_SCHEMA "hpbench.result.v1"

/* hp_json_result appends the record, ending with a newline. */
void hp_json_result(const hp_result *r, hp_str *out);

/* hp_json_read_result reads what hp_json_result wrote into a new record (hp_result_free).
 * HP_EINPUT names the line of a syntax error, a wrong schema or the first key of the wrong type;
 * then *out is untouched. */
hp_err hp_json_read_result(const char *text, hp_result **out, hp_errmsg *e);

#endif

/* request.h -- what the commands that plan have in common: -m, -c, -s, -o, --seed, --format, -q,
 * -v. Room: cli. */
#ifndef HP_CLI_REQUEST_H
#define HP_CLI_REQUEST_H

#include "cli/args.h"
#include "session/load.h"

/* Rows of a command's table of flags. */
#define HP_FLAGS_CASE                                                                              \
    {"model", 'm', "M", "a name in models/, a .lua file or a Hugging Face config.json", false},    \
        {"cluster", 'c', "C", "NAME:COUNT (host:4, h100-sxm:512, tpu-v5p:8x8x8) or a .lua file",   \
         false},                                                                                   \
        {"strategy", 's', "S",                                                                     \
         "a shorthand list (dp=2,tp=2,sp), a name in share/strategies or a .lua file", false},     \
    {                                                                                              \
        "override", 'o', "KEY=VALUE",                                                              \
            "override a key: model.seq=64, cluster.hbm_bytes=16GiB, strategy.batch.micro=1", true  \
    }
#define HP_FLAGS_OUTPUT(formats)                                                                   \
    {"format", 'f', "NAME[:PATH]",                                                                 \
     "write the result as " formats "; to standard output without PATH", true},                    \
        {"quiet", 'q', NULL, "no report and no progress", false},                                  \
    {                                                                                              \
        "verbose", 'v', NULL, "every assumption in the report", false                              \
    }

/* hp_request_ask fills *ask from -m, -c, -s and -o; hp_ask_fini in any case. */
hp_err hp_request_ask(const hp_args *a, hp_ask *ask, hp_errmsg *e);

/* hp_request_formats checks every --format against `n` names before anything is run. */
hp_err hp_request_formats(const hp_args *a, int n, const char *const *names, hp_errmsg *e);

/* hp_request_format returns the value of `--format=name[:PATH]`: NULL when it is not asked for,
 * "" for standard output, else the path. */
const char *hp_request_format(const hp_args *a, const char *name);

/* hp_request_wants_report says whether the report for people goes to standard output: not with
 * -q, and not when a format already goes there. */
bool hp_request_wants_report(const hp_args *a);

/* hp_request_write writes text to standard output ("" or "-") or to a file, whole or not at all.
 * HP_EINTERNAL names the file. */
hp_err hp_request_write(const char *path, const hp_str *text, hp_errmsg *e);

/* hp_request_utf8 says whether the reader's terminal shows UTF-8. */
bool hp_request_utf8(void);

#endif

/* strategy.h -- a strategy as written: what a script or a shorthand said, in normal form, without any Lua value.
 *
 * Everything that names axes, dimensions or modules is text here ("a+b", "layers.*.resid") and is resolved against a model and a
 * cluster by plan/resolve.h. Keyed parts are sorted by script; glob lists keep their order (the last match wins). hp_strategy_print writes the
 * canonical text, which is hashed, diffed and shown. All strings are owned by `arena`. Room: plan.
 */
#ifndef HP_PLAN_STRATEGY_H
#define HP_PLAN_STRATEGY_H

#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>

/* hp_rule is one entry of a glob list: for what matches `glob`, `key` is `value` ("layers.*.resid", "seq", "tp"). */
typedef struct hp_rule {
    const char *glob, *key, *value;
} hp_rule;

typedef struct hp_rules {
    int n, cap;
    hp_rule *rule;
} hp_rules;

/* hp_split_rule sends a dimension word to an axis: { "heads", "tp" }; `order` "zigzag" for load-balanced sequence splits, else NULL. */
typedef struct hp_split_rule {
    const char *dim, *axes, *order;
} hp_split_rule;

typedef struct hp_splits {
    int n;
    hp_split_rule rule[32];
} hp_splits;

typedef struct hp_strategy {
    hp_arena arena;
    const char *name;      /* file stem or "shorthand" */
    const char *shorthand; /* as typed, NULL for a script */
    const char *mode;      /* "train" or "decode" */
    int n_views;
    const char *view_name[8], *view_mesh[8]; /* "", "pp=8, dp=*, tp=2"; `*` and silence about dp kept */
    hp_splits split, param_split;            /* ordered, the first match takes the axis; param_split.n = -1: as split without batch and seq */
    hp_rules layout;                         /* keys: dimension words, "store", "dtype"; value axes or "whole" */
    struct {
        const char *like;                    /* dialect: "megatron", "fsdp2", "deepspeed", ... */
        const char *params, *grads, *optimizer; /* axes over which each is split (ZeRO), NULL = as computed */
        hp_rules over;                       /* per glob: keys params, grads, optimizer */
        int n_units;
        const char *unit[64];                /* globs gathered and freed together */
        const char *after_forward;           /* "free" (default), "keep", "shard:8" */
        const char *reduce_dtype, *reduce_between;
    } states;
    struct {
        int64_t global, micro, accum;        /* sequences; 0 = derived */
        const char *normalise;               /* "tokens" */
    } batch;
    hp_rules recompute;                      /* key "what": inside | discard | none | per-child | uniform:N | op names */
    struct {
        bool grads, params, pp, cp, ep;
        int64_t bucket_bytes;                /* gradient bucket, 0 = one tensor each */
        int ahead;                           /* units gathered ahead */
        int64_t ahead_limit;
        int tp_chunks;
    } overlap;
    struct {
        const char *over, *schedule;         /* axis, "1f1b" ... */
        int vpp;
        const char *stages;                  /* "even", "balance" or NULL when `stage` lists them */
        int n_stages;
        const char *stage[256];              /* "embed layers[0:7]" */
    } pipeline;
    struct {
        const char *inner, *outer, *send;    /* "ulysses:8", "ring" | "gather", "kv" */
    } cp;
    struct {
        const char *routing;                 /* "dropless" or a capacity factor "1.25" */
        double headroom, imbalance;          /* defaults 2 and 1 */
        int tiles;
        const char *shared;
    } moe;
    bool uneven;                             /* what does not divide is cut by ceil instead of refused */
    hp_rules cuts;                           /* glob = dimension word, key "cut", value chunk | balanced | "3+2+2" */
    const char *dtype;                       /* "f32" (default) or "bf16" compute and storage with f32 master weights */
    int64_t hbm_bytes;                       /* budget, 0 = the cluster's */
    hp_rules offload;                        /* keys want, to, step */
    int zero;                                /* as said in the shorthand, -1 when silent */
    hp_rules other;                          /* keys that later rooms own (edges, groups, serve, ...), kept verbatim: key, value as text */
} hp_strategy;

/* hp_strategy_new returns an empty strategy with the defaults above; hp_strategy_free frees it with all its strings. */
hp_strategy *hp_strategy_new(void);
void hp_strategy_free(hp_strategy *s);

/* hp_rules_add appends a rule; the strings are copied into the strategy's arena. */
void hp_rules_add(hp_strategy *s, hp_rules *r, const char *glob, const char *key, const char *value);

/* hp_strategy_print appends the canonical text: one "key value" a line, sorted where order has no meaning. */
void hp_strategy_print(const hp_strategy *s, hp_str *out);

/* hp_strategy_hash returns the hash of the canonical text without name and shorthand. */
uint64_t hp_strategy_hash(const hp_strategy *s);

#endif

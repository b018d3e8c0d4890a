/* prove.c -- a strategy that is too large to run here is proved on its shrunken likeness. */
#include "session/prove.h"

#include "fmt/jsonw.h"
#include "session/corpus.h"
#include "session/shrink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_bf16(const hp_strategy *s)
{
    return s->dtype && strcmp(s->dtype, "bf16") == 0;
}

hp_err hp_session_prove(const hp_prove_ask *ask, hp_check_report *r, hp_str *said, hp_errmsg *e)
{
    hp_case c = {0};
    char *path = NULL;
    hp_err err = hp_session_corpus(ask->data, &path, e);
    if (!err)
        err =
            ask->shrink ? hp_shrink_load(&ask->what, &c, said, e) : hp_case_load(&ask->what, &c, e);
    if (!err) {
        hp_check_options o = {.seed = ask->seed, .data = path, .bf16 = is_bf16(c.strategy)};
        err = hp_check(c.graph, c.built.plan, &o, r, e);
    }
    free(path);
    hp_case_fini(&c);
    return err;
}

static void write_limits(hp_jsonw *w, const char *key, double loss, double grads, double params)
{
    hp_jsonw_open_flat(w, key, '{');
    hp_jsonw_num(w, "loss", loss);
    hp_jsonw_num(w, "grads", grads);
    hp_jsonw_num(w, "params", params);
    hp_jsonw_close(w);
}

static const char *or_null(const char *s)
{
    return *s ? s : NULL;
}

void hp_prove_json(const hp_check_report *r, hp_str *out)
{
    hp_jsonw w = {.out = out};
    hp_jsonw_open(&w, NULL, '{');
    hp_jsonw_str(&w, "schema", "hpbench.check.v1");
    hp_jsonw_bool(&w, "ok", r->ok);
    write_limits(&w, "max_err", r->err_loss, r->err_grads, r->err_params);
    write_limits(&w, "tolerance", r->tol_loss, r->tol_grads, r->tol_params);
    hp_jsonw_str(&w, "worst_tensor", or_null(r->worst_tensor));
    if (r->div_op[0]) {
        hp_jsonw_open_flat(&w, "first_divergence", '{');
        hp_jsonw_str(&w, "op", r->div_op);
        hp_jsonw_str(&w, "tensor", r->div_tensor);
        hp_jsonw_int(&w, "rank", r->div_rank);
        hp_jsonw_close(&w);
    } else {
        hp_jsonw_null(&w, "first_divergence");
    }
    hp_jsonw_int(&w, "routing_ties", r->routing_ties);
    hp_jsonw_int(&w, "routing_misses", r->routing_misses);
    hp_jsonw_int(&w, "n_tensors", r->n_tensors);
    hp_jsonw_num(&w, "loss", r->loss);
    hp_jsonw_num(&w, "loss_reference", r->loss_reference);
    hp_jsonw_close(&w);
}

static void say_error(hp_str *out, const char *what, double err, double limit)
{
    hp_str_add(out, "  %-22s %10.3g   limit %7.1g   %s\n", what, err, limit,
               err <= limit ? "ok" : "APART");
}

void hp_prove_table(const hp_check_report *r, hp_str *out)
{
    hp_str_add(out, "%s: %d tensors, loss %.6f, of one device %.6f\n",
               r->ok ? "the same numbers" : "NOT the same numbers", r->n_tensors, r->loss,
               r->loss_reference);
    say_error(out, "loss", r->err_loss, r->tol_loss);
    say_error(out, "gradients", r->err_grads, r->tol_grads);
    say_error(out, "parameters (of limit)", r->err_params, r->tol_params);
    if (r->worst_tensor[0])
        hp_str_add(out, "  worst gradient: %s\n", r->worst_tensor);
    if (r->worst_param[0])
        hp_str_add(out, "  worst parameter: %s\n", r->worst_param);
    if (r->routing_ties + r->routing_misses > 0)
        hp_str_add(out, "  router choices that differed: %d at a tie, %d at a clear margin\n",
                   r->routing_ties, r->routing_misses);
    if (r->div_op[0])
        hp_str_add(out, "  first divergence: %s of %s, on device %d\n", r->div_tensor, r->div_op,
                   r->div_rank);
}

hp_err hp_prove_verdict(const hp_check_report *r, hp_errmsg *e)
{
    if (r->ok)
        return HP_OK;
    if (r->div_op[0])
        return hp_fail(
            e, HP_EFAILED,
            "the split does not compute what one device computes: first %s of %s on device %d",
            r->div_tensor, r->div_op, r->div_rank);
    return hp_fail(e, HP_EFAILED, "the split does not compute what one device computes: worst %s",
                   r->worst_tensor[0] ? r->worst_tensor : "loss");
}

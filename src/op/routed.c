/* routed.c -- every call builds the list of its rows anew from the choices: they are few beside the rows. */
#include "op/routed.h"

hp_err hp_routed_check(const hp_graph *g, const hp_node *n, int i, int nd, int idx, hp_errmsg *e)
{
    hp_err err =
        hp_infer_nd(g, n, i, nd, nd, nd == 4 ? "batch seq experts width" : "batch seq width", e);
    if (!err)
        err = hp_infer_dtype(g, n, i, false, e);
    if (!err && nd == 4 && hp_infer_in(g, n, i).route != n->arg[idx])
        err = hp_infer_refuse(g, n, i, "its rows do not follow the choices given", e);
    return err;
}

hp_err hp_routed_idx(hp_graph *g, hp_node *n, int idx, int like, hp_errmsg *e)
{
    hp_err err = hp_infer_nd(g, n, idx, 3, 3, "batch seq choices", e);
    if (!err)
        err = hp_infer_dtype(g, n, idx, true, e);
    if (err)
        return err;
    hp_label_copy(n, idx, 0, like, 0, 2);
    n->label[idx][2] = (int8_t)hp_label_new(n);
    hp_label_block(n, idx, 2);
    return HP_OK;
}

hp_err hp_routed_output(hp_graph *g, hp_node *n, const hp_tensor *like, int idx, int *out,
                        hp_errmsg *e)
{
    hp_err err = hp_node_output(g, n, NULL, like->dtype, like->nd, like->dim, out, e);
    if (!err)
        g->tensor[n->arg[*out]].route = n->arg[idx];
    return err;
}

void hp_routed_range(const hp_call *c, const hp_operand *idx, int64_t lo, int64_t len, hp_route *r)
{
    hp_route_build(idx->len[0] * idx->len[1], idx->len[2], idx->data, lo, len, c->scratch, r);
}

hp_err hp_routed_list(const hp_call *c, const hp_operand *idx, const hp_operand *rows, hp_route *r,
                      hp_errmsg *e)
{
    hp_routed_range(c, idx, rows->lo[2], rows->len[2], r);
    if (r->rows == rows->rows)
        return HP_OK;
    return hp_fail(
        e, HP_EINTERNAL,
        "%s: the choices name %lld rows of experts %lld to %lld, but the buffer holds %lld",
        c->name, (long long)r->rows, (long long)rows->lo[2],
        (long long)(rows->lo[2] + rows->len[2]), (long long)rows->rows);
}

int64_t hp_routed_scratch(const hp_operand *idx, const hp_operand *rows)
{
    return (int64_t)hp_route_bytes(idx->len[0] * idx->len[1], idx->len[2], rows->len[2]);
}

/* reshape.c -- the same numbers under other dimensions. A dimension that stays may be split; dimensions that are merged
 * or cut are whole, because uneven boxes do not commute with either (keep factored dimensions where you can). */
#include "kern/pointwise.h"
#include "op/infer.h"
#include "op/rows.h"
#include "op/run.h"

#include <stdio.h>

static hp_err read_dims(const hp_graph *g, const hp_node *n, int *nd, int *dim, hp_errmsg *e)
{
    for (*nd = 0; *nd < HP_MAX_DIMS; ++*nd) {
        char key[8];
        snprintf(key, sizeof key, "d%d", *nd);
        if (hp_infer_attr(n, key, -1) < 0)
            break;
        hp_err err = hp_infer_dim(g, n, key, &dim[*nd], e);
        if (err)
            return err;
    }
    return HP_OK;
}

static int64_t size_of(const hp_graph *g, int dim)
{
    return g->dim[dim].size;
}

/* Walks both shapes at once: equal dimensions pair up, otherwise the smaller product takes a further dimension. */
static bool pair_dims(hp_graph *g, hp_node *n, const hp_tensor *x, int out, int nd, const int *dim)
{
    int i = 0, o = 0;
    while (i < x->nd || o < nd) {
        bool same = i < x->nd && o < nd &&
                    (x->dim[i] == dim[o] ||
                     (size_of(g, x->dim[i]) == size_of(g, dim[o]) && size_of(g, dim[o])));
        if (same) {
            n->label[0][i] = n->label[out][o] = (int8_t)hp_label_new(n);
            i++, o++;
            continue;
        }
        int64_t a = 1, b = 1;
        do {
            bool take_in =
                i < x->nd &&
                (a < b || (a == b && (o >= nd || size_of(g, x->dim[i]) <= size_of(g, dim[o]))));
            if (!take_in && o >= nd)
                return false;
            int d = take_in ? x->dim[i] : dim[o];
            if (n->n_labels == HP_MAX_LABELS || !size_of(g, d))
                return false;
            int l = hp_label_new(n);
            n->blocked[l] = true;
            if (take_in) {
                a *= size_of(g, d);
                n->label[0][i++] = (int8_t)l;
            } else {
                b *= size_of(g, d);
                n->label[out][o++] = (int8_t)l;
            }
        } while (a != b);
    }
    return true;
}

static hp_err reshape_infer(hp_graph *g, hp_node *n, hp_errmsg *e)
{
    int nd, dim[HP_MAX_DIMS], out;
    hp_err err = hp_infer_inputs(g, n, 1, 1, e);
    if (!err)
        err = read_dims(g, n, &nd, dim, e);
    if (err)
        return err;
    hp_tensor x = hp_infer_in(g, n, 0);
    err = hp_node_output(g, n, NULL, x.dtype, nd, dim, &out, e);
    if (err)
        return err;
    if (!pair_dims(g, n, &x, out, nd, dim)) {
        char to[256], why[320];
        snprintf(why, sizeof why, "it has not the elements of %s",
                 hp_graph_shape_text(g, n->arg[out], to, sizeof to));
        return hp_infer_refuse(g, n, 0, why, e);
    }
    hp_infer_group(n, 1u << 0);
    return HP_OK;
}

static hp_err reshape_grad(hp_graph *g, const hp_node *n, struct hp_grad *ctx, hp_errmsg *e)
{
    static const char *const key[] = {"d0", "d1", "d2", "d3", "d4", "d5"};
    hp_tensor x = hp_infer_in(g, n, 0);
    hp_attr attr[HP_MAX_DIMS];
    for (int d = 0; d < x.nd; d++)
        attr[d] = (hp_attr){key[d], x.dim[d]};
    return hp_infer_emit(g, ctx, "reshape", "dx", false, 1, (int[]){hp_grad_of(ctx, 0)}, x.nd, attr,
                         0, e);
}

static hp_err reshape_run(const hp_call *c, hp_errmsg *e)
{
    (void)e;
    HP_KERNEL(c, hp_copy, hp_box_count(hp_call_in(c, 0), false), hp_in_num(c, 0), hp_out_num(c, 0));
    return HP_OK;
}

static void reshape_work(const hp_call *c, hp_op_work *w)
{
    hp_work_bytes(c, 0, w);
}

const hp_op hp_op_reshape = {{"reshape", reshape_infer, reshape_grad},
                             .in_place = true,
                             .work = reshape_work,
                             .run = reshape_run};

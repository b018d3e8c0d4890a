/* lower_ring.c -- attention over keys and values that go round a ring.
 *
 * In step i of n a rank has the keys and values of the rank i places further along (buffers turned by i) and sends them on while it computes. Forward merges the parts' results by their
 * log-sum-exp; backward adds up dq at home, while the gradients of keys and values travel with them and are home after n moves. Positions and documents of the keys are data and are
 * loaded turned. Source: Liu, Zaharia, Abbeel, Ring Attention (arXiv 2310.01889); merging as in Dao et al. (arXiv 2205.14135).
 */
#include "plan/lower.h"

#include <stdio.h>
#include <string.h>

enum { Q, K, V, POS_Q, POS_K, DOC_Q, DOC_K, N_FWD, O = N_FWD, LSE, DY, N_BWD };

typedef struct ring {
    lowering *w;
    low_tmpl *t;
    const hp_node *n;
    const int *buf;   /* the node's operands */
    uint32_t atoms;
    int size;
    bool again;
    int kv[2], data[2]; /* keys and values, positions and documents of the keys, at the present turn */
} ring;

static uint32_t ring_atoms(const hp_layout *keys)
{
    return hp_layout_mask(keys, 1);
}

bool low_is_ring(const lowering *w, const low_chunk *c, const hp_step *s)
{
    return w->r->ring && s->node >= 0 && w->r->ring_from[s->node] >= 0 && s->copy[K] >= 0 && ring_atoms(&c->placed.copy[s->copy[K]].layout);
}

static int like(ring *r, int buffer, int turn, const char *suffix)
{
    const hp_buffer b = r->w->p->buffer[buffer];
    char name[256];
    snprintf(name, sizeof name, "%s:%s", b.name, suffix);
    int tensor = b.tensor ? hp_map_get(&r->w->r->g->tensor_id, b.tensor, -1) : -1;
    int made = low_buffer(r->w, name, tensor, b.dtype, &b.shape, &b.layout, HP_B_COMM, HP_S_RUN);
    r->w->p->buffer[made].turn = turn % r->size;
    r->w->p->buffer[made].turn_atoms = r->atoms;
    return made;
}

static const char *label(const ring *r, const char *what, int i, char *buf, size_t n)
{
    snprintf(buf, n, "%s%s/%s%d", r->n->name, r->again ? "/again" : "", what, i);
    return buf;
}

/* Sends buffers one place on; dst[] is made unless it is given. */
static void pass_on(ring *r, const char *what, int i, int n, const int *src, int *dst)
{
    char name[256];
    for (int k = 0; k < n; k++)
        if (dst[k] < 0)
            dst[k] = like(r, src[k], i + 1, what);
    hp_task *t = low_coll(r->w, r->t, label(r, what, i, name, sizeof name), HP_COLL_PERMUTE, r->atoms, n, src, dst,
                          hp_arena_printf(&r->w->plan->arena, "%s of %s one place along the ring (%d of %d)", what, r->n->name, i + 1, r->size));
    t->recompute = r->again;
}

/* Loads the positions (and documents) of the keys that come at turn i. */
static void load_data(ring *r, int i)
{
    for (int k = 0; k < 2; k++) {
        int home = r->buf[k ? DOC_K : POS_K];
        r->data[k] = home;
        if (home < 0 || !i)
            continue;
        char name[256], what[16];
        snprintf(what, sizeof what, "turned%d", i);
        r->data[k] = like(r, home, i, what);
        r->w->p->buffer[r->data[k]].kind = HP_B_WORKSPACE;
        hp_task *t = low_task(r->w, r->t, label(r, k ? "docs" : "positions", i, name, sizeof name), HP_TASK_LOAD, 0, 0, 1);
        t->buf[0] = r->data[k];
    }
}

static void part(ring *r, int i, int n_in, int n_out, const int *out)
{
    char name[256];
    int in[N_BWD];
    memcpy(in, r->buf, (size_t)n_in * sizeof *in);
    in[K] = r->kv[0];
    in[V] = r->kv[1];
    in[POS_K] = r->data[0];
    in[DOC_K] = r->n->n_in > DOC_K ? r->data[1] : -1;
    hp_task *t = low_op(r->w, r->t, label(r, "part", i, name, sizeof name), r->w->r->g->ops[r->n->kind]->name, n_in, in, n_out, out);
    t->recompute = r->again;
    low_attrs(r->w, t, r->n);
}

static void forward(ring *r)
{
    const int *out = r->buf + r->n->n_in;
    for (int i = 0; i < r->size; i++) {
        int next[2] = {-1, -1}, made[2] = {out[0], out[1]};
        char name[256];
        load_data(r, i);
        if (i + 1 < r->size)
            pass_on(r, "kv", i, 2, r->kv, next);
        for (int k = 0; k < 2 && i; k++)
            made[k] = like(r, out[k], 0, "part");
        part(r, i, r->n->n_in, 2, made);
        if (i) {
            int in[4] = {out[0], out[1], made[0], made[1]};
            low_op(r->w, r->t, label(r, "merge", i, name, sizeof name), "attention_merge", 4, in, 2, out)->recompute = r->again;
        }
        memcpy(r->kv, next, sizeof next);
    }
}

static void add_into(ring *r, const char *what, int i, int from, int to)
{
    char name[256];
    low_op(r->w, r->t, label(r, what, i, name, sizeof name), "accum", 1, &from, 1, &to)->accumulate = true;
}

static void backward(ring *r)
{
    const int *out = r->buf + r->n->n_in;
    int travelling[2] = {-1, -1};
    for (int i = 0; i < r->size; i++) {
        int next[2] = {-1, -1}, made[3] = {out[0], like(r, out[1], i, "part"), like(r, out[2], i, "part")};
        load_data(r, i);
        if (i + 1 < r->size)
            pass_on(r, "kv", i, 2, r->kv, next);
        if (i)
            made[0] = like(r, out[0], 0, "part");
        part(r, i, r->n->n_in, 3, made);
        if (i) {
            add_into(r, "dq", i, made[0], out[0]);
            add_into(r, "dk", i, travelling[0], made[1]);
            add_into(r, "dv", i, travelling[1], made[2]);
        }
        travelling[0] = i + 1 < r->size ? -1 : out[1];
        travelling[1] = i + 1 < r->size ? -1 : out[2];
        pass_on(r, "dkv", i, 2, made + 1, travelling);
        memcpy(r->kv, next, sizeof next);
    }
}

hp_err low_ring(lowering *w, low_tmpl *t, const hp_node *n, const int *buf, bool again)
{
    ring r = {.w = w, .t = t, .n = n, .buf = buf, .again = again, .size = 1, .kv = {buf[K], buf[V]}};
    r.atoms = ring_atoms(&w->p->buffer[buf[K]].layout);
    for (int a = 0; a < w->p->mesh.n_atoms; a++)
        if (r.atoms >> a & 1)
            r.size *= w->p->mesh.size[a];
    if (n->n_in >= N_BWD)
        backward(&r);
    else
        forward(&r);
    return HP_OK;
}

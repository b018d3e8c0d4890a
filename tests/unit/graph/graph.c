#include "graph/graph.h"

#include "op/op.h"

#include "tap.h"

static hp_errmsg e;

static void check_names(void)
{
    is_int(hp_dtype_bytes(HP_BF16), 2, "bf16 takes two bytes");
    is_int(hp_dtype_bytes(HP_I32), 4, "i32 takes four");
    is_int(hp_dtype_find(hp_dtype_name(HP_I32)), HP_I32, "a dtype is found by its name");
    is_int(hp_dtype_find("f64"), -1, "an unknown dtype is -1");
    is_int(hp_reduce_find(hp_reduce_name(HP_RED_LSE)), HP_RED_LSE,
           "a reduction is found by its name");
    is_int(hp_reduce_find("median"), -1, "an unknown reduction is -1");
}

static void check_dims(hp_graph *g, int *b, int *h)
{
    int again;
    ok(hp_graph_dim(g, "batch", 0, b, &e) == HP_OK && hp_graph_dim(g, "h", 8, h, &e) == HP_OK,
       "dimensions are added");
    ok(hp_graph_dim(g, "h", 8, &again, &e) == HP_OK && again == *h,
       "the same dimension is found again");
    is_int(hp_graph_dim(g, "h", 9, &again, &e), HP_EINPUT, "another size is refused");
    ok(strstr(e.text, "8") && strstr(e.text, "9"), "with both sizes: %s", e.text);
    is_int(hp_graph_dim(g, "k", -2, &again, &e), HP_EINPUT, "a negative size is refused");
}

static void check_nodes(hp_graph *g, int b, int h)
{
    int x, w, r, node, three;
    ok(hp_graph_tensor(g, "x", HP_T_INPUT, HP_F32, 2, (int[]){b, h}, &x, &e) == HP_OK,
       "an input is added");
    is_int(g->n_inputs, 1, "and counted");
    is_int(hp_graph_tensor(g, "x", HP_T_INPUT, HP_F32, 1, &h, &w, &e), HP_EINPUT,
           "a second tensor of that name is refused");
    hp_graph_dim(g, "three", 3, &three, &e);
    hp_graph_tensor(g, "w", HP_T_PARAM, HP_F32, 2, (int[]){h, three}, &w, &e);
    hp_graph_tensor(g, "r", HP_T_BUFFER, HP_F32, 1, &three, &r, &e);
    is_int(hp_graph_params(g), 27, "parameters and buffers are counted by elements");

    ok(hp_graph_add(g, "linear", "y", 2, (int[]){x, w}, 0, NULL, &node, &e) == HP_OK,
       "a node is added");
    int y = hp_map_get(&g->tensor_id, "y", -1);
    ok(y >= 0 && g->tensor[y].producer == node && g->tensor[y].kind == HP_T_ACT,
       "its output has its name");
    is_int(hp_graph_size(g, y), 0, "a size with a free dimension is 0");
    char text[64];
    is_str(hp_graph_shape_text(g, y, text, sizeof text), "y[batch three=3]",
           "a shape is said with its names");
    is_int(hp_graph_bind(g, "batch", 5, &e), HP_OK, "a free dimension is bound");
    is_int(hp_graph_size(g, y), 15, "then the size is known");
    is_int(hp_graph_bind(g, "bach", 5, &e), HP_EINPUT, "an unknown dimension is not bound");
    is_int(hp_graph_bind(g, "batch", 0, &e), HP_EINPUT, "nor is one bound to nothing");

    is_int(hp_graph_add(g, "linear", "z", 2, (int[]){y, w}, 0, NULL, &node, &e), HP_EINPUT,
           "sizes that differ are refused");
    ok(strstr(e.text, "z (linear)") && strstr(e.text, "w[h=8 three=3]") &&
           strstr(e.text, "y[batch=5 three=3]"),
       "with node, operands and dimensions: %s", e.text);
    is_int(hp_graph_add(g, "liner", "z", 2, (int[]){x, w}, 0, NULL, &node, &e), HP_EINPUT,
           "an unknown operation is refused");
    ok(strstr(e.text, "the nearest is linear") != NULL, "with the nearest: %s", e.text);
    is_int(hp_graph_add(g, "adamw", "z", 2, (int[]){x, w}, 0, NULL, &node, &e), HP_EINPUT,
           "the optimizer has no place in a graph");
    is_int(hp_graph_add(g, "linear", "z", 1, (int[]){x}, 0, NULL, &node, &e), HP_EINPUT,
           "a missing input is refused");
    is_int(hp_graph_add(g, "linear", "z", 2, (int[]){x, 99}, 0, NULL, &node, &e), HP_EINPUT,
           "a number that is no tensor is refused");
    is_int(hp_graph_add(g, "linear", "y", 2, (int[]){x, w}, 0, NULL, &node, &e), HP_EINPUT,
           "a second node of one name is refused");
    ok(hp_map_get(&g->tensor_id, "z", -1) < 0 && g->n_tensors == 4, "nor are its outputs");
    is_int(g->n_nodes, 1, "what was refused is not there");
}

static void check_once(hp_graph *g)
{
    int all, node;
    hp_graph_tensor(g, "targets.all", HP_T_INPUT, HP_I32, 1, (int[]){0}, &all, &e);
    ok(hp_graph_add(g, "count", "count", 1, &all, 0, NULL, &node, &e) == HP_OK &&
           g->node[node].phase == HP_P_INIT,
       "counting is done once a step");
    int count = g->node[node].arg[1];
    is_int(g->tensor[count].kind, HP_T_STEP, "its result exists once a step");
    ok(hp_graph_add(g, "recip", "seed", 1, &count, 0, NULL, &node, &e) == HP_OK &&
           g->node[node].phase == HP_P_INIT,
       "so does what is made of it alone");
}

int main(void)
{
    check_names();
    hp_graph *g = hp_graph_new("m", hp_graph_ops());
    int b, h;
    check_dims(g, &b, &h);
    check_nodes(g, b, h);
    check_once(g);
    hp_attr a[] = {{"p", 0.5}, {"q", 2}};
    near(hp_attr_get(a, 2, "q", 7), 2, 0, "an attribute is found");
    near(hp_attr_get(a, 2, "r", 7), 7, 0, "a missing one has its default");
    for (int i = 0; hp_ops[i]; i++)
        if (hp_graph_ops()[i] != &hp_ops[i]->graph ||
            hp_op_find(hp_ops[i]->graph.name) != hp_ops[i])
            bail("the tables differ at %d", i);
    ok(hp_op_find("no such") == NULL, "both tables list the same operations");
    hp_graph_free(g);
    hp_graph_free(NULL);
    return done_testing();
}

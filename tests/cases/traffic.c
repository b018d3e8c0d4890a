/* P04: what ZeRO sends when gradients are accumulated.
 *
 * DeepSpeed issues 2252 and 823: ZeRO-1 reduces once a step and gathers once; ZeRO-2 (DeepSpeed's
 * rule: gradients are kept sharded) reduces in each of k microbatches, (k + 1) / 2 times the
 * volume. Rajbhandari et al. 2020: each of the two is (n - 1) / n of the parameters.
 */
#include "planned.h"

int main(void)
{
    const int n = 4;
    for (int k = 1; k <= 4; k++) {
        char one[32], two[32];
        snprintf(one, sizeof one, "zero=1,accum=%d", k);
        snprintf(two, sizeof two, "zero=2,accum=%d", k);
        planned a = must_plan("llama-small", "model.layers=2 model.seq=16", "ideal:4", one),
                b = must_plan("llama-small", "model.layers=2 model.seq=16", "ideal:4", two);
        double pass = (double)hp_graph_params(a.c.graph) * 4 * (n - 1) / n;
        traffic ra = traffic_of(&a, 0, "FBO", "dp", HP_COLL_REDUCE_SCATTER),
                ga = traffic_of(&a, 0, "FBO", "dp", HP_COLL_ALL_GATHER);
        traffic rb = traffic_of(&b, 0, "FBO", "dp", HP_COLL_REDUCE_SCATTER),
                gb = traffic_of(&b, 0, "FBO", "dp", HP_COLL_ALL_GATHER);
        near(ra.bytes, pass, 0, "P04: ZeRO-1 scatters every gradient once, with %d microbatches",
             k);
        near(ga.bytes, pass, 0, "P04: and gathers every parameter once");
        near(rb.bytes, k * pass, 0, "P04: ZeRO-2 scatters in each of %d microbatches", k);
        near(gb.bytes, pass, 0, "P04: and gathers once");
        near((rb.bytes + gb.bytes) / (ra.bytes + ga.bytes), (k + 1) / 2.0, 1e-12,
             "P04: (k + 1) / 2 times the volume");
        planned_free(&a);
        planned_free(&b);
    }
    return done_testing();
}

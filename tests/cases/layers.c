/* V02: layers are never dropped by integer division.
 *
 * Megatron-LM issues 468, 1304, 2718: (a) to (d) ran there and trained 64, 32, 28 and 24 layers.
 * Rule: L % (PP x VPP) == 0 or stages that sum to L.
 */
#include "planned.h"

/* Every layer's weight is persistent on exactly one stage. */
static int layers_placed(const planned *p)
{
    int n = 0;
    for (int i = 0; i < p->plan->n_programs; i++)
        for (int k = 0; k < p->plan->program[i].n_buffers; k++) {
            const char *name = p->plan->program[i].buffer[k].name;
            n += !strncmp(name, "layers.", 7) && strlen(name) > 8 &&
                 !strcmp(strchr(name + 7, '.'), ".norm1.w");
        }
    return n;
}

static void places_all(const char *over, const char *cluster, const char *strategy, int layers)
{
    planned p = must_plan("llama-small", over, cluster, strategy);
    is_int(layers_placed(&p), layers, "V02: %s with %s places all %d layers", over, strategy,
           layers);
    planned_free(&p);
}

static double flops_of(const char *over, const char *cluster, const char *strategy)
{
    planned p = must_plan("llama-small", over, cluster, strategy);
    double flops = p.plan->model_flops_causal / (double)p.plan->global_batch;
    planned_free(&p);
    return flops;
}

int main(void)
{
    refused("V02 (a)", "llama-small", "model.layers=80 model.seq=8", "ideal:16",
            "pp=16,vpp=2,gbs=16", HP_EINFEASIBLE,
            "80 layers|32 virtual stages|pp=16 x vpp=2|16 would be dropped|nearest legal: vpp=1 or "
            "5 with pp=16|uneven");
    refused("V02 (b)", "llama-small", "model.layers=40 model.seq=8", "ideal:8", "pp=8,vpp=2,gbs=16",
            HP_EINFEASIBLE,
            "40 layers|16 virtual stages|8 would be dropped|nearest legal: vpp=1 or 5 with pp=8, "
            "pp=5 or 10 with vpp=2|uneven");
    refused("V02 (c)", "llama-small", "model.layers=30 model.seq=8", "ideal:4", "pp=4,gbs=4",
            HP_EINFEASIBLE,
            "30 layers|4 virtual stages|2 would be dropped|nearest legal: pp=3 or "
            "5|stages=8+8+7+7|uneven");
    refused("V02 (d)", "llama-small", "model.layers=48 model.seq=8", "ideal:2",
            "pp=2,stages=11+13,gbs=4", HP_EINFEASIBLE,
            "11+13|place 24 layers|has 48|nearest legal: 22+26");
    places_all("model.layers=48 model.seq=8", "ideal:2", "pp=2,stages=22+26,gbs=4", 48);
    places_all("model.layers=30 model.seq=8", "ideal:4", "pp=4,gbs=4,uneven", 30);
    places_all("model.layers=30 model.seq=8", "ideal:4", "pp=4,gbs=4,stages=8+8+7+7", 30);
    places_all("model.layers=40 model.seq=8", "ideal:8", "pp=8,vpp=5,gbs=16", 40);
    near(flops_of("model.layers=30 model.seq=8", "ideal:4", "pp=4,gbs=4,uneven"),
         flops_of("model.layers=30 model.seq=8", "ideal:1", "dp=1"), 0,
         "V02: the flops that are counted are those of all layers");
    runs_right("V02", "llama-small",
               "model.layers=7 model.seq=8 model.embed=32 model.ffn=32 model.head=4", "ideal:4",
               "pp=4,gbs=4,uneven");
    return done_testing();
}

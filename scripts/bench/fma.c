/* fma.c -- the f32 FMA rate of one and of two threads: which state the machine is in. Built and run by scripts/bench/engine.sh. */
#include <omp.h>
#include <stdio.h>

typedef float lanes __attribute__((vector_size(64)));
enum { CHAINS = 16, ROUNDS = 4000000 };

static double run(int threads)
{
    double sum = 0, start = omp_get_wtime();
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        lanes x[CHAINS], a = {0}, b = {0};
        for (int i = 0; i < CHAINS; i++)
            x[i] = a + (float)i;
        a += 0.999999F;
        b += 1e-6F;
        for (int r = 0; r < ROUNDS; r++)
            for (int i = 0; i < CHAINS; i++)
                x[i] = x[i] * a + b;
        for (int i = 0; i < CHAINS; i++)
            sum += (double)x[i][0];
    }
    double seconds = omp_get_wtime() - start;
    return sum == 12345 ? 0 : 2.0 * 16 * CHAINS * ROUNDS * threads / seconds * 1e-9;
}

int main(void)
{
    run(2);
    printf("%.1f %.1f\n", run(1), run(2));
    return 0;
}

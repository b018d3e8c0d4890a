#include "kern/routed.h"

void hp_dispatch_ref(const hp_route *r, int64_t width, hp_num x, hp_num xe)
{
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t c = 0; c < width; c++)
            hp_num_put(xe, i * width + c, hp_num_get(x, r->token[i] * width + c));
}

void hp_dispatch_dx_ref(const hp_route *r, int64_t width, hp_num dxe, hp_num dx)
{
    for (int64_t t = 0; t < r->tokens; t++)
        for (int64_t c = 0; c < width; c++) {
            double sum = 0;
            for (int64_t j = t * r->k; j < (t + 1) * r->k; j++)
                if (r->row[j] >= 0)
                    sum += (double)hp_num_get(dxe, r->row[j] * width + c);
            hp_num_put(dx, t * width + c, (float)sum);
        }
}

void hp_combine_ref(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num y)
{
    for (int64_t t = 0; t < r->tokens; t++)
        for (int64_t c = 0; c < width; c++) {
            double sum = 0;
            for (int64_t j = t * r->k; j < (t + 1) * r->k; j++)
                if (r->row[j] >= 0)
                    sum += (double)hp_num_get(w, j) * (double)hp_num_get(ye, r->row[j] * width + c);
            hp_num_put(y, t * width + c, (float)sum);
        }
}

void hp_combine_dx_ref(const hp_route *r, int64_t width, hp_num ye, hp_num w, hp_num dy, hp_num dye,
                       hp_num dw)
{
    for (int64_t i = 0; i < r->rows && dye.p; i++) {
        float wi = hp_num_get(w, r->token[i] * r->k + r->slot[i]);
        for (int64_t c = 0; c < width; c++)
            hp_num_put(dye, i * width + c, wi * hp_num_get(dy, r->token[i] * width + c));
    }
    for (int64_t j = 0; j < r->tokens * r->k && dw.p; j++) {
        double sum = 0;
        for (int64_t c = 0; c < width && r->row[j] >= 0; c++)
            sum += (double)hp_num_get(dy, j / r->k * width + c) *
                   (double)hp_num_get(ye, r->row[j] * width + c);
        hp_num_put(dw, j, (float)sum);
    }
}

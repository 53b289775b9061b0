/* random_walls.c: see random_walls.h. */
#include "random_walls.h"

#include <string.h>

#include "graph/graph.h"

rm_certificate random_walls(remat_ctx *ctx, const remat_graph *g, random_source *r, bool any_order,
                            rm_price *prices)
{
    rm_certificate x = {.scale = 1 + random_below(r, 6), .walls = true, .prices = prices};
    const uint32_t percent = 10 + random_below(r, 50), strangers = random_chance(r, 50) ? 5 : 40;
    uint8_t *behind = rm_scratch(ctx, g->n_ops, 1); /* depends on the last gate */
    for (uint32_t op = 0; op < g->n_ops; op++) {
        bool fits = x.n_prices == 0 || !any_order || random_chance(r, strangers);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            behind[op] |= g->producer[g->in[k]] != REMAT_NONE && behind[g->producer[g->in[k]]];
        fits |= behind[op];
        if (!fits || !random_chance(r, percent)) continue;
        if (any_order) memset(behind, 0, g->n_ops);
        behind[op] = 1;
        prices[x.n_prices++] =
            (rm_price){g->op_original[op], 1 + random_below(r, random_chance(r, 30) ? 30 : 6)};
    }
    return x;
}

void random_walls_change(rm_certificate *x, random_source *r)
{
    if (x->n_prices == 0) return;
    for (uint32_t n = 1 + random_below(r, 2); n > 0; n--) {
        rm_price *at = &x->prices[random_below(r, (uint32_t)x->n_prices)];
        if (random_chance(r, 50)) at->price += 1 + random_below(r, 3);
        else if (at->price > 1) at->price -= 1 + random_below(r, (uint32_t)at->price - 1);
    }
    if (x->n_prices == 1 || !random_chance(r, 10)) return;
    rm_price *gone = &x->prices[random_below(r, (uint32_t)x->n_prices)];
    x->n_prices--;
    memmove(gone, gone + 1, (size_t)(x->prices + x->n_prices - gone) * sizeof *gone);
}

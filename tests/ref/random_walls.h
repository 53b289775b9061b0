/* random_walls.h: random prices at gates, as certificates of walls (docs/bound.md). */
#ifndef RANDOM_WALLS_H
#define RANDOM_WALLS_H

#include "graph/certificate.h"
#include "random_graph.h"

/* Prices at some ops, few of them. In any order they are mostly a path; others are refused. Costs
 * are 1 to 9 for some bytes. prices: room for one of each op of the graph. */
rm_certificate random_walls(remat_ctx *ctx, const remat_graph *g, random_source *r, bool any_order,
                            rm_price *prices);
/* Another price at one or two of its gates, or one gate less. */
void random_walls_change(rm_certificate *x, random_source *r);

#endif

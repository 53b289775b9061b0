/* network.c: the public side of maximum flow. So anybody can check the solver behind mincut. */
#include "import/network.h"

void remat_network_free(remat_network *network)
{
    if (!network) return;
    const remat_alloc heap = network->heap;
    rm_release(&heap, network, network->block_size);
}

uint32_t remat_network_n_vertices(const remat_network *network) { return network->flow.n_vertices; }
size_t remat_network_n_arcs(const remat_network *network) { return network->flow.n_edges; }

remat_status remat_network_solve(remat_ctx *ctx, const remat_network *network, int64_t *value,
                                 uint8_t *source_side)
{
    rm_input_name(ctx, NULL);
    rm_limits_begin(ctx, RM_NO_LIMIT);
    const remat_status status = rm_maxflow(ctx, &network->flow, RM_LATEST_CUT, value, source_side);
    rm_limits_end(ctx);
    return status;
}

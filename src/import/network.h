/* network.h: a maximum-flow problem read from a file. One frozen block. */
#ifndef RM_NETWORK_H
#define RM_NETWORK_H

#include "algo/maxflow.h"
#include "import/input.h"

struct remat_network {
    remat_alloc heap;
    size_t block_size;
    rm_flow_network flow; /* its edges lie behind this struct */
};

remat_status rm_read_dimacs(remat_ctx *ctx, const remat_input *input, remat_network **out);

#endif

/* chain_of_graph.h: a training graph as a chain of stages. */
#ifndef RM_CHAIN_OF_GRAPH_H
#define RM_CHAIN_OF_GRAPH_H

#include "graph/chain.h"
#include "graph/graph.h"

typedef struct rm_stages { /* arrays live in scratch */
    uint32_t n;            /* L + 1: the last one, after the last cut, plays the loss */
    uint32_t *stage;       /* by op: 1 .. n */
    /* Forward ops of stage l are ops[begin[l] .. begin[l + 1]). Its backward ops are
     * ops[begin[n + l] .. begin[n + l + 1]). Both are in graph order. */
    uint32_t *ops, *begin;
    /* By op: it is backward, or pinned, or all that it makes is kept anyway (global, output). */
    uint8_t *runs_once;
    remat_stage *chain; /* n + 1 entries, 0 .. n: what rm_chain_new takes */
} rm_stages;

static inline bool rm_is_backward_part(const remat_graph *g, uint32_t op)
{
    return g->phase[op] == REMAT_BACKWARD;
}

/* Which cuts become stage borders. The chain model keeps every a^l that is not recomputed until
 * B^(l+1). A cut value that no backward op reads (a convolution's output before its relu) does not
 * really stay that long. So fewer cuts make the truer chain, and more cuts the finer one. */
typedef enum rm_cut_choice { RM_CUTS_READ_BACKWARD, RM_ALL_CUTS } rm_cut_choice;

/* REMAT_E_APPLIES, with the reason, if the graph has no phases, no such cuts, or pinned ops that
 * stages would reorder. */
remat_status rm_stages_find(remat_ctx *ctx, const remat_graph *g, rm_cut_choice choice,
                            rm_stages *out);
/* A storage may count in several stages. Where their sizes pass 2^62: REMAT_E_APPLIES. */
remat_status rm_chain_of_stages(remat_ctx *ctx, const remat_chain *head, const rm_stages *stages,
                                remat_chain **out);

#endif

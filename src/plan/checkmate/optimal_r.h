/* optimal_r.h: from what is retained to what has to run: Checkmate's R for a given S (5.1.1). */
#ifndef RM_OPTIMAL_R_H
#define RM_OPTIMAL_R_H

#include "base/bits.h"
#include "graph/normal.h"

/* Entries of a table by turn and storage, in an operation of the limits. */
enum { RM_ENTRIES_A_WORK = 4 };

/* For loops over turns: looks at the clock now and then. Graphs of a few hundred ops are never
 * late, so that there is a plan however little time there is. */
static inline bool rm_is_late_turn(const remat_ctx *ctx, uint32_t turn)
{
    return turn && turn % 256 == 0 && rm_is_late(ctx);
}

/* Turn t ends with the first run of op t. `retained` has n_ops rows by storage. Row t has what may
 * be in memory from turn t - 1 to turn t. Row 0 and storages that no earlier turn can have made
 * mean nothing. Storages of pinned ops are always there.
 *
 * Sets `out` to the cheapest valid order in which the turn of op t reads what is retained, and runs
 * again whatever else it needs or the next turn retains. Each op runs once a turn at most, in the
 * graph's order. A storage that would be retained for nobody is not retained. Outputs are there at
 * the end. Empty: it was late (base/limits.h). */
remat_status rm_optimal_r(remat_ctx *ctx, const rm_normal *nm, const rm_bits *retained,
                          rm_codes *out);

/* The other way: what an order keeps from turn to turn. Its first runs are in the graph's order.
 * `retained` is as above. */
remat_status rm_retained_of(remat_ctx *ctx, const rm_normal *nm, const rm_code *codes, size_t n,
                            rm_bits *retained);

#endif

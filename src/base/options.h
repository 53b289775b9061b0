/* options.h: the one table of options. The struct, the lookup, the help and the documentation all
 * come from it. Options are integers. */
#ifndef RM_OPTIONS_H
#define RM_OPTIONS_H

#include <stdint.h>

/* name, default, low, high, help. The rows are sorted by name. */
#define RM_OPTIONS(OPT)                                                                            \
    OPT(bandwidth, 0, 0, INT64_MAX,                                                                \
        "offload and fetch: bytes per 1e9 cost units (per second where costs are ns); 0: free")    \
    OPT(bound_rules, 63, 0, 63,                                                                    \
        "what strengthens bounds: 1 single readers + 2 fan-out + 4 regions + 8 side outputs + "    \
        "16 holders + 32 walls")                                                                   \
    OPT(checkmate_entries, 4000000, 1, 2000000000,                                                 \
        "checkmate, checkmate-lp: the largest program that is tried")                              \
    OPT(checkmate_order, 0, 0, 1,                                                                  \
        "checkmate: 1: the order of first runs is free too (no frontier)")                         \
    OPT(checkmate_plain, 0, 0, 1,                                                                  \
        "checkmate: the program as it was published: not presolved, no start, no cutoff")          \
    OPT(checkmate_splits, 1, 1, 8,                                                                 \
        "checkmate: turns for each op, so that others may run that often in between")              \
    OPT(epsilon, 0, 0, 1000,                                                                       \
        "rotor, rotor-float, revolve: permille; slots enough that no such schedule within "        \
        "budget / (1 + epsilon) is cheaper; 0: no promise")                                        \
    OPT(group, 1, 0, 2, "fastsa: node grouping first; 0: never, 2: resident inputs do not count")  \
    OPT(host_bytes, 0, 0, INT64_MAX, "offload: the most bytes on the host; 0: no limit")           \
    OPT(max_input_bytes, INT64_C(1) << 30, 1, INT64_MAX, "largest file read, after decompression") \
    OPT(max_slots, 20000, 1, 10000000,                                                             \
        "rotor-float with slots=0: the most slots it may take to be exact")                        \
    OPT(memory_bytes, INT64_C(1) << 32, 1 << 20, INT64_MAX,                                        \
        "the most memory that planning may take")                                                  \
    OPT(mip_gap, 0, 0, 1000000, "checkmate: stop within that many millionths of the optimum")      \
    OPT(objective, 0, 0, 2,                                                                        \
        "fastsa: 0: max(budget, peak)^4 * cost; the paper's 1: with power 1, 2: strict")           \
    OPT(offload, 0, 0, 1,                                                                          \
        "auto, fastsa: values may be offloaded and fetched, at the given bandwidth")               \
    OPT(order_only, 0, 0, 1,                                                                       \
        "auto, fastsa: nothing is recomputed, only the order changes; the lowest peak wins")       \
    OPT(reduction_factor, 4, 1, INT64_MAX,                                                         \
        "mincut: an op whose output is that many times smaller than its input never runs again")   \
    OPT(reweight, 0, 0, 1000,                                                                      \
        "mincut: permille that a storage weighs more for each op between it and the backward "     \
        "pass")                                                                                    \
    OPT(seed, 0, 0, INT64_MAX, "of every random choice: same seed and work limit, same plan")      \
    OPT(slots, -1, -1, 1000000,                                                                    \
        "rotor, rotor-float, revolve: slots that memory is cut into; 0: exact; -1: exact where "   \
        "that is quick, else 500")                                                                 \
    OPT(soft_peak, 0, 0, 1, "fastsa: log-add-exp over all steps instead of the peak (slow)")       \
    OPT(threads, 1, 1, 64,                                                                         \
        "fastsa, auto, checkmate: the plan of the first two does not depend on it")                \
    OPT(time_ms, 0, 0, INT64_MAX / 1000000, "wall clock limit of a planner; 0: none")              \
    OPT(walkers, 0, 0, 32,                                                                         \
        "fastsa: independent runs that share the work; 0: by the size of the graph")               \
    OPT(work, 0, 0, INT64_MAX,                                                                     \
        "work limit of a planner, four million units a second or so; 0: a second's worth")

typedef struct rm_options {
#define OPT(name, initial, low, high, help) int64_t name;
    RM_OPTIONS(OPT)
#undef OPT
} rm_options;

void rm_options_reset(rm_options *options); /* to the defaults */

#endif

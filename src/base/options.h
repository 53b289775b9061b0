/* options.h: one table of options; struct, lookup, help and documentation expand it. Integers only. */
#ifndef RM_OPTIONS_H
#define RM_OPTIONS_H

#include <stdint.h>

/* name, default, low, high, help: sorted by name */
#define RM_OPTIONS(OPT)                                                                                                        \
    OPT(bandwidth, 0, 0, INT64_MAX, "offload and fetch: bytes per 1e9 cost units (per second where costs are ns); 0: free")    \
    OPT(bound_rules, 15, 0, 15, "what strengthens bounds: 1 chains + 2 fan-out + 4 regions + 8 side outputs")                  \
    OPT(max_input_bytes, INT64_C(1) << 30, 1, INT64_MAX, "largest file read, after decompression")                             \
    OPT(max_slots, 20000, 1, 10000000, "rotor-float with slots=0: the most slots it may take to be exact")                     \
    OPT(seed, 0, 0, INT64_MAX, "of every random choice: same seed and work limit, same plan")                                  \
    OPT(slots, 500, 0, 1000000, "rotor, rotor-float, revolve: slots that memory is cut into; 0: exact")                        \
    OPT(time_ms, 0, 0, INT64_MAX / 1000000, "wall clock limit of a planner; 0: none")                                          \
    OPT(work, 0, 0, INT64_MAX, "work limit of a planner in its own unit; 0: about a second's worth")

typedef struct rm_options {
#define OPT(name, initial, low, high, help) int64_t name;
    RM_OPTIONS(OPT)
#undef OPT
} rm_options;

void rm_options_reset(rm_options *options); /* to the defaults */

#endif

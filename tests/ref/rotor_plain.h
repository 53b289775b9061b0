/* rotor_plain.h: Theorem 4.8 as one would write it down: the peer that bench_chain compares with.
 */
#ifndef ROTOR_PLAIN_H
#define ROTOR_PLAIN_H

#include "remat.h"

/* The least time of a memory-persistent schedule with memory cut into `slots` of the budget (sizes
 * rounded up); -1: none. No keeps. The table is of floats, so that it is as fast as this order of
 * loops can be: exact while times stay below 2^24. */
double rotor_plain(const remat_stage *stages, uint32_t n_stages, int64_t budget, uint32_t slots);

#endif

/* saved_steps.h: from a set of saved storages to a schedule, and back to what it costs. */
#ifndef RM_SAVED_STEPS_H
#define RM_SAVED_STEPS_H

#include "graph/schedule.h"
#include "plan/cut/recompute_rules.h"

#define RM_HOLD_ALL UINT32_MAX

/* Writes a schedule to `out`, which is empty. Its backward pass reads the saved storages (by root
 * value: 1). Whatever else it needs of V_f runs again, each op just before the one that asks for
 * it. What was run again serves others that ask for it within `hold` backward ops of the last one
 * that did. After that it runs once more. RM_HOLD_ALL: nothing runs a third time. If that takes too
 * many steps, `out` stays empty. */
remat_status rm_saved_steps(remat_ctx *ctx, const remat_graph *g, const rm_recompute_rules *rules,
                            const uint8_t *saved, uint32_t hold, rm_schedule *out);

/* The capacity of the cut that a valid schedule amounts to (Lemma 3.5): the prices of the storages
 * that were there when the tangents were made and are read afterwards. */
remat_status rm_crossing_price(remat_ctx *ctx, const remat_graph *g,
                               const rm_recompute_rules *rules, const remat_step *steps,
                               size_t n_steps, int64_t *out);

#endif

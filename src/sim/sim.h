/* sim.h: a schedule that can be edited, with its exact peak and cost known after every edit.
 *
 * Time is a row of slots, each empty or holding one step; what is in front of what is all that matters, so empty slots cost
 * nothing and leave room for insertions. Any arrangement of steps may be held, valid or not; rm_sim_is_valid tells. Peak
 * and cost mean what docs/model.md says when it is. Steps carry the graph's own indices. */
#ifndef RM_SIM_H
#define RM_SIM_H

#include "graph/schedule.h"

typedef struct rm_sim rm_sim;

remat_status rm_sim_new(remat_ctx *ctx, const remat_graph *g, uint32_t n_slots, rm_sim **out);
void rm_sim_free(rm_sim *s);
/* All slots emptied, then step i of n put into slot (i + 1) * n_slots / (n + 1): evenly spread. Needs n < n_slots. */
remat_status rm_sim_load(rm_sim *s, const remat_step *steps, size_t n_steps);
remat_status rm_sim_steps(const rm_sim *s, rm_schedule *out); /* appends the steps in order */

remat_status rm_sim_insert(rm_sim *s, uint32_t slot, remat_step step); /* into an empty slot */
void rm_sim_remove(rm_sim *s, uint32_t slot);                          /* from a full one */
remat_status rm_sim_move(rm_sim *s, uint32_t from, uint32_t to);       /* full to empty; on failure nothing has changed */
bool rm_sim_is_full(const rm_sim *s, uint32_t slot);
remat_step rm_sim_at(const rm_sim *s, uint32_t slot); /* of a full slot */

int64_t rm_sim_peak(const rm_sim *s);
int64_t rm_sim_cost(const rm_sim *s);
int64_t rm_sim_host_bytes(const rm_sim *s);
bool rm_sim_is_valid(const rm_sim *s);

#endif

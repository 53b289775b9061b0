/* node_groups.h: FastSA's node grouping: ops fused into their readers. The groups are the ops of a
 * normal graph of their own. */
#ifndef RM_NODE_GROUPS_H
#define RM_NODE_GROUPS_H

#include "graph/normal.h"

/* The ops of `out` are groups. member_begin and members list the ops of nm that each runs, in
 * order. Storages keep their numbers. Those inside groups are in no list. count_resident: resident
 * inputs count in the test of what is worth fusing. */
remat_status rm_group_nodes(remat_ctx *ctx, const rm_normal *nm, bool count_resident,
                            rm_normal *out);
/* Appends the ops that the groups run. */
remat_status rm_ungroup_nodes(remat_ctx *ctx, const rm_normal *groups, const rm_code *codes,
                              size_t n, rm_codes *out);

#endif

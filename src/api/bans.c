/* bans.c: the public side of recompute rules. They say what mincut may run again, and why not. */
#include "plan/cut/recompute_rules.h"

const char *remat_ban_reason(remat_ban ban)
{
    static const char *const reasons[] = {[REMAT_BAN_NONE] = "",
                                          [REMAT_BAN_PINNED] = "pinned",
                                          [REMAT_BAN_RANDOM] = "random",
                                          [REMAT_BAN_COMPUTE] = "compute",
                                          [REMAT_BAN_OTHER] = "not known to be fusible",
                                          [REMAT_BAN_REDUCTION] = "reduction",
                                          [REMAT_BAN_READ] =
                                              "read by a backward op that cannot be fused with it",
                                          [REMAT_BAN_LONG] = "too many ops in a row"};
    return (size_t)ban < RM_LEN(reasons) ? reasons[ban] : NULL;
}

remat_status remat_graph_recompute_rules(remat_ctx *ctx, const remat_graph *graph,
                                         remat_recompute_rule *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_recompute_rules rules;
    rm_input_name(ctx, NULL);
    const remat_status status = rm_recompute_rules_find(ctx, graph, &rules);
    for (uint32_t op = 0; op < graph->n_ops && status == REMAT_OK; op++)
        out[op] = (remat_recompute_rule){(remat_class)rules.op_class[op], rules.in_forward[op] != 0,
                                         (remat_ban)rules.ban[op]};
    rm_scratch_release(ctx, mark);
    return status;
}

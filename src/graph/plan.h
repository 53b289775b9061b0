/* plan.h: a plan as data: steps in the indices of the original graph, and the numbers that go with
 * them. It is one frozen block. */
#ifndef RM_PLAN_H
#define RM_PLAN_H

#include "graph/certificate.h"
#include "graph/schedule.h"

/* Where something lies in the arena. index: of the value that owns the storage, in the original
 * graph, or of the step that has the workspace. */
typedef struct rm_offset {
    uint32_t index;
    uint32_t instance; /* of the storage, in the order in which steps make them; 0: a workspace */
    int64_t offset;
} rm_offset;

typedef struct rm_plan_placement {
    int64_t align; /* 0: there is no placement */
    int64_t arena_bytes;
    size_t n_storages, n_workspaces;
    rm_offset *offsets; /* of storages, then of workspaces */
} rm_plan_placement;

struct remat_plan {
    remat_alloc heap;
    size_t block_size;
    remat_summary summary;            /* its strings lie in this block */
    uint32_t graph_values, graph_ops; /* how many the original has; REMAT_NONE: not known */
    int claimed_within;               /* within_budget in the file: 1 or 0; -1: it does not say */
    size_t n_steps;
    remat_step *steps;
    rm_certificates certificates; /* of the bounds; scale 0: none */
    rm_plan_placement placement;
};

/* Is its peak known to be within its budget? A negative budget is no limit. */
static inline bool rm_is_within(const remat_summary *s)
{
    return s->budget_bytes < 0 ||
           (s->peak_bytes != REMAT_ABSENT && s->peak_bytes <= s->budget_bytes);
}

/* Copies the summary with its strings, the steps and the certificates (NULL: none). Two numbers of
 * the summary it finds itself: how many steps there are, and how many ops run more than once. */
remat_status rm_plan_new(remat_ctx *ctx, const remat_summary *summary, const remat_step *steps,
                         size_t n_steps, const rm_certificates *certificates, remat_plan **out);

/* A copy of the plan that has this placement. */
remat_status rm_plan_with_placement(remat_ctx *ctx, const remat_plan *plan,
                                    const rm_plan_placement *placement, remat_plan **out);

/* The flags of remat_graph_prepare as files spell them. The list ends with the name NULL. */
typedef struct rm_flag_name {
    const char *name;
    unsigned flag;
} rm_flag_name;
extern const rm_flag_name rm_flag_names[];

/* The names that files and the program use. */
const char *rm_outcome_name(remat_outcome outcome);
bool rm_outcome_parse(const char *name, remat_outcome *out);

#endif

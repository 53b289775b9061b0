/* plan.h: a plan as data: steps in the original graph's indices, and the numbers that go with them.
 * One frozen block. */
#ifndef RM_PLAN_H
#define RM_PLAN_H

#include "graph/certificate.h"
#include "graph/schedule.h"

struct remat_plan {
    remat_alloc heap;
    size_t block_size;
    remat_summary summary; /* its strings lie in this block */
    uint32_t graph_values; /* n_values of the original, or REMAT_NONE where a file does not say */
    uint32_t graph_ops;
    int claimed_within; /* within_budget in the file: 1 or 0; -1: it does not say */
    size_t n_steps;
    remat_step *steps;
    rm_certificate certificate; /* of the bound; scale 0: none */
};

/* Its peak is known to be within its budget. A peak that is not known is within no budget. */
static inline bool rm_is_within(const remat_summary *s)
{
    return s->budget_bytes < 0 ||
           (s->peak_bytes != REMAT_ABSENT && s->peak_bytes <= s->budget_bytes);
}

/* Copies `summary`, with its strings, `steps` and `certificate`, which may be NULL: none. What
 * follows from the steps alone, their number and how many run more than once, it finds itself. */
remat_status rm_plan_new(remat_ctx *ctx, const remat_summary *summary, const remat_step *steps,
                         size_t n_steps, const rm_certificate *certificate, remat_plan **out);

/* The flags of remat_graph_prepare as files spell them; ends with NULL. */
typedef struct rm_flag_name {
    const char *name;
    unsigned flag;
} rm_flag_name;
extern const rm_flag_name rm_flag_names[];

/* The names that files and the program use. */
const char *rm_outcome_name(remat_outcome outcome);
bool rm_outcome_parse(const char *name, remat_outcome *out);

#endif

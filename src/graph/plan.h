/* plan.h: a plan as data: steps in the original graph's indices, and the numbers that go with them. One frozen block. */
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
    bool says_within; /* within_budget was in the file */
    size_t n_steps;
    remat_step *steps;
    rm_certificate certificate; /* of the bound; scale 0: none */
};

/* Copies `summary`, with its strings, `steps` and `certificate`, which may be NULL: none. */
remat_status rm_plan_new(remat_ctx *ctx, const remat_summary *summary, const remat_step *steps, size_t n_steps,
                         const rm_certificate *certificate, remat_plan **out);

/* REMAT_E_BUG unless the verifier agrees with what a strategy says of its plan; takes over what only the verifier knows. */
remat_status rm_plan_confirm(remat_ctx *ctx, const remat_verdict *v, remat_summary *s);

/* Invalid after all: the plan carries a number that is not true. */
void rm_verdict_refuse(remat_verdict *v, const char *what, int64_t says, int64_t is);
/* What the numbers in a plan are held against, besides what the verifier found. */
typedef struct rm_plan_facts {
    int64_t keep_all_peak_bytes, keep_all_cost, need_bytes;
    bool same_cost_model;  /* else costs cannot be compared */
    const char *cost_unit; /* "": not to be compared */
} rm_plan_facts;
void rm_plan_check_claims(const remat_plan *plan, const rm_plan_facts *facts, remat_verdict *v);

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

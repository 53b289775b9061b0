/* lower.c: a schedule becomes a program of allocate, compute and deallocate statements (Checkmate, Algorithm 1), with frees as
 * early as the model allows (its section 4.7: here they follow from liveness, so no code motion is needed).
 *
 * Each storage instance is a register. A step allocates what it makes, computes, and deallocates every register whose last
 * step it was. Registers that outlive the last step are the graph's outputs and are never deallocated.
 * Linear; deaths are bucketed by step with a counting sort. */
#include "graph/schedule.h"

#include "lower/lower.h"

struct remat_program {
    remat_alloc heap;
    size_t block_size, n_statements;
    remat_statement statements[];
};

void remat_program_free(remat_program *program)
{
    if (!program) return;
    const remat_alloc heap = program->heap;
    rm_release(&heap, program, program->block_size);
}

const remat_statement *remat_program_statements(const remat_program *program, size_t *n_statements)
{
    *n_statements = program->n_statements;
    return program->statements;
}

/* by_death[begin[t] .. begin[t + 1]): the instances that die at step t, in order of birth. */
static remat_status sort_by_death(remat_ctx *ctx, const rm_liveness *l, size_t n_steps, size_t **begin, uint32_t **by_death)
{
    TRY(RM_SCRATCH(ctx, *begin, n_steps + 3));
    TRY(RM_SCRATCH(ctx, *by_death, l->n_instances));
    size_t *next = *begin + 1;
    for (size_t i = 0; i < l->n_instances; i++) next[l->instances[i].death + 1]++;
    for (size_t t = 1; t <= n_steps + 1; t++) next[t] += next[t - 1];
    for (size_t i = 0; i < l->n_instances; i++) (*by_death)[next[l->instances[i].death]++] = (uint32_t)i;
    return REMAT_OK;
}

/* `own` and `steps` are the same schedule, in the graph's own and in the original's indices. */
static remat_status lower(remat_ctx *ctx, const remat_graph *g, const remat_step *own, const remat_step *steps, size_t n_steps,
                          remat_program **out)
{
    rm_liveness l;
    size_t *begin;
    uint32_t *by_death;
    TRY(rm_liveness_of(ctx, g, own, n_steps, &l));
    TRY(sort_by_death(ctx, &l, n_steps, &begin, &by_death));
    size_t most;
    if (rm_mul_overflows(l.n_instances * 2 + n_steps, sizeof(remat_statement), &most)) return rm_no_memory(ctx);
    remat_program *program = rm_alloc(ctx, sizeof *program + most);
    if (!program) return REMAT_E_MEMORY;
    program->heap = ctx->heap;
    program->block_size = sizeof *program + most;
    remat_statement *s = program->statements;
    int64_t memory = g->resident_bytes;
    for (uint32_t t = 0, made = 0; t < n_steps; t++) {
        for (; made < l.n_instances && l.instances[made].birth == t; made++) {
            const uint32_t root = l.instances[made].root;
            memory += g->storage[root];
            *s++ = (remat_statement){REMAT_ALLOCATE, steps[t], t, g->value_original[root], made, g->storage[root], memory};
        }
        const int64_t workspace = own[t].kind == REMAT_RUN ? g->workspace[own[t].index] : 0;
        *s++ = (remat_statement){REMAT_COMPUTE, steps[t], t, REMAT_NONE, REMAT_NONE, workspace, memory + workspace};
        for (size_t i = begin[t]; i < begin[t + 1]; i++) {
            const rm_instance *x = &l.instances[by_death[i]];
            memory -= g->storage[x->root];
            *s++ = (remat_statement){REMAT_DEALLOCATE,    steps[t], t, g->value_original[x->root], by_death[i],
                                     g->storage[x->root], memory};
        }
    }
    program->n_statements = (size_t)(s - program->statements);
    *out = program;
    return REMAT_OK;
}

remat_status rm_lower(remat_ctx *ctx, const remat_graph *g, const remat_step *steps, size_t n_steps, remat_program **out)
{
    remat_step *own;
    TRY(RM_SCRATCH(ctx, own, n_steps));
    for (size_t t = 0; t < n_steps; t++) own[t] = steps[t];
    TRY(rm_steps_to_graph(ctx, g, own, n_steps));
    return lower(ctx, g, own, steps, n_steps, out);
}

/* lower.c: a schedule becomes a program of allocate, compute and deallocate statements (Checkmate,
 * Algorithm 1), with frees as early as the model allows (its section 4.7: here they follow from
 * liveness, so no code motion is needed).
 *
 * Each storage instance is a register. A step allocates what it makes, computes, and deallocates
 * every register whose last step it was. Registers that outlive the last step are the graph's
 * outputs and are never deallocated. Operands say which register each value that a step reads or
 * makes lies in at that moment: a view has its base's. Linear. */
#include "lower/lower.h"

#include "base/csr.h"

struct remat_program { /* one block */
    remat_alloc heap;
    size_t block_size, n_statements, n_steps;
    remat_statement *statements;
    remat_operand *operands; /* by step: what it reads, then what it makes; behind the last step the
                                graph's outputs */
    size_t *begin; /* 2 n_steps + 2 of them: of the inputs of step t, of its outputs, ... */
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

static const remat_operand *operands(const remat_program *program, size_t list, uint32_t *n)
{
    *n = (uint32_t)(program->begin[list + 1] - program->begin[list]);
    return program->operands + program->begin[list];
}

const remat_operand *remat_program_step_in(const remat_program *program, size_t step, uint32_t *n)
{
    *n = 0;
    return step < program->n_steps ? operands(program, 2 * step, n) : NULL;
}

const remat_operand *remat_program_step_out(const remat_program *program, size_t step, uint32_t *n)
{
    *n = 0;
    return step < program->n_steps ? operands(program, 2 * step + 1, n) : NULL;
}

const remat_operand *remat_program_outputs(const remat_program *program, uint32_t *n)
{
    return operands(program, 2 * program->n_steps, n);
}

/* The instances by the step at which they die (n_steps: at none), in order of birth. */
static remat_status sort_by_death(remat_ctx *ctx, const rm_liveness *l, size_t n_steps, rm_csr *out)
{
    uint32_t *death;
    TRY(RM_SCRATCH(ctx, death, l->n_instances));
    for (size_t i = 0; i < l->n_instances; i++) death[i] = l->instances[i].death;
    return rm_csr_by_key(ctx, (uint32_t)n_steps + 1, (uint32_t)l->n_instances, death, out);
}

/* `own` and `steps` are the same schedule, in the graph's own and in the original's indices. */
typedef struct lowering {
    remat_ctx *ctx;
    const remat_graph *g;
    const remat_step *own, *steps;
    size_t n_steps;
    rm_liveness l;
    rm_csr by_death;
    remat_program *program;
} lowering;

static void write_statements(lowering *x)
{
    const remat_graph *g = x->g;
    const rm_liveness *l = &x->l;
    remat_statement *s = x->program->statements;
    int64_t memory = g->resident_bytes;
    for (uint32_t t = 0, made = 0; t < x->n_steps; t++) {
        for (; made < l->n_instances && l->instances[made].birth == t; made++) {
            const uint32_t root = l->instances[made].root;
            memory += g->storage[root];
            *s++ =
                (remat_statement){REMAT_ALLOCATE, x->steps[t],      t,     g->value_original[root],
                                  made,           g->storage[root], memory};
        }
        const int64_t workspace = x->own[t].kind == REMAT_RUN ? g->workspace[x->own[t].index] : 0;
        *s++ = (remat_statement){REMAT_COMPUTE, x->steps[t],       t, REMAT_NONE, REMAT_NONE,
                                 workspace,     memory + workspace};
        for (uint32_t i = x->by_death.begin[t]; i < x->by_death.begin[t + 1]; i++) {
            const uint32_t reg = x->by_death.items[i], root = l->instances[reg].root;
            memory -= g->storage[root];
            *s++ = (remat_statement){REMAT_DEALLOCATE, x->steps[t], t, g->value_original[root], reg,
                                     g->storage[root], memory};
        }
    }
    x->program->n_statements = (size_t)(s - x->program->statements);
}

static size_t count_operands(const lowering *x)
{
    const remat_graph *g = x->g;
    size_t n = g->n_outputs;
    for (size_t t = 0; t < x->n_steps; t++) {
        const uint32_t op = x->own[t].index;
        n += x->own[t].kind != REMAT_RUN
                 ? 1
                 : g->in_begin[op + 1] - g->in_begin[op] + g->out_begin[op + 1] - g->out_begin[op];
    }
    return n;
}

static remat_status write_operands(lowering *x)
{
    const remat_graph *g = x->g;
    uint32_t *now, made = 0; /* now: by value, the register that its newest instance lies in */
    remat_operand *to = x->program->operands;
    size_t *begin = x->program->begin;
    TRY(RM_SCRATCH(x->ctx, now, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) now[v] = REMAT_NONE;
    for (size_t t = 0; t < x->n_steps; t++) {
        const uint32_t index = x->own[t].index;
        *begin++ = (size_t)(to - x->program->operands);
        if (x->own[t].kind == REMAT_OFFLOAD)
            *to++ = (remat_operand){g->value_original[index], now[index]};
        for (uint32_t k = g->in_begin[index];
             x->own[t].kind == REMAT_RUN && k < g->in_begin[index + 1]; k++)
            *to++ = (remat_operand){g->value_original[g->in[k]], now[g->in[k]]};
        *begin++ = (size_t)(to - x->program->operands);
        for (; made < x->l.n_instances && x->l.instances[made].birth == t; made++)
            now[x->l.instances[made].root] = made;
        if (x->own[t].kind == REMAT_FETCH)
            *to++ = (remat_operand){g->value_original[index], now[index]};
        for (uint32_t k = g->out_begin[index];
             x->own[t].kind == REMAT_RUN && k < g->out_begin[index + 1]; k++) {
            const uint32_t v = g->out[k];
            if (g->out_source[k] != REMAT_NONE) now[v] = now[g->out_source[k]];
            *to++ = (remat_operand){g->value_original[v], now[v]};
        }
    }
    *begin++ = (size_t)(to - x->program->operands);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        *to++ = (remat_operand){g->value_original[g->outputs[i]], now[g->outputs[i]]};
    *begin = (size_t)(to - x->program->operands);
    return REMAT_OK;
}

static remat_status lower(lowering *x, remat_program **out)
{
    TRY(rm_liveness_of(x->ctx, x->g, x->own, x->n_steps, 0, &x->l));
    TRY(sort_by_death(x->ctx, &x->l, x->n_steps, &x->by_death));
    const size_t n_statements = x->l.n_instances * 2 + x->n_steps, n_begin = 2 * x->n_steps + 2;
    size_t statements_size, operands_size, size;
    if (rm_mul_overflows(n_statements, sizeof(remat_statement), &statements_size) ||
        rm_mul_overflows(count_operands(x), sizeof(remat_operand), &operands_size) ||
        rm_mul_overflows(n_begin, sizeof(size_t), &size) ||
        rm_add_overflows(size, statements_size, &size) ||
        rm_add_overflows(size, operands_size, &size) ||
        rm_add_overflows(size, sizeof(remat_program), &size))
        return rm_no_memory(x->ctx);
    remat_program *program = x->program = rm_alloc(x->ctx, size);
    if (!program) return REMAT_E_MEMORY;
    program->heap = x->ctx->own_heap;
    program->block_size = size;
    program->n_steps = x->n_steps;
    program->begin = (size_t *)(program + 1);
    program->statements = (remat_statement *)(program->begin + n_begin);
    program->operands = (remat_operand *)(program->statements + n_statements);
    write_statements(x);
    const remat_status status = write_operands(x);
    if (status == REMAT_OK) *out = program;
    else remat_program_free(program);
    return status;
}

remat_status rm_lower(remat_ctx *ctx, const remat_graph *g, const remat_step *steps, size_t n_steps,
                      remat_program **out)
{
    remat_step *own;
    TRY(rm_steps_to_graph(ctx, g, steps, n_steps, &own));
    lowering x = {.ctx = ctx, .g = g, .own = own, .steps = steps, .n_steps = n_steps};
    return lower(&x, out);
}

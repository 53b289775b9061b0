/* lower.c: a schedule becomes a program of allocate, compute and deallocate statements.
 *
 * Method: Checkmate, Algorithm 1. Storages are freed as early as the model allows (its section
 * 4.7). Here that follows from liveness, so no code motion is needed.
 *
 * Each storage instance is a register. A step allocates what it makes, computes, and deallocates
 * every register whose last step it was. What it makes in place of an input takes over that input's
 * register: it is neither allocated, nor was the input deallocated. Registers that outlive the last
 * step are the graph's outputs; they are never deallocated. Operands say in which register each
 * value that a step reads or makes lies at that moment. A view lies in the register of its base.
 *
 * Cost: linear. */
#include "lower/lower.h"

#include <assert.h>

#include "base/csr.h"

struct remat_program { /* one block */
    remat_alloc heap;
    size_t block_size, n_statements, n_steps;
    remat_statement *statements;
    remat_operand *operands;
    /* List i of the operands is operands[begin[i] .. begin[i + 1]). List 2 t has the inputs of step
     * t, list 2 t + 1 its outputs. The last list, 2 n_steps, has the outputs of the graph. */
    size_t *begin;
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

/* The instances by the step at which they die (n_steps: at none), in order of birth. One that
 * another takes the place of dies at none, and is not among them. */
static remat_status sort_by_death(remat_ctx *ctx, const rm_liveness *l, size_t n_steps, rm_csr *out)
{
    uint32_t *death;
    TRY(RM_SCRATCH(ctx, death, l->n_instances));
    for (size_t i = 0; i < l->n_instances; i++) death[i] = l->instances[i].death;
    for (size_t i = 0; i < l->n_instances; i++)
        if (l->instances[i].takes != REMAT_NONE) death[l->instances[i].takes] = REMAT_NONE;
    return rm_csr_by_key(ctx, (uint32_t)n_steps + 1, (uint32_t)l->n_instances, death, out);
}

typedef struct lowering {
    remat_ctx *ctx;
    const remat_graph *g;
    const remat_step *own, *steps; /* one schedule, in indices of g and of the original graph */
    size_t n_steps;
    rm_liveness l;
    rm_csr by_death;
    uint32_t *reg; /* by instance */
    remat_program *program;
    /* for the operands */
    uint32_t *now; /* by value: the register that its newest instance lies in, or REMAT_NONE */
    uint32_t made; /* instances so far */
    size_t n_operands, n_lists;
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
            const bool in_place = l->instances[made].takes != REMAT_NONE;
            if (!in_place) memory += g->storage[root];
            *s++ = (remat_statement){in_place ? REMAT_REUSE : REMAT_ALLOCATE,
                                     x->steps[t],
                                     t,
                                     g->value_original[root],
                                     x->reg[made],
                                     g->storage[root],
                                     memory};
        }
        const int64_t workspace = x->own[t].kind == REMAT_RUN ? g->workspace[x->own[t].index] : 0;
        *s++ = (remat_statement){REMAT_COMPUTE, x->steps[t],       t, REMAT_NONE, REMAT_NONE,
                                 workspace,     memory + workspace};
        for (uint32_t i = x->by_death.begin[t]; i < x->by_death.begin[t + 1]; i++) {
            const uint32_t last = x->by_death.items[i], root = l->instances[last].root;
            memory -= g->storage[root];
            *s++ = (remat_statement){
                REMAT_DEALLOCATE, x->steps[t],      t,     g->value_original[root],
                x->reg[last],     g->storage[root], memory};
        }
    }
    assert(memory >= g->resident_bytes);
    x->program->n_statements = (size_t)(s - x->program->statements);
}

static size_t count_operands(const lowering *x)
{
    const remat_graph *g = x->g;
    size_t n = g->n_outputs;
    for (size_t t = 0; t < x->n_steps; t++) {
        const uint32_t op = x->own[t].index;
        if (x->own[t].kind != REMAT_RUN) n += 1;
        else n += g->in_begin[op + 1] - g->in_begin[op] + g->out_begin[op + 1] - g->out_begin[op];
    }
    return n;
}

static void begin_list(lowering *x) { x->program->begin[x->n_lists++] = x->n_operands; }

static void add_operand(lowering *x, uint32_t value)
{
    x->program->operands[x->n_operands++] =
        (remat_operand){x->g->value_original[value], x->now[value]};
}

static void write_inputs(lowering *x, remat_step step)
{
    const remat_graph *g = x->g;
    begin_list(x);
    if (step.kind == REMAT_OFFLOAD) add_operand(x, step.index);
    if (step.kind != REMAT_RUN) return;
    for (uint32_t k = g->in_begin[step.index]; k < g->in_begin[step.index + 1]; k++)
        add_operand(x, g->in[k]);
}

static void write_outputs(lowering *x, remat_step step)
{
    const remat_graph *g = x->g;
    begin_list(x);
    if (step.kind == REMAT_FETCH) add_operand(x, step.index);
    if (step.kind != REMAT_RUN) return;
    for (uint32_t k = g->out_begin[step.index]; k < g->out_begin[step.index + 1]; k++) {
        const uint32_t v = g->out[k], source = g->out_source[k];
        if (source != REMAT_NONE) x->now[v] = x->now[source];
        add_operand(x, v);
    }
}

static void write_operands(lowering *x)
{
    const remat_graph *g = x->g;
    const rm_liveness *l = &x->l;
    for (uint32_t v = 0; v < g->n_values; v++) x->now[v] = REMAT_NONE;
    for (size_t t = 0; t < x->n_steps; t++) {
        write_inputs(x, x->own[t]);
        for (; x->made < l->n_instances && l->instances[x->made].birth == t; x->made++)
            x->now[l->instances[x->made].root] = x->reg[x->made];
        write_outputs(x, x->own[t]);
    }
    begin_list(x);
    for (uint32_t i = 0; i < g->n_outputs; i++) add_operand(x, g->outputs[i]);
    begin_list(x); /* the end of the last */
    assert(x->n_lists == 2 * x->n_steps + 2);
}

/* False: the size of the block passes SIZE_MAX. */
static bool find_size(size_t n_begin, size_t n_statements, size_t n_operands, size_t *out)
{
    size_t statements_size, operands_size;
    return !rm_mul_overflows(n_statements, sizeof(remat_statement), &statements_size) &&
           !rm_mul_overflows(n_operands, sizeof(remat_operand), &operands_size) &&
           !rm_mul_overflows(n_begin, sizeof(size_t), out) &&
           !rm_add_overflows(*out, statements_size, out) &&
           !rm_add_overflows(*out, operands_size, out) &&
           !rm_add_overflows(*out, sizeof(remat_program), out);
}

/* In order of birth, so that an input has a register before an output takes it. */
static remat_status number_registers(lowering *x)
{
    const rm_liveness *l = &x->l;
    uint32_t n = 0;
    TRY(RM_SCRATCH(x->ctx, x->reg, l->n_instances));
    for (size_t i = 0; i < l->n_instances; i++)
        x->reg[i] = l->instances[i].takes == REMAT_NONE ? n++ : x->reg[l->instances[i].takes];
    return REMAT_OK;
}

static remat_status lower(lowering *x, remat_program **out)
{
    TRY(rm_liveness_of(x->ctx, x->g, x->own, x->n_steps, 0, &x->l));
    TRY(number_registers(x));
    TRY(sort_by_death(x->ctx, &x->l, x->n_steps, &x->by_death));
    TRY(RM_SCRATCH(x->ctx, x->now, x->g->n_values));
    const size_t n_statements = x->l.n_instances * 2 + x->n_steps, n_begin = 2 * x->n_steps + 2;
    const size_t n_operands = count_operands(x);
    size_t size;
    if (!find_size(n_begin, n_statements, n_operands, &size)) return rm_no_memory(x->ctx);
    remat_program *program = rm_alloc(x->ctx, size);
    if (!program) return REMAT_E_MEMORY;
    program->heap = x->ctx->own_heap;
    program->block_size = size;
    program->n_steps = x->n_steps;
    program->begin = (size_t *)(program + 1);
    program->statements = (remat_statement *)(program->begin + n_begin);
    program->operands = (remat_operand *)(program->statements + n_statements);
    x->program = program;
    write_statements(x);
    write_operands(x);
    assert(program->n_statements <= n_statements && x->n_operands == n_operands);
    *out = program;
    return REMAT_OK;
}

remat_status rm_lower(remat_ctx *ctx, const remat_graph *g, const remat_step *steps, size_t n_steps,
                      remat_program **out)
{
    remat_step *own;
    TRY(rm_steps_to_graph(ctx, g, steps, n_steps, &own));
    lowering x = {.ctx = ctx, .g = g, .own = own, .steps = steps, .n_steps = n_steps};
    return lower(&x, out);
}

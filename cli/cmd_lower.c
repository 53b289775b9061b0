/* cmd_lower.c: `remat lower`: a schedule as allocate, compute and deallocate statements with the memory in use at each
 * (Checkmate, Jain et al. 2020, Algorithm 1). Without a plan it is keep-all. A plan is verified first: an invalid one is exit code 5.
 * Invariant: the allocations of a step come directly before its compute statement, so its registers are found there. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"

static const char *step_name(const session *s, const remat_step *step, amount *buffer)
{
    return step->kind == REMAT_RUN ? session_op(s, step->index, buffer) : session_value(s, step->index, buffer);
}

static const char *step_verb(const remat_step *step)
{
    static const char *const verbs[] = {"compute", "offload", "fetch"};
    return step->kind < 3 ? verbs[step->kind] : "compute";
}

static size_t first_allocation(const remat_statement *statement, size_t compute)
{
    size_t first = compute;
    const uint32_t step = statement[compute].step_index;
    while (first > 0 && statement[first - 1].kind == REMAT_ALLOCATE && statement[first - 1].step_index == step) first--;
    return first;
}

static void print_statement(session *s, const remat_statement *statement, size_t i)
{
    const remat_statement *at = &statement[i];
    out *o = s->out;
    amount buffer;
    out_print(o, "%16" PRId64 "  ", at->memory_bytes);
    if (at->kind == REMAT_ALLOCATE) {
        out_print(o, "%%r%" PRIu32 " = allocate %s %" PRId64 "\n", at->reg,
                  out_clean(o, session_value(s, at->value, &buffer), 64).text, at->bytes);
    } else if (at->kind == REMAT_DEALLOCATE) {
        out_print(o, "deallocate %%r%" PRIu32 "\n", at->reg);
    } else {
        out_print(o, "%s %s", step_verb(&at->step), out_clean(o, step_name(s, &at->step, &buffer), 64).text);
        for (size_t k = first_allocation(statement, i), first = k; k < i; k++)
            out_print(o, "%s%%r%" PRIu32, k == first ? " -> " : ", ", statement[k].reg);
        out_print(o, "\n");
    }
}

static void json_statement(session *s, emitter *j, const remat_statement *statement, size_t i)
{
    const remat_statement *at = &statement[i];
    amount buffer;
    emit_open(j, NULL, '{');
    emit_text(j, "statement",
              at->kind == REMAT_ALLOCATE     ? "allocate"
              : at->kind == REMAT_DEALLOCATE ? "deallocate"
                                             : step_verb(&at->step));
    emit_int(j, "step", at->step_index);
    if (at->kind == REMAT_COMPUTE) {
        emit_int(j, "index", at->step.index);
        emit_text(j, "name", step_name(s, &at->step, &buffer));
        emit_open(j, "regs", '[');
        for (size_t k = first_allocation(statement, i); k < i; k++) emit_int(j, NULL, statement[k].reg);
        emit_close(j, ']');
    } else {
        emit_int(j, "index", at->value);
        emit_text(j, "name", session_value(s, at->value, &buffer));
        emit_int(j, "reg", at->reg);
    }
    emit_int(j, "bytes", at->bytes);
    emit_int(j, "memory_bytes", at->memory_bytes);
    emit_close(j, '}');
}

int cmd_lower(session *s)
{
    const remat_plan *plan;
    remat_program *program;
    size_t n_steps, n;
    const int status = session_program(s, &plan);
    if (status) return status;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    CHECK(s, remat_lower(s->ctx, s->graph, steps, n_steps, &program));
    const remat_statement *statement = remat_program_statements(program, &n);
    emitter j = {.out = s->out};
    if (s->out->json) emit_open(&j, NULL, '[');
    else out_print(s->out, "%s%16s  statement%s\n", out_style(s->out, BOLD), "memory in bytes", out_style(s->out, PLAIN));
    for (size_t i = 0; i < n; i++) {
        if (s->out->json) json_statement(s, &j, statement, i);
        else print_statement(s, statement, i);
    }
    if (s->out->json) emit_close(&j, ']');
    remat_program_free(program);
    return REMAT_OK;
}

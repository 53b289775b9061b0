/* cmd_lower.c: `remat lower`: a schedule
 *   - as allocate, compute and deallocate statements with the memory in use at each (Checkmate,
 *     Jain et al. 2020, Algorithm 1),
 *   - as a graph with a node for every step (section 4.8 there), or
 *   - as a C function.
 * Without a plan it is keep-all. A plan is verified first; an invalid one is exit code 5.
 * Invariant: the allocations of a step come directly before its compute statement. So its registers
 * are found there. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "lower_c.h"

static const char *step_name(const session *s, const remat_step *step, amount *buffer)
{
    return step->kind == REMAT_RUN ? session_op(s, step->index, buffer)
                                   : session_value(s, step->index, buffer);
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
    while (first > 0 && statement[first - 1].kind == REMAT_ALLOCATE &&
           statement[first - 1].step_index == step)
        first--;
    return first;
}

static void print_statement(session *s, out *o, const remat_statement *statement, size_t i)
{
    const remat_statement *at = &statement[i];
    amount buffer;
    out_print(o, "%16" PRId64 "  ", at->memory_bytes);
    if (at->kind == REMAT_ALLOCATE) {
        out_print(o, "%%r%" PRIu32 " = allocate %s %" PRId64 "\n", at->reg,
                  out_clean(o, session_value(s, at->value, &buffer), 64).text, at->bytes);
    } else if (at->kind == REMAT_DEALLOCATE) {
        out_print(o, "deallocate %%r%" PRIu32 "\n", at->reg);
    } else {
        out_print(o, "%s %s", step_verb(&at->step),
                  out_clean(o, step_name(s, &at->step, &buffer), 64).text);
        for (size_t k = first_allocation(statement, i), first = k; k < i; k++)
            out_print(o, "%s%%r%" PRIu32, k == first ? " -> " : ", ", statement[k].reg);
        out_print(o, "\n");
    }
}

/* null: resident. */
static void json_operands(emitter *j, const char *key, const remat_operand *x, uint32_t n)
{
    emit_open(j, key, '[');
    for (uint32_t k = 0; k < n; k++)
        emit_int_or_null(j, NULL, x[k].reg == REMAT_NONE ? REMAT_ABSENT : (int64_t)x[k].reg);
    emit_close(j, ']');
}

static void json_statement(session *s, emitter *j, const remat_program *program,
                           const remat_statement *statement, size_t i)
{
    const remat_statement *at = &statement[i];
    amount buffer;
    emit_open(j, NULL, '{');
    const char *verb = step_verb(&at->step);
    if (at->kind == REMAT_ALLOCATE) verb = "allocate";
    if (at->kind == REMAT_DEALLOCATE) verb = "deallocate";
    emit_text(j, "statement", verb);
    emit_int(j, "step", at->step_index);
    if (at->kind == REMAT_COMPUTE) {
        emit_int(j, "index", at->step.index);
        emit_text(j, "name", step_name(s, &at->step, &buffer));
        emit_open(j, "regs", '[');
        for (size_t k = first_allocation(statement, i); k < i; k++)
            emit_int(j, NULL, statement[k].reg);
        emit_close(j, ']');
        uint32_t n;
        const remat_operand *x = remat_program_step_in(program, at->step_index, &n);
        json_operands(j, "in", x, n);
        x = remat_program_step_out(program, at->step_index, &n);
        json_operands(j, "out", x, n);
    } else {
        emit_int(j, "index", at->value);
        emit_text(j, "name", session_value(s, at->value, &buffer));
        emit_int(j, "reg", at->reg);
    }
    emit_int(j, "bytes", at->bytes);
    emit_int(j, "memory_bytes", at->memory_bytes);
    emit_close(j, '}');
}

typedef struct lowered {
    const remat_program *program;
    const remat_plan *plan;
} lowered;

static remat_status write_plan(session *s, const void *object, remat_format format, out *to)
{
    const remat_program *program = ((const lowered *)object)->program;
    size_t n;
    (void)format;
    const remat_statement *statement = remat_program_statements(program, &n);
    emitter j = {.out = to};
    if (s->out->json) emit_open(&j, NULL, '[');
    else
        out_print(to, "%s%16s  statement%s\n", out_style(to, BOLD), "memory in bytes",
                  out_style(to, PLAIN));
    for (size_t i = 0; i < n; i++) {
        if (s->out->json) json_statement(s, &j, program, statement, i);
        else print_statement(s, to, statement, i);
    }
    if (s->out->json) emit_close(&j, ']');
    return REMAT_OK;
}

static remat_status write_graph(session *s, const void *object, remat_format format, out *to)
{
    size_t n_steps;
    remat_graph *graph = NULL;
    const remat_step *steps = remat_plan_steps(((const lowered *)object)->plan, &n_steps);
    remat_status status = remat_unroll(s->ctx, s->graph, steps, n_steps, &graph);
    if (status == REMAT_OK) status = remat_graph_write(s->ctx, graph, format, out_sink, to);
    remat_graph_free(graph);
    return status;
}

static remat_status write_c(session *s, const void *object, remat_format format, out *to)
{
    const lowered *x = object;
    (void)format;
    return lower_c(s, x->program, to);
}

/* Which writer. A usage error where the flags do not go together. */
static int choose_writer(session *s, session_writer **chosen)
{
    static const struct {
        const char *name;
        session_writer *write;
    } writers[] = {{"plan", write_plan}, {"graph", write_graph}, {"c", write_c}};
    const char *name = s->args->text[FLAG_PROGRAM] ? s->args->text[FLAG_PROGRAM] : "plan";
    const char *path = s->args->text[FLAG_OUTPUT] ? s->args->text[FLAG_OUTPUT] : "";
    session_writer *write = NULL;
    for (size_t i = 0; i < LEN(writers); i++)
        if (strcmp(writers[i].name, name) == 0) write = writers[i].write;
    if (!write)
        return out_fail(s->out, REMAT_E_USAGE, "lower", "--format",
                        "'%.40s' is none of plan, graph, c", name);
    if (write == write_c && s->out->json)
        return out_fail(s->out, REMAT_E_USAGE, "lower", "--json",
                        "and --format c exclude each other");
    if (write != write_graph && session_format(path, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, "lower", "-o",
                        "only graphs are compressed: choose a name without .gz");
    *chosen = write;
    return REMAT_OK;
}

int cmd_lower(session *s)
{
    remat_program *program = NULL;
    lowered x = {0};
    size_t n_steps;
    session_writer *write = NULL;
    TRY(choose_writer(s, &write));
    TRY(session_program(s, &x.plan));
    const remat_step *steps = remat_plan_steps(x.plan, &n_steps);
    CHECK(s, remat_lower(s->ctx, s->graph, steps, n_steps, &program));
    x.program = program;
    const char *path = s->args->text[FLAG_OUTPUT];
    const int status =
        session_write(s, path, write, &x, session_format(path ? path : "", REMAT_JSON));
    remat_program_free(program);
    return status;
}

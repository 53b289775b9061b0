/* cmd_lower.c: `remat lower`: a schedule
 *   - as allocate, compute and deallocate statements with the memory in use at each (Checkmate,
 *     Jain et al. 2020, Algorithm 1),
 *   - as a graph with a node for every step (section 4.8 there),
 *   - as a C function,
 *   - as the spans that placement is about, with their offsets, or
 *   - as a plan file that has the placement in it.
 * Without a plan it is keep-all. A plan is verified first; an invalid one is exit code 5. With
 * --place every statement has an offset in one arena, and --svg draws them.
 * Invariant: the allocations of a step come directly before its compute statement. So its registers
 * are found there. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "lower_c.h"
#include "lower_svg.h"
#include "report.h"

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

/* Does it name what the next computation makes? */
static bool makes(const remat_statement *at)
{
    return at->kind == REMAT_ALLOCATE || at->kind == REMAT_REUSE;
}

static size_t first_allocation(const remat_statement *statement, size_t compute)
{
    size_t first = compute;
    const uint32_t step = statement[compute].step_index;
    while (first > 0 && makes(&statement[first - 1]) && statement[first - 1].step_index == step)
        first--;
    return first;
}

typedef struct lowered {
    const remat_program *program;
    const remat_plan *plan;
    const remat_placement *placement; /* NULL: nothing is placed */
} lowered;

/* The offset of what the statement allocates, or of the workspace; REMAT_ABSENT: there is none. */
static int64_t offset_of(const lowered *x, const remat_statement *at)
{
    if (!x->placement || at->kind == REMAT_DEALLOCATE) return REMAT_ABSENT;
    return makes(at) ? remat_placement_register(x->placement, at->reg)
                     : remat_placement_workspace(x->placement, at->step_index);
}

static void print_offset(out *o, int64_t offset, const char *what)
{
    if (offset != REMAT_ABSENT) out_print(o, "%s at %" PRId64, what, offset);
    out_print(o, "\n");
}

static void print_statement(session *s, out *o, const lowered *x, const remat_statement *statement,
                            size_t i)
{
    const remat_statement *at = &statement[i];
    amount buffer;
    out_print(o, "%16" PRId64 "  ", at->memory_bytes);
    if (makes(at)) {
        out_print(o, "%%r%" PRIu32 " = %s %s %" PRId64, at->reg,
                  at->kind == REMAT_REUSE ? "reuse" : "allocate",
                  out_clean(o, session_value(s, at->value, &buffer), 64).text, at->bytes);
        print_offset(o, offset_of(x, at), "");
    } else if (at->kind == REMAT_DEALLOCATE) {
        out_print(o, "deallocate %%r%" PRIu32 "\n", at->reg);
    } else {
        out_print(o, "%s %s", step_verb(&at->step),
                  out_clean(o, step_name(s, &at->step, &buffer), 64).text);
        for (size_t k = first_allocation(statement, i), first = k; k < i; k++)
            out_print(o, "%s%%r%" PRIu32, k == first ? " -> " : ", ", statement[k].reg);
        print_offset(o, offset_of(x, at), ", workspace");
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

static void json_statement(session *s, emitter *j, const lowered *x,
                           const remat_statement *statement, size_t i)
{
    const remat_program *program = x->program;
    const remat_statement *at = &statement[i];
    amount buffer;
    emit_open(j, NULL, '{');
    const char *verb = step_verb(&at->step);
    if (at->kind == REMAT_ALLOCATE) verb = "allocate";
    if (at->kind == REMAT_DEALLOCATE) verb = "deallocate";
    if (at->kind == REMAT_REUSE) verb = "reuse";
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
        const remat_operand *list = remat_program_step_in(program, at->step_index, &n);
        json_operands(j, "in", list, n);
        list = remat_program_step_out(program, at->step_index, &n);
        json_operands(j, "out", list, n);
    } else {
        emit_int(j, "index", at->value);
        emit_text(j, "name", session_value(s, at->value, &buffer));
        emit_int(j, "reg", at->reg);
    }
    emit_int(j, "bytes", at->bytes);
    emit_int(j, "memory_bytes", at->memory_bytes);
    if (x->placement && at->kind != REMAT_DEALLOCATE)
        emit_int_or_null(j, "offset", offset_of(x, at));
    emit_close(j, '}');
}

/* With a placement the list of statements is a member of an object. */
static void json_plan(session *s, const lowered *x, out *to)
{
    size_t n;
    const remat_statement *statement = remat_program_statements(x->program, &n);
    emitter j = {.out = to};
    if (x->placement) {
        const remat_packing *p = remat_placement_packing(x->placement);
        emit_open(&j, NULL, '{');
        emit_int(&j, "align", remat_placement_align(x->placement));
        emit_int(&j, "arena_bytes", p->height_bytes);
        emit_int(&j, "load_bytes", p->load_bytes);
        emit_int(&j, "waste_bytes", p->height_bytes - p->load_bytes);
        emit_text(&j, "outcome", outcome_name(p->outcome));
        emit_text(&j, "stopped", stopped_name(p->stopped));
        emit_int(&j, "work", p->work);
    }
    emit_open(&j, x->placement ? "statements" : NULL, '[');
    for (size_t i = 0; i < n; i++) json_statement(s, &j, x, statement, i);
    emit_close(&j, ']');
    if (x->placement) emit_close(&j, '}');
}

static remat_status write_plan(session *s, const void *object, remat_format format, out *to)
{
    const lowered *x = object;
    size_t n;
    (void)format;
    const remat_statement *statement = remat_program_statements(x->program, &n);
    if (s->out->json) {
        json_plan(s, x, to);
        return REMAT_OK;
    }
    out_print(to, "%s%16s  statement%s\n", out_style(to, BOLD), "memory in bytes",
              out_style(to, PLAIN));
    for (size_t i = 0; i < n; i++) print_statement(s, to, x, statement, i);
    if (!x->placement) return REMAT_OK;
    const remat_packing *p = remat_placement_packing(x->placement);
    out_print(to, "%16" PRId64 "  arena, %s, %" PRId64 " wasted\n", p->height_bytes,
              outcome_name(p->outcome), p->height_bytes - p->load_bytes);
    return REMAT_OK;
}

/* MiniMalloc's columns. Spans of no bytes are left out: its files have none. */
static remat_status write_csv(session *s, const void *object, remat_format format, out *to)
{
    const lowered *x = object;
    size_t n, n_statements;
    const remat_span *spans = remat_placement_spans(x->placement, &n);
    const remat_statement *statement = remat_program_statements(x->program, &n_statements);
    uint32_t n_regs = 0;
    (void)s, (void)format;
    for (size_t i = 0; i < n_statements; i++) n_regs += statement[i].kind == REMAT_ALLOCATE;
    out_print(to, "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < n; i++) {
        const bool is_reg = i < n_regs;
        const size_t step = (size_t)spans[i].begin;
        if (spans[i].bytes == 0) continue;
        out_print(to, "%c%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", is_reg ? 'r' : 'w',
                  is_reg ? i : step, spans[i].begin, spans[i].end, spans[i].bytes,
                  is_reg ? remat_placement_register(x->placement, (uint32_t)i)
                         : remat_placement_workspace(x->placement, step));
    }
    return REMAT_OK;
}

static remat_status write_svg(session *s, const void *object, remat_format format, out *to)
{
    const lowered *x = object;
    (void)format;
    return lower_svg(s, &(const picture){x->program, x->placement, x->plan}, to);
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

/* Does the plan say where everything lies? --align asks for other places. */
static bool is_placed(const session *s, const lowered *x)
{
    return !s->args->text[FLAG_ALIGN] && remat_plan_arena_bytes(x->plan) != REMAT_ABSENT;
}

/* What was asked for, or what sizes were rounded to before planning. */
static int64_t align_of(const session *s, const lowered *x)
{
    return s->args->text[FLAG_ALIGN] ? s->args->number[FLAG_ALIGN]
                                     : remat_plan_summary(x->plan)->align;
}

/* The plan, with its placement. */
static remat_status write_plan_file(session *s, const void *object, remat_format format, out *to)
{
    const lowered *x = object;
    remat_plan *placed = NULL;
    if (is_placed(s, x)) return remat_plan_write(s->ctx, x->plan, format, out_sink, to);
    remat_status status = remat_plan_place(s->ctx, s->graph, x->plan, align_of(s, x), &placed);
    if (status == REMAT_OK) status = remat_plan_write(s->ctx, placed, format, out_sink, to);
    remat_plan_free(placed);
    return status;
}

/* Which writer. A usage error where the flags do not go together. */
static int choose_writer(session *s, session_writer **chosen)
{
    static const struct {
        const char *name;
        session_writer *write;
    } writers[] = {{"plan", write_plan},
                   {"graph", write_graph},
                   {"c", write_c},
                   {"csv", write_csv},
                   {"remat-plan", write_plan_file}};
    const char *name = s->args->text[FLAG_PROGRAM] ? s->args->text[FLAG_PROGRAM] : "plan";
    const char *path = s->args->text[FLAG_OUTPUT] ? s->args->text[FLAG_OUTPUT] : "";
    session_writer *write = NULL;
    for (size_t i = 0; i < LEN(writers); i++)
        if (strcmp(writers[i].name, name) == 0) write = writers[i].write;
    if (!write)
        return out_fail(s->out, REMAT_E_USAGE, "lower", "--format",
                        "'%.40s' is none of plan, graph, c, csv, remat-plan", name);
    if ((write == write_c || write == write_csv) && s->out->json)
        return out_fail(s->out, REMAT_E_USAGE, "lower", "--json",
                        "and --format %s exclude each other", name);
    if (s->args->text[FLAG_ALIGN] && s->args->number[FLAG_ALIGN] < 1) /* to the library: 512 */
        return out_fail(s->out, REMAT_E_USAGE, "lower", "--align",
                        "'%.40s' is no power of two up to 2^30", s->args->text[FLAG_ALIGN]);
    const bool may_compress = write == write_graph || write == write_plan_file;
    if (!may_compress && session_format(path, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, "lower", "-o",
                        "only graphs and plan files are compressed: choose a name without .gz");
    *chosen = write;
    return REMAT_OK;
}

static int write_all(session *s, session_writer *write, const lowered *x)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    TRY(session_write_svg(s, write_svg, x));
    if (session_svg_is_output(s) && !path) return REMAT_OK; /* the picture is the output */
    return session_write(s, path, write, x, session_format(path ? path : "", REMAT_JSON));
}

/* Offsets where somebody asks for them: --place, --align, --svg, --format csv. They are those of
 * the plan if it has some. A plan file finds its own. */
static int place_and_write(session *s, session_writer *write, lowered *x)
{
    const args *a = s->args;
    remat_placement *placement = NULL;
    const bool asked = a->text[FLAG_PLACE] || a->text[FLAG_ALIGN] || write == write_csv;
    if (a->text[FLAG_SVG] || (asked && write != write_plan_file)) {
        session_catch(s);
        const remat_status status =
            is_placed(s, x) ? remat_plan_placement(s->ctx, s->graph, x->plan, &placement)
                            : remat_place(s->ctx, x->program, align_of(s, x), &placement);
        session_release(s);
        if (status == REMAT_E_USAGE)
            return out_fail(s->out, status, "lower", "--align", "%s",
                            remat_ctx_error_reason(s->ctx));
        CHECK(s, status);
    }
    x->placement = placement;
    const int status = write_all(s, write, x);
    remat_placement_free(placement);
    return status;
}

/* The library's 0 is its default; nobody means that here. */
static int check_align(session *s)
{
    if (!s->args->text[FLAG_ALIGN] || s->args->number[FLAG_ALIGN] > 0) return REMAT_OK;
    return out_fail(s->out, REMAT_E_USAGE, "lower", "--align",
                    "%" PRId64 " is no power of two up to 2^30", s->args->number[FLAG_ALIGN]);
}

int cmd_lower(session *s)
{
    remat_program *program = NULL;
    lowered x = {0};
    size_t n_steps;
    session_writer *write = NULL;
    TRY(choose_writer(s, &write));
    TRY(check_align(s));
    TRY(session_program(s, &x.plan));
    const remat_step *steps = remat_plan_steps(x.plan, &n_steps);
    session_busy(s);
    const remat_status done = remat_lower(s->ctx, s->graph, steps, n_steps, &program);
    session_idle(s);
    CHECK(s, done);
    x.program = program;
    const int status = place_and_write(s, write, &x);
    remat_program_free(program);
    return status;
}

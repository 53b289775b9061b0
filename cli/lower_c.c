/* lower_c.c: a lowered schedule as a C function of allocate, compute and free calls
 * (Checkmate, 4.7), for a runtime that has no other use for us.
 *
 * One register is one storage instance, or several that are made in each other's place. The file
 * needs only <stddef.h>, compiles as C99 without warnings, and depends on nothing of ours: the
 * caller hands in three functions (five if the plan moves values). Names are data from a file. They
 * are written only as comments and string literals, with everything but harmless ASCII escaped.
 * Cost: linear in what is written. */
#include "lower_c.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LONGEST_NAME = 60 };

/* Octal escapes have three digits, so what follows cannot become part of one. Stars are escaped
 * because literals stand in comments too. */
static void put_literal(out *o, const char *text)
{
    out_print(o, "\"");
    for (int i = 0; text[i] && i < LONGEST_NAME; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\' || c == '?' || c == '*')
            out_print(o, "\\%03o", c);
        else out_print(o, "%c", c);
    }
    out_print(o, "\"");
}

/* Without the end of a comment, and without a backslash at the end of a line. */
static void put_comment(out *o, const char *text)
{
    out_print(o, " /* ");
    for (int i = 0; text[i] && i < LONGEST_NAME; i++) {
        const char c = text[i];
        const bool harmless = c >= ' ' && c <= '~' && c != '*' && c != '\\' && c != '?';
        out_print(o, "%c", harmless ? c : '_');
    }
    out_print(o, " */\n");
}

static const char prelude[] =
    "#include <stddef.h>\n"
    "\n"
    "#ifndef REMAT_RUNTIME\n"
    "#define REMAT_RUNTIME\n"
    "typedef struct remat_runtime { /* what the caller supplies */\n"
    "    void *user;\n"
    "    void *(*allocate)(void *user, size_t bytes); /* NULL: no memory, and the run returns -1; "
    "bytes may be 0 */\n"
    "    void (*release)(void *user, void *storage);\n"
    "    /* Runs an op of the graph. in and out: the storage of each of its inputs and outputs, in "
    "the graph's order; a view's "
    "output is the\n"
    "     * storage of what it looks into, and an output that is made in place has the storage of "
    "an input. Anything but 0\n"
    "     * ends the run, which returns it. */\n"
    "    int (*compute)(void *user, unsigned op, const char *name, void *const *in, void *const "
    "*out, size_t "
    "workspace_bytes);\n"
    "    /* Copy a value's storage to the host, and back into a new one; NULL where the plan moves "
    "nothing. */\n"
    "    int (*offload)(void *user, unsigned value, void *storage, size_t bytes);\n"
    "    int (*fetch)(void *user, unsigned value, void *storage, size_t bytes);\n"
    "} remat_runtime;\n"
    "#endif\n"
    "\n"
    "#define ALLOCATE(reg, bytes) \\\n"
    "    do { \\\n"
    "        if (!(r[reg] = rt->allocate(rt->user, (bytes)))) { \\\n"
    "            status = -1; \\\n"
    "            goto ended; \\\n"
    "        } \\\n"
    "    } while (0)\n"
    "#define RUN(call) \\\n"
    "    do { \\\n"
    "        if ((status = (call)) != 0) goto ended; \\\n"
    "    } while (0)\n"
    "#define COMPUTE(op, name, in, out, workspace_bytes) RUN(rt->compute(rt->user, (op), (name), "
    "in, out, (workspace_bytes)))\n"
    "#define OFFLOAD(value, reg, bytes) RUN(rt->offload(rt->user, (value), r[reg], (bytes)))\n"
    "#define FETCH(value, reg, bytes) RUN(rt->fetch(rt->user, (value), r[reg], (bytes)))\n"
    "#define FREE(reg) (rt->release(rt->user, r[reg]), r[reg] = NULL)\n"
    "#define LIST(...) ((void *const[]){__VA_ARGS__})\n"
    "\n";

typedef struct writer {
    const session *s;
    out *o;
    const remat_program *program;
    uint32_t *resident; /* by value: its place in `resident`, or REMAT_NONE */
    uint32_t n_resident, n_regs;
} writer;

static uint32_t root_of(const writer *w, uint32_t value)
{
    return (uint32_t)remat_graph_value_get(w->s->original, value, REMAT_VALUE_ROOT);
}

static void put_operand(const writer *w, const remat_operand *x)
{
    if (x->reg == REMAT_NONE)
        out_print(w->o, "resident[%" PRIu32 "]", w->resident[root_of(w, x->value)]);
    else out_print(w->o, "r[%" PRIu32 "]", x->reg);
}

static void put_list(const writer *w, const remat_operand *x, uint32_t n)
{
    if (n == 0) out_print(w->o, "NULL");
    for (uint32_t k = 0; k < n; k++) {
        out_print(w->o, k ? ", " : "LIST(");
        put_operand(w, &x[k]);
    }
    if (n) out_print(w->o, ")");
}

static void put_step(const writer *w, const remat_statement *at)
{
    uint32_t n_in, n_out;
    amount buffer;
    const remat_operand *in = remat_program_step_in(w->program, at->step_index, &n_in);
    const remat_operand *written = remat_program_step_out(w->program, at->step_index, &n_out);
    if (at->step.kind != REMAT_RUN) {
        const bool away = at->step.kind == REMAT_OFFLOAD;
        out_print(w->o, "    %s(%" PRIu32 ", %" PRIu32 ", %" PRId64 "u);",
                  away ? "OFFLOAD" : "FETCH", at->step.index, (away ? in : written)->reg,
                  remat_graph_value_get(w->s->original, at->step.index, REMAT_VALUE_STORAGE));
        put_comment(w->o, session_value(w->s, at->step.index, &buffer));
        return;
    }
    out_print(w->o, "    COMPUTE(%" PRIu32 ", ", at->step.index);
    put_literal(w->o, session_op(w->s, at->step.index, &buffer));
    out_print(w->o, ", ");
    put_list(w, in, n_in);
    out_print(w->o, ", ");
    put_list(w, written, n_out);
    out_print(w->o, ", %" PRId64 "u);\n", at->bytes);
}

static void put_statement(const writer *w, const remat_statement *at)
{
    amount buffer;
    if (at->kind == REMAT_COMPUTE) {
        put_step(w, at);
    } else if (at->kind == REMAT_DEALLOCATE) {
        out_print(w->o, "    FREE(%" PRIu32 ");\n", at->reg);
    } else if (at->kind == REMAT_REUSE) {
        out_print(w->o, "    /* in r[%" PRIu32 "], in place: */", at->reg);
        put_comment(w->o, session_value(w->s, at->value, &buffer));
    } else {
        out_print(w->o, "    ALLOCATE(%" PRIu32 ", %" PRId64 "u);", at->reg, at->bytes);
        put_comment(w->o, session_value(w->s, at->value, &buffer));
    }
}

/* Its numbers are counted here: a plan file need not have them. */
static void put_head(const writer *w, const remat_statement *statement, size_t n)
{
    const remat_graph *g = w->s->original;
    const int64_t resident_bytes = w->s->info.resident_bytes;
    int64_t peak_bytes = resident_bytes;
    size_t n_steps = 0;
    amount buffer;
    for (size_t i = 0; i < n; i++) {
        n_steps += statement[i].kind == REMAT_COMPUTE;
        if (statement[i].memory_bytes > peak_bytes) peak_bytes = statement[i].memory_bytes;
    }
    out_print(w->o,
              "/* A training step in %zu steps and %" PRIu32 " storages, written by remat %s.\n",
              n_steps, w->n_regs, remat_version());
    out_print(w->o, " * At most %" PRId64 " bytes at a time, %" PRId64 " of them resident. */\n%s",
              peak_bytes, resident_bytes, prelude);
    out_print(w->o, "/* resident: storages that are there before and after:\n");
    for (uint32_t v = 0; v < remat_graph_n_values(g); v++)
        if (w->resident[v] != REMAT_NONE) {
            out_print(w->o, " * %" PRIu32 " ", w->resident[v]);
            put_literal(w->o, session_value(w->s, v, &buffer));
            out_print(w->o, " %" PRId64 " bytes\n",
                      remat_graph_value_get(g, v, REMAT_VALUE_STORAGE));
        }
    out_print(w->o, " * outputs: the storages of the graph's outputs; those not resident are the "
                    "caller's to release. */\n");
}

static void put_function(const writer *w, const remat_statement *statement, size_t n)
{
    uint32_t n_outputs;
    const remat_operand *outputs = remat_program_outputs(w->program, &n_outputs);
    out_print(w->o,
              "int remat_step(const remat_runtime *rt, void *const *resident, void **outputs);\n"
              "int remat_step(const remat_runtime *rt, void *const *resident, void **outputs)\n{\n"
              "    void *r[%" PRIu32 "] = {NULL};\n"
              "    size_t i;\n"
              "    int status = 0;\n"
              "    (void)rt, (void)resident, (void)outputs, (void)r, (void)i, (void)status;\n",
              w->n_regs + 1);
    for (size_t i = 0; i < n; i++) put_statement(w, &statement[i]);
    for (uint32_t i = 0; i < n_outputs; i++) {
        out_print(w->o, "    outputs[%" PRIu32 "] = ", i);
        put_operand(w, &outputs[i]);
        out_print(w->o, ";\n");
    }
    out_print(w->o, "    return 0;\n");
    if (n)
        out_print(w->o, "ended:\n"
                        "    for (i = 0; i < sizeof r / sizeof *r; i++)\n"
                        "        if (r[i]) rt->release(rt->user, r[i]);\n"
                        "    return status;\n");
    out_print(w->o, "}\n");
}

remat_status lower_c(session *s, const remat_program *program, out *to)
{
    const remat_graph *g = s->original;
    const uint32_t n_values = remat_graph_n_values(g);
    writer w = {.s = s,
                .o = to,
                .program = program,
                .resident = out_resize(NULL, (size_t)n_values + 1, sizeof *w.resident)};
    size_t n;
    const remat_statement *statement = remat_program_statements(program, &n);
    for (uint32_t v = 0; v < n_values; v++) {
        const bool resident = root_of(&w, v) == v &&
                              remat_graph_value_get(g, v, REMAT_VALUE_PRODUCER) == REMAT_ABSENT;
        w.resident[v] = resident ? w.n_resident++ : REMAT_NONE;
    }
    for (size_t i = 0; i < n; i++) w.n_regs += statement[i].kind == REMAT_ALLOCATE;
    put_head(&w, statement, n);
    put_function(&w, statement, n);
    free(w.resident);
    return REMAT_OK;
}

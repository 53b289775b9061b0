/* cmd_fuse.c: `remat fuse`: a graph, or a plan for it, as the kernels of a fusing compiler. It
 * shows what they read and write, before and after values are computed again inside the kernels
 * that read them ("Transcending Runtime-Memory Tradeoffs in Checkpointing by being Fusion Aware",
 * section 3.7). -o writes the resulting program: a graph of its own, with repeated nodes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

enum { LARGEST = 10, NAMES_SHOWN = 64 };

typedef struct kernels { /* of the resulting graph */
    uint32_t *of;        /* by op */
    uint32_t n, *n_ops;  /* by kernel */
    remat_moved *moved;
} kernels;

static int64_t total_of(const remat_moved *m) { return m->read_bytes + m->written_bytes; }

static int find_kernels(session *s, const remat_graph *graph, kernels *k)
{
    const size_t n = (size_t)remat_graph_n_ops(graph) + 1;
    *k = (kernels){.of = out_resize(NULL, n, sizeof *k->of),
                   .n_ops = out_resize(NULL, n, sizeof *k->n_ops)};
    k->moved = out_resize(NULL, n, sizeof *k->moved);
    memset(k->n_ops, 0, n * sizeof *k->n_ops);
    CHECK(s, remat_graph_kernels(s->ctx, graph, k->of, k->moved, &k->n));
    for (uint32_t op = 0; op < remat_graph_n_ops(graph); op++) k->n_ops[k->of[op]]++;
    return REMAT_OK;
}

static void free_kernels(kernels *k)
{
    free(k->of);
    free(k->n_ops);
    free(k->moved);
}

/* ---- for machines ---- */

static void json_traffic(emitter *j, const char *key, const remat_traffic *t)
{
    emit_open(j, key, '{');
    emit_int(j, "groups", t->n_kernels);
    const bool known = t->total_bytes >= 0;
    emit_int_or_null(j, "group_read_bytes", known ? t->kernels.read_bytes : REMAT_ABSENT);
    emit_int_or_null(j, "group_written_bytes", known ? t->kernels.written_bytes : REMAT_ABSENT);
    emit_int_or_null(j, "other_read_bytes", known ? t->others.read_bytes : REMAT_ABSENT);
    emit_int_or_null(j, "other_written_bytes", known ? t->others.written_bytes : REMAT_ABSENT);
    emit_int_or_null(j, "traffic_bytes", t->total_bytes);
    emit_close(j, '}');
}

static void json_kernels(emitter *j, const remat_graph *graph, const kernels *k)
{
    uint32_t *next = out_resize(NULL, (size_t)k->n + 1, sizeof *next), begin = 0;
    uint32_t *by_kernel = out_resize(NULL, (size_t)remat_graph_n_ops(graph) + 1, sizeof *by_kernel);
    for (uint32_t i = 0; i < k->n; i++) {
        next[i] = begin;
        begin += k->n_ops[i];
    }
    for (uint32_t op = 0; op < remat_graph_n_ops(graph); op++) by_kernel[next[k->of[op]]++] = op;
    emit_open(j, "kernels", '[');
    for (uint32_t i = 0, at = 0; i < k->n; i++) {
        emit_open(j, NULL, '{');
        emit_open(j, "ops", '[');
        for (uint32_t m = 0; m < k->n_ops[i]; m++) emit_int(j, NULL, by_kernel[at++]);
        emit_close(j, ']');
        emit_int(j, "read_bytes", k->moved[i].read_bytes);
        emit_int(j, "written_bytes", k->moved[i].written_bytes);
        emit_close(j, '}');
    }
    emit_close(j, ']');
    free(next);
    free(by_kernel);
}

static void print_json(session *s, out *o, const remat_graph *graph, const remat_fusion *f,
                       const kernels *k, double seconds)
{
    static const char *const stopped[] = {"done", "work", "time", "signal"};
    emitter j = {.out = o};
    emit_open(&j, NULL, '{');
    emit_text(&j, "graph", session_name(s));
    emit_int(&j, "ops", remat_graph_n_ops(graph));
    json_traffic(&j, "unfused", &f->unfused);
    json_traffic(&j, "before", &f->before);
    json_traffic(&j, "after", &f->after);
    emit_int(&j, "rounds", f->rounds);
    emit_int(&j, "copies", f->copies);
    emit_text(&j, "stopped", (size_t)f->stopped < 4 ? stopped[f->stopped] : "done");
    emit_real(&j, "seconds", seconds);
    emit_text(&j, "file", s->args->text[FLAG_OUTPUT]);
    json_kernels(&j, graph, k);
    emit_close(&j, '}');
}

/* ---- for people ---- */

static void traffic_row(table *t, const char *name, const remat_traffic *x, const char *note)
{
    const out *o = t->out;
    table_cell(t, PLAIN, "%s", name);
    if (x->n_kernels) table_cell(t, PLAIN, "%" PRIu32, x->n_kernels);
    else table_cell(t, PLAIN, "-");
    const int64_t bytes[] = {x->kernels.read_bytes, x->kernels.written_bytes, total_of(&x->others),
                             x->total_bytes};
    for (size_t i = 0; i < LEN(bytes); i++) {
        if (x->total_bytes < 0) table_cell(t, PLAIN, "?");
        else if (i < 2 && !x->n_kernels) table_cell(t, PLAIN, "-");
        else table_cell(t, PLAIN, "%s", out_size(o, bytes[i]).text);
    }
    table_cell(t, DIM, "%s", note);
}

static void print_traffic(out *o, const remat_fusion *f)
{
    static const char *const head[] = {"",          "kernels", "they read", "they write",
                                       "other ops", "total",   ""};
    table t = {.out = o, .align = "lrrrrrL"};
    char note[80] = "";
    for (size_t i = 0; i < LEN(head); i++) table_cell(&t, BOLD, "%s", head[i]);
    traffic_row(&t, "every op alone", &f->unfused, "");
    traffic_row(&t, "fused", &f->before, "");
    snprintf(note, sizeof note, "%" PRIu32 " %s", f->copies, f->copies == 1 ? "copy" : "copies");
    traffic_row(&t, "and recomputed", &f->after, note);
    table_print(&t);
}

static const remat_moved *sorted; /* for by_bytes; one thread */

static int by_bytes(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const int64_t x = total_of(&sorted[a]), y = total_of(&sorted[b]);
    if (x != y) return x < y ? 1 : -1;
    return (a > b) - (a < b);
}

static void print_kernels(out *o, const remat_graph *graph, const kernels *k)
{
    uint32_t *fused = out_resize(NULL, (size_t)k->n + 1, sizeof *fused), n = 0;
    for (uint32_t i = 0; i < k->n; i++)
        if (k->n_ops[i] > 1) fused[n++] = i;
    sorted = k->moved;
    qsort(fused, n, sizeof *fused, by_bytes);
    if (n) out_print(o, "\nkernels of several ops that move most\n");
    table t = {.out = o, .align = "rrrL"};
    static const char *const head[] = {"ops", "reads", "writes", ""};
    for (size_t i = 0; i < LEN(head) && n; i++) table_cell(&t, BOLD, "%s", head[i]);
    for (uint32_t i = 0; i < n && i < LARGEST; i++) {
        char names[4 * NAMES_SHOWN] = "";
        size_t used = 0;
        for (uint32_t op = 0; op < remat_graph_n_ops(graph) && used < NAMES_SHOWN; op++)
            if (k->of[op] == fused[i])
                used +=
                    (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", used ? " " : "",
                                     out_clean(o, remat_graph_op_name(graph, op), 24).text);
        table_cell(&t, PLAIN, "%" PRIu32, k->n_ops[fused[i]]);
        table_cell(&t, PLAIN, "%s", out_size(o, k->moved[fused[i]].read_bytes).text);
        table_cell(&t, PLAIN, "%s", out_size(o, k->moved[fused[i]].written_bytes).text);
        table_cell(&t, DIM, "%s", out_clean(o, names, NAMES_SHOWN).text);
    }
    if (n) table_print(&t);
    if (n > LARGEST) out_print(o, "(%" PRIu32 " more; --json lists all)\n", n - LARGEST);
    free(fused);
}

static remat_status write_graph(session *s, const void *graph, remat_format format, out *to)
{
    return remat_graph_write(s->ctx, graph, format, out_sink, to);
}

static int show(session *s, const remat_graph *graph, const remat_fusion *f, double seconds)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    const bool to_stdout = path && strcmp(path, "-") == 0;
    out other, *o = s->out;
    kernels k;
    char after[80];
    int status = REMAT_OK;
    if (path) status = session_write(s, path, write_graph, graph, session_format(path, REMAT_JSON));
    if (status) return status;
    if (to_stdout) {
        out_open(&other, stderr, "standard error", o->json);
        o = &other;
    }
    status = find_kernels(s, graph, &k);
    if (!status && o->json) print_json(s, o, graph, f, &k, seconds);
    else if (!status) {
        snprintf(after, sizeof after, "  %" PRIu32 " ops  fused in %.2f s%s",
                 remat_graph_n_ops(graph), seconds,
                 f->stopped == REMAT_DONE ? "" : ", stopped early");
        out_title(o, session_name(s), after);
        out_print(o, "\n");
        print_traffic(o, f);
        print_kernels(o, graph, &k);
        if (path && !to_stdout)
            out_print(o, "\ngraph written to %s\n", out_clean(o, path, 64).text);
    }
    free_kernels(&k);
    return status;
}

int cmd_fuse(session *s)
{
    const remat_plan *plan;
    remat_fusion fusion = REMAT_FUSION_INIT;
    remat_graph *program;
    size_t n_steps;
    int status = session_program(s, &plan);
    if (status) return status;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    const double begin = seconds_now();
    session_catch(s);
    const remat_status fused = remat_fuse(s->ctx, s->graph, steps, n_steps, &fusion, &program);
    session_release(s);
    const double seconds = seconds_now() - begin;
    if (fused == REMAT_E_APPLIES)
        return out_fail(s->out, fused, s->args->operands[1], "", "%s",
                        remat_ctx_error_reason(s->ctx));
    CHECK(s, fused);
    status = show(s, program, &fusion, seconds);
    remat_graph_free(program);
    return status;
}

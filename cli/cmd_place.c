/* cmd_place.c: `remat place`: offsets for the spans of a file, in MiniMalloc's columns. With a
 * capacity the search ends when all fits into it; exit code 10 says that it is proved that nothing
 * does, 11 that nothing was found. -o writes the spans with their offsets, in the same columns. The
 * seconds are those of the placement alone, without reading. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"

typedef struct placed {
    const remat_spans *spans;
    const int64_t *offsets;
    int64_t capacity;
    remat_packing packing;
    double seconds;
} placed;

/* An id is what stood between two commas, so it needs no quotes. */
static remat_status write_csv(session *s, const void *object, remat_format format, out *to)
{
    const placed *x = object;
    size_t n;
    const remat_span *list = remat_spans_list(x->spans, &n);
    (void)s, (void)format;
    out_print(to, "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < n; i++)
        out_print(to, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n",
                  remat_spans_id(x->spans, i), list[i].begin, list[i].end, list[i].bytes,
                  x->offsets[i]);
    return REMAT_OK;
}

static void print_json(session *s, const placed *x)
{
    emitter j = {.out = s->out};
    size_t n;
    remat_spans_list(x->spans, &n);
    emit_open(&j, NULL, '{');
    emit_int(&j, "spans", (int64_t)n);
    emit_int_or_null(&j, "capacity", x->capacity);
    emit_int(&j, "height", x->packing.height_bytes);
    emit_int(&j, "bound", x->packing.bound_bytes);
    emit_int(&j, "load", x->packing.load_bytes);
    emit_text(&j, "outcome", outcome_name(x->packing.outcome));
    emit_text(&j, "stopped", stopped_name(x->packing.stopped));
    emit_int(&j, "work", x->packing.work);
    emit_real(&j, "seconds", x->seconds);
    emit_close(&j, '}');
}

static void print_text(session *s, const placed *x)
{
    const remat_packing *p = &x->packing;
    size_t n;
    remat_spans_list(x->spans, &n);
    out_print(s->out, "spans    %zu\nheight   %s\n", n, out_exact(s->out, p->height_bytes).text);
    out_print(s->out, "bound    %s%s\n", out_exact(s->out, p->bound_bytes).text,
              p->bound_bytes > p->load_bytes ? ", above what is needed at one time" : "");
    if (x->capacity != REMAT_BUDGET_NONE)
        out_print(s->out, "capacity %s\n", out_exact(s->out, x->capacity).text);
    out_print(s->out, "outcome  %s\nplaced in %.6f s\n", outcome_name(p->outcome), x->seconds);
}

/* The exit code, and the line that 10 and 11 owe to the reader. */
static int exit_code(session *s, const placed *x)
{
    const remat_packing *p = &x->packing;
    if (p->outcome == REMAT_INFEASIBLE) {
        out_message(s->out, "proved: nothing fits %" PRId64 " bytes; %" PRId64 " are needed",
                    x->capacity, p->bound_bytes);
        return REMAT_E_INFEASIBLE;
    }
    if (p->outcome != REMAT_UNKNOWN) return REMAT_OK;
    out_message(s->out,
                "no placement within %" PRId64 " bytes was found; the lowest takes %" PRId64,
                x->capacity, p->height_bytes);
    return REMAT_E_NOT_FOUND;
}

static int read_capacity(session *s, int64_t *capacity)
{
    const char *text = s->args->text[FLAG_CAPACITY];
    *capacity = REMAT_BUDGET_NONE;
    if (!text) return REMAT_OK;
    if (strchr(text, '%') || remat_budget_parse(s->ctx, text, 0, capacity) != REMAT_OK ||
        *capacity < 0)
        return out_fail(s->out, REMAT_E_USAGE, "place", "--capacity",
                        "'%.40s' is not a number of bytes such as 1048576 or 1MiB", text);
    return REMAT_OK;
}

static int show(session *s, const placed *x)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    if (path) TRY(session_write(s, path, write_csv, x, REMAT_JSON));
    if (s->out->json) print_json(s, x);
    else if (!path || strcmp(path, "-") != 0) print_text(s, x);
    return exit_code(s, x);
}

static int place(session *s, const remat_spans *spans, int64_t capacity)
{
    size_t n;
    const remat_span *list = remat_spans_list(spans, &n);
    int64_t *offsets = out_resize(NULL, n + 1, sizeof *offsets);
    placed x = {spans, offsets, capacity, REMAT_PACKING_INIT, 0};
    session_catch(s);
    const double begin = seconds_now();
    const remat_status status = remat_spans_place(s->ctx, list, n, capacity, offsets, &x.packing);
    x.seconds = seconds_now() - begin;
    session_release(s);
    const int code = status == REMAT_OK ? show(s, &x) : session_fail(s, status);
    free(offsets);
    return code;
}

int cmd_place(session *s)
{
    remat_input *input;
    remat_spans *spans = NULL;
    int64_t capacity;
    const char *path = s->args->text[FLAG_OUTPUT];
    if (path && session_format(path, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, "place", "-o",
                        "offsets are not compressed: choose a name without .gz");
    if (path && strcmp(path, "-") == 0 && s->out->json)
        return out_fail(s->out, REMAT_E_USAGE, "place", "--json",
                        "and -o - exclude each other: both go to standard output");
    TRY(read_capacity(s, &capacity));
    TRY(session_input(s, s->args->operands[0], &input));
    const remat_status read = remat_spans_read(s->ctx, input, &spans);
    remat_input_free(input);
    if (read != REMAT_OK) return session_fail(s, read);
    const int status = place(s, spans, capacity);
    remat_spans_free(spans);
    return status;
}

/* cmd_gen.c: `remat gen` writes an embedded model as a file, `remat import` any readable file as
 * one of ours.
 *
 * Both end in one writer. The graph is written as read unless a graph flag asks for a prepared
 * copy. So importing and exporting without flags changes nothing but the spelling. Chains are
 * written as chains. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

static remat_status write_graph(session *s, const void *graph, remat_format format, out *to)
{
    return remat_graph_write(s->ctx, graph, format, out_sink, to);
}

static remat_status write_chain(session *s, const void *chain, remat_format format, out *to)
{
    return remat_chain_write(s->ctx, chain, format, out_sink, to);
}

static bool ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), n = strlen(ending);
    return length > n && strcmp(path + length - n, ending) == 0;
}

static int choose_format(session *s, remat_format *format)
{
    const char *path = s->args->text[FLAG_OUTPUT] ? s->args->text[FLAG_OUTPUT] : "",
               *name = s->args->text[FLAG_FORMAT];
    const char *command_name = commands[s->args->command].name;
    if (!name) name = ends_in(path, ".dot") || ends_in(path, ".dot.gz") ? "dot" : "json";
    if (strcmp(name, "json") != 0 && strcmp(name, "dot") != 0)
        return out_fail(s->out, REMAT_E_USAGE, command_name, "--format",
                        "'%.40s' is neither json nor dot", name);
    *format = strcmp(name, "dot") == 0 ? REMAT_DOT : session_format(path, REMAT_JSON);
    if (*format == REMAT_DOT && ends_in(path, ".gz"))
        return out_fail(s->out, REMAT_E_USAGE, command_name, "-o",
                        "DOT is not compressed: choose a name without .gz");
    return REMAT_OK;
}

/* Says what -o wrote. The data itself is elsewhere. */
static void tell(session *s, const char *name, const char *what, uint32_t n)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    if (!path || strcmp(path, "-") == 0) return;
    if (s->out->json) {
        emitter j = {.out = s->out};
        emit_open(&j, NULL, '{');
        emit_text(&j, "file", path);
        emit_text(&j, "name", name);
        emit_int(&j, what, n);
        emit_close(&j, '}');
    } else if (isatty(STDERR_FILENO)) {
        out_message(s->out, "wrote %s: %s, %" PRIu32 " %s", path, name, n, what);
    }
}

static int convert(session *s, const char *source)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    remat_format format = REMAT_JSON;
    remat_input *input;
    TRY(choose_format(s, &format));
    TRY(session_input(s, source, &input));
    session_busy(s);
    const int status = session_read_input(s, source, input, NULL, NULL);
    session_idle(s);
    remat_input_free(input);
    if (status) return status;
    if (s->chain) {
        if (format == REMAT_DOT)
            return out_fail(s->out, REMAT_E_USAGE, commands[s->args->command].name, "--format",
                            "a chain is written as json only");
        TRY(session_write(s, path, write_chain, s->chain, format));
        tell(s, remat_chain_name(s->chain), "stages", remat_chain_n_stages(s->chain));
        return REMAT_OK;
    }
    const remat_graph *graph = session_prepares(s->args) ? s->graph : s->original;
    TRY(session_write(s, path, write_graph, graph, format));
    tell(s, remat_graph_name(graph), "ops", remat_graph_n_ops(graph));
    return REMAT_OK;
}

int cmd_import(session *s)
{
    if (s->args->text[FLAG_MPS_SOLUTION]) return cmd_plan_of_solution(s);
    if (s->args->text[FLAG_BUDGET])
        return out_fail(s->out, REMAT_E_USAGE, "import", "--budget", "goes with --mps-solution");
    return convert(s, s->args->operands[0]);
}

static void list_models(session *s)
{
    const remat_entry *entry;
    emitter j = {.out = s->out};
    if (s->out->json) emit_open(&j, NULL, '[');
    for (size_t i = 0; (entry = remat_zoo_at(i)); i++) {
        if (s->out->json) {
            emit_open(&j, NULL, '{');
            emit_text(&j, "name", entry->name);
            emit_text(&j, "help", entry->help);
            emit_close(&j, '}');
        } else {
            const int length = (int)strlen(entry->name), indent = s->out->width < 50 ? 4 : 20;
            const int column = length + 2 < indent ? indent : length + 2;
            out_print(s->out, "%s%s%s%*s", out_style(s->out, BOLD), entry->name,
                      out_style(s->out, PLAIN), column - length, "");
            out_wrap(s->out, indent, column, entry->help);
        }
    }
    if (s->out->json) emit_close(&j, ']');
}

int cmd_gen(session *s)
{
    const char *name = s->args->operands[0];
    if (s->args->text[FLAG_LIST]) {
        list_models(s);
        return REMAT_OK;
    }
    const bool whole = strncmp(name, "zoo:", 4) == 0 || strncmp(name, "chain:", 6) == 0;
    char *source = out_resize(NULL, strlen(name) + 5, 1);
    strcat(strcpy(source, whole ? "" : "zoo:"), name);
    const int status = convert(s, source);
    free(source);
    return status;
}

/* cmd_gen.c: `remat gen` writes an embedded model as a file, `remat import` any readable file as one of ours.
 *
 * Both end in one writer. The graph is written as read unless a graph flag asks for a prepared copy, so that importing and
 * exporting without flags changes nothing but the spelling. Chains are written back as chains. */
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

static int choose_format(session *s, remat_format *format)
{
    const char *path = s->args->text[FLAG_OUTPUT], *name = s->args->text[FLAG_FORMAT];
    const size_t length = path ? strlen(path) : 0;
    if (!name) name = length > 4 && strcmp(path + length - 4, ".dot") == 0 ? "dot" : "json";
    if (strcmp(name, "json") != 0 && strcmp(name, "dot") != 0)
        return out_fail(s->out, REMAT_E_USAGE, commands[s->args->command].name, "--format", "'%.40s' is neither json nor dot",
                        name);
    *format = strcmp(name, "dot") == 0 ? REMAT_DOT : session_format(path ? path : "", REMAT_JSON);
    return REMAT_OK;
}

static bool wants_prepared(const args *a)
{
    return a->text[FLAG_COST_MODEL] || a->text[FLAG_DCE] || a->text[FLAG_FOLD_IDENTITY] || a->text[FLAG_NO_ALIAS] ||
           a->text[FLAG_REPLAY_RANDOM];
}

static void tell(session *s, const char *name, const char *what, uint32_t n)
{ /* what -o wrote; the data itself is elsewhere */
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
    remat_format format = REMAT_JSON;
    remat_input *input;
    remat_chain *chain;
    int status = choose_format(s, &format);
    if (status) return status;
    if ((status = session_input(s, source, &input))) return status;
    const remat_kind kind = remat_input_kind(input);
    if (kind == REMAT_KIND_GRAPH) {
        status = session_read_graph(s, input, NULL);
        const remat_graph *graph = wants_prepared(s->args) ? s->graph : s->original;
        if (!status) status = session_write(s, s->args->text[FLAG_OUTPUT], write_graph, graph, format);
        if (!status) tell(s, remat_graph_name(graph), "ops", remat_graph_n_ops(graph));
    } else if (kind == REMAT_KIND_CHAIN) {
        const remat_status read = remat_chain_read(s->ctx, input, &chain);
        if (read != REMAT_OK) {
            status = session_fail(s, read);
        } else {
            status = session_write(s, s->args->text[FLAG_OUTPUT], write_chain, chain, format);
            if (!status) tell(s, remat_chain_name(chain), "stages", remat_chain_n_stages(chain));
            remat_chain_free(chain);
        }
    } else {
        status = out_fail(s->out, REMAT_E_INPUT, source, "", "this is a plan, not a graph or a chain");
    }
    remat_input_free(input);
    return status;
}

int cmd_import(session *s) { return convert(s, s->args->operands[0]); }

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
            const int length = (int)strlen(entry->name), column = length + 2 < 20 ? 20 : length + 2;
            out_print(s->out, "%s%s%s%*s", out_style(s->out, BOLD), entry->name, out_style(s->out, PLAIN), column - length, "");
            out_wrap(s->out, 20, column, entry->help);
        }
    }
    if (s->out->json) emit_close(&j, ']');
}

int cmd_gen(session *s)
{
    const char *name = s->args->operands[0];
    const remat_entry *entry;
    if (s->args->text[FLAG_LIST]) {
        list_models(s);
        return REMAT_OK;
    }
    if (strncmp(name, "zoo:", 4) == 0) name += 4;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "?"), name);
    guess g = {.word = word};
    bool found = false;
    for (size_t i = 0; (entry = remat_zoo_at(i)); i++) {
        found = found || strcmp(entry->name, word) == 0;
        guess_offer(&g, entry->name);
    }
    if (!found)
        return out_fail(s->out, REMAT_E_USAGE, "gen", "", "no model '%s'%s", word,
                        g.best ? guess_hint(&g, "").text : "; remat gen --list names them");
    char *source = out_resize(NULL, strlen(name) + 5, 1);
    strcpy(source, "zoo:");
    strcat(source, name);
    const int status = convert(s, source);
    free(source);
    return status;
}

/* files.c: the public side of reading and writing.
 *
 * A source is a path, "-" (standard input), "zoo:..." or "chain:...". Errors name it. */
#include "api/source.h"
#include "graph/chain.h"
#include "graph/plan.h"
#include "import/codec.h"
#include "import/formats.h"
#include "import/network.h"
#include "import/spans.h"
#include "zoo/zoo.h"

#include <errno.h>
#include <string.h>

static remat_status read_stream(remat_ctx *ctx, FILE *file, rm_bytes *bytes)
{
    const int64_t limit = ctx->options.max_input_bytes;
    for (size_t got = 1; got;) {
        TRY(RM_RESERVE(ctx, *bytes, 1 << 16));
        errno = 0;
        got = fread(bytes->items + bytes->n, 1, bytes->room - bytes->n, file);
        bytes->n += got;
        if ((int64_t)bytes->n > limit)
            return rm_fail(ctx, REMAT_E_INPUT, "larger than %lld bytes (option max_input_bytes)",
                           (long long)limit);
    }
    return ferror(file) ? rm_fail_io(ctx, "cannot read it", errno) : REMAT_OK;
}

remat_status rm_source_read(remat_ctx *ctx, const char *source, rm_bytes *bytes)
{
    if (strcmp(source, "-") == 0) return read_stream(ctx, stdin, bytes);
    FILE *file = fopen(source, "rb");
    if (!file) return rm_fail_io(ctx, "cannot open it", errno);
    const remat_status status = read_stream(ctx, file, bytes);
    fclose(file);
    return status;
}

static remat_status open_input(remat_ctx *ctx, const char *source, remat_input *input)
{
    const bool chain = strncmp(source, "chain:", 6) == 0;
    if (chain || strncmp(source, "zoo:", 4) == 0) {
        const char *spec = strchr(source, ':') + 1;
        input->dialect = RM_ZOO;
        input->kind = chain ? REMAT_KIND_CHAIN : REMAT_KIND_GRAPH;
        return rm_input_set_text(ctx, input, spec, strlen(spec));
    }
    rm_bytes bytes = {0};
    remat_status status = rm_source_read(ctx, source, &bytes);
    if (status == REMAT_OK) status = rm_input_fill(ctx, input, bytes.items, bytes.n);
    RM_VEC_FREE(&ctx->heap, bytes);
    return status;
}

remat_status remat_input_open(remat_ctx *ctx, const char *source, remat_input **out)
{
    const char *name = strcmp(source, "-") == 0 ? "standard input" : source;
    remat_input *input = NULL;
    TRY(rm_input_new(ctx, name, &input));
    rm_input_name(ctx, name);
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = open_input(ctx, source, input);
    rm_scratch_release(ctx, mark);
    rm_input_name(ctx, NULL);
    if (status != REMAT_OK) remat_input_free(input);
    else *out = input;
    return status;
}

remat_status remat_input_parse(remat_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                               remat_input **out)
{
    remat_input *input = NULL;
    TRY(rm_input_new(ctx, name, &input));
    rm_input_name(ctx, name);
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = rm_input_fill(ctx, input, bytes, n_bytes);
    rm_scratch_release(ctx, mark);
    rm_input_name(ctx, NULL);
    if (status != REMAT_OK) remat_input_free(input);
    else *out = input;
    return status;
}

static remat_status check_kind(remat_ctx *ctx, const remat_input *input, remat_kind wanted)
{
    static const char *const names[] = {[REMAT_KIND_GRAPH] = "a graph",
                                        [REMAT_KIND_CHAIN] = "a chain",
                                        [REMAT_KIND_PLAN] = "a plan",
                                        [REMAT_KIND_NETWORK] = "a flow network",
                                        [REMAT_KIND_SPANS] = "a list of spans"};
    if (input->kind == wanted) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_INPUT, "is %s, where %s is needed", names[input->kind],
                   names[wanted]);
}

/* Around every reader: messages name the input, which must be of this kind, and scratch is given
 * back. */
static remat_status begin_reading(remat_ctx *ctx, const remat_input *input, remat_kind wanted,
                                  rm_mark *mark)
{
    *mark = rm_scratch_mark(ctx);
    rm_input_name(ctx, input->name);
    return check_kind(ctx, input, wanted);
}

static remat_status end_reading(remat_ctx *ctx, rm_mark mark, remat_status status)
{
    rm_input_name(ctx, NULL);
    rm_scratch_release(ctx, mark);
    return status;
}

static remat_status fill_builder(remat_ctx *ctx, const remat_input *input, int64_t batch,
                                 remat_builder *b)
{
    switch (input->dialect) {
    case RM_DOT: return rm_read_dot(ctx, input, b);
    case RM_NETWORKX: return rm_read_networkx(ctx, input, b);
    default: return rm_read_graph(ctx, input, batch, b);
    }
}

/* batch 0: the graph as it stands. */
static remat_status read_graph(remat_ctx *ctx, const remat_input *input, int64_t batch,
                               remat_graph **out)
{
    if (input->dialect == RM_ZOO) return rm_zoo_build(ctx, input->text, batch, out);
    if (batch && input->dialect != RM_REMAT_JSON)
        return rm_fail(ctx, REMAT_E_INPUT,
                       "this format does not say how a graph grows with the batch");
    remat_builder *b = remat_builder_new(ctx, "");
    if (!b) return REMAT_E_MEMORY;
    remat_status status = fill_builder(ctx, input, batch, b);
    if (status == REMAT_OK) status = remat_builder_finish(b, out);
    if (status == REMAT_OK) rm_cost_warn(ctx, *out);
    remat_builder_free(b);
    return status;
}

static remat_status read_at_batch(remat_ctx *ctx, const remat_input *input, int64_t batch,
                                  remat_graph **out)
{
    rm_mark mark;
    remat_status status = begin_reading(ctx, input, REMAT_KIND_GRAPH, &mark);
    if (status == REMAT_OK) status = read_graph(ctx, input, batch, out);
    return end_reading(ctx, mark, status);
}

remat_status remat_graph_read(remat_ctx *ctx, const remat_input *input, remat_graph **out)
{
    return read_at_batch(ctx, input, 0, out);
}

remat_status remat_graph_read_batch(remat_ctx *ctx, const remat_input *input, int64_t batch,
                                    remat_graph **out)
{
    if (batch < 1)
        return rm_fail(ctx, REMAT_E_USAGE, "batch %lld: the least is 1", (long long)batch);
    return read_at_batch(ctx, input, batch, out);
}

remat_status remat_graph_load(remat_ctx *ctx, const char *source, remat_graph **out)
{
    remat_input *input = NULL;
    TRY(remat_input_open(ctx, source, &input));
    const remat_status status = remat_graph_read(ctx, input, out);
    remat_input_free(input);
    return status;
}

remat_status remat_chain_read(remat_ctx *ctx, const remat_input *input, remat_chain **out)
{
    rm_mark mark;
    remat_status status = begin_reading(ctx, input, REMAT_KIND_CHAIN, &mark);
    if (status == REMAT_OK)
        status = input->dialect == RM_ZOO ? rm_zoo_chain(ctx, input->text, out)
                                          : rm_read_chain(ctx, input, out);
    return end_reading(ctx, mark, status);
}

remat_status remat_plan_read(remat_ctx *ctx, const remat_input *input, remat_plan **out)
{
    rm_mark mark;
    remat_status status = begin_reading(ctx, input, REMAT_KIND_PLAN, &mark);
    if (status == REMAT_OK) status = rm_read_plan(ctx, input, out);
    return end_reading(ctx, mark, status);
}

remat_status remat_network_read(remat_ctx *ctx, const remat_input *input, remat_network **out)
{
    rm_mark mark;
    remat_status status = begin_reading(ctx, input, REMAT_KIND_NETWORK, &mark);
    if (status == REMAT_OK) status = rm_read_dimacs(ctx, input, out);
    return end_reading(ctx, mark, status);
}

remat_status remat_spans_read(remat_ctx *ctx, const remat_input *input, remat_spans **out)
{
    rm_mark mark;
    remat_status status = begin_reading(ctx, input, REMAT_KIND_SPANS, &mark);
    if (status == REMAT_OK) status = rm_read_spans(ctx, input, out);
    return end_reading(ctx, mark, status);
}

/* ---- writing ---- */

typedef struct content { /* one of them; the others are NULL */
    const remat_graph *graph;
    const remat_chain *chain;
    const remat_plan *plan;
} content;

static remat_status write_file(remat_ctx *ctx, content x, remat_format format, remat_sink *sink,
                               void *user)
{
    if ((unsigned)format > REMAT_DOT)
        return rm_fail(ctx, REMAT_E_USAGE, "there is no format %d", (int)format);
    if (format == REMAT_DOT && !x.graph)
        return rm_fail(ctx, REMAT_E_USAGE, "only graphs can be written as DOT");
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_file_out file;
    rm_file_out_begin(&file, ctx, format == REMAT_JSON_GZ, sink, user);
    if (format == REMAT_DOT) rm_write_dot(&file.out, x.graph);
    else if (x.graph) rm_write_graph(&file.out, x.graph);
    else if (x.chain) rm_write_chain(&file.out, x.chain);
    else rm_write_plan(&file.out, x.plan);
    const remat_status status = rm_file_out_end(&file);
    rm_scratch_release(ctx, mark);
    return status;
}

remat_status remat_graph_write(remat_ctx *ctx, const remat_graph *graph, remat_format format,
                               remat_sink *sink, void *user)
{
    return write_file(ctx, (content){.graph = graph}, format, sink, user);
}

remat_status remat_chain_write(remat_ctx *ctx, const remat_chain *chain, remat_format format,
                               remat_sink *sink, void *user)
{
    return write_file(ctx, (content){.chain = chain}, format, sink, user);
}

remat_status remat_plan_write(remat_ctx *ctx, const remat_plan *plan, remat_format format,
                              remat_sink *sink, void *user)
{
    return write_file(ctx, (content){.plan = plan}, format, sink, user);
}

/* read_dimacs.c: maximum-flow problems in the format of the first DIMACS challenge. Its lines:
 *   - `c ...`, a comment;
 *   - `p max VERTICES ARCS`, once and first;
 *   - `n ID s` and `n ID t`, the source and the sink;
 *   - `a FROM TO CAPACITY`, an arc.
 * Ids count from 1. The reader is strict: every count, id and number must be right, and the
 * capacities must sum to less than 2^62. Loops and parallel arcs are fine.
 *
 * Cost: O(bytes). A wrong header costs no memory: nothing is allocated by its number of arcs, and
 * its number of vertices is limited. */
#include "import/network.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

enum { MOST_VERTICES = 1 << 24, MOST_WORDS = 5 };

typedef struct word {
    const char *text;
    size_t length;
} word;

typedef struct reader {
    remat_ctx *ctx;
    size_t line;
    word words[MOST_WORDS + 1];
    size_t n_words;
    bool has_header;
    int64_t n_vertices, n_arcs, sum;
    uint32_t source, sink; /* from 0, or REMAT_NONE */
    RM_VEC(rm_flow_edge) edges;
} reader;

static remat_status fail(reader *r, const char *what, const word *detail)
{
    char place[40];
    snprintf(place, sizeof place, "line %zu", r->line);
    const int shown = detail ? (int)(detail->length < 40 ? detail->length : 40) : 0;
    return rm_fail_at(r->ctx, REMAT_E_INPUT, place, "%s%s%.*s%s", what, detail ? ": '" : "", shown,
                      detail ? detail->text : "", detail ? "'" : "");
}

static void split(reader *r, const char *from, const char *end)
{
    r->n_words = 0;
    while (from < end && r->n_words <= MOST_WORDS) {
        while (from < end && (*from == ' ' || *from == '\t' || *from == '\r')) from++;
        const char *begin = from;
        while (from < end && *from != ' ' && *from != '\t' && *from != '\r') from++;
        if (from > begin) r->words[r->n_words++] = (word){begin, (size_t)(from - begin)};
    }
}

static bool is(const word *w, const char *text)
{
    return w->length == strlen(text) && memcmp(w->text, text, w->length) == 0;
}

/* The i-th word: digits only, between `low` and `high`. `what` says what it is not. */
static remat_status number(reader *r, size_t i, int64_t low, int64_t high, const char *what,
                           int64_t *out)
{
    assert(i < r->n_words);
    const word *w = &r->words[i];
    int64_t x = 0;
    for (size_t k = 0; k < w->length; k++) {
        if (w->text[k] < '0' || w->text[k] > '9') return fail(r, what, w);
        if (rm_mul_overflows(x, 10, &x) || rm_add_overflows(x, w->text[k] - '0', &x))
            return fail(r, what, w);
    }
    if (x < low || x > high) return fail(r, what, w);
    *out = x;
    return REMAT_OK;
}

static remat_status read_header(reader *r)
{
    if (r->has_header) return fail(r, "a second line that begins with p", NULL);
    if (r->n_words != 4 || !is(&r->words[1], "max"))
        return fail(r, "must be: p max VERTICES ARCS", NULL);
    TRY(number(r, 2, 2, MOST_VERTICES, "the number of vertices is not between 2 and 2^24",
               &r->n_vertices));
    TRY(number(r, 3, 0, UINT32_MAX / 2, "the number of arcs is not between 0 and 2^31",
               &r->n_arcs));
    r->has_header = true;
    return REMAT_OK;
}

static remat_status read_vertex(reader *r, size_t i, uint32_t *out)
{
    int64_t id = 0;
    TRY(number(r, i, 1, r->n_vertices, "there is no such vertex", &id));
    *out = (uint32_t)(id - 1);
    return REMAT_OK;
}

static remat_status read_terminal(reader *r)
{
    if (r->n_words != 3 || !(is(&r->words[2], "s") || is(&r->words[2], "t")))
        return fail(r, "must be: n ID s, or: n ID t", NULL);
    uint32_t *which = is(&r->words[2], "s") ? &r->source : &r->sink;
    if (*which != REMAT_NONE)
        return fail(r, which == &r->source ? "a second source" : "a second sink", NULL);
    return read_vertex(r, 1, which);
}

static remat_status read_arc(reader *r)
{
    rm_flow_edge e;
    if (r->n_words != 4) return fail(r, "must be: a FROM TO CAPACITY", NULL);
    TRY(read_vertex(r, 1, &e.from));
    TRY(read_vertex(r, 2, &e.to));
    TRY(number(r, 3, 0, RM_MAX_SUM - 1, "the capacity is not a whole number below 2^62",
               &e.capacity));
    r->sum += e.capacity; /* both below 2^62: no overflow */
    if (r->sum >= RM_MAX_SUM) return fail(r, "the capacities sum to 2^62 or more", NULL);
    if ((int64_t)r->edges.n == r->n_arcs) return fail(r, "more arcs than the header says", NULL);
    return RM_PUSH(r->ctx, r->edges, e);
}

static remat_status read_line(reader *r)
{
    if (r->n_words == 0 || r->words[0].text[0] == 'c') return REMAT_OK;
    const word *kind = &r->words[0];
    if (is(kind, "p")) return read_header(r);
    if (!is(kind, "n") && !is(kind, "a"))
        return fail(r, "a line must begin with c, p, n or a", kind);
    if (!r->has_header) return fail(r, "the line `p max VERTICES ARCS` must come first", NULL);
    return is(kind, "n") ? read_terminal(r) : read_arc(r);
}

static remat_status read_lines(reader *r, const char *text, size_t n)
{
    for (const char *end = text + n, *from = text; from < end;) {
        const char *stop = memchr(from, '\n', (size_t)(end - from));
        if (!stop) stop = end;
        r->line++;
        split(r, from, stop);
        TRY(read_line(r));
        from = stop + 1;
    }
    if (!r->has_header)
        return rm_fail(r->ctx, REMAT_E_INPUT, "there is no line `p max VERTICES ARCS`");
    if (r->source == REMAT_NONE || r->sink == REMAT_NONE)
        return rm_fail(r->ctx, REMAT_E_INPUT, "there is no %s: a line `n ID %s`",
                       r->source == REMAT_NONE ? "source" : "sink",
                       r->source == REMAT_NONE ? "s" : "t");
    if (r->source == r->sink)
        return rm_fail(r->ctx, REMAT_E_INPUT, "source and sink are the same vertex");
    if ((int64_t)r->edges.n != r->n_arcs)
        return rm_fail(r->ctx, REMAT_E_INPUT, "the header says %" PRId64 " arcs, but there are %zu",
                       r->n_arcs, r->edges.n);
    return REMAT_OK;
}

static remat_status freeze(reader *r, remat_network **out)
{
    const size_t size = sizeof **out + r->edges.n * sizeof *r->edges.items;
    remat_network *network = rm_alloc(r->ctx, size);
    if (!network) return REMAT_E_MEMORY;
    rm_flow_edge *edges = (rm_flow_edge *)(void *)(network + 1);
    if (r->edges.n) memcpy(edges, r->edges.items, r->edges.n * sizeof *edges);
    network->heap = r->ctx->own_heap;
    network->block_size = size;
    network->flow =
        (rm_flow_network){(uint32_t)r->n_vertices, r->source, r->sink, edges, r->edges.n};
    *out = network;
    return REMAT_OK;
}

remat_status rm_read_dimacs(remat_ctx *ctx, const remat_input *input, remat_network **out)
{
    reader r = {.ctx = ctx, .source = REMAT_NONE, .sink = REMAT_NONE};
    remat_status status = read_lines(&r, input->text, input->text_size - 1);
    if (status == REMAT_OK) status = freeze(&r, out);
    RM_VEC_FREE(&ctx->heap, r.edges);
    return status;
}

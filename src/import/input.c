/* input.c: from bytes to a parsed input. The content decides what it is: gzip by its magic number,
 * then JSON by its first character, DIMACS and spans by their first line, DOT otherwise.
 *
 * Nothing here trusts the bytes. Decompression stops at the option max_input_bytes, and json.c is
 * strict. So a gzip bomb costs no more than twice that option: once for the text, once for the
 * tree. Cost: O(bytes). */
#include "import/input.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "import/codec.h"
#include "import/spans.h"

typedef RM_VEC(unsigned char) byte_vec;

/* ---- gzip ---- */

static remat_status inflate_all(remat_ctx *ctx, z_stream *z, byte_vec *out)
{
    for (;;) {
        TRY(RM_RESERVE(ctx, *out, 1 << 16));
        const size_t room = out->room - out->n;
        z->next_out = out->items + out->n;
        z->avail_out = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
        const uInt before = z->avail_out;
        const int rc = inflate(z, Z_NO_FLUSH);
        out->n += before - z->avail_out;
        if ((int64_t)out->n > ctx->options.max_input_bytes)
            return rm_fail(ctx, REMAT_E_INPUT,
                           "expands to more than %lld bytes (option max_input_bytes)",
                           (long long)ctx->options.max_input_bytes);
        if (rc == Z_MEM_ERROR) return rm_no_memory(ctx);
        if (rc == Z_STREAM_END) {
            if (z->avail_in == 0) return REMAT_OK;
            /* Another member follows. */
            if (inflateReset(z) != Z_OK) return rm_fail(ctx, REMAT_E_INPUT, "damaged gzip data");
            continue;
        }
        if (rc == Z_BUF_ERROR && z->avail_in == 0)
            return rm_fail(ctx, REMAT_E_INPUT, "truncated gzip data");
        if (rc != Z_OK && rc != Z_BUF_ERROR)
            return rm_fail(ctx, REMAT_E_INPUT, "damaged gzip data: %s",
                           z->msg ? z->msg : "unknown fault");
    }
}

static remat_status gunzip(remat_ctx *ctx, const unsigned char *bytes, size_t n_bytes,
                           byte_vec *out)
{
    if (n_bytes > UINT32_MAX) return rm_fail(ctx, REMAT_E_INPUT, "gzip data of more than 4 GiB");
    z_stream z = {.zalloc = rm_zlib_alloc, .zfree = rm_zlib_free, .opaque = &ctx->heap};
    if (inflateInit2(&z, 15 + 16) != Z_OK) return rm_no_memory(ctx);
    z.next_in = (unsigned char *)(uintptr_t)bytes; /* zlib does not write to it */
    z.avail_in = (uInt)n_bytes;
    const remat_status status = inflate_all(ctx, &z, out);
    inflateEnd(&z);
    return status;
}

/* ---- JSON or DOT ---- */

static remat_status classify_json(remat_ctx *ctx, remat_input *input)
{
    static const char *const formats[] = {[REMAT_KIND_GRAPH] = "remat-graph",
                                          [REMAT_KIND_CHAIN] = "remat-chain",
                                          [REMAT_KIND_PLAN] = "remat-plan"};
    const rm_json *root = input->json;
    if (root->kind != RM_JSON_OBJECT)
        return rm_fail(ctx, REMAT_E_INPUT, "the file is a JSON array, not an object");
    const rm_json *format = rm_json_get(root, "format");
    if (!format) {
        const bool has_edges = rm_json_get(root, "links") || rm_json_get(root, "edges");
        if (!rm_json_get(root, "nodes") || !has_edges)
            return rm_fail(ctx, REMAT_E_INPUT,
                           "neither a remat file (no \"format\") nor networkx node-link JSON (no "
                           "\"nodes\" and \"links\")");
        input->dialect = RM_NETWORKX;
        input->kind = REMAT_KIND_GRAPH;
        return REMAT_OK;
    }
    input->dialect = RM_REMAT_JSON;
    for (size_t i = 0; i < RM_LEN(formats); i++)
        if (format->kind == RM_JSON_STRING && strcmp(format->string, formats[i]) == 0) {
            input->kind = (remat_kind)i;
            return REMAT_OK;
        }
    return rm_fail_at(ctx, REMAT_E_INPUT, "format",
                      "must be \"remat-graph\", \"remat-chain\" or \"remat-plan\"");
}

/* A comment, or one of the words that a DOT file can begin with, in any case. */
static bool begins_like_dot(const char *text)
{
    static const char *const words[] = {"strict", "digraph", "graph"};
    if (*text == '/' || *text == '#') return true;
    for (size_t i = 0; i < RM_LEN(words); i++) {
        size_t k = 0;
        while (words[i][k] && (text[k] | 0x20) == words[i][k]) k++;
        if (!words[i][k]) return true;
    }
    return false;
}

/* A line that begins with the word c or p. */
static bool begins_like_dimacs(const char *text)
{
    return (*text == 'c' || *text == 'p') && strchr(" \t\r\n", text[1]);
}

/* What is not JSON. `first`: where it begins, after blanks. */
static remat_status classify_text(remat_ctx *ctx, remat_input *input, size_t first)
{
    const char *text = input->text + first;
    const bool dimacs = begins_like_dimacs(text), spans = rm_begins_like_spans(text);
    if (memchr(input->text, '\0', input->text_size - 1) ||
        !(dimacs || spans || begins_like_dot(text)))
        return rm_fail(ctx, REMAT_E_INPUT, "neither JSON nor DOT nor DIMACS nor spans");
    input->dialect = dimacs ? RM_DIMACS : spans ? RM_SPANS_CSV : RM_DOT;
    input->kind = dimacs ? REMAT_KIND_NETWORK : spans ? REMAT_KIND_SPANS : REMAT_KIND_GRAPH;
    return REMAT_OK;
}

/* The text is kept: the tree points into it. */
static remat_status parse_text(remat_ctx *ctx, remat_input *input, const char *text, size_t n)
{
    size_t first = 0;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* byte order mark */
        text += 3;
        n -= 3;
    }
    while (first < n && strchr(" \t\r\n", text[first]) && text[first]) first++;
    if (first == n) return rm_fail(ctx, REMAT_E_INPUT, "the file is empty");
    TRY(rm_input_set_text(ctx, input, text, n));
    if (text[first] == '{' || text[first] == '[') {
        TRY(rm_json_parse(ctx, &input->tree, input->text, n, &input->json));
        return classify_json(ctx, input);
    }
    return classify_text(ctx, input, first);
}

remat_status rm_input_set_text(remat_ctx *ctx, remat_input *input, const char *text, size_t n)
{
    input->text = rm_alloc(ctx, n + 1);
    if (!input->text) return REMAT_E_MEMORY;
    memcpy(input->text, text, n);
    input->text_size = n + 1;
    return REMAT_OK;
}

remat_status rm_input_new(remat_ctx *ctx, const char *name, remat_input **out)
{
    remat_input *input = rm_alloc(ctx, sizeof *input);
    if (!input) return REMAT_E_MEMORY;
    input->heap = ctx->own_heap;
    snprintf(input->name, sizeof input->name, "%s", name ? name : "");
    *out = input;
    return REMAT_OK;
}

remat_status rm_input_fill(remat_ctx *ctx, remat_input *input, const void *bytes, size_t n_bytes)
{
    const unsigned char *p = bytes;
    if ((int64_t)n_bytes > ctx->options.max_input_bytes)
        return rm_fail(ctx, REMAT_E_INPUT, "larger than %lld bytes (option max_input_bytes)",
                       (long long)ctx->options.max_input_bytes);
    if (n_bytes < 2 || p[0] != 0x1f || p[1] != 0x8b) return parse_text(ctx, input, bytes, n_bytes);
    byte_vec text = {0};
    remat_status status = gunzip(ctx, bytes, n_bytes, &text);
    if (status == REMAT_OK) status = parse_text(ctx, input, (const char *)text.items, text.n);
    RM_VEC_FREE(&ctx->heap, text);
    return status;
}

remat_kind remat_input_kind(const remat_input *input) { return input->kind; }

void remat_input_free(remat_input *input)
{
    if (!input) return;
    const remat_alloc heap = input->heap;
    rm_arena_free(&heap, &input->tree);
    rm_release(&heap, input->text, input->text_size);
    rm_release(&heap, input, sizeof *input);
}

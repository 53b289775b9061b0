/* digest.c: SHA-256 over what decides memory and validity, so that a plan can be tied to its graph.
 *
 * Names and costs are left out on purpose. To rename an op or to measure it again does not void a
 * plan.
 *
 * docs/format.md specifies the bytes. They are the line "remat-graph digest 1\n", then
 * little-endian integers of 64 bits:
 * - the number of values; of each its size, its own storage (-1 for an alias) and its alias (-1: no
 *   alias);
 * - the number of ops; of each n_in, in..., n_out, out..., pinned (0 or 1), workspace;
 * - the number of outputs, and the outputs;
 * - where ops may work in place, and only there: the number of such pairs; of each the op, and the
 *   indices of the output and of the input in its lists, by op and output.
 *
 * Cost: linear in the graph. */
#include "graph/digest.h"
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

void rm_digest_int(rm_sha256 *s, int64_t x)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)x >> 8 * i);
    rm_sha256_add(s, bytes, sizeof bytes);
}

void rm_digest_text(rm_sha256 *s, char digest[80])
{
    unsigned char hash[32];
    rm_sha256_end(s, hash);
    char *p = digest + snprintf(digest, 80, "sha256:");
    for (unsigned i = 0; i < 32; i++) p += snprintf(p, 3, "%02x", hash[i]);
}

static void add_list(rm_sha256 *s, const uint32_t *items, uint32_t n)
{
    rm_digest_int(s, n);
    for (uint32_t i = 0; i < n; i++) rm_digest_int(s, items[i]);
}

static void add_inplace(rm_sha256 *s, const remat_graph *g)
{
    rm_digest_int(s, g->n_inplace);
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
            if (g->out_takes[k] == REMAT_NONE) continue;
            rm_digest_int(s, op);
            rm_digest_int(s, k - g->out_begin[op]);
            rm_digest_int(s, g->out_takes[k]);
        }
}

void rm_graph_digest(const remat_graph *g, char digest[80])
{
    static const char head[] = "remat-graph digest 1\n";
    rm_sha256 s;
    rm_sha256_begin(&s);
    rm_sha256_add(&s, head, strlen(head));
    rm_digest_int(&s, g->n_values);
    for (uint32_t v = 0; v < g->n_values; v++) {
        const bool alias = g->alias[v] != REMAT_NONE;
        rm_digest_int(&s, g->size[v]);
        rm_digest_int(&s, alias ? -1 : g->storage[v]);
        rm_digest_int(&s, alias ? (int64_t)g->alias[v] : -1);
    }
    rm_digest_int(&s, g->n_ops);
    for (uint32_t op = 0; op < g->n_ops; op++) {
        add_list(&s, g->in + g->in_begin[op], g->in_begin[op + 1] - g->in_begin[op]);
        add_list(&s, g->out + g->out_begin[op], g->out_begin[op + 1] - g->out_begin[op]);
        rm_digest_int(&s, g->pinned[op]);
        rm_digest_int(&s, g->workspace[op]);
    }
    add_list(&s, g->outputs, g->n_outputs);
    if (g->n_inplace) add_inplace(&s, g);
    rm_digest_text(&s, digest);
}

/* normal_check.c: the invariants of a normal graph (graph/normal.h) as code, for tests and debug
 * builds.
 *
 * Cost: O(edges), times the inputs of an op. */
#include "graph/normal.h"

#include <assert.h>

/* Has an output of the op as many bytes? */
static bool makes_as_many(const rm_normal *nm, uint32_t op, int64_t bytes)
{
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (nm->bytes[nm->out[k]] == bytes && nm->base[nm->out[k]] == REMAT_NONE) return true;
    return false;
}

static void check_ops(const rm_normal *nm)
{
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        assert(nm->in_begin[op] <= nm->in_begin[op + 1]);
        assert(nm->out_begin[op] <= nm->out_begin[op + 1]);
        assert(nm->cost[op] >= 0 && nm->workspace[op] >= 0);
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            assert(nm->in[k] < nm->n_stores);
            assert(k == nm->in_begin[op] || nm->in[k - 1] < nm->in[k]); /* each once, ascending */
            assert(nm->producer[nm->in[k]] < op);                       /* made before it is read */
            assert(!nm->may_take[k] || makes_as_many(nm, op, nm->bytes[nm->in[k]]));
        }
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
            assert(nm->out[k] < nm->n_stores);
            assert(nm->producer[nm->out[k]] == op);
        }
    }
}

static void check_stores(const rm_normal *nm)
{
    uint32_t n_reads = 0, n_tokens = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        assert(nm->bytes[s] >= 0 && nm->producer[s] < nm->n_ops);
        for (uint32_t k = nm->reader_begin[s]; k < nm->reader_begin[s + 1]; k++, n_reads++) {
            const uint32_t op = nm->readers[k];
            bool reads = false;
            for (uint32_t i = nm->in_begin[op]; i < nm->in_begin[op + 1]; i++)
                reads |= nm->in[i] == s;
            assert(reads && (k == nm->reader_begin[s] || nm->readers[k - 1] < op));
        }
        for (uint32_t k = nm->token_begin[s]; k < nm->token_begin[s + 1]; k++, n_tokens++)
            assert(nm->base[nm->tokens[k]] == s);
        if (nm->base[s] == REMAT_NONE) continue;
        assert(nm->bytes[s] == 0 && nm->base[s] < nm->n_stores); /* a token takes no memory */
        assert(nm->base[nm->base[s]] == REMAT_NONE);             /* and stands on a storage */
        assert(nm->producer[nm->base[s]] <= nm->producer[s]);
    }
    uint32_t n_based = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) n_based += nm->base[s] != REMAT_NONE;
    assert(n_reads == nm->in_begin[nm->n_ops] && n_tokens == n_based);
}

void rm_normal_check(const rm_normal *nm)
{
    check_ops(nm);
    check_stores(nm);
}

/* node_groups.c: node grouping ("A fast heuristic to optimize time-space tradeoff for large models"
 * [FastSA], section 2.2.2 and C.1, Algorithm 1).
 *
 * Problem: if the inputs of an op are no larger than its outputs, keeping the outputs is not worth
 * while. Such an op is fused into each op that reads them. The reader then recomputes it from the
 * inputs. Grouping alone is a strategy (fastsa-group). The first leg of fastsa anneals over groups:
 * recomputing a whole row of ops is one move there.
 *
 * Method: one walk in the order of the graph. The group of an op is the groups of all fused ops
 * that it reads, one after the other, and then the op itself. It reads what they read from outside.
 *
 * A group needs memory inside. Its workspace is what its inner values and workspaces take beyond
 * all its outputs (B.1). The model counts inputs, outputs and workspace of a step together. So this
 * is never less than what the group's ops need when they run one by one, and at times more. That an
 * op can work in place counts only where it is a group by itself. Plans are measured after
 * ungrouping.
 *
 * Departures:
 * - Algorithm 1 also fuses an op when some reader reads only part of its outputs, or when it makes
 * a graph output. The resulting sequence is invalid. Here every reader must read all outputs, and
 *   none of them is a graph output.
 * - Ops that are pinned, or have to do with tokens, are not fused.
 * - An op that is reached twice runs twice, so groups could grow without limit. A group of more
 * than MAX_GROUP ops is not fused on, and past MAX_MEMBERS in all nothing is.
 *
 * Cost: O(members). */
#include "plan/search/node_groups.h"

#include <stdlib.h>

enum { MAX_MEMBERS = 1 << 22, MAX_GROUP = 1 << 10 };

typedef struct span {
    uint32_t begin, end;
} span;

typedef RM_VEC(uint32_t) list;

typedef struct grouping {
    remat_ctx *ctx;
    const rm_normal *nm;
    list members, reads, residents; /* of all ops, fused or not */
    span *member_of, *read_of, *resident_of;
    uint64_t n_promised; /* members that fused ops will have in their readers */
    uint8_t *fused;      /* by op */
    uint32_t *stamp;     /* by storage, then by root value: the last op that listed it, plus one */
    uint32_t *last_reader; /* by fused op: the last op whose group took it in, plus one */
    uint8_t *needed;       /* by storage: scratch of inner_bytes */
} grouping;

static remat_status add_once(grouping *x, list *to, uint32_t *stamps, uint32_t item, uint32_t stamp)
{
    if (stamps[item] == stamp) return REMAT_OK;
    stamps[item] = stamp;
    return RM_PUSH(x->ctx, *to, item);
}

static remat_status add_span(grouping *x, list *to, uint32_t *stamps, span from, uint32_t stamp)
{
    for (uint32_t k = from.begin; k < from.end; k++)
        TRY(add_once(x, to, stamps, to->items[k], stamp));
    return REMAT_OK;
}

static span close_span(list *l, uint32_t begin)
{
    const span s = {begin, (uint32_t)l->n};
    if (s.end > s.begin) qsort(l->items + begin, s.end - s.begin, sizeof *l->items, rm_by_index);
    return s;
}

/* The group that ends in `op`. */
static remat_status collect(grouping *x, uint32_t op)
{
    const rm_normal *nm = x->nm;
    const uint32_t m = (uint32_t)x->members.n, r = (uint32_t)x->reads.n,
                   c = (uint32_t)x->residents.n, stamp = op + 1;
    uint32_t *const store_stamp = x->stamp, *const value_stamp = store_stamp + nm->n_stores;
    /* Backwards: Algorithm 1 puts what is fused later in front. */
    for (uint32_t k = nm->in_begin[op + 1]; k-- > nm->in_begin[op];) {
        const uint32_t from = nm->producer[nm->in[k]];
        if (!x->fused[from]) {
            TRY(add_once(x, &x->reads, store_stamp, nm->in[k], stamp));
            continue;
        }
        if (x->last_reader[from] == stamp) continue; /* another output of it was read before */
        x->last_reader[from] = stamp;
        for (uint32_t i = x->member_of[from].begin; i < x->member_of[from].end; i++)
            TRY(RM_PUSH(x->ctx, x->members, x->members.items[i]));
        TRY(add_span(x, &x->reads, store_stamp, x->read_of[from], stamp));
        TRY(add_span(x, &x->residents, value_stamp, x->resident_of[from], stamp));
    }
    TRY(RM_PUSH(x->ctx, x->members, op));
    for (uint32_t k = nm->resident_begin[op]; k < nm->resident_begin[op + 1]; k++)
        TRY(add_once(x, &x->residents, value_stamp, nm->resident_in[k], stamp));
    x->member_of[op] = (span){m, (uint32_t)x->members.n};
    x->read_of[op] = close_span(&x->reads, r);
    x->resident_of[op] = close_span(&x->residents, c);
    return REMAT_OK;
}

/* Do all who read one output read all of them? */
static bool is_read_whole(const rm_normal *nm, uint32_t op)
{
    const uint32_t first = nm->out[nm->out_begin[op]],
                   n = nm->reader_begin[first + 1] - nm->reader_begin[first];
    if (n == 0) return false;
    for (uint32_t k = nm->out_begin[op] + 1; k < nm->out_begin[op + 1]; k++) {
        const uint32_t s = nm->out[k];
        if (nm->reader_begin[s + 1] - nm->reader_begin[s] != n) return false;
        for (uint32_t i = 0; i < n; i++)
            if (nm->readers[nm->reader_begin[s] + i] != nm->readers[nm->reader_begin[first] + i])
                return false;
    }
    return true;
}

static bool may_fuse(const grouping *x, uint32_t op)
{
    const rm_normal *nm = x->nm;
    if (nm->pinned[op] || nm->out_begin[op] == nm->out_begin[op + 1] ||
        x->member_of[op].end - x->member_of[op].begin > MAX_GROUP)
        return false;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
        const uint32_t s = nm->out[k], v = nm->value[s];
        if (nm->is_output[s] || nm->g->root[v] != v || nm->token_begin[s] != nm->token_begin[s + 1])
            return false;
    }
    return is_read_whole(nm, op);
}

/* Counts the members that fusing the op adds to its readers. False: they are too many. */
static bool promise(grouping *x, uint32_t op)
{
    const uint32_t first = x->nm->out[x->nm->out_begin[op]];
    const uint64_t n_readers = x->nm->reader_begin[first + 1] - x->nm->reader_begin[first];
    const uint64_t n = n_readers * (x->member_of[op].end - x->member_of[op].begin);
    if (x->n_promised + n > MAX_MEMBERS) return false;
    x->n_promised += n;
    return true;
}

/* do_fuse of C.1. */
static bool is_worth_fusing(const grouping *x, uint32_t op, bool count_resident)
{
    const rm_normal *nm = x->nm;
    int64_t in = 0, out = 0;
    for (uint32_t k = x->read_of[op].begin; k < x->read_of[op].end; k++)
        in += nm->bytes[x->reads.items[k]];
    for (uint32_t k = x->resident_of[op].begin; k < x->resident_of[op].end && count_resident; k++)
        in += nm->g->storage[x->residents.items[k]];
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        out += nm->bytes[nm->out[k]];
    return in <= out;
}

/* What the group needs beyond its inputs and outputs. It goes over the members backwards: an inner
 * value is in memory from the member that makes it to the last member that reads that instance. */
static int64_t inner_bytes(grouping *x, uint32_t last_op)
{
    const rm_normal *nm = x->nm;
    const span s = x->member_of[last_op];
    int64_t live = 0, most = 0, outputs = 0;
    for (uint32_t k = nm->out_begin[last_op]; k < nm->out_begin[last_op + 1]; k++)
        outputs += nm->bytes[nm->out[k]];
    for (uint32_t i = s.end; i-- > s.begin;) {
        const uint32_t op = x->members.items[i];
        int64_t now = live + nm->workspace[op];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
            const uint32_t store = nm->out[k];
            if (x->needed[store]) live -= nm->bytes[store];
            else now += nm->bytes[store];
            x->needed[store] = 0;
        }
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            const uint32_t store = nm->in[k];
            if (!x->fused[nm->producer[store]] || x->needed[store]) continue;
            x->needed[store] = 1;
            live += nm->bytes[store];
            now += nm->bytes[store];
        }
        if (now - outputs > most) most = now - outputs;
    }
    return most;
}

static remat_status allocate(grouping *x, rm_normal *out)
{
    const rm_normal *nm = x->nm;
    remat_ctx *ctx = x->ctx;
    TRY(RM_SCRATCH(ctx, x->member_of, nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->read_of, nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->resident_of, nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->fused, nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->stamp, (size_t)nm->n_stores + nm->g->n_values));
    TRY(RM_SCRATCH(ctx, x->last_reader, nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->needed, nm->n_stores));
    TRY(RM_SCRATCH(ctx, out->in_begin, nm->n_ops + 1));
    TRY(RM_SCRATCH(ctx, out->out_begin, nm->n_ops + 1));
    TRY(RM_SCRATCH(ctx, out->member_begin, nm->n_ops + 1));
    TRY(RM_SCRATCH(ctx, out->out, nm->n_stores));
    TRY(RM_SCRATCH(ctx, out->cost, nm->n_ops));
    TRY(RM_SCRATCH(ctx, out->workspace, nm->n_ops));
    return RM_SCRATCH(ctx, out->pinned, nm->n_ops);
}

static uint32_t copy_span(uint32_t *to, uint32_t at, const uint32_t *items, span s)
{
    for (uint32_t k = s.begin; k < s.end; k++) to[at++] = items[k];
    return at;
}

/* The groups of the ops that are not fused, as a graph. */
static remat_status emit(grouping *x, rm_normal *out)
{
    const rm_normal *nm = x->nm;
    size_t n_in = 0, n_members = 0;
    for (uint32_t op = 0; op < nm->n_ops; op++)
        if (!x->fused[op]) {
            n_in += x->read_of[op].end - x->read_of[op].begin;
            n_members += x->member_of[op].end - x->member_of[op].begin;
        }
    TRY(RM_SCRATCH(x->ctx, out->in, n_in));
    TRY(RM_SCRATCH(x->ctx, out->may_take, n_in));
    TRY(RM_SCRATCH(x->ctx, out->members, n_members));
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        if (x->fused[op]) continue;
        const uint32_t i = out->n_ops++;
        const span s = x->member_of[op];
        out->in_begin[i + 1] = copy_span(out->in, out->in_begin[i], x->reads.items, x->read_of[op]);
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && s.end - s.begin == 1; k++)
            out->may_take[out->in_begin[i] + k - nm->in_begin[op]] = nm->may_take[k];
        out->member_begin[i + 1] =
            copy_span(out->members, out->member_begin[i], x->members.items, s);
        out->out_begin[i + 1] = copy_span(out->out, out->out_begin[i], nm->out,
                                          (span){nm->out_begin[op], nm->out_begin[op + 1]});
        for (uint32_t k = s.begin; k < s.end; k++)
            if (rm_add_overflows(out->cost[i], nm->cost[x->members.items[k]], &out->cost[i]))
                out->cost[i] = INT64_MAX; /* fastsa does not anneal over such groups */
        out->workspace[i] = inner_bytes(x, op);
        out->pinned[i] = nm->pinned[op];
    }
    return rm_normal_index(x->ctx, out);
}

static remat_status group(grouping *x, bool count_resident, rm_normal *out)
{
    TRY(allocate(x, out));
    for (uint32_t op = 0; op < x->nm->n_ops; op++) {
        TRY(collect(x, op));
        x->fused[op] = may_fuse(x, op) && is_worth_fusing(x, op, count_resident) && promise(x, op);
    }
    return emit(x, out);
}

remat_status rm_group_nodes(remat_ctx *ctx, const rm_normal *nm, bool count_resident,
                            rm_normal *out)
{
    grouping x = {.ctx = ctx, .nm = nm};
    *out = (rm_normal){.g = nm->g,
                       .n_stores = nm->n_stores,
                       .bytes = nm->bytes,
                       .is_output = nm->is_output,
                       .value = nm->value,
                       .base = nm->base,
                       .resident_bytes = nm->resident_bytes};
    const remat_status status = group(&x, count_resident, out);
    RM_VEC_FREE(&ctx->heap, x.members);
    RM_VEC_FREE(&ctx->heap, x.reads);
    RM_VEC_FREE(&ctx->heap, x.residents);
    return status;
}

remat_status rm_ungroup_nodes(remat_ctx *ctx, const rm_normal *groups, const rm_code *codes,
                              size_t n, rm_codes *out)
{
    uint32_t n_ops = 0; /* of the graph that was grouped: fetches are numbered behind them */
    for (uint32_t k = 0; k < groups->member_begin[groups->n_ops]; k++)
        if (groups->members[k] >= n_ops) n_ops = groups->members[k] + 1;
    for (size_t i = 0; i < n; i++) {
        const rm_code c = codes[i];
        if (rm_is_fetch(groups, c)) {
            TRY(RM_PUSH(ctx, *out, c - groups->n_ops + n_ops));
            continue;
        }
        for (uint32_t k = groups->member_begin[c]; k < groups->member_begin[c + 1]; k++)
            TRY(RM_PUSH(ctx, *out, groups->members[k]));
    }
    return REMAT_OK;
}

/* kernel_copies.c: recomputation between kernels (min-cut paper, section 3.7).
 *
 * Problem: kernel A makes values that kernel B reads, and an op between them keeps the two from
 * being one kernel. Some of these values may be cheaper to compute again inside B than to write and
 * to read.
 *
 * Method: for every touching pair of kernels (A, B), the minimum cut of Algorithms 1 and 2
 * (saved_cut.c) with the ops of A as V_f and those of B outside. Saving a storage costs B's read of
 * it. It costs A's write, too, unless somebody else reads it ("in V_m", says the paper), or it is
 * an output. Where the cut is cheaper than what B reads now, the ops of A behind the cut are copied
 * into B.
 *   - Only what B's reads depend on inside A is looked at: a pair costs what its own ops cost.
 *   - An input of A that B reads anyway costs nothing. (The paper would charge it again.)
 *   - Pinned and random ops are not copied, nor reductions (section 3.4).
 *   - A storage that B also reads through a view from elsewhere stays where it is.
 *
 * Rounds: within one, every B takes from one A, and an A gives to many. Readers are counted on the
 * way. Then the graph is written anew. Ops of A that nobody reads any more are left out. Every op
 * is marked with its kernel (`kernel`), else a copy would join its original again. Then the traffic
 * is counted again. A round that does not lower it is undone and ends the search.
 *
 * Invariant: the result never moves more than the start. What is said of it is what the counter
 * says of the file that is written. Cost: there are at most as many copies as the graph has ops, so
 * memory stays linear. Work is ops and arcs looked at. */
#include "plan/cut/kernel_copies.h"

#include "fusion/op_class.h"
#include "fusion/unroll.h"
#include "graph/demand.h"
#include "plan/cut/recompute_rules.h"
#include "plan/cut/saved_cut.h"

#include <assert.h>

/* Operations for an op or an input in a round, besides its flows: looked at, written, counted. */
enum { ROUND_WORK = 16 };

/* What is known of one graph. Arrays live in scratch. Steps are ops, as the schedule is the graph's
 * own order. */
typedef struct state {
    const remat_graph *g;
    rm_trace trace;
    rm_kernels kernels;
    rm_kernel_traffic traffic;
} state;

typedef struct round { /* arrays live in scratch */
    remat_ctx *ctx;
    const state *s;
    const remat_graph *g;
    rm_cut_space space;
    uint8_t *banned;     /* by op */
    uint8_t *delivered;  /* by root value */
    uint32_t *n_readers; /* by root value: kernels besides the maker's that read it */
    uint32_t *reader;    /* by place in g->in: the op */
    rm_demand demand;    /* of ops for the cone */

    /* What kernels have taken so far. */
    RM_VEC(uint32_t) copies;             /* ops, kernel after kernel */
    uint32_t *copies_begin, *copies_end; /* by kernel */
    uint8_t *copied;                     /* by op: some kernel has a copy */
    size_t room;                         /* for more copies */

    /* The kernel at hand that reads. */
    uint32_t b;
    int64_t *reads_now; /* by root value: bytes that b reads of it, or REMAT_ABSENT */
    uint32_t *head;     /* by kernel: the first place in g->in where b reads what it makes */
    uint32_t *next;     /* by place in g->in: the next such place */
    uint32_t *fixed;    /* by root value: 1 + the last b that reads it by a view from elsewhere */

    /* The kernel that makes, and what the pair has to do with each other. */
    uint32_t a;
    int64_t *price;    /* by root value */
    uint8_t *in_cone;  /* by op: 0, IN_CONE or COPY; all 0 between pairs */
    uint8_t *is_saved; /* by root value; all 0 between pairs */
    uint32_t *cone;    /* ops, inputs before users */
    uint32_t *readers; /* ops of b, ascending */
    uint32_t n_cone, n_pair_readers;
} round;

enum { IN_CONE = 1, COPY = 2 };

static remat_status look_at(remat_ctx *ctx, const remat_graph *g, state *out)
{
    out->g = g;
    TRY(rm_trace_keep_all(ctx, g, &out->trace));
    TRY(rm_kernels_find(ctx, &out->trace, &out->kernels));
    return rm_kernel_traffic_of(ctx, &out->trace, &out->kernels, &out->traffic);
}

/* As in the cut between the passes (recompute_rules.c): pinned ops, random ops, reductions. All ops
 * of a kernel are fusible. */
static bool must_run_once(const remat_ctx *ctx, const remat_graph *g, uint32_t op)
{
    const remat_class c = rm_op_class(ctx, g, op);
    return g->pinned[op] || c == REMAT_CLASS_RANDOM ||
           (c == REMAT_CLASS_FUSIBLE && rm_is_reduction(ctx, g, op));
}

/* The value's maker, if that is an op of kernel a that has to join the cone. Then it joins. */
static uint32_t new_in_cone(void *user, uint32_t value)
{
    round *r = user;
    const uint32_t maker = r->g->producer[value];
    if (maker == REMAT_NONE || r->s->kernels.of[maker] != r->a || r->in_cone[maker])
        return REMAT_NONE;
    r->in_cone[maker] = IN_CONE;
    return maker;
}

static remat_status add_to_cone(void *user, uint32_t op)
{
    round *r = user;
    r->cone[r->n_cone++] = op;
    return REMAT_OK;
}

static remat_status allocate(remat_ctx *ctx, const state *s, round *r)
{
    const remat_graph *g = s->g;
    TRY(rm_cut_space_new(ctx, g, &r->space));
    TRY(RM_SCRATCH(ctx, r->banned, g->n_ops));
    TRY(RM_SCRATCH(ctx, r->delivered, g->n_values));
    TRY(RM_SCRATCH(ctx, r->n_readers, g->n_values));
    TRY(RM_SCRATCH(ctx, r->price, g->n_values));
    TRY(RM_SCRATCH(ctx, r->reads_now, g->n_values));
    TRY(RM_SCRATCH(ctx, r->fixed, g->n_values));
    TRY(RM_SCRATCH(ctx, r->head, s->kernels.n));
    TRY(RM_SCRATCH(ctx, r->next, g->n_in));
    TRY(RM_SCRATCH(ctx, r->reader, g->n_in));
    TRY(RM_SCRATCH(ctx, r->in_cone, g->n_ops));
    TRY(RM_SCRATCH(ctx, r->is_saved, g->n_values));
    TRY(RM_SCRATCH(ctx, r->cone, g->n_ops));
    TRY(RM_SCRATCH(ctx, r->readers, g->n_in));
    TRY(RM_SCRATCH(ctx, r->copies_begin, s->kernels.n));
    TRY(RM_SCRATCH(ctx, r->copies_end, s->kernels.n));
    return RM_SCRATCH(ctx, r->copied, g->n_ops);
}

static remat_status begin_round(remat_ctx *ctx, const state *s, size_t room, round *r)
{
    const remat_graph *g = s->g;
    *r = (round){.ctx = ctx, .s = s, .g = g, .room = room};
    TRY(allocate(ctx, s, r));
    r->demand = (rm_demand){
        .in_begin = g->in_begin, .in = g->in, .ask = new_in_cone, .run = add_to_cone, .user = r};
    TRY(rm_demand_begin(ctx, &r->demand, g->n_ops));
    for (uint32_t v = 0; v < g->n_values; v++) r->reads_now[v] = REMAT_ABSENT;
    for (uint32_t k = 0; k < s->kernels.n; k++) r->head[k] = REMAT_NONE;
    for (uint32_t i = 0; i < s->trace.n_made; i++) {
        r->n_readers[s->trace.root[i]] = s->traffic.n_readers[i];
        r->delivered[s->trace.root[i]] = s->trace.delivered[i];
    }
    for (uint32_t op = 0; op < g->n_ops; op++) {
        r->banned[op] = must_run_once(ctx, g, op);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) r->reader[k] = op;
    }
    return REMAT_OK;
}

/* ---- one pair ---- */

/* The cone is what b reads of kernel a, with all that it depends on there. */
static remat_status find_cone(round *r)
{
    r->n_cone = r->n_pair_readers = 0;
    for (uint32_t k = r->head[r->a]; k != REMAT_NONE; k = r->next[k]) {
        const uint32_t op = new_in_cone(r, r->g->in[k]);
        if (op != REMAT_NONE) TRY(rm_demand_run(&r->demand, op));
        if (!r->n_pair_readers || r->readers[r->n_pair_readers - 1] != r->reader[k])
            r->readers[r->n_pair_readers++] = r->reader[k];
    }
    return REMAT_OK;
}

/* The price of a storage that comes from outside the cone: b's read of it, unless it reads it
 * anyway. */
static int64_t input_price(const round *r, uint32_t root)
{
    return r->reads_now[root] == REMAT_ABSENT ? rm_written_bytes(r->g, root) : 0;
}

/* The price of a storage that the cone makes: b's read of it, and a's write if it is for b only. */
static int64_t inner_price(const round *r, uint32_t root)
{
    if (r->fixed[root] == r->b + 1) return 0;
    const bool reads = r->reads_now[root] != REMAT_ABSENT;
    const bool materialised = r->delivered[root] || r->n_readers[root] > (uint32_t)reads;
    const int64_t bytes = rm_written_bytes(r->g, root);
    return (reads ? r->reads_now[root] : bytes) + (materialised ? 0 : bytes);
}

/* First as if all storages were inputs of the cone, then those that it makes. */
static void set_prices(round *r)
{
    const remat_graph *g = r->g;
    for (uint32_t i = 0; i < r->n_cone; i++)
        for (uint32_t k = g->in_begin[r->cone[i]]; k < g->in_begin[r->cone[i] + 1]; k++)
            r->price[g->root[g->in[k]]] = input_price(r, g->root[g->in[k]]);
    for (uint32_t i = 0; i < r->n_cone; i++)
        for (uint32_t k = g->out_begin[r->cone[i]]; k < g->out_begin[r->cone[i] + 1]; k++)
            if (g->out_source[k] == REMAT_NONE) r->price[g->out[k]] = inner_price(r, g->out[k]);
}

/* What b pays now for what it reads of kernel a. In here, is_saved marks the storages counted. */
static int64_t price_now(round *r)
{
    int64_t sum = 0; /* of distinct storages, so below 2 * 2^62 */
    for (uint32_t k = r->head[r->a]; k != REMAT_NONE; k = r->next[k]) {
        const uint32_t root = r->g->root[r->g->in[k]], owner = r->g->producer[root];
        if (!r->is_saved[root] && owner != REMAT_NONE && r->in_cone[owner]) sum += r->price[root];
        r->is_saved[root] = 1;
    }
    for (uint32_t k = r->head[r->a]; k != REMAT_NONE; k = r->next[k])
        r->is_saved[r->g->root[r->g->in[k]]] = 0;
    return sum;
}

/* Is this a value of the pair that b will no longer find outside? */
static bool is_made_again(const round *r, uint32_t value)
{
    const uint32_t op = r->g->producer[value];
    return op != REMAT_NONE && r->in_cone[op] && !r->is_saved[r->g->root[value]];
}

static void copy_maker(round *r, uint32_t value)
{
    if (is_made_again(r, value)) r->in_cone[r->g->producer[value]] = COPY;
}

/* Copies into b what its reads need beyond what is saved. */
static remat_status copy_cone(round *r)
{
    const remat_graph *g = r->g;
    for (uint32_t k = r->head[r->a]; k != REMAT_NONE; k = r->next[k]) copy_maker(r, g->in[k]);
    for (uint32_t i = r->n_cone; i-- > 0;) { /* users before inputs */
        const uint32_t op = r->cone[i];
        if (r->in_cone[op] != COPY) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) copy_maker(r, g->in[k]);
    }
    r->copies_begin[r->b] = (uint32_t)r->copies.n;
    for (uint32_t i = 0; i < r->n_cone; i++)
        if (r->in_cone[r->cone[i]] == COPY) {
            TRY(RM_PUSH(r->ctx, r->copies, r->cone[i]));
            r->copied[r->cone[i]] = 1;
        }
    r->copies_end[r->b] = (uint32_t)r->copies.n;
    return REMAT_OK;
}

/* Counts who reads what from now on. The pairs that follow in this round ask for it. */
static void update_readers(round *r, const rm_saved *saved)
{
    const remat_graph *g = r->g;
    for (uint32_t i = 0; i < saved->n_values; i++) {
        const uint32_t root = saved->values[i];
        if (r->reads_now[root] == REMAT_ABSENT) r->n_readers[root]++;
    }
    for (uint32_t k = r->head[r->a]; k != REMAT_NONE; k = r->next[k]) {
        const uint32_t root = g->root[g->in[k]];
        if (!is_made_again(r, g->in[k]) || r->fixed[root] == r->b + 1 ||
            r->reads_now[root] == REMAT_ABSENT)
            continue;
        r->n_readers[root]--;
        r->reads_now[root] = REMAT_ABSENT;
    }
}

static remat_status cut_pair(round *r)
{
    rm_saved saved;
    TRY(find_cone(r));
    set_prices(r);
    const rm_cut_problem problem = {.inside = r->cone,
                                    .n_inside = r->n_cone,
                                    .outside = r->readers,
                                    .n_outside = r->n_pair_readers,
                                    .banned = r->banned,
                                    .price = r->price};
    const int64_t now = price_now(r);
    TRY(rm_saved_cut(&r->space, &problem, &saved));
    if (saved.capacity == REMAT_ABSENT || saved.capacity >= now || r->n_cone > r->room)
        return REMAT_OK;
    for (uint32_t i = 0; i < saved.n_values; i++) r->is_saved[saved.values[i]] = 1;
    TRY(copy_cone(r));
    update_readers(r, &saved);
    for (uint32_t i = 0; i < saved.n_values; i++) r->is_saved[saved.values[i]] = 0;
    assert(r->copies_end[r->b] - r->copies_begin[r->b] <= r->room);
    r->room -= r->copies_end[r->b] - r->copies_begin[r->b];
    return REMAT_OK;
}

static remat_status one_pair(round *r, uint32_t a)
{
    const rm_mark mark = rm_scratch_mark(r->ctx);
    r->a = a;
    const remat_status status = cut_pair(r);
    for (uint32_t i = 0; i < r->n_cone; i++) r->in_cone[r->cone[i]] = 0;
    rm_scratch_release(r->ctx, mark);
    return status;
}

/* ---- one round ---- */

/* Lists the place k, where b reads what another kernel makes, with that kernel. */
static void list_read(round *r, uint32_t b, uint32_t k)
{
    const remat_graph *g = r->g;
    const rm_kernels *all = &r->s->kernels;
    const uint32_t value = g->in[k], maker = g->producer[value];
    const uint32_t owner = g->producer[g->root[value]];
    if (maker == REMAT_NONE || all->of[maker] == b) return;
    if (owner != REMAT_NONE && all->of[owner] != all->of[maker]) r->fixed[g->root[value]] = b + 1;
    if (!all->fused[all->of[maker]]) return;
    r->next[k] = r->head[all->of[maker]];
    r->head[all->of[maker]] = k;
}

/* From last to first, so that the lists ascend. */
static void list_reads(round *r, uint32_t b)
{
    const rm_kernels *all = &r->s->kernels;
    for (uint32_t i = all->begin[b + 1]; i-- > all->begin[b];) {
        const uint32_t op = all->steps[i];
        for (uint32_t k = r->g->in_begin[op + 1]; k-- > r->g->in_begin[op];) list_read(r, b, k);
    }
}

/* May kernel b still take from kernel a? a has taken nothing itself, nor has b. */
static bool may_take(const round *r, uint32_t b, uint32_t a)
{
    return a != b && r->head[a] != REMAT_NONE && r->copies_end[a] == r->copies_begin[a] &&
           r->copies_end[b] == 0;
}

/* Tries the makers of b's inputs in turn, each kernel once, until one gives something. In the end
 * all heads are REMAT_NONE again. */
static remat_status try_makers(round *r, uint32_t b)
{
    const remat_graph *g = r->g;
    const rm_kernels *all = &r->s->kernels;
    remat_status status = REMAT_OK;
    for (uint32_t i = all->begin[b]; i < all->begin[b + 1]; i++) {
        const uint32_t op = all->steps[i];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t maker = g->producer[g->in[k]];
            if (maker == REMAT_NONE) continue;
            const uint32_t a = all->of[maker];
            const bool is_open = status == REMAT_OK && may_take(r, b, a);
            if (is_open && !rm_spend(r->ctx, 1)) status = one_pair(r, a);
            r->head[a] = REMAT_NONE;
        }
    }
    return status;
}

static remat_status take_from_one(round *r, uint32_t b)
{
    const rm_trace *trace = &r->s->trace;
    const rm_kernel_traffic *traffic = &r->s->traffic;
    r->b = b;
    list_reads(r, b);
    for (uint32_t i = traffic->begin[b]; i < traffic->begin[b + 1]; i++)
        r->reads_now[rm_instance_root(trace, traffic->reads[i].instance)] = traffic->reads[i].bytes;
    const remat_status status = try_makers(r, b);
    for (uint32_t i = traffic->begin[b]; i < traffic->begin[b + 1]; i++)
        r->reads_now[rm_instance_root(trace, traffic->reads[i].instance)] = REMAT_ABSENT;
    return status;
}

/* ---- the graph after a round ---- */

/* copied_into, by op: 1 + the last kernel seen that has a copy of it. uses, by value: reads of the
 * original. */
static void count_uses(const round *r, uint32_t b, uint32_t op, const uint32_t *copied_into,
                       uint32_t *uses)
{
    const remat_graph *g = r->g;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t maker = g->producer[g->in[k]];
        if (maker == REMAT_NONE || copied_into[maker] != b + 1) uses[g->in[k]]++;
    }
}

/* Finds copied ops whose results nobody reads any more. A kernel that gives has taken nothing in
 * this round, so its own reads are as they were. */
static remat_status find_unread(const round *r, uint8_t *unread)
{
    const remat_graph *g = r->g;
    const rm_kernels *all = &r->s->kernels;
    uint32_t *uses, *copied_into;
    TRY(RM_SCRATCH(r->ctx, uses, g->n_values));
    TRY(RM_SCRATCH(r->ctx, copied_into, g->n_ops));
    for (uint32_t b = 0; b < all->n; b++) {
        for (uint32_t i = r->copies_begin[b]; i < r->copies_end[b]; i++)
            copied_into[r->copies.items[i]] = b + 1;
        for (uint32_t i = r->copies_begin[b]; i < r->copies_end[b]; i++)
            count_uses(r, b, r->copies.items[i], copied_into, uses);
        for (uint32_t i = all->begin[b]; i < all->begin[b + 1]; i++)
            count_uses(r, b, all->steps[i], copied_into, uses);
    }
    for (uint32_t op = g->n_ops; op-- > 0;) {
        unread[op] = r->copied[op];
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            if (uses[g->out[k]] || g->is_output[g->out[k]]) unread[op] = 0;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && unread[op]; k++)
            uses[g->in[k]]--;
    }
    return REMAT_OK;
}

static remat_status write_kernel(round *r, rm_unroller *u, uint32_t b, const uint8_t *unread,
                                 uint32_t *outside)
{
    const remat_graph *g = r->g;
    const rm_kernels *all = &r->s->kernels;
    const uint8_t phase = g->phase[all->steps[all->begin[b]]];
    for (uint32_t i = r->copies_begin[b]; i < r->copies_end[b]; i++) {
        const uint32_t op = r->copies.items[i];
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            outside[g->out[k]] = u->now[g->out[k]];
    }
    for (uint32_t i = r->copies_begin[b]; i < r->copies_end[b]; i++)
        TRY(rm_unroll_op(u, r->copies.items[i], phase, b));
    for (uint32_t i = all->begin[b]; i < all->begin[b + 1]; i++)
        if (!unread[all->steps[i]])
            TRY(rm_unroll_op(u, all->steps[i], g->phase[all->steps[i]],
                             all->fused[b] ? b : REMAT_NONE));
    for (uint32_t i = r->copies_begin[b]; i < r->copies_end[b]; i++) {
        const uint32_t op = r->copies.items[i];
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            u->now[g->out[k]] = outside[g->out[k]];
    }
    return REMAT_OK;
}

static remat_status write_round(round *r, remat_graph **out)
{
    rm_unroller u = {0};
    uint8_t *unread;
    uint32_t *outside; /* by value: what stands for it outside the kernel being written */
    TRY(RM_SCRATCH(r->ctx, unread, r->g->n_ops));
    TRY(RM_SCRATCH(r->ctx, outside, r->g->n_values));
    TRY(find_unread(r, unread));
    remat_status status = rm_unroll_begin(r->ctx, r->g, &u);
    for (uint32_t b = 0; b < r->s->kernels.n && status == REMAT_OK; b++)
        status = write_kernel(r, &u, b, unread, outside);
    if (status == REMAT_OK) status = rm_unroll_end(r->ctx, &u, out);
    remat_builder_free(u.to);
    return status;
}

static bool is_less_traffic(const state *after, const state *before)
{
    return after->traffic.total != REMAT_ABSENT && after->traffic.total < before->traffic.total;
}

/* *out stays NULL if nothing gains. */
static remat_status one_round(remat_ctx *ctx, const remat_graph *g, size_t *room,
                              remat_fusion *fusion, remat_graph **out)
{
    state before, after;
    round r;
    remat_graph *next = NULL;
    TRY(look_at(ctx, g, &before));
    TRY(begin_round(ctx, &before, *room, &r));
    remat_status status = REMAT_OK;
    for (uint32_t b = 0; b < before.kernels.n && status == REMAT_OK; b++)
        if (before.kernels.fused[b]) status = take_from_one(&r, b);
    if (status == REMAT_OK && r.copies.n) status = write_round(&r, &next);
    const size_t n_copies = r.copies.n;
    RM_VEC_FREE(&ctx->heap, r.copies);
    if (status != REMAT_OK || !next) return status;
    status = look_at(ctx, next, &after);
    if (status != REMAT_OK || !is_less_traffic(&after, &before)) {
        remat_graph_free(next);
        return status;
    }
    *room = r.room;
    fusion->rounds++;
    fusion->copies += (uint32_t)n_copies;
    *out = next;
    return REMAT_OK;
}

/* ---- all rounds ---- */

/* Sums up the traffic. Not `fused`: every op is a kernel of its own. */
static remat_status sum_up(remat_ctx *ctx, const remat_graph *g, bool fused, remat_traffic *out)
{
    state s;
    TRY(look_at(ctx, g, &s));
    if (!fused) {
        TRY(rm_kernels_of_steps(ctx, &s.trace, &s.kernels));
        TRY(rm_kernel_traffic_of(ctx, &s.trace, &s.kernels, &s.traffic));
    }
    *out = (remat_traffic){
        .kernels = s.traffic.kernels, .others = s.traffic.others, .total_bytes = s.traffic.total};
    for (uint32_t k = 0; k < s.kernels.n; k++) out->n_kernels += s.kernels.fused[k];
    return REMAT_OK;
}

static remat_status measure(remat_ctx *ctx, const remat_graph *g, bool fused, remat_traffic *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = sum_up(ctx, g, fused, out);
    rm_scratch_release(ctx, mark);
    return status;
}

remat_status rm_copy_into_kernels(remat_ctx *ctx, remat_graph **graph, remat_fusion *fusion)
{
    *fusion = (remat_fusion){.rounds = 0};
    TRY(measure(ctx, *graph, false, &fusion->unfused));
    TRY(measure(ctx, *graph, true, &fusion->before));
    size_t room = fusion->before.total_bytes == REMAT_ABSENT ? 0 : (*graph)->n_ops;
    bool gains = room > 0;
    while (gains) {
        if (rm_spend(ctx, ROUND_WORK * ((int64_t)(*graph)->n_ops + (*graph)->n_in))) break;
        const rm_mark mark = rm_scratch_mark(ctx);
        remat_graph *next = NULL;
        const remat_status status = one_round(ctx, *graph, &room, fusion, &next);
        rm_scratch_release(ctx, mark);
        if (status != REMAT_OK) return status;
        gains = next != NULL;
        if (!gains) break;
        remat_graph_free(*graph);
        *graph = next;
    }
    fusion->stopped = rm_stopped(ctx);
    return measure(ctx, *graph, true, &fusion->after);
}

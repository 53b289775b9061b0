/* verify.c: the independent judge of schedules. It plays a schedule as an allocator would see it
 * (docs/model.md).
 *
 * Method: two walks over the steps.
 * - resolve: the newest instance of a value refers to a storage instance, which is called a block
 *   here. To run an op makes new blocks for the outputs that own their storage. The other outputs
 *   get the block of their source. This walk writes down which blocks each step touches, and counts
 *   the touches of every block. The last block of a graph output gets one touch that never ends.
 *   Whatever the rules forbid is found here, at the first step that breaks them.
 * - play: this walk has a byte counter. Before a step it gives back the blocks that the step makes
 *   others in place of, if the step has their last touches. It adds the blocks that the step makes.
 *   It looks at the counter, plus workspace. Then it gives back every other block whose last touch
 *   this was.
 *
 * It shares no code with src/graph/liveness.c or src/sim, on purpose. They keep intervals, this
 * counts references. tests/prop compares them with each other and with a third, naive one.
 *
 * Cost: O(steps + touches) time and memory, in integers. */
#include "verify/verify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NO_BLOCK UINT32_MAX
#define RESIDENT_BLOCK (UINT32_MAX - 1)
#define GIVEN_BACK UINT32_MAX /* instead of the touches to come */

/* The block that an alias output of the running op takes: that of the first input, else of the
 * first output, that shares the storage. */
typedef struct holder {
    uint32_t step_plus_1, block;
} holder;

typedef struct game {
    const remat_graph *g;
    int64_t bandwidth;
    const remat_step *steps;
    size_t n_steps;
    uint32_t *block_of;   /* by value: the block its newest instance refers to, or NO_BLOCK */
    holder *holders;      /* by root value */
    uint8_t *ran;         /* by op */
    uint8_t *on_host;     /* by value */
    uint32_t last_pinned; /* the last pinned op that ran, or REMAT_NONE */
    rm_block *blocks;     /* in the order in which steps make them */
    uint32_t n_blocks;
    uint32_t *touched; /* the blocks that steps touch, step after step */
    uint32_t n_touched;
    size_t most_touched, most_blocks;   /* there is room for so many */
    uint32_t *touched_end, *blocks_end; /* by step: ends of its part of touched and of blocks */
    remat_verdict *verdict;
} game;

bool rm_blame(remat_verdict *v, uint32_t step, const char *format, ...)
{
    v->valid = false;
    v->first_bad_step = step;
    int n = 0;
    if (step != REMAT_NONE) n = snprintf(v->reason, sizeof v->reason, "step %" PRIu32 ": ", step);
    va_list args;
    va_start(args, format);
    vsnprintf(v->reason + n, sizeof v->reason - (size_t)n, format, args);
    va_end(args);
    rm_clean_text(v->reason);
    return false;
}

void rm_verdict_clear(remat_verdict *v)
{
    v->peak_bytes = REMAT_ABSENT;
    v->cost = REMAT_ABSENT;
    v->peak_step = REMAT_NONE;
    v->peak_op = REMAT_NONE;
}

static const char *op_name(const game *x, uint32_t op) { return x->g->text + x->g->op_name[op]; }
static const char *value_name(const game *x, uint32_t v)
{
    return x->g->text + x->g->value_name[v];
}

static void touch(game *x, uint32_t b)
{
    if (b == RESIDENT_BLOCK) return;
    assert(b < x->n_blocks && x->n_touched < x->most_touched);
    x->blocks[b].touches++;
    x->touched[x->n_touched++] = b;
}

static uint32_t new_block(game *x, uint32_t step, uint32_t value)
{
    assert(x->n_blocks < x->most_blocks);
    x->blocks[x->n_blocks] =
        (rm_block){x->g->storage[value], 0, value, step, (uint32_t)x->n_steps, REMAT_NONE};
    return x->n_blocks++;
}

static void hold(game *x, uint32_t step, uint32_t value)
{
    holder *h = &x->holders[x->g->root[value]];
    if (h->step_plus_1 != step + 1) *h = (holder){step + 1, x->block_of[value]};
}

static bool run_pinned(game *x, uint32_t step, uint32_t op)
{
    const remat_graph *g = x->g;
    if (x->ran[op])
        return rm_blame(x->verdict, step, "pinned op %" PRIu32 " '%.60s' runs a second time",
                        g->op_original[op], op_name(x, op));
    if (x->last_pinned != REMAT_NONE && x->last_pinned > op)
        return rm_blame(x->verdict, step,
                        "pinned op %" PRIu32 " '%.60s' runs after pinned op %" PRIu32 " '%.60s'",
                        g->op_original[op], op_name(x, op), g->op_original[x->last_pinned],
                        op_name(x, x->last_pinned));
    x->last_pinned = op;
    return true;
}

static bool run_op(game *x, uint32_t step, uint32_t op)
{
    const remat_graph *g = x->g;
    if (g->pinned[op] && !run_pinned(x, step, op)) return false;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t v = g->in[k];
        if (x->block_of[v] == NO_BLOCK)
            return rm_blame(x->verdict, step,
                            "op %" PRIu32 " '%.60s' reads value %" PRIu32
                            " '%.60s', which no earlier step has made",
                            g->op_original[op], op_name(x, op), g->value_original[v],
                            value_name(x, v));
        touch(x, x->block_of[v]);
        hold(x, step, v);
    }
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        const uint32_t v = g->out[k];
        const uint32_t input = g->out_takes[k];
        const uint32_t in_place =
            input == REMAT_NONE ? REMAT_NONE : x->block_of[g->in[g->in_begin[op] + input]];
        x->block_of[v] = g->root[v] == v ? new_block(x, step, v) : x->holders[g->root[v]].block;
        if (in_place != REMAT_NONE) x->blocks[x->block_of[v]].in_place_of = in_place;
        hold(x, step, v);
    }
    x->ran[op] = 1;
    return true;
}

static bool blame_value(game *x, uint32_t step, const char *verb, uint32_t v, const char *why)
{
    return rm_blame(x->verdict, step, "%s value %" PRIu32 " '%.60s', which %s", verb,
                    x->g->value_original[v], value_name(x, v), why);
}

static bool offload(game *x, uint32_t step, uint32_t v)
{
    const uint32_t b = x->block_of[v];
    if (x->g->root[v] != v) return blame_value(x, step, "offloads", v, "is a view");
    if (b == RESIDENT_BLOCK) return blame_value(x, step, "offloads", v, "is resident");
    if (b == NO_BLOCK) return blame_value(x, step, "offloads", v, "no earlier step has made");
    touch(x, b);
    if (!x->on_host[v]) x->verdict->host_bytes += x->g->storage[v];
    x->on_host[v] = 1;
    return true;
}

static bool fetch(game *x, uint32_t step, uint32_t v)
{
    if (x->g->root[v] != v) return blame_value(x, step, "fetches", v, "is a view");
    if (x->block_of[v] == RESIDENT_BLOCK) return blame_value(x, step, "fetches", v, "is resident");
    if (!x->on_host[v]) return blame_value(x, step, "fetches", v, "no earlier step has offloaded");
    x->block_of[v] = new_block(x, step, v);
    return true;
}

static int64_t step_cost(const game *x, remat_step_kind kind, uint32_t index)
{
    if (kind == REMAT_RUN) return x->g->cost[index];
    if (x->bandwidth == 0) return 0;
    const rm_uint128 bandwidth = (rm_uint128)x->bandwidth, bytes = (rm_uint128)x->g->storage[index];
    const rm_uint128 cost = (bytes * 1000000000 + bandwidth - 1) / bandwidth;
    return cost < (rm_uint128)RM_MAX_SUM ? (int64_t)cost : RM_MAX_SUM;
}

/* The op or value of the step, as an index of g. REMAT_NONE: there is none, and the step is to
 * blame. */
static uint32_t find_index(game *x, uint32_t t)
{
    const remat_graph *g = x->g;
    const remat_step *s = &x->steps[t];
    if (s->kind > REMAT_FETCH) {
        rm_blame(x->verdict, t, "there is no step of kind %" PRIu32, s->kind);
        return REMAT_NONE;
    }
    const bool run = s->kind == REMAT_RUN;
    const char *what = run ? "op" : "value";
    if (s->index >= (run ? g->n_original_ops : g->n_original_values)) {
        rm_blame(x->verdict, t, "there is no %s %" PRIu32, what, s->index);
        return REMAT_NONE;
    }
    const uint32_t index = run ? g->op_now[s->index] : g->value_now[s->index];
    if (index == REMAT_NONE)
        rm_blame(x->verdict, t, "%s %" PRIu32 " was removed when the graph was prepared", what,
                 s->index);
    return index;
}

static bool take_step(game *x, uint32_t t, remat_step_kind kind, uint32_t index)
{
    switch (kind) {
    case REMAT_OFFLOAD: return offload(x, t, index);
    case REMAT_FETCH: return fetch(x, t, index);
    default: return run_op(x, t, index);
    }
}

static bool resolve(game *x)
{
    const remat_graph *g = x->g;
    for (uint32_t v = 0; v < g->n_values; v++)
        x->block_of[v] = g->producer[v] == REMAT_NONE ? RESIDENT_BLOCK : NO_BLOCK;
    for (uint32_t t = 0; t < x->n_steps; t++) {
        const remat_step_kind kind = (remat_step_kind)x->steps[t].kind;
        const uint32_t index = find_index(x, t);
        if (index == REMAT_NONE || !take_step(x, t, kind, index)) return false;
        x->touched_end[t] = x->n_touched;
        x->blocks_end[t] = x->n_blocks;
        if (!rm_add_to_sum(&x->verdict->cost, step_cost(x, kind, index)))
            return rm_blame(x->verdict, t, "the cost passes 2^62");
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (!x->ran[op])
            return rm_blame(x->verdict, REMAT_NONE, "op %" PRIu32 " '%.60s' never runs",
                            g->op_original[op], op_name(x, op));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t b = x->block_of[g->outputs[i]];
        if (b != RESIDENT_BLOCK) x->blocks[b].touches++;
    }
    return true;
}

static void give_back(rm_block *b, uint32_t step, int64_t *held)
{
    *held -= b->bytes;
    b->end = step + 1;
    b->touches = GIVEN_BACK;
}

/* The touches of the step at hand count down. A block that they leave without any goes back: at the
 * end of the step, or before it if a block that the step makes, [first, b), is made in its place.
 * Whatever is not the last of its block makes a new one elsewhere. */
static void count_touches(game *x, uint32_t t, uint32_t touched, uint32_t first, int64_t *held)
{
    for (; touched < x->touched_end[t]; touched++) {
        assert(x->blocks[x->touched[touched]].touches > 0);
        x->blocks[x->touched[touched]].touches--;
    }
    for (uint32_t made = first; made < x->blocks_end[t]; made++) {
        rm_block *to = &x->blocks[made];
        if (to->in_place_of == REMAT_NONE) continue;
        rm_block *from = &x->blocks[to->in_place_of];
        assert(from->bytes == to->bytes && from->begin < t);
        assert(from->touches != GIVEN_BACK);
        if (from->touches > 0) to->in_place_of = REMAT_NONE;
        else give_back(from, t - 1, held);
    }
}

static bool play(game *x)
{
    const remat_graph *g = x->g;
    remat_verdict *v = x->verdict;
    int64_t held = g->resident_bytes;
    uint32_t b = 0, touched = 0;
    for (uint32_t t = 0; t < x->n_steps; t++) {
        const uint32_t first = b;
        count_touches(x, t, touched, first, &held);
        for (; b < x->blocks_end[t]; b++)
            if (!rm_add_to_sum(&held, x->blocks[b].bytes))
                return rm_blame(x->verdict, t, "memory passes 2^62 bytes");
        const bool run = x->steps[t].kind == REMAT_RUN;
        const uint32_t op = run ? g->op_now[x->steps[t].index] : REMAT_NONE;
        const int64_t memory = held + (run ? g->workspace[op] : 0);
        if (memory >= RM_MAX_SUM) return rm_blame(x->verdict, t, "memory passes 2^62 bytes");
        if (v->peak_step == REMAT_NONE || memory > v->peak_bytes) {
            v->peak_bytes = memory;
            v->peak_step = t;
            v->peak_op = run ? x->steps[t].index : REMAT_NONE;
        }
        for (; touched < x->touched_end[t]; touched++) {
            rm_block *last = &x->blocks[x->touched[touched]];
            if (last->touches == 0) give_back(last, t, &held);
        }
        for (uint32_t made = first; made < b; made++) /* what nothing ever reads */
            if (x->blocks[made].touches == 0) give_back(&x->blocks[made], t, &held);
        assert(held >= g->resident_bytes);
    }
    return true;
}

/* Counts what the steps can touch and make at most. A step that breaks a rule counts 1. */
static void count_most(game *x)
{
    const remat_graph *g = x->g;
    for (size_t t = 0; t < x->n_steps; t++) {
        const remat_step s = x->steps[t];
        uint32_t op = REMAT_NONE;
        if (s.kind == REMAT_RUN && s.index < g->n_original_ops) op = g->op_now[s.index];
        x->most_touched += op == REMAT_NONE ? 1 : g->in_begin[op + 1] - g->in_begin[op];
        x->most_blocks += op == REMAT_NONE ? 1 : g->out_begin[op + 1] - g->out_begin[op];
    }
}

static remat_status play_schedule(remat_ctx *ctx, game *x)
{
    const remat_graph *g = x->g;
    *x->verdict = (remat_verdict){.valid = true,
                                  .peak_bytes = g->resident_bytes,
                                  .peak_step = REMAT_NONE,
                                  .peak_op = REMAT_NONE,
                                  .first_bad_step = REMAT_NONE};
    x->last_pinned = REMAT_NONE;
    count_most(x);
    if (x->n_steps >= RESIDENT_BLOCK || x->most_touched >= RESIDENT_BLOCK ||
        x->most_blocks >= RESIDENT_BLOCK)
        return rm_fail(ctx, REMAT_E_USAGE, "a schedule of %zu steps is too long to verify",
                       x->n_steps);
    TRY(RM_SCRATCH(ctx, x->block_of, g->n_values));
    TRY(RM_SCRATCH(ctx, x->holders, g->n_values));
    TRY(RM_SCRATCH(ctx, x->ran, g->n_ops));
    TRY(RM_SCRATCH(ctx, x->on_host, g->n_values));
    TRY(RM_SCRATCH(ctx, x->blocks, x->most_blocks));
    TRY(RM_SCRATCH(ctx, x->touched, x->most_touched));
    TRY(RM_SCRATCH(ctx, x->touched_end, x->n_steps));
    TRY(RM_SCRATCH(ctx, x->blocks_end, x->n_steps));
    if (!resolve(x) || !play(x)) rm_verdict_clear(x->verdict);
    return REMAT_OK;
}

remat_status rm_verify(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                       size_t n_steps, int64_t bandwidth, remat_verdict *out)
{
    assert(bandwidth >= 0);
    remat_verdict verdict;
    game x = {
        .g = g, .bandwidth = bandwidth, .steps = steps, .n_steps = n_steps, .verdict = &verdict};
    TRY(play_schedule(ctx, &x));
    *out = verdict;
    return REMAT_OK;
}

remat_status rm_verify_blocks(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                              size_t n_steps, rm_block **blocks, uint32_t *n_blocks)
{
    remat_verdict verdict;
    game x = {.g = g, .steps = steps, .n_steps = n_steps, .verdict = &verdict};
    TRY(play_schedule(ctx, &x));
    assert(verdict.valid);
    *blocks = x.blocks;
    *n_blocks = x.n_blocks;
    return REMAT_OK;
}

/* kernels.c: fusible steps, merged greedily along edges, in schedule order, as long as no cycle
 * arises.
 *
 * Problem: the min-cut paper takes its kernels from a compiler (sections 3.1 and 3.7). A planner
 * needs them before there is one. A step joins the kernels of the fusible steps whose results it
 * reads, in the same part of the schedule. It must not join where a path from such a kernel to the
 * step leads through a third kernel: the two kernels could not be ordered.
 *
 * Method: every kernel has a level.
 * - The level of a step is the highest of: the level of each kernel that it may join, and one more
 *   than the level of each other kernel that it reads.
 * - The step joins the kernels of its own level. A lower kernel is lifted to that level if all
 *   readers of that kernel are higher still.
 * This is a test in O(1) instead of a search for paths. The only merges it refuses without need are
 * those that would have to lift a reader too. docs/algorithms.md has the measured difference to an
 * exact search.
 *
 * Which steps join:
 * - A view joins the kernel that made its storage. Else it stands alone: a view of a storage from
 *   outside moves no bytes, and must not tie its readers together.
 * - Pinned steps and transfers keep their order. One that is not in the kernel of the one before it
 *   is above it.
 * - A step does not join a kernel that holds another run of its op. To make a value again next to
 *   the original gains nothing: it is made again for its later readers.
 * - Ops that a file puts into kernels (`kernel`) join those of their own number only.
 *
 * Order: a kernel is emitted at the step where its last member stands, or earlier where a reader
 * asks for it, depth first (demand.c). So the order stays close to that of the schedule.
 *
 * Invariant: every edge between kernels goes to a higher level, so no cycle can arise.
 *
 * Cost: union by size, so O((steps + reads) a(steps)) time, where a is the inverse Ackermann
 * function; linear memory. */
#include "fusion/kernels.h"

#include <assert.h>

#include "base/csr.h"
#include "fusion/op_class.h"
#include "graph/demand.h"

/* How many runs of its own op a step looks back at. It bounds the work on schedules that repeat one
 * op only. */
enum { RUNS_SEEN = 64 };

typedef struct merger {
    const remat_ctx *ctx;
    const rm_trace *x;
    uint32_t *parent, *size; /* union-find over steps: by step; by representative */
    uint32_t *level;         /* by representative: of the kernel */
    uint32_t *lowest_reader; /* by representative: the lowest level that reads it from outside */
    uint8_t *fuses;          /* by step: others may join its kernel */
    uint32_t *last_run;      /* by op: its latest run so far, or REMAT_NONE */
    uint32_t *run_before;    /* by step: the run before it of the same op, or REMAT_NONE */
    uint32_t last_ordered;   /* the last pinned step or transfer, or REMAT_NONE */
} merger;

/* The representative of t's kernel. Paths are halved on the way. */
static uint32_t find(merger *m, uint32_t t)
{
    while (m->parent[t] != t) {
        m->parent[t] = m->parent[m->parent[t]];
        t = m->parent[t];
    }
    return t;
}

/* Makes one kernel of the kernels of two representatives, at the level of b. */
static void unite(merger *m, uint32_t a, uint32_t b)
{
    assert(a != b && m->parent[a] == a && m->parent[b] == b);
    const uint32_t level = m->level[b];
    const uint32_t lowest =
        m->lowest_reader[a] < m->lowest_reader[b] ? m->lowest_reader[a] : m->lowest_reader[b];
    const bool a_is_larger = m->size[a] > m->size[b];
    const uint32_t into = a_is_larger ? a : b, from = a_is_larger ? b : a;
    m->parent[from] = into;
    m->size[into] += m->size[from];
    m->level[into] = level;
    m->lowest_reader[into] = lowest;
}

/* The number that the file gives the op of step t, which is a run. */
static uint32_t kernel_of(const rm_trace *x, uint32_t t)
{
    assert(x->steps[t].kind == REMAT_RUN);
    return x->g->kernel[x->steps[t].index];
}

/* Does the kernel hold another run of t's op? */
static bool has_run(merger *m, uint32_t t, uint32_t kernel)
{
    uint32_t run = m->run_before[t];
    for (int i = 0; i < RUNS_SEEN && run != REMAT_NONE; i++, run = m->run_before[run])
        if (find(m, run) == kernel) return true;
    return false;
}

/* May step t join the kernel that made this read? */
static bool may_join(merger *m, uint32_t t, const rm_read *read)
{
    const rm_trace *x = m->x;
    const remat_graph *g = x->g;
    const uint32_t op = x->steps[t].index;
    if (!m->fuses[read->maker] || (read->maker < x->backward) != (t < x->backward)) return false;
    if (kernel_of(x, t) != kernel_of(x, read->maker)) return false;
    if (kernel_of(x, t) == REMAT_NONE && has_run(m, t, find(m, read->maker))) return false;
    if (!rm_is_view_op(g, op)) return true;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->root[g->out[k]] != g->root[read->value]) return false;
    return read->instance < x->n_made && find(m, x->maker[read->instance]) == find(m, read->maker);
}

/* Does it keep its order among its like? Pinned steps and transfers do: a fetch comes after its
 * offload. */
static bool is_ordered(const rm_trace *x, uint32_t t)
{
    return x->steps[t].kind != REMAT_RUN || x->g->pinned[x->steps[t].index];
}

static uint32_t level_of(merger *m, uint32_t t, bool fusible)
{
    const rm_trace *x = m->x;
    uint32_t level = 0;
    bool joins_last = false;
    for (uint32_t i = x->read_begin[t]; i < x->read_begin[t + 1]; i++) {
        const rm_read *read = &x->reads[i];
        if (read->maker == REMAT_NONE) continue;
        const uint32_t kernel = find(m, read->maker);
        const bool joins = fusible && may_join(m, t, read);
        const uint32_t least = m->level[kernel] + !joins;
        if (least > level) level = least;
        joins_last |= joins && m->last_ordered != REMAT_NONE && kernel == find(m, m->last_ordered);
    }
    if (is_ordered(x, t) && m->last_ordered != REMAT_NONE && !joins_last) {
        const uint32_t least = m->level[find(m, m->last_ordered)] + 1;
        if (least > level) level = least;
    }
    return level;
}

static void note_reader(merger *m, uint32_t maker, uint32_t own)
{
    if (maker == REMAT_NONE) return;
    const uint32_t kernel = find(m, maker);
    if (kernel != own && m->level[own] < m->lowest_reader[kernel])
        m->lowest_reader[kernel] = m->level[own];
}

/* Ops without outputs check or send something: they are no part of a kernel. */
static bool is_fusible(const merger *m, uint32_t op)
{
    const remat_graph *g = m->x->g;
    return g->out_begin[op] < g->out_begin[op + 1] &&
           rm_is_fusible_class(rm_op_class(m->ctx, g, op));
}

static void place(merger *m, uint32_t t)
{
    const rm_trace *x = m->x;
    const uint32_t op = x->steps[t].index;
    const bool run = x->steps[t].kind == REMAT_RUN, fusible = run && is_fusible(m, op);
    if (run) {
        m->run_before[t] = m->last_run[op];
        m->last_run[op] = t;
    }
    const uint32_t level = level_of(m, t, fusible);
    bool joined = false;
    m->level[t] = level;
    for (uint32_t i = x->read_begin[t]; i < x->read_begin[t + 1] && fusible; i++) {
        const rm_read *read = &x->reads[i];
        if (read->maker == REMAT_NONE || !may_join(m, t, read)) continue;
        const uint32_t kernel = find(m, read->maker), own = find(m, t);
        if (kernel == own || (m->level[kernel] < level && m->lowest_reader[kernel] <= level))
            continue;
        unite(m, kernel, own);
        joined = true;
    }
    m->fuses[t] = fusible && (joined || !rm_is_view_op(x->g, op));
    const uint32_t own = find(m, t);
    for (uint32_t i = x->read_begin[t]; i < x->read_begin[t + 1]; i++)
        note_reader(m, x->reads[i].maker, own);
    if (!is_ordered(x, t)) return;
    note_reader(m, m->last_ordered, own);
    m->last_ordered = t;
}

/* ---- members and order ---- */

typedef struct orderer {
    const rm_trace *x;
    uint32_t *root;                /* by step: the representative of its kernel */
    rm_csr members;                /* by representative: steps */
    uint32_t *needs_begin, *needs; /* by representative: the representatives that go before it */
    uint8_t *fused, *seen;         /* by representative */
    rm_demand demand;
    rm_kernels *out;
} orderer;

/* For each kernel: those that its members read, and those that its ordered members must follow. */
static remat_status list_needs(remat_ctx *ctx, orderer *o)
{
    const rm_trace *x = o->x;
    uint32_t *ordered_before; /* by step: the ordered step before it, if it is ordered too */
    TRY(RM_SCRATCH(ctx, ordered_before, x->n_steps));
    TRY(RM_SCRATCH(ctx, o->needs_begin, (size_t)x->n_steps + 1));
    TRY(RM_SCRATCH(ctx, o->needs, (size_t)x->read_begin[x->n_steps] + x->n_steps));
    for (uint32_t t = 0, last = REMAT_NONE; t < x->n_steps; t++) {
        ordered_before[t] = REMAT_NONE;
        if (!is_ordered(x, t)) continue;
        ordered_before[t] = last;
        last = t;
    }
    uint32_t n = 0;
    for (uint32_t root = 0; root < x->n_steps; root++) {
        for (uint32_t i = o->members.begin[root]; i < o->members.begin[root + 1]; i++) {
            const uint32_t t = o->members.items[i];
            for (uint32_t k = x->read_begin[t]; k < x->read_begin[t + 1]; k++)
                if (x->reads[k].maker != REMAT_NONE) o->needs[n++] = o->root[x->reads[k].maker];
            if (ordered_before[t] != REMAT_NONE) o->needs[n++] = o->root[ordered_before[t]];
        }
        o->needs_begin[root + 1] = n;
    }
    return REMAT_OK;
}

static uint32_t take_unseen(void *user, uint32_t root)
{
    orderer *o = user;
    if (o->seen[root]) return REMAT_NONE;
    o->seen[root] = 1;
    return root;
}

static remat_status emit(void *user, uint32_t root)
{
    const orderer *o = user;
    rm_kernels *out = o->out;
    uint32_t at = out->begin[out->n];
    out->fused[out->n] = o->fused[root];
    for (uint32_t i = o->members.begin[root]; i < o->members.begin[root + 1]; i++) {
        out->of[o->members.items[i]] = out->n;
        out->steps[at++] = o->members.items[i];
    }
    out->n++;
    out->begin[out->n] = at;
    return REMAT_OK;
}

static remat_status new_kernels(remat_ctx *ctx, uint32_t n_steps, rm_kernels *out)
{
    *out = (rm_kernels){0};
    TRY(RM_SCRATCH(ctx, out->of, n_steps));
    TRY(RM_SCRATCH(ctx, out->steps, n_steps));
    TRY(RM_SCRATCH(ctx, out->fused, n_steps));
    return RM_SCRATCH(ctx, out->begin, (size_t)n_steps + 2);
}

static remat_status order_kernels(remat_ctx *ctx, merger *m, rm_kernels *out)
{
    const rm_trace *x = m->x;
    orderer o = {.x = x, .out = out};
    TRY(new_kernels(ctx, x->n_steps, out));
    TRY(RM_SCRATCH(ctx, o.root, x->n_steps));
    TRY(RM_SCRATCH(ctx, o.fused, x->n_steps));
    TRY(RM_SCRATCH(ctx, o.seen, x->n_steps));
    for (uint32_t t = 0; t < x->n_steps; t++) {
        o.root[t] = find(m, t);
        o.fused[o.root[t]] |= m->fuses[t];
    }
    TRY(rm_csr_by_key(ctx, x->n_steps, x->n_steps, o.root, &o.members));
    TRY(list_needs(ctx, &o));
    o.demand = (rm_demand){
        .in_begin = o.needs_begin, .in = o.needs, .ask = take_unseen, .run = emit, .user = &o};
    TRY(rm_demand_begin(ctx, &o.demand, x->n_steps));
    for (uint32_t t = 0; t < x->n_steps; t++) {
        const uint32_t root = o.root[t], last = o.members.items[o.members.begin[root + 1] - 1];
        if (last == t && take_unseen(&o, root) != REMAT_NONE) TRY(rm_demand_run(&o.demand, root));
    }
    assert(out->begin[out->n] == x->n_steps); /* every step is in a kernel */
    return REMAT_OK;
}

remat_status rm_kernels_find(remat_ctx *ctx, const rm_trace *x, rm_kernels *out)
{
    merger m = {.ctx = ctx, .x = x, .last_ordered = REMAT_NONE};
    TRY(RM_SCRATCH(ctx, m.parent, x->n_steps));
    TRY(RM_SCRATCH(ctx, m.size, x->n_steps));
    TRY(RM_SCRATCH(ctx, m.level, x->n_steps));
    TRY(RM_SCRATCH(ctx, m.lowest_reader, x->n_steps));
    TRY(RM_SCRATCH(ctx, m.fuses, x->n_steps));
    TRY(RM_SCRATCH(ctx, m.last_run, x->g->n_ops));
    TRY(RM_SCRATCH(ctx, m.run_before, x->n_steps));
    for (uint32_t op = 0; op < x->g->n_ops; op++) m.last_run[op] = REMAT_NONE;
    for (uint32_t t = 0; t < x->n_steps; t++) {
        m.run_before[t] = REMAT_NONE;
        m.parent[t] = t;
        m.size[t] = 1;
        m.lowest_reader[t] = UINT32_MAX;
    }
    for (uint32_t t = 0; t < x->n_steps; t++) place(&m, t);
    return order_kernels(ctx, &m, out);
}

remat_status rm_kernels_of_steps(remat_ctx *ctx, const rm_trace *x, rm_kernels *out)
{
    TRY(new_kernels(ctx, x->n_steps, out));
    for (uint32_t t = 0; t < x->n_steps; t++) {
        out->of[t] = t;
        out->steps[t] = t;
        out->begin[t + 1] = t + 1;
    }
    out->n = x->n_steps;
    return REMAT_OK;
}

/* prop_mincut.c: the minimum cut against all valid subsets of saved storages, on N random training
 * graphs with at most 12 storages in reach of the cut. V_f, bans and prices are derived a second
 * time, from the definitions; a subset is valid if the outside can be computed from it without
 * running a banned op again, by following every read. The capacity must be the least price of a
 * valid subset, the saved set itself valid, the planner's schedule must amount to the same cut, and
 * no cut may cost more than keep-all's where that one is valid. Usage: prop_mincut N SEED; a
 * failure prints the seed of its graph. */
#include <string.h>

#include "check.h"
#include "plan/cut/recompute_rules.h"
#include "random_graph.h"

enum { MOST_STORAGES = 12, MOST = 256 };

static int64_t judged, passed_over, recomputing, odd_views, valid_subsets;

/* ---- a random training graph: forward ops, the boundary, then ops that depend on the tangents and
 * ops that do not ---- */

typedef struct pool {
    uint32_t values[MOST], n;
} pool;

typedef struct graph_maker {
    remat_builder *b;
    random_source *r;
    pool front, back; /* values that do not depend on the tangents, and values that do */
} graph_maker;

static uint32_t pick(const graph_maker *m, const pool *p)
{
    const uint32_t recent = p->n < 4 ? p->n : 4;
    return p->values[random_chance(m->r, 60) ? p->n - 1 - random_below(m->r, recent)
                                             : random_below(m->r, p->n)];
}

static int64_t some_bytes(graph_maker *m)
{
    return random_chance(m->r, 10) ? 0 : 1 + random_below(m->r, 12);
}

/* Its outputs go to the pool `to`. */
static uint32_t add_op(graph_maker *m, remat_phase phase, pool *to)
{
    random_source *r = m->r;
    uint32_t in[4], out[2], n_in = 0, n_out = 0;
    const bool view = random_chance(r, 20), one_input = view && random_chance(r, 85);
    if (to == &m->back) in[n_in++] = pick(m, &m->back);
    while (n_in == 0 ||
           (!one_input && n_in < 3 && random_chance(r, to == &m->back && n_in == 1 ? 85 : 40)))
        in[n_in++] = pick(m, &m->front);
    for (const uint32_t wanted = random_chance(r, 85) ? 1 : 2; n_out < wanted; n_out++) {
        const bool alias = view || random_chance(r, 4);
        out[n_out] = alias
                         ? remat_builder_view(m->b, NULL, some_bytes(m), in[random_below(r, n_in)])
                         : remat_builder_value(m->b, NULL, some_bytes(m));
    }
    const uint32_t op = remat_builder_op(m->b, NULL, in, n_in, out, n_out);
    static const remat_class classes[] = {
        REMAT_CLASS_FUSIBLE, REMAT_CLASS_FUSIBLE, REMAT_CLASS_FUSIBLE, REMAT_CLASS_FUSIBLE,
        REMAT_CLASS_COMPUTE, REMAT_CLASS_OTHER,   REMAT_CLASS_RANDOM,  REMAT_CLASS_VIEW};
    remat_builder_op_set(m->b, op, REMAT_OP_CLASS, classes[random_below(r, 8)]);
    remat_builder_op_set(m->b, op, REMAT_OP_REPLAY, random_chance(r, 70));
    remat_builder_op_set(m->b, op, REMAT_OP_PHASE, phase);
    remat_builder_op_set(m->b, op, REMAT_OP_COST, random_below(r, 9));
    if (random_chance(r, 4)) remat_builder_op_set(m->b, op, REMAT_OP_PINNED, 1);
    for (uint32_t k = 0; k < n_out; k++) {
        to->values[to->n++] = out[k];
        if (random_chance(r, 12)) remat_builder_output(m->b, out[k]);
    }
    return op;
}

static remat_graph *training_graph(remat_ctx *ctx, random_source *r)
{
    graph_maker m = {.b = remat_builder_new(ctx, "training"), .r = r};
    CHECK(m.b, "no memory");
    for (uint32_t n = 1 + random_below(r, 3); m.front.n < n;)
        m.front.values[m.front.n++] = remat_builder_value(m.b, NULL, some_bytes(&m));
    for (uint32_t n = 1 + random_below(r, 7); n > 0; n--) add_op(&m, REMAT_FORWARD, &m.front);
    const uint32_t loss = m.front.values[m.front.n - 1],
                   tangent = remat_builder_value(m.b, NULL, 2);
    const uint32_t boundary = remat_builder_op(m.b, NULL, &loss, 1, &tangent, 1);
    remat_builder_op_set(m.b, boundary, REMAT_OP_PHASE, REMAT_BACKWARD);
    remat_builder_op_target(m.b, boundary,
                            random_chance(r, 50) ? "remat.boundary" : "aten.ones_like.default");
    m.back.values[m.back.n++] = tangent;
    for (uint32_t n = 2 + random_below(r, 7); n > 0; n--)
        add_op(&m, REMAT_BACKWARD, random_chance(r, 35) ? &m.front : &m.back);
    remat_builder_output(m.b, m.back.values[m.back.n - 1]);
    remat_graph *g = NULL;
    CHECK(remat_builder_finish(m.b, &g) == REMAT_OK, "%s", remat_ctx_error(ctx));
    remat_builder_free(m.b);
    return g;
}

/* ---- the definitions, read once more ---- */

typedef struct naive {
    const remat_graph *g;
    uint32_t boundary;
    bool inside[MOST], banned[MOST]; /* by op */
    int64_t price[MOST];             /* by root value */
    uint32_t storages[MOST], n_storages;
    int index[MOST]; /* by root value: in storages, or -1 */
} naive;

static bool reads(const remat_graph *g, uint32_t op, uint32_t root)
{
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (g->root[g->in[k]] == root) return true;
    return false;
}

static bool depends(const remat_graph *g, uint32_t op, uint32_t on)
{
    if (op == on) return true;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (g->producer[g->in[k]] != REMAT_NONE && depends(g, g->producer[g->in[k]], on))
            return true;
    return false;
}

/* The generators use two names of the table where they give no class. */
static remat_class class_of(const remat_graph *g, uint32_t op)
{
    const char *target = rm_text(g, g->op_target[op]);
    if (g->op_class[op] != REMAT_CLASS_OTHER) return (remat_class)g->op_class[op];
    return strcmp(target, "aten.mm.default") == 0       ? REMAT_CLASS_COMPUTE
           : strcmp(target, "aten.detach.default") == 0 ? REMAT_CLASS_VIEW
                                                        : REMAT_CLASS_OTHER;
}

static bool fuses(const remat_graph *g, uint32_t op)
{
    const remat_class c = class_of(g, op);
    return rm_is_view_op(g, op) || c == REMAT_CLASS_FUSIBLE || c == REMAT_CLASS_VIEW ||
           c == REMAT_CLASS_RANDOM;
}

static bool find_boundary(naive *x)
{
    const remat_graph *g = x->g;
    uint32_t last = REMAT_NONE;
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (strcmp(rm_text(g, g->op_target[op]), "remat.boundary") == 0)
            return x->boundary = op, true;
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (g->phase[op] == REMAT_FORWARD && g->out_begin[op + 1] > g->out_begin[op]) last = op;
    for (uint32_t op = 0; op < g->n_ops && last != REMAT_NONE; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (g->phase[op] == REMAT_BACKWARD && g->producer[g->in[k]] == last)
                return x->boundary = op, true;
    return false;
}

static bool is_reduction(const remat_graph *g, uint32_t op)
{
    int64_t before = 0, after = 0;
    bool shapes = true;
    for (int way = 0; way < 2; way++) { /* by elements if every shape is known, else by bytes */
        before = after = 0;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t v = g->in[k];
            int64_t n = 1;
            for (uint32_t d = g->dims_begin[v]; d < g->dims_begin[v + 1]; d++) n *= g->dims[d];
            shapes = shapes && *rm_text(g, g->value_dtype[v]);
            if ((way ? g->size[v] : n) > before) before = way ? g->size[v] : n;
        }
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
            const uint32_t v = g->out[k];
            int64_t n = 1;
            for (uint32_t d = g->dims_begin[v]; d < g->dims_begin[v + 1]; d++) n *= g->dims[d];
            shapes = shapes && *rm_text(g, g->value_dtype[v]);
            if ((way ? g->size[v] : n) > after) after = way ? g->size[v] : n;
        }
        if (shapes) break;
    }
    return before > 0 && 4 * after <= before;
}

static bool is_banned(const naive *x, uint32_t op)
{
    const remat_graph *g = x->g;
    const remat_class c = class_of(g, op);
    if (g->pinned[op]) return true;
    if (rm_is_view_op(g, op)) return false;
    if (c != REMAT_CLASS_FUSIBLE && c != REMAT_CLASS_VIEW) return true;
    if (c == REMAT_CLASS_FUSIBLE && is_reduction(g, op)) return true;
    for (uint32_t user = 0; user < g->n_ops; user++)
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            if (g->out_source[k] == REMAT_NONE && !x->inside[user] && user != x->boundary &&
                !fuses(g, user) && reads(g, user, g->out[k]))
                return true;
    return false;
}

static bool is_materialised(const naive *x, uint32_t root)
{
    const remat_graph *g = x->g;
    const uint32_t maker = g->producer[root];
    if (maker == REMAT_NONE || !x->inside[maker] || !fuses(g, maker)) return true;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->root[g->outputs[i]] == root && x->inside[g->producer[g->outputs[i]]]) return true;
    for (uint32_t user = 0; user < g->n_ops; user++)
        if (reads(g, user, root) && (user == x->boundary || (x->inside[user] && !fuses(g, user))))
            return true;
    return false;
}

/* A view that cannot be had again from its storage alone keeps the maker of its storage from
 * running again. */
static void ban_odd_views(naive *x)
{
    const remat_graph *g = x->g;
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1] && x->inside[op]; k++) {
            const uint32_t root = g->root[g->out[k]], maker = g->producer[root];
            if (maker == op || maker == REMAT_NONE || !x->inside[maker]) continue;
            bool odd = !rm_is_view_op(g, op) || x->banned[op];
            for (uint32_t i = g->in_begin[op]; i < g->in_begin[op + 1]; i++)
                odd |= g->root[g->in[i]] != root;
            odd_views += odd;
            x->banned[maker] |= odd;
        }
}

static bool describe(naive *x, const remat_graph *g)
{
    *x = (naive){.g = g};
    if (g->n_ops > MOST || g->n_values > MOST || !find_boundary(x)) return false;
    for (uint32_t op = 0; op < g->n_ops; op++) x->inside[op] = !depends(g, op, x->boundary);
    for (uint32_t v = 0; v < g->n_values; v++) {
        x->index[v] = -1;
        if (g->root[v] != v) continue;
        bool near = g->producer[v] != REMAT_NONE && x->inside[g->producer[v]];
        for (uint32_t op = 0; op < g->n_ops; op++) near |= x->inside[op] && reads(g, op, v);
        if (!near) continue;
        x->index[v] = (int)x->n_storages;
        x->storages[x->n_storages++] = v;
    }
    for (uint32_t op = 0; op < g->n_ops; op++) x->banned[op] = x->inside[op] && is_banned(x, op);
    for (uint32_t i = 0; i < x->n_storages; i++)
        x->price[x->storages[i]] =
            g->storage[x->storages[i]] * (is_materialised(x, x->storages[i]) ? 1 : 2);
    return x->n_storages <= MOST_STORAGES;
}

static bool is_available(const naive *x, unsigned saved, uint32_t value)
{
    const remat_graph *g = x->g;
    const uint32_t root = g->root[value], maker = g->producer[value];
    const bool input = g->producer[root] == REMAT_NONE || !x->inside[g->producer[root]];
    if (x->index[root] < 0 || (!input && !x->inside[maker]))
        return true; /* of the outside's own making */
    if (saved >> x->index[root] & 1) return true;
    if (input || x->banned[maker]) return false;
    for (uint32_t k = g->in_begin[maker]; k < g->in_begin[maker + 1]; k++)
        if (!is_available(x, saved, g->in[k])) return false;
    return true;
}

static bool is_valid(const naive *x, unsigned saved)
{
    const remat_graph *g = x->g;
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op];
             k < g->in_begin[op + 1] && !x->inside[op] && op != x->boundary; k++)
            if (!is_available(x, saved, g->in[k])) return false;
    return true;
}

static int64_t price_of(const naive *x, unsigned saved)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < x->n_storages; i++)
        sum += saved >> i & 1 ? x->price[x->storages[i]] : 0;
    return sum;
}

/* ---- the comparison ---- */

static void compare_rules(const naive *x, const rm_recompute_rules *joint)
{
    const remat_graph *g = x->g;
    CHECK(joint->boundary == x->boundary, "boundary %u, not %u", joint->boundary, x->boundary);
    for (uint32_t op = 0; op < g->n_ops; op++) {
        CHECK((joint->in_forward[op] != 0) == x->inside[op], "op %u", op);
        CHECK((joint->ban[op] != REMAT_BAN_NONE) == x->banned[op], "op %u: ban %u", op,
              joint->ban[op]);
    }
    for (uint32_t i = 0; i < x->n_storages; i++)
        CHECK(joint->price[x->storages[i]] == x->price[x->storages[i]],
              "storage %u: price %" PRId64, x->storages[i], joint->price[x->storages[i]]);
}

static void compare_plan(remat_ctx *ctx, const naive *x, int64_t capacity)
{
    bool pinned = false;
    unsigned keep_all = 0;
    for (uint32_t op = 0; op < x->g->n_ops; op++) pinned |= x->g->pinned[op];
    remat_plan *plan = NULL, *base = NULL;
    CHECK(remat_plan_make(ctx, x->g, "mincut", REMAT_BUDGET_NONE, &plan) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    CHECK(remat_plan_make(ctx, x->g, "keep-all", REMAT_BUDGET_NONE, &base) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    /* A pinned op stays behind others though it could run in the forward pass; all else that is
     * saved crosses. */
    CHECK(pinned || remat_plan_summary(plan)->cut_capacity == capacity,
          "the schedule's cut is %" PRId64 ", the flow's %" PRId64,
          remat_plan_summary(plan)->cut_capacity, capacity);
    recomputing += remat_plan_summary(plan)->recomputed_ops > 0;
    for (uint32_t op = 0; op < x->g->n_ops;
         op++) /* what keep-all saves: storages there at the boundary and read later */
        for (uint32_t k = x->g->in_begin[op]; k < x->g->in_begin[op + 1] && op > x->boundary; k++) {
            const uint32_t root = x->g->root[x->g->in[k]], maker = x->g->producer[root];
            if (x->index[root] >= 0 && (maker == REMAT_NONE || maker < x->boundary))
                keep_all |= 1u << x->index[root];
        }
    if (is_valid(x, keep_all))
        CHECK(capacity <= remat_plan_summary(base)->cut_capacity, "keep-all has %" PRId64,
              remat_plan_summary(base)->cut_capacity);
    remat_plan_free(plan), remat_plan_free(base);
}

static void judge(remat_ctx *ctx, naive *x)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_recompute_rules joint;
    rm_cut_space space;
    rm_saved saved;
    CHECK(rm_recompute_rules_find(ctx, x->g, &joint) == REMAT_OK, "%s", remat_ctx_error(ctx));
    compare_rules(x, &joint);
    ban_odd_views(x);
    int64_t least = INT64_MAX;
    for (unsigned set = 0; set < 1u << x->n_storages; set++) {
        if (!is_valid(x, set)) continue;
        valid_subsets++;
        if (price_of(x, set) < least) least = price_of(x, set);
    }
    rm_limits_begin(ctx, INT64_MAX);
    CHECK(rm_cut_space_new(ctx, x->g, &space) == REMAT_OK, "%s", remat_ctx_error(ctx));
    const rm_cut_problem problem = rm_cut_by_rules(&joint);
    CHECK(rm_saved_cut(&space, &problem, &saved) == REMAT_OK, "%s", remat_ctx_error(ctx));
    rm_limits_end(ctx);
    unsigned set = 0;
    for (uint32_t i = 0; i < saved.n_values; i++) {
        CHECK(x->index[saved.values[i]] >= 0 && !(set >> x->index[saved.values[i]] & 1), "value %u",
              saved.values[i]);
        set |= 1u << x->index[saved.values[i]];
    }
    CHECK(is_valid(x, set), "the saved set %x does not do", set);
    CHECK(price_of(x, set) == saved.capacity && saved.capacity == least,
          "capacity %" PRId64 ", saved set %" PRId64 ", least %" PRId64, saved.capacity,
          price_of(x, set), least);
    rm_scratch_release(ctx, mark);
    compare_plan(ctx, x, least);
    judged++;
}

int main(int argc, char **argv)
{
    const int64_t wanted = cases_asked_for(argc, argv);
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    for (; judged < wanted; case_seed++) {
        random_source r = {case_seed};
        static naive x;
        remat_graph *g = random_chance(&r, 75) ? training_graph(ctx, &r) : random_graph(ctx, &r);
        CHECK(g, "%s", remat_ctx_error(ctx));
        if (describe(&x, g)) judge(ctx, &x);
        else passed_over++;
        remat_graph_free(g);
    }
    remat_ctx_free(ctx);
    printf("%" PRId64 " graphs, %" PRId64
           " valid subsets: every minimum cut is their least; %" PRId64
           " plans run ops again, %" PRId64 " odd views; %" PRId64
           " graphs passed over (no passes, or more than %d storages)\n",
           judged, valid_subsets, recomputing, odd_views, passed_over, (int)MOST_STORAGES);
    return 0;
}

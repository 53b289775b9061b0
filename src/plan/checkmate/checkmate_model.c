/* checkmate_model.c: the mixed integer program of Checkmate (8), in two forms with the same
 * optimum.
 *
 * Turn t ends with the first run of op t, its frontier. In it every earlier op may run once more,
 * in the graph's order. The columns, and two variants:
 *
 *   R_t_i       op i runs in turn t
 *   S_t_s       storage s is kept from turn t - 1
 *   splits = k  there are k turns for each op, and the frontier is in the last
 *   any_order   there is no frontier: every op runs at least once somewhere
 *
 * Views are gone: there is one S for a storage, and one R for an op. Outputs are kept behind the
 * last turn. Pinned ops run once.
 *
 * As printed (plain): U_t_k is the memory at op k. FREE_t_s_k is binary with (7b) and (7c).
 * FREE_t_k_k is dropped (4.6) where an op has one output.
 *
 * Ours. The memory that s takes in turn t changes only where its readers stand. Let P_t_s_j say
 * that s is there from its j-th reader in the turn to the next, and P_t_s_0 from its own place on.
 * Let the last of them be S_t+1_s itself. Then, for the op p that makes s:
 *
 *   P_j >= R of reader j + 1
 *   P_j >= P_j+1
 *   P_0 = R_t_p + S_t_s <= 1   (where p has more than one output: P_0 <= R + S)
 *
 * This implies (1b) and (1c), is tighter than (7), and needs no binary but R and S: given R, the
 * least S and P are whole numbers. U follows by differences.
 *
 * Why P_0 = R + S loses nothing: where p runs, what was kept of its outputs is of no use. Who runs
 * without being read or kept need not run.
 *
 * Left out besides:
 *   - R and S in turns behind the last one that can read s;
 *   - re-runs that cost more than the best known plan does in excess (most_extra); their storages
 *     then have to be kept;
 *   - U where the next one is no smaller.
 * Nearly all plans are tight at the frontier. So the memory there is written as a knapsack of its
 * own, for the sake of cover cuts: sum of M_s S_t+1_s <= budget - what op t touches.
 *
 * An op that may make an output in place of an input frees that input before its memory is taken,
 * not behind: where it is not there for later, it is not there besides the output.
 *
 * Tokens (graph/normal.h) take no memory but go stale. Who reads one, or keeps it, in a turn where
 * its base is made again needs it made again.
 *
 * Cost: O(turns * (storages + edges)) columns and rows. */
#include "plan/checkmate/checkmate_model.h"

#include <assert.h>
#include <string.h>

/* Of programs that are tried without a limit. They take seconds. */
enum { UNLIMITED_ENTRIES = 250000 };

typedef struct presence { /* the sum of two columns; REMAT_NONE: 0 */
    uint32_t a, b;
} presence;

typedef struct build {
    remat_ctx *ctx;
    rm_checkmate *x;
    const rm_normal *nm;
    rm_model *m;
    double size_scale;   /* from bytes to the program's unit */
    double cap;          /* the budget, in that unit */
    uint32_t *first;     /* by op: the turn of its first run */
    uint32_t *op_last;   /* by op: the last turn in which it may run */
    uint32_t *read_last; /* by storage: the last turn that may read it; n_turns: an output */
    uint32_t *must_last; /* by storage: the last turn that reads it at its frontier */
    uint8_t *again;      /* by op: it may run again */

    /* The turn at hand. */
    uint32_t *left;         /* by storage: readers still to come */
    presence *now;          /* by storage: is it there? */
    uint8_t *touched;       /* by storage: by the op of the frontier */
    RM_VEC(rm_term) memory; /* what has changed since the last U */
} build;

static uint32_t n_outputs(const rm_normal *nm, uint32_t op)
{
    return nm->out_begin[op + 1] - nm->out_begin[op];
}

static uint32_t run_at(const build *b, uint32_t turn, uint32_t op)
{
    return b->x->run[(size_t)turn * b->nm->n_ops + op];
}

static uint32_t kept_at(const build *b, uint32_t turn, uint32_t s)
{
    return b->x->kept[(size_t)turn * b->nm->n_stores + s];
}

static double bytes_of(const build *b, uint32_t s)
{
    return (double)b->nm->bytes[s] * b->size_scale;
}

/* The op whose first run ends the turn, or REMAT_NONE. */
static uint32_t frontier_of(const rm_checkmate *x, uint32_t turn)
{
    return !x->any_order && turn % x->splits == x->splits - 1 ? turn / x->splits : REMAT_NONE;
}

/* One more than the last op that may run in the turn. */
static uint32_t op_limit(const rm_checkmate *x, uint32_t turn)
{
    return x->any_order ? x->nm->n_ops : turn / x->splits + (frontier_of(x, turn) != REMAT_NONE);
}

/* ---- numbers ---- */

/* Numbers up to so many units are written as whole numbers. */
enum { MOST_UNITS = 1000000 };

static void set_size_scale(build *b)
{
    const rm_normal *nm = b->nm;
    const int64_t room = b->x->budget_bytes - nm->resident_bytes;
    int64_t unit = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) unit = rm_common_divisor(unit, nm->bytes[s]);
    for (uint32_t op = 0; op < nm->n_ops; op++) unit = rm_common_divisor(unit, nm->workspace[op]);
    if (unit == 0) unit = 1;
    if (room / unit <= MOST_UNITS && !b->x->plain) {
        b->cap = (double)(room / unit);
        b->size_scale = 1 / (double)unit;
    } else {
        b->cap = b->x->plain ? 100 : 1e4;
        b->size_scale = b->cap / (double)room;
    }
}

static void set_cost_scale(build *b)
{
    const rm_normal *nm = b->nm;
    rm_checkmate *x = b->x;
    int64_t unit = 0, total = 0; /* of the ops that are in the objective */
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        if (!b->again[op] && !x->any_order) continue;
        unit = rm_common_divisor(unit, nm->cost[op]);
        total += nm->cost[op];
    }
    x->cost_unit = unit ? unit : 1;
    const int64_t most = x->any_order || x->most_extra > total ? total : x->most_extra;
    if (x->plain && most > 0) x->cost_scale = 100 / (double)most;
    else if (most / x->cost_unit <= MOST_UNITS) x->cost_scale = 1 / (double)x->cost_unit;
    else x->cost_scale = 1e3 / (double)most;
    x->first_cost = 0;
    for (uint32_t op = 0; op < nm->n_ops && !x->any_order; op++) x->first_cost += nm->cost[op];
}

int64_t rm_checkmate_cost(const rm_checkmate *x, double objective)
{
    if (!(objective > 0)) return x->first_cost;
    const double slack = 1e-6 * (objective > 1 ? objective : 1);
    const double units = ceil((objective - slack) / x->cost_scale / (double)x->cost_unit);
    if (!(units > 0)) return x->first_cost;
    if (units >= (double)((RM_MAX_SUM - x->first_cost) / x->cost_unit)) return RM_MAX_SUM;
    return x->first_cost + (int64_t)units * x->cost_unit;
}

/* ---- which columns there are ---- */

/* read_last and must_last, when op_last of the readers is known. */
static void find_last_reads(build *b, uint32_t s)
{
    const rm_normal *nm = b->nm;
    const uint32_t n_turns = b->x->n_turns;
    uint32_t may = nm->is_output[s] ? n_turns : 0, must = may;
    for (uint32_t j = nm->reader_begin[s]; j < nm->reader_begin[s + 1]; j++) {
        const uint32_t reader = nm->readers[j];
        if (b->op_last[reader] > may) may = b->op_last[reader];
        if (b->first[reader] > must) must = b->first[reader];
    }
    if (b->x->plain && may < n_turns) may = n_turns - 1;
    b->read_last[s] = may;
    b->must_last[s] = must;
}

/* op_last, when read_last of what it makes is known. */
static uint32_t last_run(const build *b, uint32_t op)
{
    const rm_normal *nm = b->nm;
    const uint32_t last_turn = b->x->n_turns - 1;
    if (b->x->any_order || (b->x->plain && !nm->pinned[op])) return last_turn;
    uint32_t last = b->first[op];
    if (!b->again[op]) return last;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (b->read_last[nm->out[k]] > last) last = b->read_last[nm->out[k]];
    return last < last_turn ? last : last_turn;
}

/* From last to first, as readers come before makers. */
static void find_lives(build *b)
{
    const rm_normal *nm = b->nm;
    const rm_checkmate *x = b->x;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        b->first[op] = x->any_order ? 0 : op * x->splits + x->splits - 1;
        b->again[op] = !nm->pinned[op] && nm->cost[op] <= x->most_extra;
    }
    for (uint32_t op = nm->n_ops; op-- > 0;) {
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            find_last_reads(b, nm->out[k]);
        b->op_last[op] = last_run(b, op);
    }
    for (uint32_t s = 0; s < nm->n_stores && x->any_order; s++)
        if (!nm->is_output[s]) b->read_last[s] = x->n_turns - 1;
}

/* R_t_op, where the op may run in turn t. */
static remat_status add_run(build *b, uint32_t t, uint32_t op)
{
    rm_checkmate *x = b->x;
    uint32_t *at = &x->run[(size_t)t * b->nm->n_ops + op];
    const bool is_first = frontier_of(x, t) == op;
    const bool may_run_again = x->any_order || (t > b->first[op] && t <= b->op_last[op]);
    *at = REMAT_NONE;
    if (!is_first && !may_run_again) return REMAT_OK;
    const rm_column c = {.cost = is_first ? 0 : (double)b->nm->cost[op] * x->cost_scale,
                         .lower = is_first,
                         .upper = 1,
                         .integer = true,
                         .name = {'R', {t, op}, 2}};
    return rm_model_column(b->ctx, b->m, &c, at);
}

/* S_t_s, where the storage may be kept from turn t - 1. */
static remat_status add_kept(build *b, uint32_t t, uint32_t s)
{
    rm_checkmate *x = b->x;
    uint32_t *at = &x->kept[(size_t)t * b->nm->n_stores + s];
    const uint32_t maker = b->nm->producer[s];
    *at = REMAT_NONE;
    if (t == 0 || t > b->read_last[s]) return REMAT_OK;
    if (!x->any_order && t <= b->first[maker]) return REMAT_OK;
    const bool runs_once = !x->any_order && !x->plain && !b->again[maker];
    const bool must = t == x->n_turns || (runs_once && t <= b->must_last[s]);
    const rm_column c = {.lower = must, .upper = 1, .integer = true, .name = {'S', {t, s}, 2}};
    return rm_model_column(b->ctx, b->m, &c, at);
}

static remat_status add_columns(build *b)
{
    const rm_normal *nm = b->nm;
    const uint32_t n_turns = b->x->n_turns;
    for (uint32_t t = 0; t <= n_turns; t++) {
        for (uint32_t op = 0; op < nm->n_ops && t < n_turns; op++) TRY(add_run(b, t, op));
        for (uint32_t s = 0; s < nm->n_stores; s++) TRY(add_kept(b, t, s));
    }
    return REMAT_OK;
}

/* ---- rows: terms, then their limits ---- */

static remat_status term(build *b, uint32_t column, double value)
{
    return rm_model_term(b->ctx, b->m, column, value);
}

static remat_status row(build *b, double lower, double upper)
{
    return rm_model_row(b->ctx, b->m, lower, upper);
}

static remat_status add(build *b, presence p, double value)
{
    TRY(term(b, p.a, value));
    return term(b, p.b, value);
}

static remat_status in_memory(build *b, uint32_t column, double value)
{
    const rm_term t = {column, value};
    return column == REMAT_NONE || value == 0 ? REMAT_OK : RM_PUSH(b->ctx, b->memory, t);
}

static remat_status in_memory_too(build *b, presence p, double value)
{
    TRY(in_memory(b, p.a, value));
    return in_memory(b, p.b, value);
}

/* small <= large */
static remat_status at_most(build *b, presence small, presence large)
{
    if (small.a == REMAT_NONE && small.b == REMAT_NONE) return REMAT_OK;
    TRY(add(b, large, 1));
    TRY(add(b, small, -1));
    return row(b, 0, INFINITY);
}

/* Every op runs somewhere. Pinned ones run once, and in order. */
static remat_status any_order_rows(build *b)
{
    const rm_normal *nm = b->nm;
    uint32_t before = REMAT_NONE; /* the pinned op before */
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        for (uint32_t t = 0; t < b->x->n_turns; t++) TRY(term(b, run_at(b, t, op), 1));
        TRY(row(b, 1, nm->pinned[op] ? 1 : INFINITY));
        if (!nm->pinned[op]) continue;
        for (uint32_t end = 1; end <= b->x->n_turns && before != REMAT_NONE; end++) {
            for (uint32_t t = 0; t < end; t++) {
                TRY(term(b, run_at(b, t, before), 1));
                TRY(term(b, run_at(b, t, op), -1));
            }
            TRY(row(b, 0, INFINITY));
        }
        before = op;
    }
    return REMAT_OK;
}

/* A token is stale behind a new run of its base's op. */
static remat_status token_rows(build *b, uint32_t turn)
{
    const rm_normal *nm = b->nm;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        if (nm->base[s] == REMAT_NONE || nm->producer[nm->base[s]] == nm->producer[s]) continue;
        const uint32_t base = run_at(b, turn, nm->producer[nm->base[s]]);
        const uint32_t own = run_at(b, turn, nm->producer[s]);
        if (base == REMAT_NONE) continue;
        for (uint32_t k = nm->reader_begin[s]; k <= nm->reader_begin[s + 1]; k++) {
            const uint32_t who = k < nm->reader_begin[s + 1] ? run_at(b, turn, nm->readers[k])
                                                             : kept_at(b, turn + 1, s);
            if (who == REMAT_NONE) continue;
            TRY(term(b, who, 1));
            TRY(term(b, base, 1));
            TRY(term(b, own, -1));
            TRY(row(b, -INFINITY, 1));
        }
    }
    return REMAT_OK;
}

/* ---- ours ---- */

static remat_status new_presence(build *b, uint32_t turn, uint32_t s, uint32_t reader,
                                 presence *out)
{
    const rm_column c = {.upper = 1, .name = {'P', {turn, s, reader}, 3}};
    out->b = REMAT_NONE;
    return rm_model_column(b->ctx, b->m, &c, &out->a);
}

/* U at op, from the last U and what has changed since. */
static remat_status close_memory(build *b, uint32_t turn, uint32_t op, uint32_t *last)
{
    const double workspace = (double)b->nm->workspace[op] * b->size_scale;
    const rm_column c = {.upper = b->cap, .name = {'U', {turn, op}, 2}};
    uint32_t u;
    TRY(rm_model_column(b->ctx, b->m, &c, &u));
    TRY(term(b, u, 1));
    TRY(term(b, *last, -1));
    for (size_t i = 0; i < b->memory.n; i++)
        TRY(term(b, b->memory.items[i].column, -b->memory.items[i].value));
    const rm_sum_of sum = {u, (uint32_t)b->m->rows.n};
    TRY(RM_PUSH(b->ctx, b->x->sums, sum));
    TRY(row(b, 0, 0));
    b->memory.n = 0;
    *last = u;
    if (workspace == 0) return REMAT_OK;
    TRY(term(b, u, 1));
    TRY(term(b, run_at(b, turn, op), workspace));
    return row(b, -INFINITY, b->cap);
}

/* At the frontier everything that is kept is there, and whatever its op touches; but not what it
 * may make outputs in place of, unless that is kept. */
static remat_status frontier_row(build *b, uint32_t turn, uint32_t op)
{
    const rm_normal *nm = b->nm;
    double room = b->cap - (double)nm->workspace[op] * b->size_scale;
    memset(b->touched, 0, nm->n_stores);
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        b->touched[nm->in[k]] = !nm->may_take[k];
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) b->touched[nm->out[k]] = 1;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        if (b->touched[s]) room -= bytes_of(b, s);
        else TRY(term(b, kept_at(b, turn + 1, s), bytes_of(b, s)));
    }
    return row(b, -INFINITY, room);
}

/* For a storage that nobody reads in this turn: it is kept as it came, or (not `exact`) let go. */
static remat_status pass_on(build *b, uint32_t turn, uint32_t s, presence here, bool exact)
{
    const presence next = {kept_at(b, turn + 1, s), REMAT_NONE};
    TRY(add(b, here, 1));
    TRY(add(b, next, -1));
    return row(b, 0, exact ? 0 : INFINITY);
}

static remat_status make_output(build *b, uint32_t turn, uint32_t op, uint32_t s)
{
    const presence here = {run_at(b, turn, op), kept_at(b, turn, s)};
    b->now[s] = here;
    TRY(in_memory(b, here.a, bytes_of(b, s)));
    if (here.b == REMAT_NONE) return REMAT_OK;
    TRY(add(b, here, 1));
    return row(b, -INFINITY, 1);
}

/* From here on `to` says whether s is there. */
static remat_status change(build *b, uint32_t s, presence to)
{
    TRY(in_memory_too(b, b->now[s], -bytes_of(b, s)));
    TRY(in_memory_too(b, to, bytes_of(b, s)));
    b->now[s] = to;
    return REMAT_OK;
}

/* Behind op: an output that nobody reads in this turn, or one of several, which may go while others
 * stay. */
static remat_status leave_output(build *b, uint32_t turn, uint32_t op, uint32_t s)
{
    const presence here = b->now[s], old = {here.b, REMAT_NONE};
    if (frontier_of(b->x, turn) == op) return REMAT_OK;
    if (n_outputs(b->nm, op) == 1) {
        if (b->left[s] > 0) return REMAT_OK;
        return pass_on(b, turn, s, here, !b->x->any_order);
    }
    presence after = {kept_at(b, turn + 1, s), REMAT_NONE};
    if (b->left[s] > 0) TRY(new_presence(b, turn, s, op, &after));
    TRY(at_most(b, after, here));
    if (!b->x->any_order) TRY(at_most(b, old, after));
    return change(b, s, after);
}

static bool is_column_p(const build *b, presence p)
{
    return p.b == REMAT_NONE && p.a != REMAT_NONE && b->m->columns.items[p.a].name.letter == 'P';
}

/* Behind op, which has read s: it is there for the readers that are left, or kept. */
static remat_status leave_input(build *b, uint32_t turn, uint32_t op, uint32_t s)
{
    assert(b->left[s] > 0);
    const presence here = b->now[s];
    presence next = {kept_at(b, turn + 1, s), REMAT_NONE};
    b->left[s]--;
    if (b->left[s] > 0) TRY(new_presence(b, turn, s, op, &next));
    TRY(at_most(b, next, here));
    if (is_column_p(b, here)) {
        const rm_larger_of larger = {here.a, run_at(b, turn, op), next.a};
        TRY(RM_PUSH(b->ctx, b->x->larger, larger));
    }
    return change(b, s, next);
}

/* Those in whose place op may make an output, or the others. */
static remat_status leave_inputs(build *b, uint32_t turn, uint32_t op, bool taken)
{
    const rm_normal *nm = b->nm;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (nm->may_take[k] == taken) TRY(leave_input(b, turn, op, nm->in[k]));
    return REMAT_OK;
}

/* Is anything freed behind op? If not, the memory at the next op is no less. */
static bool may_free(const build *b, uint32_t op)
{
    const rm_normal *nm = b->nm;
    if (nm->workspace[op] > 0) return true;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (nm->bytes[nm->in[k]] > 0) return true;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1] && n_outputs(nm, op) > 1; k++)
        if (nm->bytes[nm->out[k]] > 0) return true;
    return false;
}

/* The rows of op in a turn: it reads, makes, takes memory, and leaves. */
static remat_status step_rows(build *b, uint32_t turn, uint32_t op, bool is_last, uint32_t *last_u)
{
    const rm_normal *nm = b->nm;
    const presence self = {run_at(b, turn, op), REMAT_NONE};
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        TRY(at_most(b, self, b->now[nm->in[k]]));
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        TRY(make_output(b, turn, op, nm->out[k]));
    TRY(leave_inputs(b, turn, op, true));
    if (frontier_of(b->x, turn) == op) TRY(frontier_row(b, turn, op));
    else if (is_last || may_free(b, op)) TRY(close_memory(b, turn, op, last_u));
    TRY(leave_inputs(b, turn, op, false));
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        TRY(leave_output(b, turn, op, nm->out[k]));
    return REMAT_OK;
}

static remat_status turn_rows(build *b, uint32_t turn)
{
    const rm_normal *nm = b->nm;
    const uint32_t limit = op_limit(b->x, turn);
    uint32_t last_u = REMAT_NONE, last_op = REMAT_NONE;
    b->memory.n = 0;
    memset(b->left, 0, nm->n_stores * sizeof *b->left);
    for (uint32_t op = 0; op < limit; op++) {
        if (run_at(b, turn, op) == REMAT_NONE) continue;
        last_op = op;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) b->left[nm->in[k]]++;
    }
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        b->now[s] = (presence){kept_at(b, turn, s), REMAT_NONE};
        TRY(in_memory(b, b->now[s].a, bytes_of(b, s)));
        if (b->now[s].a != REMAT_NONE && b->left[s] == 0 &&
            run_at(b, turn, nm->producer[s]) == REMAT_NONE)
            TRY(pass_on(b, turn, s, b->now[s], true));
    }
    for (uint32_t op = 0; op < limit; op++)
        if (run_at(b, turn, op) != REMAT_NONE) TRY(step_rows(b, turn, op, op == last_op, &last_u));
    return token_rows(b, turn);
}

/* ---- as printed ---- */

/* The hazards of (5), but for a constant 1, as terms: why s cannot be freed behind op. *n is how
 * many there are, with the 1. */
static remat_status hazard_terms(build *b, uint32_t turn, uint32_t op, uint32_t s, uint32_t *n)
{
    const rm_normal *nm = b->nm;
    const uint32_t next = kept_at(b, turn + 1, s);
    *n = 1;
    TRY(term(b, run_at(b, turn, op), -1));
    TRY(term(b, next, 1));
    if (next != REMAT_NONE) (*n)++;
    for (uint32_t k = nm->reader_begin[s]; k < nm->reader_begin[s + 1]; k++) {
        if (nm->readers[k] <= op || nm->readers[k] >= op_limit(b->x, turn)) continue;
        const uint32_t reader = run_at(b, turn, nm->readers[k]);
        TRY(term(b, reader, 1));
        if (reader != REMAT_NONE) (*n)++;
    }
    return REMAT_OK;
}

/* FREE_t_s_k of (5) to (7), where nobody else frees: s is an input of op k, or one of its several
 * outputs. */
static remat_status free_rows(build *b, uint32_t turn, uint32_t op, uint32_t s)
{
    const rm_column c = {.upper = 1, .integer = true, .name = {'F', {turn, s, op}, 3}};
    uint32_t column, n_hazards;
    TRY(rm_model_column(b->ctx, b->m, &c, &column));
    /* (7b): 1 - FREE <= hazards */
    TRY(hazard_terms(b, turn, op, s, &n_hazards));
    TRY(term(b, column, 1));
    TRY(row(b, 0, INFINITY));
    /* (7c): hazards <= kappa (1 - FREE), where kappa is their number */
    TRY(hazard_terms(b, turn, op, s, &n_hazards));
    TRY(term(b, column, n_hazards));
    TRY(row(b, -INFINITY, n_hazards - 1.0));
    return in_memory(b, column, -bytes_of(b, s));
}

/* Those in whose place op may make an output, or the others. */
static remat_status free_inputs(build *b, uint32_t turn, uint32_t op, bool taken)
{
    const rm_normal *nm = b->nm;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (nm->may_take[k] == taken) TRY(free_rows(b, turn, op, nm->in[k]));
    return REMAT_OK;
}

static remat_status plain_turn_rows(build *b, uint32_t turn)
{
    const rm_normal *nm = b->nm;
    uint32_t last_u = REMAT_NONE;
    b->memory.n = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        const presence kept = {kept_at(b, turn + 1, s), REMAT_NONE};
        const presence here = {run_at(b, turn, nm->producer[s]), kept_at(b, turn, s)};
        TRY(in_memory(b, here.b, bytes_of(b, s)));
        if (kept.a != REMAT_NONE) TRY(at_most(b, kept, here)); /* (1c) */
    }
    for (uint32_t op = 0; op < op_limit(b->x, turn); op++) {
        const presence self = {run_at(b, turn, op), REMAT_NONE};
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) { /* (1b) */
            const presence here = {run_at(b, turn, nm->producer[nm->in[k]]),
                                   kept_at(b, turn, nm->in[k])};
            TRY(at_most(b, self, here));
        }
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            TRY(in_memory(b, self.a, bytes_of(b, nm->out[k])));
        TRY(free_inputs(b, turn, op, true));
        TRY(close_memory(b, turn, op, &last_u));
        TRY(free_inputs(b, turn, op, false));
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1] && n_outputs(nm, op) > 1;
             k++)
            TRY(free_rows(b, turn, op, nm->out[k]));
    }
    return token_rows(b, turn);
}

/* ---- all of it ---- */

static remat_status build_model(build *b)
{
    const rm_normal *nm = b->nm;
    rm_checkmate *x = b->x;
    TRY(RM_SCRATCH(b->ctx, b->first, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->op_last, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->again, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->read_last, nm->n_stores));
    TRY(RM_SCRATCH(b->ctx, b->must_last, nm->n_stores));
    TRY(RM_SCRATCH(b->ctx, b->left, nm->n_stores));
    TRY(RM_SCRATCH(b->ctx, b->now, nm->n_stores));
    TRY(RM_SCRATCH(b->ctx, b->touched, nm->n_stores));
    find_lives(b);
    set_size_scale(b);
    set_cost_scale(b);
    TRY(add_columns(b));
    if (x->any_order) TRY(any_order_rows(b));
    for (uint32_t turn = 0; turn < x->n_turns; turn++) {
        if (x->plain) TRY(plain_turn_rows(b, turn));
        else TRY(turn_rows(b, turn));
    }
    return REMAT_OK;
}

size_t rm_checkmate_entries(const remat_ctx *ctx)
{
    const int64_t most = ctx->options.checkmate_entries;
    const bool has_limits = ctx->options.time_ms || ctx->options.work;
    return (size_t)(has_limits || most < UNLIMITED_ENTRIES ? most : UNLIMITED_ENTRIES);
}

remat_status rm_checkmate_build(remat_ctx *ctx, rm_checkmate *x)
{
    assert(x->splits > 0);
    build b = {.ctx = ctx, .x = x, .nm = x->nm, .m = &x->model};
    const uint64_t n_turns = (uint64_t)x->nm->n_ops * x->splits;
    const uint64_t least_terms = n_turns * ((uint64_t)x->nm->n_ops + x->nm->n_stores) / 2;
    /* Then not even its tables are made. */
    if (least_terms > rm_model_most_terms(&x->model)) return rm_model_too_large(ctx, &x->model);
    x->n_turns = (uint32_t)n_turns;
    TRY(RM_SCRATCH(ctx, x->run, n_turns * x->nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->kept, (n_turns + 1) * x->nm->n_stores));
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = build_model(&b);
    RM_VEC_FREE(&ctx->heap, b.memory);
    rm_scratch_release(ctx, mark);
    return status;
}

void rm_checkmate_free(remat_ctx *ctx, rm_checkmate *x)
{
    rm_model_free(ctx, &x->model);
    RM_VEC_FREE(&ctx->heap, x->larger);
    RM_VEC_FREE(&ctx->heap, x->sums);
}

/* ---- solutions ---- */

remat_status rm_checkmate_codes(remat_ctx *ctx, const rm_checkmate *x, const double *values,
                                rm_codes *out)
{
    out->n = 0;
    for (uint32_t turn = 0; turn < x->n_turns; turn++)
        for (uint32_t op = 0; op < x->nm->n_ops; op++) {
            const uint32_t column = x->run[(size_t)turn * x->nm->n_ops + op];
            if (column != REMAT_NONE && values[column] > 0.5) TRY(RM_PUSH(ctx, *out, op));
        }
    return REMAT_OK;
}

/* Sets the columns that follow from R and S. Of the larger ones the later come first, as they do
 * not depend on earlier ones. */
static void derive(const rm_checkmate *x, double *values)
{
    for (size_t i = x->larger.n; i-- > 0;) {
        const rm_larger_of *l = &x->larger.items[i];
        const double a = l->a == REMAT_NONE ? 0 : values[l->a];
        const double b = l->b == REMAT_NONE ? 0 : values[l->b];
        values[l->column] = a > b ? a : b;
    }
    for (size_t i = 0; i < x->sums.n; i++) {
        const rm_sum_of *s = &x->sums.items[i];
        double sum = 0;
        for (int32_t k = x->model.row_begin.items[s->row] + 1;
             k < x->model.row_begin.items[s->row + 1]; k++)
            sum += x->model.terms.items[k].value * values[x->model.terms.items[k].column];
        values[s->column] = -sum;
    }
}

/* True: every run has a column. */
static bool set_runs(const rm_checkmate *x, const rm_codes *codes, double *values)
{
    const uint32_t n_ops = x->nm->n_ops;
    uint32_t op = 0; /* the one whose turns these are */
    bool all = true;
    for (size_t i = 0; i < codes->n; i++) {
        const uint32_t turn = (op < n_ops ? op : n_ops - 1) * x->splits + x->splits - 1;
        const uint32_t column = x->run[(size_t)turn * n_ops + codes->items[i]];
        if (column == REMAT_NONE) all = false;
        else values[column] = 1;
        if (codes->items[i] == op) op++;
    }
    return all;
}

static void set_kept(const rm_checkmate *x, const rm_bits *retained, double *values)
{
    const rm_normal *nm = x->nm;
    for (uint32_t turn = 1; turn <= x->n_turns; turn++)
        for (uint32_t s = 0; s < nm->n_stores; s++) {
            const uint32_t column = x->kept[(size_t)turn * nm->n_stores + s];
            const bool kept =
                turn == x->n_turns ? nm->is_output[s] : rm_bit(retained, turn / x->splits, s);
            if (column != REMAT_NONE && kept) values[column] = 1;
        }
}

remat_status rm_checkmate_start(remat_ctx *ctx, const rm_checkmate *x, const rm_codes *codes,
                                double *values, bool *fits)
{
    rm_bits retained;
    *fits = false;
    if (x->plain) return REMAT_OK; /* U and FREE are not derived */
    memset(values, 0, x->model.columns.n * sizeof *values);
    const bool all = set_runs(x, codes, values);
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = rm_retained_of(ctx, x->nm, codes->items, codes->n, &retained);
    if (status == REMAT_OK) {
        set_kept(x, &retained, values);
        derive(x, values);
        *fits = all && rm_model_violation(&x->model, values) <= 1e-6;
    }
    rm_scratch_release(ctx, mark);
    return status;
}

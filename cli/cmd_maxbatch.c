/* cmd_maxbatch.c: `remat maxbatch`: the largest batch that each strategy fits into a budget, at a
 * bounded cost (Checkmate, eq. 9 and 10, Fig. 6).
 *
 * Problem: the largest B for which a plan of the graph at batch B fits the budget, and costs at
 * most so much more than keep-all at that batch.
 *
 * Method: the graph is built at each batch. What every plan needs (remat_info.need_bytes) never
 * falls as the batch grows. So doubling and bisection give the least batch that no plan fits. No
 * strategy is tried beyond. Below it each strategy is bisected. A heuristic may fail at one batch
 * and succeed at a larger one. So the answer is then raised by 1, 2, 4, ... as long as that finds
 * something. --certify bisects the bound.
 *
 * auto does not begin anew at each batch. A schedule means the same ops at every batch, and what it
 * takes grows with the batch. So it starts from the best schedule of the rows above, finds by
 * bisection how far that goes, and plans a step beyond from there: the step is halved where that
 * fails. So it is never behind another row, and what was found for a batch is not lost at the next.
 * The last steps are tried again with more work.
 *
 * Invariants: a batch in the table has a plan that was verified. A batch that cannot be built
 * (sizes past 2^62) counts as one that does not fit, but as no proof. Ctrl-C prints what there is,
 * exit code 130. Cost: about 2 log2(largest) plans a strategy. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "heeds.h"
#include "report.h"

#define MOST_BATCH (INT64_C(1) << 40)
static const char default_list[] =
    "keep-all,ap-sqrt,ap-greedy,lin-sqrt,lin-greedy," DEFAULT_STRATEGY;

typedef struct row {
    const char *strategy;
    int64_t batch;         /* 0: none was found */
    int64_t limit;         /* on its cost; INT64_MAX: none */
    remat_summary summary; /* peak and cost of its schedule, and of keep-all */
    remat_step *steps;     /* its schedule, if batch is not 0 */
    size_t n_steps;
    char reason[320]; /* why it does not apply, or "" */
    uint32_t plans;
    double seconds;
} row;

typedef struct search {
    session *s;
    const remat_input *input;
    int64_t budget;
    int64_t batch;   /* of the graph at hand */
    int64_t most;    /* no plan fits a larger batch, or it cannot be built */
    int64_t refused; /* most + 1 if that is proved: by the need, at need_op; else 0 */
    int64_t refused_need;
    label refused_op, refused_phrase;
    char unbuilt[200]; /* why most + 1 cannot be built, or "" */
    row *rows;
    uint32_t n_rows;
    struct {
        bool tried, fits; /* fits: within the budget, but not within the cost */
        int64_t batch;    /* the least that the bound refuses; 0: none */
        int64_t cost, limit;
    } bound;
} search;

/* ---- one batch ---- */

/* Makes the graph at this batch the one at hand. *built says whether it can be built. `built` NULL:
 * a graph that cannot be built is an error. */
static int load(search *x, int64_t batch, bool *built)
{
    session *s = x->s;
    if (built) *built = true;
    if (x->batch == batch) return REMAT_OK;
    x->batch = 0;
    const remat_status status = session_read_batch(s, x->input, batch);
    if (status == REMAT_E_INPUT || status == REMAT_E_USAGE) {
        if (!built) return session_fail(s, status);
        *built = false;
        snprintf(x->unbuilt, sizeof x->unbuilt, "%s", remat_ctx_error_reason(s->ctx));
        return REMAT_OK;
    }
    if (status) return session_fail(s, status);
    x->batch = batch;
    return REMAT_OK;
}

static int64_t forward_cost(const session *s)
{
    int64_t sum = 0;
    for (uint32_t op = 0; op < remat_graph_n_ops(s->graph); op++)
        if (remat_graph_op_get(s->graph, op, REMAT_OP_PHASE) == REMAT_FORWARD)
            sum += remat_graph_op_get(s->graph, op, REMAT_OP_COST);
    return sum;
}

/* What a plan of the graph at hand may cost; INT64_MAX without a limit. */
static int cost_limit(search *x, int64_t *limit)
{
    session *s = x->s;
    const char *text = s->args->text[FLAG_MAX_OVERHEAD];
    char percent[64];
    int64_t more = 0;
    *limit = INT64_MAX;
    if (!text) return REMAT_OK;
    if (strcmp(text, "one-extra-forward") == 0) {
        more = forward_cost(s);
        if (more == 0 && s->info.keep_all_cost > 0)
            return out_fail(s->out, REMAT_E_APPLIES, "maxbatch", "--max-overhead",
                            "one-extra-forward: the graph has no forward phase");
    } else {
        const size_t length = strlen(text), digits = strspn(text, "0123456789.");
        const bool is_number =
            length < sizeof percent - 1 && (digits == length || strcmp(text + digits, "%") == 0);
        snprintf(percent, sizeof percent, "%.*s%%", (int)digits, text);
        if (!is_number ||
            remat_budget_parse(s->ctx, percent, s->info.keep_all_cost, &more) != REMAT_OK)
            return out_fail(s->out, REMAT_E_USAGE, "maxbatch", "--max-overhead",
                            "'%.40s' is neither a percentage nor one-extra-forward", text);
    }
    *limit = more < INT64_MAX - s->info.keep_all_cost ? s->info.keep_all_cost + more : INT64_MAX;
    return REMAT_OK;
}

/* ---- the limit of all strategies ---- */

static int needs_at_most(search *x, int64_t batch, bool *fits)
{
    bool built;
    const int status = load(x, batch, &built);
    *fits = !status && built && x->s->info.need_bytes <= x->budget;
    if (status || *fits) return status;
    x->refused = built ? batch : 0;
    if (!built) return REMAT_OK;
    amount buffer;
    const uint32_t op = x->s->info.need_op;
    *x->unbuilt = '\0';
    x->refused_need = x->s->info.need_bytes;
    x->refused_op = out_clean(x->s->out, session_place(x->s, op, &buffer), 40);
    x->refused_phrase = session_op_phrase(x->s, op);
    return REMAT_OK;
}

static int find_most(search *x)
{
    int64_t low = 0, high = 1;
    bool fits = true;
    int status = load(x, 1, NULL); /* whatever is wrong at 1 is wrong with the file */
    while (!status && high <= MOST_BATCH && !session_interrupted()) {
        status = needs_at_most(x, high, &fits);
        if (status || !fits) break;
        low = high;
        high *= 2;
    }
    while (!status && !fits && high - low > 1 && !session_interrupted()) {
        const int64_t middle = low + (high - low) / 2;
        bool middle_fits;
        status = needs_at_most(x, middle, &middle_fits);
        if (middle_fits) low = middle;
        else high = middle;
    }
    x->most = low;
    return status;
}

/* ---- one strategy ---- */

/* The row's batch is this one, with these steps. */
static void take(row *r, int64_t batch, int64_t limit, const remat_summary *summary,
                 const remat_step *steps, size_t n_steps)
{
    r->batch = batch;
    r->limit = limit;
    r->summary = *summary;
    if (steps == r->steps) return;
    r->steps = out_resize(r->steps, n_steps ? n_steps : 1, sizeof *steps);
    r->n_steps = n_steps;
    if (n_steps) memcpy(r->steps, steps, n_steps * sizeof *steps);
}

/* A plan of the graph at hand. `from` NULL: from nothing; else from that row's schedule. */
static remat_status make_plan(search *x, const row *r, const row *from, const remat_plan **plan)
{
    session *s = x->s;
    made one;
    uint32_t n_made;
    *plan = NULL;
    if (!from) {
        const remat_status status = session_plans(s, r->strategy, &x->budget, 1, &one, &n_made);
        if (status == REMAT_OK && n_made) *plan = one.plan;
        return status;
    }
    remat_plan *start = NULL, *better = NULL;
    remat_status status =
        remat_plan_of_steps(s->ctx, s->graph, from->steps, from->n_steps, NULL, REMAT_BUDGET_NONE,
                            from->summary.bandwidth > 0 ? from->summary.bandwidth : 0, &start);
    if (status == REMAT_OK)
        status = remat_plan_improve(s->ctx, s->graph, start, r->strategy, x->budget, &better);
    remat_plan_free(start);
    if (status == REMAT_OK) *plan = session_keep(s, better);
    return status;
}

static int try_batch(search *x, row *r, const row *from, int64_t batch, bool *fits)
{
    session *s = x->s;
    const remat_plan *plan;
    int64_t limit;
    *fits = false;
    TRY(load(x, batch, NULL));
    TRY(cost_limit(x, &limit));
    const remat_status planned = make_plan(x, r, from, &plan);
    if (planned == REMAT_E_APPLIES) {
        snprintf(r->reason, sizeof r->reason, "%s", session_why_not(s));
        return REMAT_OK;
    }
    if (planned != REMAT_OK) return session_fail(s, planned);
    if (!plan) return REMAT_OK;
    r->plans++;
    const remat_summary *m = remat_plan_summary(plan);
    *fits = remat_plan_status(plan) == REMAT_OK && m->cost <= limit;
    size_t n_steps;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    if (*fits) take(r, batch, limit, m, steps, n_steps);
    return REMAT_OK;
}

/* Does the schedule of a row fit at this batch? If so, it is r's. */
static int try_schedule(search *x, row *r, const row *from, int64_t batch, bool *fits)
{
    session *s = x->s;
    remat_verdict v = REMAT_VERDICT_INIT;
    remat_summary summary = from->summary;
    int64_t limit;
    TRY(load(x, batch, NULL));
    TRY(cost_limit(x, &limit));
    CHECK(s, remat_verify(s->ctx, s->graph, from->steps, from->n_steps,
                          summary.bandwidth > 0 ? summary.bandwidth : 0, &v));
    *fits = v.valid && v.peak_bytes <= x->budget && v.cost <= limit;
    summary.peak_bytes = v.peak_bytes;
    summary.cost = v.cost;
    summary.keep_all_cost = s->info.keep_all_cost;
    if (*fits) take(r, batch, limit, &summary, from->steps, from->n_steps);
    return REMAT_OK;
}

/* At most `tries` plans of this strategy more, as long as they can say something. */
static bool may_try(const row *r, uint32_t tries)
{
    return r->plans < tries && !*r->reason && !session_interrupted();
}

static int bisect(search *x, row *r, uint32_t tries)
{
    int64_t high = x->most + 1;
    int status = REMAT_OK;
    bool fits;
    for (int64_t low = 0; !status && high - low > 1 && may_try(r, UINT32_MAX); x->s->bar.part++) {
        const int64_t middle = low + (high - low) / 2;
        status = try_batch(x, r, NULL, middle, &fits);
        if (fits) low = middle;
        else high = middle;
    }
    for (int64_t step = 2; !status && r->batch && step <= x->most - r->batch && may_try(r, tries);
         x->s->bar.part++) {
        status = try_batch(x, r, NULL, r->batch + step, &fits);
        step = fits ? 1 : 2 * step;
    }
    return status;
}

/* How far the row's schedule goes. */
static int extend(search *x, row *r)
{
    int64_t high = x->most + 1;
    while (high - r->batch > 1 && !session_interrupted()) {
        const int64_t middle = r->batch + (high - r->batch) / 2;
        bool fits;
        TRY(try_schedule(x, r, r, middle, &fits));
        if (!fits) high = middle;
    }
    return REMAT_OK;
}

static const row *best_row(const search *x);

/* Plans so far beyond the row's batch; the step grows where that succeeds, and is halved where it
 * fails. */
static int climb_by(search *x, row *r, int64_t step, uint32_t tries)
{
    const uint32_t last = r->plans + tries;
    for (bool fits; step > 0 && r->batch < x->most && may_try(r, last); x->s->bar.part++) {
        if (step > x->most - r->batch) step = x->most - r->batch;
        TRY(try_batch(x, r, r->batch ? r : NULL, r->batch + step, &fits));
        if (fits) TRY(extend(x, r));
        step = fits ? 2 * step : step / 2;
    }
    return REMAT_OK;
}

/* From the best schedule there is. Close to the limit a plan takes longer to find, so the last
 * steps are tried again with more work, unless the user said how much there is. */
static int climb(search *x, row *r, uint32_t tries)
{
    enum { LAST_WORK = 8 * 4000000, LAST_STEP = 8 }; /* work: about eight seconds a plan */
    session *s = x->s;
    const row *above = best_row(x);
    int64_t work = 0, time_ms = 0;
    bool fits = false;
    if (above) TRY(try_schedule(x, r, above, above->batch, &fits));
    if (fits) TRY(extend(x, r));
    TRY(climb_by(x, r, (x->most - r->batch + 1) / 2, tries));
    CHECK(s, remat_ctx_get(s->ctx, "work", &work));
    CHECK(s, remat_ctx_get(s->ctx, "time_ms", &time_ms));
    if (work || time_ms || r->batch == 0) return REMAT_OK;
    CHECK(s, remat_ctx_set(s->ctx, "work", LAST_WORK));
    const int status = climb_by(x, r, LAST_STEP, tries);
    CHECK(s, remat_ctx_set(s->ctx, "work", 0));
    return status;
}

static int find_largest(search *x, row *r, uint32_t tries)
{
    const double begin = seconds_now();
    const bool climbs = strcmp(r->strategy, DEFAULT_STRATEGY) == 0;
    const int status = climbs ? climb(x, r, tries) : bisect(x, r, tries);
    r->seconds = seconds_now() - begin;
    return status;
}

/* ---- the bound ---- */

static int bound_refuses(search *x, int64_t batch, bool *refuses)
{
    remat_bound b = REMAT_BOUND_INIT;
    int64_t limit;
    bool built;
    *refuses = false;
    TRY(load(x, batch, &built));
    if (!built) return REMAT_OK;
    TRY(cost_limit(x, &limit));
    CHECK(x->s, remat_bound_find(x->s->ctx, x->s->graph, x->budget, &b));
    *refuses = b.status == REMAT_E_INFEASIBLE || (b.cost >= 0 && b.cost > limit);
    if (!*refuses) return REMAT_OK;
    x->bound.batch = batch;
    x->bound.fits = b.status != REMAT_E_INFEASIBLE;
    x->bound.cost = b.cost;
    x->bound.limit = limit;
    return REMAT_OK;
}

/* The least batch between the best that was found and the first that no plan fits. */
static int certify(search *x)
{
    int64_t low = 0, high = x->most + 1;
    bool refuses;
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (x->rows[i].batch > low) low = x->rows[i].batch;
    x->bound.tried = true;
    int status = x->refused ? bound_refuses(x, high, &refuses) : REMAT_OK;
    while (!status && high - low > 1 && !session_interrupted()) {
        const int64_t middle = low + (high - low) / 2;
        status = bound_refuses(x, middle, &refuses);
        if (refuses) high = middle;
        else low = middle;
    }
    return status;
}

/* ---- output ---- */

static int64_t batch_of(const search *x, const char *strategy)
{
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (strcmp(x->rows[i].strategy, strategy) == 0) return x->rows[i].batch;
    return 0;
}

static const row *best_row(const search *x)
{
    const row *best = NULL;
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (x->rows[i].batch > 0 && (!best || x->rows[i].batch > best->batch)) best = &x->rows[i];
    return best;
}

/* Why the batch behind the best is out of reach: "any-order", "fixed-order" or NULL. */
static const char *proof(const search *x, const row *best)
{
    if (best && x->refused == best->batch + 1) return "any-order";
    if (best && x->bound.batch == best->batch + 1) return "fixed-order";
    return NULL;
}

static void print_json(search *x)
{
    emitter j = {.out = x->s->out};
    const row *best = best_row(x);
    emit_open(&j, NULL, '{');
    emit_text(&j, "graph", x->s->original ? session_name(x->s) : NULL);
    emit_int(&j, "budget_bytes", x->budget);
    emit_text(&j, "max_overhead", x->s->args->text[FLAG_MAX_OVERHEAD]);
    emit_open(&j, "batches", '[');
    for (uint32_t i = 0; i < x->n_rows; i++) {
        const row *r = &x->rows[i];
        emit_open(&j, NULL, '{');
        emit_text(&j, "strategy", r->strategy);
        if (*r->reason) emit_null(&j, "batch");
        else emit_int(&j, "batch", r->batch);
        emit_int_or_null(&j, "peak_bytes", r->batch ? r->summary.peak_bytes : REMAT_ABSENT);
        emit_int_or_null(&j, "cost", r->batch ? r->summary.cost : REMAT_ABSENT);
        emit_int_or_null(&j, "keep_all_cost", r->batch ? r->summary.keep_all_cost : REMAT_ABSENT);
        emit_int_or_null(&j, "cost_limit",
                         r->batch && r->limit != INT64_MAX ? r->limit : REMAT_ABSENT);
        if (r->batch) emit_real(&j, "overhead", report_overhead(&r->summary));
        else emit_null(&j, "overhead");
        emit_int(&j, "plans", r->plans);
        emit_real(&j, "seconds", r->seconds);
        if (*r->reason) emit_text(&j, "reason", r->reason);
        emit_close(&j, '}');
    }
    emit_close(&j, ']');
    emit_int_or_null(&j, "need_refuses", x->refused ? x->refused : REMAT_ABSENT);
    emit_text(&j, "need_op", x->refused ? x->refused_op.text : NULL);
    emit_int_or_null(&j, "bound_refuses", x->bound.batch ? x->bound.batch : REMAT_ABSENT);
    emit_text(&j, "proof", proof(x, best));
    emit_close(&j, '}');
}

static void print_rows(search *x)
{
    out *o = x->s->out;
    const int64_t kept = batch_of(x, "keep-all");
    static const char *const names[] = {"strategy", "batch", "of keep-all", "peak",
                                        "overhead", "plans", "seconds"};
    table t = {.out = o, .align = "lrrrrrr"};
    for (size_t i = 0; i < LEN(names); i++) table_cell(&t, BOLD, "%s", names[i]);
    for (uint32_t i = 0; i < x->n_rows; i++) {
        const row *r = &x->rows[i];
        if (*r->reason) continue;
        table_cell(&t, PLAIN, "%s", r->strategy);
        if (r->batch) table_cell(&t, BOLD, "%" PRId64, r->batch);
        else table_cell(&t, DIM, "none");
        if (r->batch && kept) table_cell(&t, PLAIN, "%.2fx", (double)r->batch / (double)kept);
        else table_cell(&t, DIM, "-");
        table_cell(&t, PLAIN, "%s", r->batch ? out_size(o, r->summary.peak_bytes).text : "-");
        if (r->batch)
            table_cell(&t, PLAIN, "+%s", human_percent(report_overhead(&r->summary)).text);
        else table_cell(&t, PLAIN, "-");
        table_cell(&t, PLAIN, "%" PRIu32, r->plans);
        table_cell(&t, PLAIN, "%.2f", r->seconds);
    }
    table_print(&t);
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (*x->rows[i].reason)
            out_print(o, "%s does not apply: %s\n", x->rows[i].strategy,
                      out_clean(o, x->rows[i].reason, 64).text);
}

static void print_proofs(search *x)
{
    out *o = x->s->out;
    const row *best = best_row(x);
    out_print(o, "\n");
    if (x->refused)
        out_print(o, "no plan fits batch %" PRId64 " or more: %s needs %s there\n", x->refused,
                  x->refused_phrase.text, out_size(o, x->refused_need).text);
    else if (*x->unbuilt)
        out_print(o, "batch %" PRId64 " cannot be built: %s\n", x->most + 1,
                  out_clean(o, x->unbuilt, 60).text);
    else
        out_print(o, "the least that plans need does not pass the budget up to batch %" PRId64 "\n",
                  x->most);
    if (x->bound.batch && x->bound.batch != x->refused) {
        out_print(o, "no plan in the graph's order of first runs fits batch %" PRId64,
                  x->bound.batch);
        if (x->bound.fits) {
            const char *unit = remat_graph_cost_unit(x->s->graph);
            out_print(o, ": it costs at least %s", out_cost(o, x->bound.cost, unit).text);
            out_print(o, ", above %s", out_cost(o, x->bound.limit, unit).text);
        }
        out_print(o, "\n");
    }
    if (proof(x, best))
        out_print(o, "%s's batch of %" PRId64 " is the largest%s: proved\n", best->strategy,
                  best->batch, x->refused == best->batch + 1 ? "" : " in that order");
}

static int status_of(search *x)
{
    session *s = x->s;
    if (session_interrupted()) {
        out_message(s->out, "interrupted: this is not all");
        return EXIT_INTERRUPTED;
    }
    if (best_row(x)) return REMAT_OK;
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (!*x->rows[i].reason) {
            out_message(s->out, "no plan was found at batch 1 within %s%s",
                        out_exact(s->out, x->budget).text,
                        s->args->text[FLAG_MAX_OVERHEAD] ? " and --max-overhead" : "");
            return REMAT_E_NOT_FOUND;
        }
    out_message(s->out, "none of the strategies applies%s%s", x->n_rows == 1 ? ": " : "",
                x->n_rows == 1 ? x->rows[0].reason : "");
    return REMAT_E_APPLIES;
}

/* Batch 1 does not fit. */
static int refuse_all(const search *x)
{
    session *s = x->s;
    char parts[400];
    report_need_parts(s, s->info.need_bytes, parts, sizeof parts);
    return out_fail(s->out, REMAT_E_INFEASIBLE, "", "",
                    "no batch fits %s: at batch 1 %s needs %s%s", out_exact(s->out, x->budget).text,
                    session_op_phrase(s, s->info.need_op).text,
                    out_exact(s->out, s->info.need_bytes).text, parts);
}

/* The limit of all strategies, and the graph there at hand. */
static int begin(search *x)
{
    int64_t limit;
    TRY(find_most(x));
    TRY(load(x, x->most ? x->most : 1, NULL));
    return cost_limit(x, &limit); /* a wrong flag is said before anything is planned */
}

static int find_all(search *x)
{
    session *s = x->s;
    uint32_t each = 0; /* plans a strategy */
    for (int64_t span = x->most; span > 0; span /= 2) each += 3;
    s->bar.parts = each * x->n_rows + 1;
    for (uint32_t i = 0; i < x->n_rows && !session_interrupted(); i++) {
        s->bar.part = each * i;
        TRY(find_largest(x, &x->rows[i], each));
    }
    if (s->args->text[FLAG_CERTIFY] && !session_interrupted()) TRY(certify(x));
    return REMAT_OK;
}

static void print_table(search *x)
{
    session *s = x->s;
    char after[160];
    const char *most = s->args->text[FLAG_MAX_OVERHEAD];
    snprintf(after, sizeof after, "  budget %s%s%.40s", out_exact(s->out, x->budget).text,
             most ? "  overhead at most " : "", most ? most : "");
    out_title(s->out, session_name(s), after);
    out_print(s->out, "\n");
    print_rows(x);
    print_proofs(x);
}

static int run(search *x)
{
    session *s = x->s;
    session_catch(s);
    int status = begin(x);
    const bool none = !status && x->refused == 1;
    if (!status && !none) status = find_all(x);
    session_release(s);
    if (none) return refuse_all(x);
    if (status) return status;
    if (s->out->json) print_json(x);
    else print_table(x);
    return status_of(x);
}

int cmd_maxbatch(session *s)
{
    const args *a = s->args;
    const char *list = a->text[FLAG_STRATEGY] ? a->text[FLAG_STRATEGY] : default_list,
               *budget = a->text[FLAG_BUDGET];
    remat_input *input = NULL;
    search x = {.s = s};
    if (!budget)
        return out_fail(s->out, REMAT_E_USAGE, "maxbatch", "--budget",
                        "is needed, for example --budget 16GB");
    if (strcmp(budget, "min") == 0 || strchr(budget, '%'))
        return out_fail(s->out, REMAT_E_USAGE, "maxbatch", "--budget",
                        "'%.40s': give bytes, which do not depend on the batch", budget);
    TRY(session_budget(s, "--budget", budget, &x.budget));
    TRY(session_strategies(s, list));
    TRY(heeds_check(s, list));
    TRY(session_input(s, a->operands[0], &input));
    if (remat_input_kind(input) == REMAT_KIND_CHAIN) {
        remat_input_free(input);
        return out_fail(s->out, REMAT_E_INPUT, a->operands[0], "",
                        "is a chain, where a graph is needed");
    }
    char *names = strcpy(out_resize(NULL, strlen(list) + 1, 1), list);
    for (char *name = names, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        x.rows = out_resize(x.rows, x.n_rows + 1, sizeof *x.rows);
        x.rows[x.n_rows++] = (row){.strategy = name};
    }
    x.input = input;
    const int status = run(&x);
    remat_input_free(input);
    for (uint32_t i = 0; i < x.n_rows; i++) free(x.rows[i].steps);
    free(x.rows);
    free(names);
    return status;
}

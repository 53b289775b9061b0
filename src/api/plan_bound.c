/* plan_bound.c: the public side of bounds. The solver proposes a certificate, and the verifier says
 * what it proves.
 *
 * What the solver itself believes is not asked. As with plans, the verifier stands behind every
 * number that leaves. */
#include "api/plan_bound.h"

#include "api/answer.h"
#include "graph/schedule.h"
#include "plan/bound/gate_prices.h"
#include "plan/bound/order_bound.h"
#include "sim/codes.h"
#include "verify/verify.h"

#include <string.h>

enum { WALLS_WORK = RM_SECOND / 4 }; /* operations, where no plan was made */

/* The normal graph's ops in the order of their first runs. */
static remat_status first_runs(remat_ctx *ctx, const rm_normal *nm, const remat_step *steps,
                               size_t n_steps, uint32_t **out)
{
    remat_step *own;
    rm_codes codes = {0};
    TRY(rm_steps_to_graph(ctx, nm->g, steps, n_steps, &own));
    const rm_schedule schedule = {.items = own, .n = n_steps, .room = n_steps};
    remat_status status = rm_codes_of_steps(ctx, nm, &schedule, &codes);
    if (status == REMAT_OK) status = rm_codes_first_runs(ctx, nm, &codes, out);
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status transfer_costs(remat_ctx *ctx, const rm_normal *nm, int64_t bandwidth,
                                   int64_t **out)
{
    TRY(RM_SCRATCH(ctx, *out, nm->n_stores));
    for (uint32_t s = 0; s < nm->n_stores; s++)
        (*out)[s] = rm_transfer_cost_limited(nm->bytes[s], bandwidth);
    return REMAT_OK;
}

/* Marks the storages that the ops at order[from .. to) touch: TOUCHED, or TAKEN if the op may make
 * an output in its place. Free views touch nothing. */
enum { TOUCHED = 1, TAKEN = 2 };
static void mark_touched(const rm_normal *nm, const uint32_t *order, uint32_t from, uint32_t to,
                         uint8_t *touched)
{
    for (uint32_t i = from; i < to; i++) {
        const uint32_t op = order[i];
        if (rm_is_free_view(nm, op)) continue;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            touched[nm->in[k]] = nm->may_take[k] ? TAKEN : TOUCHED;
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            touched[nm->out[k]] = TOUCHED;
    }
}

/* Keeps need_values the largest so far, largest first. */
static void add_need_value(const rm_normal *nm, uint32_t store, rm_proof *out)
{
    uint32_t *values = out->need_values, i = out->n_need_values;
    if (i < RM_LEN(out->need_values)) {
        out->n_need_values++;
    } else {
        i--; /* the smallest makes room, or there is none */
        if (nm->g->storage[values[i]] >= nm->bytes[store]) return;
    }
    for (; i > 0 && nm->g->storage[values[i - 1]] < nm->bytes[store]; i--)
        values[i] = values[i - 1];
    values[i] = nm->value[store];
}

/* Names the largest storages that make up the need at position t (gaps.c): what its op touches, and
 * what pinned ops made before and is touched after; not what the op may make an output in place of.
 * If plans may fetch, only the former. The end
 * (t = n_ops) touches the outputs. */
static remat_status name_needed(remat_ctx *ctx, const rm_normal *nm, const uint32_t *order,
                                uint32_t t, bool fetches, rm_proof *out)
{
    uint8_t *before, *at, *after; /* by storage: is it touched there? */
    TRY(RM_SCRATCH(ctx, before, nm->n_stores));
    TRY(RM_SCRATCH(ctx, at, nm->n_stores));
    TRY(RM_SCRATCH(ctx, after, nm->n_stores));
    mark_touched(nm, order, 0, t, before);
    if (t == nm->n_ops) memcpy(at, nm->is_output, nm->n_stores);
    else mark_touched(nm, order, t, t + 1, at);
    mark_touched(nm, order, t + 1, nm->n_ops, after);
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        const bool held =
            !fetches && nm->pinned[nm->producer[s]] && before[s] && (after[s] || nm->is_output[s]);
        if ((at[s] == TOUCHED || (held && at[s] != TAKEN)) && nm->bytes[s] > 0)
            add_need_value(nm, s, out);
    }
    return REMAT_OK;
}

/* Solves the program of the case, and says what it leaves as a certificate. Not yet verified. */
static remat_status find_certificate(remat_ctx *ctx, const remat_graph *g,
                                     const rm_bound_case *question, const rm_normal *normal,
                                     const uint32_t *order, rm_proof *out)
{
    const rm_normal nm = *normal;
    rm_order_bound bound;
    int64_t *transfer = NULL;
    if (question->fetches) TRY(transfer_costs(ctx, &nm, question->bandwidth, &transfer));
    const rm_order_bound_options options = {.rules = (unsigned)ctx->options.bound_rules,
                                            .transfer = transfer,
                                            .any_order = !question->steps};
    TRY(rm_order_bound_find(ctx, &nm, question->budget_bytes, order, &options, &bound));
    const uint32_t t = bound.tightest;
    *out = (rm_proof){.cost = g->total_cost,
                      .method = "flow",
                      .feasible = bound.feasible,
                      .need_bytes = bound.need[t],
                      .need_op = t == bound.n_positions ? REMAT_NONE : nm.op[bound.order[t]],
                      .rules = bound.rules,
                      .certificate = bound.certificate};
    if (bound.feasible || !order) return REMAT_OK;
    return name_needed(ctx, &nm, order, t, question->fetches, out);
}

/* What a certificate proves. 0: nobody would wait until it is checked. */
static remat_status verify_certificate(remat_ctx *ctx, const remat_graph *g,
                                       const rm_bound_case *question, const rm_certificate *x,
                                       int64_t *cost)
{
    remat_verdict verdict;
    TRY(rm_verify_bound(ctx, g, question, x, cost, &verdict));
    if (verdict.valid) return REMAT_OK;
    *cost = 0;
    if (strcmp(verdict.reason, rm_too_long_to_check) == 0) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_BUG, "the certificate of a bound is refused: %s", verdict.reason);
}

/* Walls may prove more than gaps do. */
static remat_status try_walls(remat_ctx *ctx, const remat_graph *g, const rm_bound_case *question,
                              const rm_normal *nm, const uint32_t *order,
                              const rm_proof_hints *hints, rm_proof *proof)
{
    const rm_gate_question about = {.budget_bytes = question->budget_bytes,
                                    .order = order,
                                    .flow = &proof->certificate,
                                    .other = hints->walls,
                                    .enough = hints->plan_cost - g->total_cost,
                                    .most_work = hints->walls_work};
    rm_certificate found;
    int64_t cost;
    if (!(ctx->options.bound_rules & REMAT_BOUND_WALLS)) return REMAT_OK;
    if (question->fetches || question->budget_bytes < 0 || proof->cost >= hints->plan_cost)
        return REMAT_OK;
    TRY(rm_gate_prices_find(ctx, nm, &about, &found));
    if (found.scale == 0) return REMAT_OK;
    TRY(verify_certificate(ctx, g, question, &found, &cost));
    if (cost <= proof->cost) return REMAT_OK; /* or it takes too long to check */
    proof->cost = cost;
    proof->method = "walls";
    proof->rules = 0;
    proof->certificate = found;
    return REMAT_OK;
}

remat_status rm_certify_bound(remat_ctx *ctx, const remat_graph *g, const rm_bound_case *question,
                              const rm_proof_hints *hints, rm_proof *out)
{
    rm_normal nm;
    uint32_t *order = NULL;
    TRY(rm_normal_of(ctx, g, &nm));
    if (question->steps) TRY(first_runs(ctx, &nm, question->steps, question->n_steps, &order));
    TRY(find_certificate(ctx, g, question, &nm, order, out));
    if (!out->feasible) return REMAT_OK;
    TRY(verify_certificate(ctx, g, question, &out->certificate, &out->cost));
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = try_walls(ctx, g, question, &nm, order, hints, out);
    if (!rm_is_too_much_memory(ctx, status)) return status;
    rm_scratch_release(ctx, mark); /* what gaps prove must do */
    return REMAT_OK;
}

static uint32_t original_op(const remat_graph *g, uint32_t op)
{
    return op == REMAT_NONE ? REMAT_NONE : g->op_original[op];
}

/* What the proof says of plans that keep to keep-all's order. */
static remat_bound in_fixed_order(const remat_graph *g, int64_t budget_bytes, const rm_proof *proof)
{
    remat_bound b = {.budget_bytes = budget_bytes,
                     .cost = proof->cost,
                     .any_order_cost = g->total_cost,
                     .keep_all_cost = g->total_cost,
                     .need_bytes = proof->need_bytes,
                     .need_op = original_op(g, proof->need_op),
                     .scope = "any-order",
                     .method = "first-runs",
                     .status = REMAT_OK};
    if (!proof->feasible) {
        b.cost = REMAT_ABSENT;
        b.scope = "fixed-order";
        b.method = "need";
        b.status = REMAT_E_INFEASIBLE;
    } else if (proof->certificate.scale && proof->cost > g->total_cost) {
        b.scope = "fixed-order";
        b.method = proof->method;
        b.rules = proof->rules;
    }
    return b;
}

/* The budget is below the need. */
static void say_infeasible(const remat_graph *g, rm_need need, remat_bound *out)
{
    out->need_bytes = need.bytes;
    out->need_op = original_op(g, need.op);
    out->cost = REMAT_ABSENT;
    out->any_order_cost = REMAT_ABSENT;
    out->scope = "any-order";
    out->method = "need";
    out->status = REMAT_E_INFEASIBLE;
}

/* What holds in any order. Where that is as much as in keep-all's, it is the answer. */
static remat_status add_any_order(remat_ctx *ctx, const remat_graph *g, rm_bound_case question,
                                  const rm_certificate *own, remat_bound *out)
{
    rm_proof proof;
    const rm_proof_hints hints = {RM_MAX_SUM, own, WALLS_WORK};
    question.steps = NULL;
    TRY(rm_certify_bound(ctx, g, &question, &hints, &proof));
    if (!proof.feasible) {
        say_infeasible(g, (rm_need){proof.need_bytes, proof.need_op}, out);
        return REMAT_OK;
    }
    out->any_order_cost = proof.cost;
    if (out->status != REMAT_OK || proof.cost < out->cost || proof.cost == g->total_cost)
        return REMAT_OK;
    out->cost = proof.cost;
    out->scope = "any-order";
    out->method = proof.method;
    out->rules = proof.rules;
    return REMAT_OK;
}

/* With the option offload, it is the bound of plans that may offload and fetch. */
static remat_status find(remat_ctx *ctx, const remat_graph *g, int64_t budget_bytes,
                         remat_bound *out)
{
    const rm_transfers transfers = {ctx->options.offload, ctx->options.bandwidth};
    remat_step *steps;
    rm_proof proof;
    rm_need need;
    const rm_proof_hints hints = {RM_MAX_SUM, NULL, WALLS_WORK};
    TRY(rm_steps_keep_all(ctx, g, &steps));
    rm_steps_to_original(g, steps, g->n_ops);
    TRY(rm_need_find(ctx, g, transfers.allowed, &need));
    const rm_bound_case question = {steps, g->n_ops, budget_bytes, transfers.allowed,
                                    transfers.bandwidth};
    TRY(rm_certify_bound(ctx, g, &question, &hints, &proof));
    *out = in_fixed_order(g, budget_bytes, &proof);
    if (budget_bytes < need.bytes) { /* infeasible in any order, which says more */
        say_infeasible(g, need, out);
        TRY(rm_need_values(ctx, g, transfers.allowed, proof.need_values, RM_LEN(proof.need_values),
                           &proof.n_need_values));
    } else {
        TRY(add_any_order(ctx, g, question, &proof.certificate, out));
    }
    for (uint32_t i = 0; i < proof.n_need_values; i++)
        out->need_values[out->n_need_values++] = g->value_original[proof.need_values[i]];
    return REMAT_OK;
}

remat_status remat_bound_find(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                              remat_bound *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_bound"));
    if (budget_bytes < 0 || budget_bytes >= RM_MAX_SUM)
        return rm_fail(ctx, REMAT_E_USAGE, "a bound needs a budget in bytes, below 2^62");
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_bound bound;
    const remat_status status = find(ctx, graph, budget_bytes, &bound);
    if (status == REMAT_OK) RM_ANSWER(out, &bound);
    rm_scratch_release(ctx, mark);
    return status;
}

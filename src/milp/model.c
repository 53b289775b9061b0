/* model.c: a program under construction: columns, and rows as one list of terms.
 *
 * Problem: a row may get a term of the same column several times, and solvers want one. Method:
 * `seen` knows where the column's term of this row is, so the values add up there. A row that ends
 * drops the terms that have become zero. Invariant: between two rows terms.n == n_done, and no
 * column of a finished row is marked in `seen`. Cost: amortised O(1) a term. */
#include "milp/model.h"

#include <assert.h>

remat_status rm_model_column(remat_ctx *ctx, rm_model *m, const rm_column *column, uint32_t *out)
{
    *out = (uint32_t)m->columns.n;
    TRY(RM_PUSH(ctx, m->seen, 0));
    return RM_PUSH(ctx, m->columns, *column);
}

size_t rm_model_most_terms(const rm_model *m)
{
    return m->most_terms ? m->most_terms : INT32_MAX - 1;
}

remat_status rm_model_too_large(remat_ctx *ctx, const rm_model *m)
{
    const size_t most = rm_model_most_terms(m);
    const bool by_option = (int64_t)most == ctx->options.checkmate_entries;
    return rm_fail(ctx, REMAT_E_APPLIES, "its program has over %zu entries%s", most,
                   by_option ? "; --checkmate-entries allows more"
                             : "; --time or --work allows more");
}

remat_status rm_model_term(remat_ctx *ctx, rm_model *m, uint32_t column, double value)
{
    if (column == REMAT_NONE || value == 0) return REMAT_OK;
    assert(column < m->columns.n);
    if (m->seen.items[column] > m->n_done) { /* the row has it already */
        m->terms.items[m->seen.items[column] - 1].value += value;
        return REMAT_OK;
    }
    if (m->terms.n >= rm_model_most_terms(m)) return rm_model_too_large(ctx, m);
    const rm_term term = {column, value};
    m->seen.items[column] = (uint32_t)m->terms.n + 1;
    return RM_PUSH(ctx, m->terms, term);
}

remat_status rm_model_row(remat_ctx *ctx, rm_model *m, double lower, double upper)
{
    size_t n = m->n_done;
    const rm_row row = {lower, upper};
    assert(lower <= upper);
    for (size_t k = m->n_done; k < m->terms.n; k++) {
        const rm_term term = m->terms.items[k];
        m->seen.items[term.column] = 0;
        if (term.value != 0) m->terms.items[n++] = term;
    }
    m->terms.n = n;
    if (n == m->n_done) return REMAT_OK;
    if (m->rows.n == 0) TRY(RM_PUSH(ctx, m->row_begin, 0));
    TRY(RM_PUSH(ctx, m->rows, row));
    TRY(RM_PUSH(ctx, m->row_begin, (int32_t)n));
    m->n_done = n;
    return REMAT_OK;
}

void rm_model_free(remat_ctx *ctx, rm_model *m)
{
    RM_VEC_FREE(&ctx->heap, m->columns);
    RM_VEC_FREE(&ctx->heap, m->rows);
    RM_VEC_FREE(&ctx->heap, m->row_begin);
    RM_VEC_FREE(&ctx->heap, m->terms);
    RM_VEC_FREE(&ctx->heap, m->seen);
}

double rm_model_cost(const rm_model *m, const double *x)
{
    double cost = 0;
    for (size_t i = 0; i < m->columns.n; i++) cost += m->columns.items[i].cost * x[i];
    return cost;
}

static double outside(double x, double lower, double upper)
{
    if (x < lower) return lower - x;
    return x > upper ? x - upper : 0;
}

double rm_model_violation(const rm_model *m, const double *x)
{
    double worst = 0;
    for (size_t i = 0; i < m->columns.n; i++)
        worst = fmax(worst, outside(x[i], m->columns.items[i].lower, m->columns.items[i].upper));
    for (size_t r = 0; r < m->rows.n; r++) {
        double sum = 0;
        for (int32_t k = m->row_begin.items[r]; k < m->row_begin.items[r + 1]; k++)
            sum += m->terms.items[k].value * x[m->terms.items[k].column];
        worst = fmax(worst, outside(sum, m->rows.items[r].lower, m->rows.items[r].upper));
    }
    return worst;
}

/* model.h: a mixed integer linear program under construction: min c x, lower <= x <= upper,
 * row_lower <= A x <= row_upper.
 *
 *     const uint32_t x = ...; TRY(rm_model_column(ctx, &m, &(rm_column){.cost = 3, .upper = 1,
 * .integer = true, .name = {'R', {4, 2}}}, &x)); TRY(rm_model_term(ctx, &m, x, 1));
 *     TRY(rm_model_row(ctx, &m, -INFINITY, 1)); // the row of the terms since the last one
 *
 * Terms of one column in one row add up; zeros vanish. Columns know themselves by a letter and up
 * to three numbers: R_4_2. */
#ifndef RM_MODEL_H
#define RM_MODEL_H

#include <math.h>

#include "base/base.h"
#include "base/vec.h"

typedef struct rm_column_name {
    char letter;
    uint32_t index[3];
    uint8_t n; /* of the numbers */
} rm_column_name;

typedef struct rm_column {
    double cost, lower, upper;
    bool integer;
    rm_column_name name;
} rm_column;

typedef struct rm_row {
    double lower, upper;
} rm_row;

typedef struct rm_term {
    uint32_t column;
    double value;
} rm_term;

typedef struct rm_model {
    RM_VEC(rm_column) columns;
    RM_VEC(rm_row) rows;
    RM_VEC(int32_t) row_begin; /* rows + 1, once there is a row */
    RM_VEC(rm_term) terms;     /* by row */
    RM_VEC(uint32_t) seen;     /* by column: 1 + its last term */
    size_t n_done;             /* terms of finished rows */
    size_t
        most_terms; /* REMAT_E_APPLIES beyond them; 0: what a solver with 32 bit indices can take */
} rm_model;

size_t rm_model_most_terms(const rm_model *m);
remat_status rm_model_too_large(remat_ctx *ctx,
                                const rm_model *m); /* REMAT_E_APPLIES, and says so */
remat_status rm_model_column(remat_ctx *ctx, rm_model *m, const rm_column *column, uint32_t *out);
remat_status rm_model_term(remat_ctx *ctx, rm_model *m, uint32_t column,
                           double value); /* REMAT_NONE: no term */
remat_status rm_model_row(remat_ctx *ctx, rm_model *m, double lower,
                          double upper); /* without terms: no row */
void rm_model_free(remat_ctx *ctx, rm_model *m);

/* The objective of x, and how far it is from satisfying bounds and rows at worst. */
double rm_model_cost(const rm_model *m, const double *x);
double rm_model_violation(const rm_model *m, const double *x);

enum { RM_NAME_ROOM = 40 };
void rm_column_name_text(const rm_column_name *name, char text[RM_NAME_ROOM]);
/* As free MPS, which every solver reads. */
remat_status rm_model_write_mps(remat_ctx *ctx, const rm_model *m, const char *name,
                                remat_sink *sink, void *user);
/* A solution file of another solver: wherever one of our names is followed by a number, that is its
 * value; all else, and columns that are not named, count as 0 (or what their bounds leave).
 * REMAT_E_INPUT if there is no value at all, or one that is no number. */
remat_status rm_model_read_solution(remat_ctx *ctx, const rm_model *m, const char *text,
                                    size_t n_bytes, double *x);

#endif

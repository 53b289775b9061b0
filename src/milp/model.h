/* model.h: a mixed integer linear program under construction: min c x, lower <= x <= upper,
 * row_lower <= A x <= row_upper.
 *
 *     const rm_column column = {.cost = 3, .upper = 1, .integer = true, .name = {'R', {4, 2}, 2}};
 *     uint32_t x;
 *     TRY(rm_model_column(ctx, &m, &column, &x));
 *     TRY(rm_model_term(ctx, &m, x, 1));
 *     TRY(rm_model_row(ctx, &m, -INFINITY, 1)); // the row of the terms since the last one
 *
 * Terms of one column in one row add up. Zeros vanish. A column's name is a letter and up to three
 * numbers: R_4_2. */
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
    /* One more term is REMAT_E_APPLIES. 0: what a solver with 32 bit indices can take. */
    size_t most_terms;
} rm_model;

size_t rm_model_most_terms(const rm_model *m);
/* REMAT_E_APPLIES, with the message that the program has too many terms. */
remat_status rm_model_too_large(remat_ctx *ctx, const rm_model *m);
remat_status rm_model_column(remat_ctx *ctx, rm_model *m, const rm_column *column, uint32_t *out);
/* A term of the row under construction. Column REMAT_NONE: no term. */
remat_status rm_model_term(remat_ctx *ctx, rm_model *m, uint32_t column, double value);
/* Ends the row under construction. There is no row without terms. */
remat_status rm_model_row(remat_ctx *ctx, rm_model *m, double lower, double upper);
void rm_model_free(remat_ctx *ctx, rm_model *m);

double rm_model_cost(const rm_model *m, const double *x); /* the objective */
/* By how much x breaks the bound or the row that it breaks most; 0: none. */
double rm_model_violation(const rm_model *m, const double *x);

enum { RM_NAME_ROOM = 40 };
void rm_column_name_text(const rm_column_name *name, char text[RM_NAME_ROOM]);
/* Writes the program as free MPS, which every solver reads. */
remat_status rm_model_write_mps(remat_ctx *ctx, const rm_model *m, const char *name,
                                remat_sink *sink, void *user);
/* Reads a solution file of another solver. Wherever one of our names is followed by a number, that
 * is the column's value. All else is skipped. A column that is not named is 0, or what its bounds
 * leave nearest to 0. REMAT_E_INPUT if there is no value at all, or one that is no number. */
remat_status rm_model_read_solution(remat_ctx *ctx, const rm_model *m, const char *text,
                                    size_t n_bytes, double *x);

#endif

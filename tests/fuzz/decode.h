/* decode.h: any bytes as a graph or a chain, and as a way to plan it.
 *
 * The bytes are a little program. A head of seven bytes and a few options says what is made and how
 * it is planned; each instruction behind it makes a value, an op, or thousands of ops. Every string
 * of bytes means something, and short ones go far, so that a fuzzer can mutate them at will. Bytes
 * behind the end are zero. */
#ifndef FUZZ_DECODE_H
#define FUZZ_DECODE_H

#include "remat.h"

typedef struct source {
    const uint8_t *at, *end;
} source;

uint32_t take_byte(source *s);
int64_t
take_number(source *s); /* 0, 1, 7, ... 2^31, ... 2^53, ... 2^62 - 1, and their neighbours */

typedef enum budget_kind {
    BUDGET_IS_NONE,
    BUDGET_IS_MIN,
    BUDGET_IS_ZERO,
    BUDGET_IS_NEED,
    BUDGET_IS_BELOW_NEED,
    BUDGET_IS_PART, /* of the way from the need to keep-all's peak */
    BUDGET_IS_PERCENT,
    BUDGET_IS_NUMBER
} budget_kind;

typedef enum stop_kind { STOP_NEVER, STOP_AT_ONCE, STOP_IN_REPORT } stop_kind;

typedef struct setting {
    bool is_chain;          /* stages, not a graph */
    bool large;             /* thousands of ops rather than tens */
    bool in_place;          /* ops may make an output in place of an input */
    bool unchecked;         /* sums of sizes and costs may pass 2^62 */
    bool without_costs;     /* ops have none: a cost model decides */
    uint32_t phases;        /* none, two halves, a backward pass is added, any */
    unsigned flags;         /* for remat_graph_prepare */
    const char *cost_model; /* likewise */
    budget_kind budget;
    uint32_t budget_byte;
    int64_t budget_number;
    int64_t work;
    stop_kind stop;
    size_t refuse_at; /* this allocation of every call is refused; 0: none */
} setting;

/* Reads the head and sets the options of the context that it names. */
setting take_setting(source *s, remat_ctx *ctx);
int64_t budget_of(const setting *x, int64_t need_bytes, int64_t keep_all_peak_bytes);

/* What is left of the bytes, as a graph: the builder's status. */
remat_status take_graph(source *s, const setting *x, remat_ctx *ctx, remat_graph **out);

enum { FUZZ_MOST_STAGES = 100 };
/* What is left, over and over, as stages for remat_chain_new; returns n_stages. */
uint32_t take_stages(source *s, const setting *x, remat_stage stages[FUZZ_MOST_STAGES + 2]);

#endif

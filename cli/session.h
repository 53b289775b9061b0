/* session.h: what one run of the program holds: the context, the graph (as read and as prepared) or
 * the chain, and the plans made. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "args.h"
#include "out.h"
#include "remat.h"

#define DEFAULT_STRATEGY "auto" /* with a budget; keep-all without one */
enum { EXIT_INTERRUPTED = 130 };

struct session {
    const args *args;
    out *out; /* standard output */
    remat_ctx *ctx;
    remat_graph *original; /* as read: plans speak of its ops and values */
    remat_graph *graph;    /* as prepared: this one is planned; it has numbers of its own */
    unsigned prepared;     /* how: REMAT_DCE | ... */
    remat_chain *chain; /* not NULL: this is meant, not the graph; its ops are stages 1 to L + 1 */
    remat_info info;    /* of the prepared graph or the chain */
    const remat_plan *keep_all; /* by session_keep_all */
    remat_plan **plans;         /* all that were made or read, freed by session_close */
    size_t n_plans;
    char **warnings; /* that were printed; each is printed once */
    size_t n_warnings;
    struct {                        /* progress */
        uint32_t part, parts;       /* of a loop over strategies */
        uint32_t point, points;     /* of a loop over budgets inside */
        int64_t begin_ns, drawn_ns; /* drawn_ns: 0 if no bar is on the terminal */
        int64_t work;               /* spent when it was drawn */
        int columns;
    } bar;
};

/* These print their own error; they return REMAT_OK or the exit code. */
int session_open(session *s, const args *a, out *o);
void session_close(session *s);
int session_fail(session *s, remat_status status); /* the context's last error */
int session_input(session *s, const char *source, remat_input **input);
const remat_plan *session_keep(session *s, remat_plan *plan); /* freed by session_close */
int session_read_plan(session *s, const char *source, const remat_plan **plan);
int session_input_plan(session *s, const remat_input *input, const remat_plan **plan);
/* A graph, prepared, or a chain (also of a graph, with --chain). `plan` is NULL or was read from
 * `plan_source`; its options apply where no flag does. */
int session_read_input(session *s, const char *source, const remat_input *input,
                       const remat_plan *plan, const char *plan_source);
int session_measure(session *s); /* fills in `info` */
/* session_input, session_read_input and session_measure. */
int session_read(session *s, const char *source, const remat_plan *plan, const char *plan_source);
bool session_prepares(const args *a); /* is there a graph flag? */
int session_keep_all(session *s);
/* The operands GRAPH [PLAN]: the plan, verified; keep-all without one. */
int session_program(session *s, const remat_plan **plan);
/* Is this plan, read from there, valid on the graph at hand? */
int session_check_plan(session *s, const remat_plan *plan, const char *plan_source);
/* NULL text: no budget. */
int session_budget(session *s, const char *place, const char *text, int64_t *budget_bytes);
const char *session_why_not(session *s); /* why a strategy does not apply, after REMAT_E_APPLIES */
int session_strategy(session *s, const char *name);   /* is there such a strategy? */
int session_strategies(session *s, const char *list); /* the same for "a,b,c", each of them once */
/* The graph at another batch size in place of the one at hand, prepared and measured. Unlike the
 * others it prints nothing. */
remat_status session_read_batch(session *s, const remat_input *input, int64_t batch);

const char *session_name(const session *s);
const char *session_digest(const session *s);
const char *session_cost_model(const session *s);
const char *session_cost_unit(const session *s);
/* The name of an op, a stage or a value of the original; "op 3", "stage 3" or "value 3" where it
 * has none, in `buffer`. NULL for REMAT_NONE. */
const char *session_op(const session *s, uint32_t op, amount *buffer);
/* The same for the place where memory is needed: REMAT_NONE is the end of the step. */
const char *session_place(const session *s, uint32_t op, amount *buffer);
label session_op_phrase(const session *s, uint32_t op); /* "op relu", "op 3", "stage 2" */
const char *session_value(const session *s, uint32_t value, amount *buffer);

/* Between these two a bar shows progress, and Ctrl-C stops planners and loops instead of the
 * program. A second Ctrl-C does end it. */
void session_catch(session *s);
void session_release(session *s);
bool session_interrupted(void);
/* Between these two a terminal shows the seconds; session_catch does that, too. */
void session_busy(session *s);
void session_idle(session *s);
double seconds_now(void); /* of a clock that never goes back */

typedef struct made {
    const remat_plan *plan;
    double seconds;
} made;
/* Plans at n ascending budgets, on a chain all at once. REMAT_BUDGET_MIN and _NONE must be the only
 * one. *n_made is less than n after Ctrl-C. Unlike the others it prints nothing: the caller may
 * want to go on. */
remat_status session_plans(session *s, const char *strategy, const int64_t *budgets, uint32_t n,
                           made *plans, uint32_t *n_made);

/* Calls the writer on FILE ("-" or NULL: standard output) and checks every write. A regular file is
 * replaced at the end, so that a failure leaves it as it was. */
typedef remat_status session_writer(session *s, const void *object, remat_format format, out *to);
int session_write(session *s, const char *path, session_writer *write, const void *object,
                  remat_format format);
/* The same for the picture that --svg asks for, if it does. */
int session_write_svg(session *s, session_writer *write, const void *object);
/* Can all files be written that flags name, and is nothing lost by it? Asked before the work. */
int session_check_outputs(session *s);
bool session_svg_is_output(const session *s); /* --svg -: nothing else goes to standard output */
remat_format session_format(const char *path, remat_format plain); /* gzip where it ends in .gz */

/* Prints the error of a library call that failed, and returns its exit code. */
#define CHECK(s, call)                                                                             \
    do {                                                                                           \
        const remat_status status_ = (call);                                                       \
        if (status_ != REMAT_OK) return session_fail((s), status_);                                \
    } while (0)

#endif

/* session.h: what one run of the program holds: the context, the graph as read and as prepared, the plans made. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "args.h"
#include "out.h"
#include "remat.h"

#define DEFAULT_STRATEGY "chen-greedy" /* with a budget; without one: keep-all */

struct session {
    const args *args;
    out *out; /* standard output */
    remat_ctx *ctx;
    remat_graph *original, *graph; /* as read: names of ops and values in plans; as prepared: planned, numbered by itself */
    remat_info info;               /* of the prepared graph */
    remat_plan **plans;            /* all that were made or read, freed by session_close */
    size_t n_plans;
    double seconds; /* of the last session_plan */
};

/* These print their own error; they return REMAT_OK or the exit code. */
int session_open(session *s, const args *a, out *o);
void session_close(session *s);
int session_fail(session *s, remat_status status); /* the context's last error */
int session_input(session *s, const char *source, remat_input **input);
int session_graph(session *s, const char *source, const remat_summary *recorded); /* recorded: options of a plan, or NULL */
int session_read_graph(session *s, const remat_input *input, const remat_summary *recorded);
int session_read_plan(session *s, const char *source, const remat_plan **plan);
int session_budget(session *s, const char *text, int64_t *budget_bytes); /* NULL text: no budget */
int session_strategy(session *s, const char *name);                      /* is there such a strategy? */

/* Plans with progress and Ctrl-C in place. Unlike the others it prints nothing: the caller may want to go on. */
remat_status session_plan(session *s, const char *strategy, int64_t budget_bytes, const remat_plan **plan);
bool session_interrupted(void); /* Ctrl-C came while planning */

/* Calls the writer on FILE ("-" or NULL: standard output), checks every write, removes what is left of a failed one. */
typedef remat_status session_writer(session *s, const void *object, remat_format format, out *to);
int session_write(session *s, const char *path, session_writer *write, const void *object, remat_format format);
remat_format session_format(const char *path, remat_format plain); /* gzip for names that end in .gz */

#define CHECK(s, call)                                                                                                         \
    do {                                                                                                                       \
        const remat_status status_ = (call);                                                                                   \
        if (status_ != REMAT_OK) return session_fail((s), status_);                                                            \
    } while (0)

#endif

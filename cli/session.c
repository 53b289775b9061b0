/* session.c: from the command line to a prepared graph and to plans.
 *
 * Every command begins alike: make a context, set the options, read, prepare. The graph is kept twice: plans, steps and
 * statements name ops and values of the file as read (`original`), while remat_info and planning speak of the prepared
 * copy (`graph`). Ctrl-C is caught only while a planner runs: the first asks it to stop with its best plan, the second
 * kills the program; anywhere else one is enough. */
#define _XOPEN_SOURCE 700
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_AFTER_MS = 1000, PROGRESS_EVERY_MS = 100, BAR_COLUMNS = 30 };

static remat_ctx *volatile running; /* whom the signal handler stops */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
    if (running) remat_ctx_stop(running);
}

bool session_interrupted(void) { return interrupted != 0; }

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct bar {
    int64_t begin_ms, drawn_ms;
    bool drawn;
} bar;

static void on_progress(void *user, const remat_progress *p)
{
    bar *b = user;
    const int64_t now = now_ms();
    if (now - b->begin_ms < PROGRESS_AFTER_MS || now - b->drawn_ms < PROGRESS_EVERY_MS) return;
    const int permille = p->permille < 0 ? 0 : p->permille > 1000 ? 1000 : p->permille;
    char line[BAR_COLUMNS + 1];
    for (int i = 0; i < BAR_COLUMNS; i++) line[i] = i * 1000 < permille * BAR_COLUMNS ? '#' : '.';
    line[BAR_COLUMNS] = '\0';
    const amount peak = p->peak_bytes >= 0 ? human_bytes(p->peak_bytes) : (amount){"no plan yet"};
    fprintf(stderr, "\r\033[K%.20s [%s] %3d%%  %s", p->strategy, line, permille / 10, peak.text);
    fflush(stderr);
    b->drawn = true, b->drawn_ms = now;
}

static void on_warning(void *user, const char *line) { out_message(user, "warning: %s", line); }

int session_open(session *s, const args *a, out *o)
{
    *s = (session){.args = a, .out = o, .ctx = remat_ctx_new(NULL)};
    if (!s->ctx) return out_fail(o, REMAT_E_MEMORY, "", "", "out of memory");
    remat_ctx_on_warning(s->ctx, on_warning, o);
    for (int i = 0; i < a->n_options; i++) CHECK(s, remat_ctx_set(s->ctx, a->options[i].name, a->options[i].value));
    return REMAT_OK;
}

void session_close(session *s)
{
    for (size_t i = 0; i < s->n_plans; i++) remat_plan_free(s->plans[i]);
    free(s->plans);
    remat_graph_free(s->graph);
    remat_graph_free(s->original);
    remat_ctx_free(s->ctx);
}

int session_fail(session *s, remat_status status)
{
    const char *reason = remat_ctx_error_reason(s->ctx);
    if (!*reason) reason = remat_ctx_error(s->ctx);
    return out_fail(s->out, status, remat_ctx_error_file(s->ctx), remat_ctx_error_place(s->ctx), "%s", reason);
}

int session_input(session *s, const char *source, remat_input **input)
{
    CHECK(s, remat_input_open(s->ctx, source, input));
    return REMAT_OK;
}

static unsigned flags_given(const args *a)
{
    return (a->text[FLAG_DCE] ? REMAT_DCE : 0u) | (a->text[FLAG_FOLD_IDENTITY] ? REMAT_FOLD_IDENTITY : 0u) |
           (a->text[FLAG_NO_ALIAS] ? REMAT_NO_ALIAS : 0u) | (a->text[FLAG_REPLAY_RANDOM] ? REMAT_REPLAY_RANDOM : 0u);
}

int session_read_graph(session *s, const remat_input *input, const remat_summary *recorded)
{
    unsigned wanted = flags_given(s->args);
    const char *cost_model = s->args->text[FLAG_COST_MODEL];
    if (recorded && !wanted) wanted = recorded->flags;
    if (recorded && !cost_model && *recorded->cost_model) cost_model = recorded->cost_model;
    CHECK(s, remat_graph_read(s->ctx, input, &s->original));
    CHECK(s, remat_graph_prepare(s->ctx, s->original, wanted, cost_model, &s->graph));
    CHECK(s, remat_graph_info(s->ctx, s->graph, &s->info));
    return REMAT_OK;
}

int session_graph(session *s, const char *source, const remat_summary *recorded)
{
    remat_input *input;
    int status = session_input(s, source, &input);
    if (status) return status;
    status = session_read_graph(s, input, recorded);
    remat_input_free(input);
    return status;
}

static const remat_plan *own(session *s, remat_plan *plan)
{
    s->plans = out_resize(s->plans, s->n_plans + 1, sizeof *s->plans);
    s->plans[s->n_plans++] = plan;
    return plan;
}

int session_read_plan(session *s, const char *source, const remat_plan **plan)
{
    remat_input *input;
    remat_plan *made;
    const int status = session_input(s, source, &input);
    if (status) return status;
    const remat_status read = remat_plan_read(s->ctx, input, &made);
    remat_input_free(input);
    CHECK(s, read);
    *plan = own(s, made);
    return REMAT_OK;
}

int session_budget(session *s, const char *text, int64_t *budget_bytes)
{
    *budget_bytes = REMAT_BUDGET_NONE;
    if (text) CHECK(s, remat_budget_parse(s->ctx, text, s->info.keep_all_peak_bytes, budget_bytes));
    return REMAT_OK;
}

int session_strategy(session *s, const char *name)
{
    const remat_entry *entry;
    guess g = {.word = name};
    for (size_t i = 0; (entry = remat_strategy_at(i)); i++) {
        if (strcmp(entry->name, name) == 0) return REMAT_OK;
        guess_offer(&g, entry->name);
    }
    return out_fail(s->out, REMAT_E_USAGE, commands[s->args->command].name, "--strategy", "unknown strategy '%.60s'%s", name,
                    g.best ? guess_hint(&g, "").text : "; remat plan --help lists them");
}

remat_status session_plan(session *s, const char *strategy, int64_t budget_bytes, const remat_plan **plan)
{
    bar b = {.begin_ms = now_ms()};
    remat_plan *made = NULL;
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    running = s->ctx;
    sigaction(SIGINT, &action, &before);
    if (isatty(STDERR_FILENO)) remat_ctx_on_progress(s->ctx, on_progress, &b);
    const double begin = now_seconds();
    const remat_status status = remat_plan_make(s->ctx, s->graph, strategy, budget_bytes, &made);
    s->seconds = (double)(int64_t)((now_seconds() - begin) * 1e6 + 0.5) / 1e6;
    sigaction(SIGINT, &before, NULL);
    running = NULL;
    remat_ctx_on_progress(s->ctx, NULL, NULL);
    if (b.drawn) fputs("\r\033[K", stderr);
    if (status == REMAT_OK) *plan = own(s, made);
    return status;
}

remat_format session_format(const char *path, remat_format plain)
{
    const size_t length = strlen(path);
    const bool gz = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    return gz && plain == REMAT_JSON ? REMAT_JSON_GZ : plain;
}

int session_write(session *s, const char *path, session_writer *write, const void *object, remat_format format)
{
    if (!path || strcmp(path, "-") == 0) {
        const remat_status status = write(s, object, format, s->out);
        if (s->out->error) return REMAT_E_IO; /* out_close says why */
        return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
    }
    FILE *file = fopen(path, "wb");
    if (!file) return out_fail(s->out, REMAT_E_IO, path, "", "%s", strerror(errno));
    out to;
    out_open(&to, file, path, s->out->json);
    const remat_status status = write(s, object, format, &to);
    if (fflush(file) != 0 && !to.error) to.error = errno;
    struct stat about;
    const bool regular = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode);
    if (fclose(file) != 0 && !to.error) to.error = errno;
    if (!to.error && status == REMAT_OK) return REMAT_OK;
    if (regular) remove(path);
    return to.error ? out_fail(s->out, REMAT_E_IO, path, "", "%s", strerror(to.error)) : session_fail(s, status);
}

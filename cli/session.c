/* session.c: from the command line to a prepared graph or a chain, and to plans.
 *
 * Every command begins alike: make a context, set the options, read, prepare. The graph is kept
 * twice. Plans, steps and statements name ops and values of the file as read (`original`).
 * remat_info and planning speak of the prepared copy (`graph`).
 *
 * Ctrl-C is caught only while planners run, and not if the program was started to ignore it. The
 * first asks planners to stop with the best so far, the second kills the program. Anywhere else one
 * is enough.
 *
 * What takes over a second says so on a terminal: planners by a bar, and what cannot say how far it
 * is (reading, bounds, the first look at a large graph) by the seconds, from a timer. */
#define _XOPEN_SOURCE 700
#include "session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)
#define PROGRESS_AFTER_NS NS_PER_SECOND
#define PROGRESS_EVERY_NS (NS_PER_SECOND / 10)
enum { BAR_COLUMNS = 12 };

static remat_ctx *volatile running; /* whom the signal handler stops */
static volatile sig_atomic_t interrupted;
static struct sigaction action_before;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
    if (running) remat_ctx_stop(running);
}

bool session_interrupted(void) { return interrupted != 0; }

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

double seconds_now(void) { return (double)now_ns() / 1e9; }

/* ---- progress ---- */

/* What the timer's handler knows: signals have no other argument. */
static struct {
    char text[40]; /* "\r\033[Kplan: " */
    size_t length;
    volatile sig_atomic_t seconds;
    volatile sig_atomic_t is_told;  /* a bar was drawn since the last second */
    volatile sig_atomic_t is_drawn; /* something is on the terminal */
    struct sigaction before;
} ticker;

/* Calls only what a handler may call. */
static void on_second(int signal_number)
{
    char line[sizeof ticker.text + 16];
    size_t n = ticker.length;
    const int error = errno, seconds = ++ticker.seconds;
    (void)signal_number;
    if (!ticker.is_told) {
        int unit = 1;
        memcpy(line, ticker.text, n);
        while (seconds / unit >= 10) unit *= 10;
        for (; unit > 0; unit /= 10) line[n++] = (char)('0' + seconds / unit % 10);
        memcpy(line + n, " s", 2);
        ticker.is_drawn = write(STDERR_FILENO, line, n + 2) > 0 || ticker.is_drawn;
    }
    ticker.is_told = 0;
    errno = error;
}

void session_busy(session *s)
{
    out terminal;
    struct sigaction action;
    const struct itimerval every = {{1, 0}, {1, 0}};
    struct itimerval now;
    out_open(&terminal, stderr, "", false);
    getitimer(ITIMER_REAL, &now);
    if (!terminal.moves || now.it_value.tv_sec || now.it_value.tv_usec)
        return; /* another's alarm */
    ticker.length = (size_t)snprintf(ticker.text, sizeof ticker.text,
                                     "\r\033[K%.20s: ", commands[s->args->command].name);
    ticker.seconds = ticker.is_told = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_second;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, &ticker.before);
    setitimer(ITIMER_REAL, &every, NULL);
}

static void clear_progress(void)
{
    if (ticker.is_drawn) fputs("\r\033[K", stderr);
    ticker.is_drawn = 0;
}

void session_idle(session *s)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    if (ticker.length > 0) {
        setitimer(ITIMER_REAL, &never, NULL);
        sigaction(SIGALRM, &ticker.before, NULL);
        ticker.length = 0;
    }
    s->bar.drawn_ns = s->bar.work = 0;
    clear_progress();
}

/* How far all loops are, where the planner at hand is at `one`. */
static int permille_of_all(const session *s, int64_t one)
{
    const int64_t points = s->bar.points, done = s->bar.part * points + s->bar.point;
    if (one < 0) one = 0;
    if (one > 1000) one = 1000;
    return (int)((1000 * done + one) / (s->bar.parts * points));
}

enum { LINE = BAR_COLUMNS + 240 };

/* Behind what is there, as a whole or not at all: the end of a number looks like another number. */
static void add_part(const session *s, char line[LINE], const char *name, const char *text)
{
    const size_t n = strlen(line);
    if (n + strlen(name) + strlen(text) < (size_t)s->bar.columns)
        snprintf(line + n, LINE - n, "%s%s", name, text);
}

static void on_progress(void *user, const remat_progress *p)
{
    session *s = user;
    const int64_t now = now_ns();
    if (now - s->bar.begin_ns < PROGRESS_AFTER_NS || now - s->bar.drawn_ns < PROGRESS_EVERY_NS)
        return;
    const int permille = permille_of_all(s, p->permille);
    char line[LINE], bar[BAR_COLUMNS + 1] = "", speed[40];
    for (int i = 0; i < BAR_COLUMNS; i++) bar[i] = i * 1000 < permille * BAR_COLUMNS ? '#' : '.';
    snprintf(line, sizeof line, "%.20s [%s] %3d%%", p->strategy, bar, permille / 10);
    const char *unit = session_cost_unit(s);
    if (p->cost != REMAT_ABSENT) add_part(s, line, "  cost ", out_cost(s->out, p->cost, unit).text);
    if (p->peak_bytes != REMAT_ABSENT)
        add_part(s, line, "  peak ", out_size(s->out, p->peak_bytes).text);
    if (p->cost != REMAT_ABSENT && p->bound_cost != REMAT_ABSENT)
        add_part(s, line, "  bound ", out_cost(s->out, p->bound_cost, unit).text);
    snprintf(speed, sizeof speed, "%.1f M/s",
             (double)(p->work - s->bar.work) * 1e3 / (double)(now - s->bar.drawn_ns));
    if (p->work > s->bar.work && s->bar.work > 0) add_part(s, line, "  ", speed);
    fprintf(stderr, "\r\033[K%.*s", s->bar.columns - 1, line);
    fflush(stderr);
    s->bar.drawn_ns = now;
    s->bar.work = p->work;
    ticker.is_told = ticker.is_drawn = 1;
}

static void on_warning(void *user, const char *line)
{
    session *s = user;
    for (size_t i = 0; i < s->n_warnings; i++)
        if (strcmp(s->warnings[i], line) == 0) return;
    s->warnings = out_resize(s->warnings, s->n_warnings + 1, sizeof *s->warnings);
    s->warnings[s->n_warnings++] = strcpy(out_resize(NULL, strlen(line) + 1, 1), line);
    out_message(s->out, "warning: %s", line);
}

void session_catch(session *s)
{
    out terminal;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    running = s->ctx;
    sigaction(SIGINT, NULL, &action_before);
    if (action_before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
    out_open(&terminal, stderr, "", false);
    s->bar.begin_ns = now_ns();
    s->bar.columns = terminal.width;
    if (terminal.moves) remat_ctx_on_progress(s->ctx, on_progress, s);
    session_busy(s);
}

void session_release(session *s)
{
    sigaction(SIGINT, &action_before, NULL);
    running = NULL;
    remat_ctx_on_progress(s->ctx, NULL, NULL);
    session_idle(s);
}

/* ---- opening and reading ---- */

/* One item of --class: NAME=CLASS. */
static int set_class(session *s, const char *item, size_t length)
{
    char name[128];
    const char *word = memchr(item, '=', length), *class_name;
    const size_t name_length = word ? (size_t)(word - item) : 0,
                 word_length = word ? length - name_length - 1 : 0;
    if (name_length > 0 && name_length < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)name_length, item);
        for (int c = 0; (class_name = remat_class_name((remat_class)c)); c++)
            if (strlen(class_name) == word_length &&
                memcmp(class_name, word + 1, word_length) == 0) {
                CHECK(s, remat_ctx_class(s->ctx, name, (remat_class)c));
                return REMAT_OK;
            }
    }
    return out_fail(
        s->out, REMAT_E_USAGE, commands[s->args->command].name, "--class",
        "'%.*s' is not NAME=CLASS with a class of other, compute, fusible, view, random",
        (int)(length < 60 ? length : 60), item);
}

static const char *command_name(const session *s) { return commands[s->args->command].name; }

int session_open(session *s, const args *a, out *o)
{
    *s = (session){
        .args = a, .out = o, .ctx = remat_ctx_new(NULL), .bar = {.parts = 1, .points = 1}};
    o->before_message = clear_progress;
    if (!s->ctx) return out_fail(o, REMAT_E_MEMORY, "", "", "out of memory");
    remat_ctx_on_warning(s->ctx, on_warning, s);
    if (a->text[FLAG_ORDER_ONLY] && a->text[FLAG_OFFLOAD])
        return out_fail(o, REMAT_E_USAGE, command_name(s), "--order-only",
                        "and --offload exclude each other");
    TRY(session_check_outputs(s));
    for (int i = 0; i < a->n_options; i++)
        CHECK(s, remat_ctx_set(s->ctx, a->options[i].name, a->options[i].value));
    for (const char *item = a->text[FLAG_CLASS], *next; item; item = next) {
        next = strchr(item, ',');
        TRY(set_class(s, item, next ? (size_t)(next - item) : strlen(item)));
        if (next) next++;
    }
    return REMAT_OK;
}

void session_close(session *s)
{
    for (size_t i = 0; i < s->n_plans; i++) remat_plan_free(s->plans[i]);
    free(s->plans);
    for (size_t i = 0; i < s->n_warnings; i++) free(s->warnings[i]);
    free(s->warnings);
    remat_chain_free(s->chain);
    remat_graph_free(s->graph);
    remat_graph_free(s->original);
    remat_ctx_free(s->ctx);
}

static const char *error_reason(const session *s)
{
    const char *reason = remat_ctx_error_reason(s->ctx);
    return *reason ? reason : remat_ctx_error(s->ctx);
}

int session_fail(session *s, remat_status status)
{
    return out_fail(s->out, status, remat_ctx_error_file(s->ctx), remat_ctx_error_place(s->ctx),
                    "%s", error_reason(s));
}

/* Refuses a model's name that is nearly right. The library refuses one that is not near any. */
static int check_model(session *s, const char *source)
{
    const bool chain = strncmp(source, "chain:", 6) == 0;
    if (!chain && strncmp(source, "zoo:", 4) != 0) return REMAT_OK;
    char name[40];
    const char *spec = strchr(source, ':') + 1;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, "?"), spec);
    guess g = {.word = name};
    const remat_entry *entry;
    for (size_t i = 0; (entry = remat_zoo_at(i)); i++) {
        if (chain != (strncmp(entry->name, "chain:", 6) == 0)) continue;
        const char *candidate = chain ? entry->name + 6 : entry->name;
        if (strcmp(candidate, name) == 0) return REMAT_OK;
        guess_offer(&g, candidate);
    }
    if (!g.best) return REMAT_OK;
    return out_fail(s->out, REMAT_E_USAGE, source, "", "no such model%s", guess_hint(&g, "").text);
}

int session_input(session *s, const char *source, remat_input **input)
{
    TRY(check_model(s, source));
    CHECK(s, remat_input_open(s->ctx, source, input));
    return REMAT_OK;
}

static const flag_id graph_flags[] = {FLAG_DCE,           FLAG_FOLD_IDENTITY, FLAG_NO_ALIAS,
                                      FLAG_REPLAY_RANDOM, FLAG_FUSE,          FLAG_INPLACE,
                                      FLAG_COST_MODEL,    FLAG_ALIGN};

bool session_prepares(const args *a)
{
    for (size_t i = 0; i < LEN(graph_flags); i++)
        if (a->text[graph_flags[i]]) return true;
    return false;
}

/* "50GB/s" means something only where costs are ns. "50GB" is per 1e9 cost units, whatever they
 * are. */
static int set_offload(session *s)
{
    const char *text = s->args->text[FLAG_OFFLOAD];
    if (!text) return REMAT_OK;
    const size_t n = strlen(text);
    const bool per_second = n > 2 && strcmp(text + n - 2, "/s") == 0;
    char bytes[40] = "";
    int64_t rate = 0;
    if (n < sizeof bytes)
        snprintf(bytes, sizeof bytes, "%.*s", (int)(per_second ? n - 2 : n), text);
    if (strchr(bytes, '%') || remat_budget_parse(s->ctx, bytes, 0, &rate) != REMAT_OK || rate <= 0)
        return out_fail(s->out, REMAT_E_USAGE, command_name(s), "--offload",
                        "'%.40s' is not a rate such as 50GB/s", text);
    if (per_second && strcmp(remat_graph_cost_unit(s->graph), "ns") != 0)
        return out_fail(s->out, REMAT_E_USAGE, command_name(s), "--offload",
                        "costs are in '%s', not ns: say how many bytes per 1e9 of them, without /s",
                        remat_graph_cost_unit(s->graph));
    CHECK(s, remat_ctx_set(s->ctx, "bandwidth", rate));
    CHECK(s, remat_ctx_set(s->ctx, "offload", 1));
    return REMAT_OK;
}

static unsigned wanted_flags(const args *a)
{
    static const unsigned bits[] = {REMAT_DCE,           REMAT_FOLD_IDENTITY, REMAT_NO_ALIAS,
                                    REMAT_REPLAY_RANDOM, REMAT_FUSE,          REMAT_INPLACE};
    unsigned wanted = 0;
    for (size_t i = 0; i < LEN(bits); i++) wanted |= a->text[graph_flags[i]] ? bits[i] : 0;
    return wanted;
}

remat_status session_read_batch(session *s, const remat_input *input, int64_t batch)
{
    remat_graph *original = NULL, *graph = NULL;
    remat_info info = REMAT_INFO_INIT;
    remat_status status = remat_graph_read_batch(s->ctx, input, batch, &original);
    if (status == REMAT_OK)
        status = remat_graph_prepare(s->ctx, original, wanted_flags(s->args),
                                     s->args->text[FLAG_COST_MODEL], &graph);
    if (status == REMAT_OK) status = remat_graph_info(s->ctx, graph, &info);
    if (status != REMAT_OK) {
        remat_graph_free(graph);
        remat_graph_free(original);
        return status;
    }
    remat_graph_free(s->graph);
    remat_graph_free(s->original);
    s->original = original;
    s->graph = graph;
    s->prepared = wanted_flags(s->args);
    s->info = info;
    s->keep_all = NULL; /* it was another graph's */
    return REMAT_OK;
}

/* By --align, or as the plan was made. `lower --align` is about the arena alone: the plan is there,
 * and its peak is that of the sizes that it was made for. */
static int align_graph(session *s, const remat_summary *recorded)
{
    const bool given = s->args->text[FLAG_ALIGN] && s->args->command != CMD_LOWER;
    const int64_t align = given ? s->args->number[FLAG_ALIGN] : recorded ? recorded->align : 1;
    remat_graph *aligned = NULL;
    if (!given && align <= 1) return REMAT_OK;
    const remat_status status =
        align < 1 ? REMAT_E_USAGE : remat_graph_align(s->ctx, s->graph, align, &aligned);
    if (status == REMAT_E_USAGE)
        return out_fail(s->out, status, command_name(s), "--align",
                        "%" PRId64 " is no power of two up to 2^30", align);
    CHECK(s, status);
    remat_graph_free(s->graph);
    s->graph = aligned;
    return REMAT_OK;
}

static int read_graph(session *s, const remat_input *input, const remat_summary *recorded,
                      const char *plan_source)
{
    const char *given = s->args->text[FLAG_COST_MODEL], *cost_model = given;
    unsigned wanted = wanted_flags(s->args);
    CHECK(s, remat_graph_read(s->ctx, input, &s->original));
    if (recorded && strcmp(recorded->digest, remat_graph_digest(s->original)) != 0)
        recorded = NULL; /* of another graph */
    if (recorded && !wanted) wanted = recorded->flags;
    if (recorded && !given && *recorded->cost_model) cost_model = recorded->cost_model;
    const remat_status status =
        remat_graph_prepare(s->ctx, s->original, wanted, cost_model, &s->graph);
    s->prepared = wanted;
    if (status == REMAT_E_USAGE && given)
        return out_fail(s->out, status, command_name(s), "--cost-model", "%s", error_reason(s));
    if (status == REMAT_E_USAGE && cost_model)
        return out_fail(s->out, REMAT_E_INPUT, plan_source, "cost_model", "%s", error_reason(s));
    CHECK(s, status);
    TRY(align_graph(s, recorded));
    return set_offload(s);
}

static int read_chain(session *s, const char *source, const remat_input *input)
{
    static const flag_id for_graphs[] = {FLAG_DCE,           FLAG_FOLD_IDENTITY, FLAG_NO_ALIAS,
                                         FLAG_REPLAY_RANDOM, FLAG_FUSE,          FLAG_INPLACE,
                                         FLAG_COST_MODEL,    FLAG_OFFLOAD,       FLAG_ORDER_ONLY,
                                         FLAG_ALIGN,         FLAG_PLACE};
    for (size_t i = 0; i < LEN(for_graphs); i++)
        if (s->args->text[for_graphs[i]]) {
            char flag_name[40];
            snprintf(flag_name, sizeof flag_name, "--%s", flags[for_graphs[i]].name);
            return out_fail(s->out, REMAT_E_USAGE, command_name(s), flag_name,
                            "is for graphs, but %.80s is a chain", source);
        }
    CHECK(s, remat_chain_read(s->ctx, input, &s->chain));
    return REMAT_OK;
}

int session_read_input(session *s, const char *source, const remat_input *input,
                       const remat_plan *plan, const char *plan_source)
{
    int status;
    if (remat_input_kind(input) == REMAT_KIND_CHAIN) status = read_chain(s, source, input);
    else status = read_graph(s, input, plan ? remat_plan_summary(plan) : NULL, plan_source);
    if (!status && !s->chain && s->args->text[FLAG_CHAIN]) {
        const remat_status cut = remat_chain_of_graph(s->ctx, s->graph, &s->chain);
        if (cut == REMAT_E_APPLIES) return out_fail(s->out, cut, source, "", "%s", error_reason(s));
        CHECK(s, cut);
    }
    if (!status && s->chain) {
        const char *unit = remat_chain_size_unit(s->chain);
        s->out->size_unit = strcmp(unit, "bytes") == 0 ? NULL : unit;
    }
    return status;
}

int session_measure(session *s)
{
    if (!s->chain) {
        s->info = (remat_info)REMAT_INFO_INIT;
        CHECK(s, remat_graph_info(s->ctx, s->graph, &s->info));
        return REMAT_OK;
    }
    TRY(session_keep_all(s));
    const remat_summary *m = remat_plan_summary(s->keep_all);
    s->info = (remat_info){.ops = m->ops,
                           .keep_all_peak_bytes = m->peak_bytes,
                           .keep_all_peak_step = m->peak_step,
                           .keep_all_cost = m->cost,
                           .need_bytes = m->need_bytes,
                           .need_op = m->need_op};
    return REMAT_OK;
}

int session_read(session *s, const char *source, const remat_plan *plan, const char *plan_source)
{
    remat_input *input;
    /* Nobody who types wants to see the seconds. */
    if (strcmp(source, "-") != 0 || !isatty(STDIN_FILENO)) session_busy(s);
    int status = session_input(s, source, &input);
    if (!status) {
        status = session_read_input(s, source, input, plan, plan_source);
        remat_input_free(input);
    }
    if (!status) status = session_measure(s);
    session_idle(s);
    return status;
}

/* A bare number up to 100, where not even an empty plan would fit so few bytes. */
static bool is_percentage_meant(const session *s, const char *text, int64_t bytes)
{
    return bytes > 0 && bytes <= 100 && s->info.need_bytes > 100 &&
           text[strspn(text, "0123456789")] == '\0';
}

int session_budget(session *s, const char *place, const char *text, int64_t *budget_bytes)
{
    *budget_bytes = REMAT_BUDGET_NONE;
    if (!text) return REMAT_OK;
    const char last = *text ? text[strlen(text) - 1] : '\0';
    if (s->out->size_unit && strcmp(text, "min") != 0 && last != '%' &&
        !(last >= '0' && last <= '9'))
        return out_fail(
            s->out, REMAT_E_USAGE, command_name(s), place,
            "'%.40s': sizes of this chain are in %s: try a whole number, 50%% or min", text,
            *s->out->size_unit ? out_clean(s->out, s->out->size_unit, 20).text : "its own unit");
    const remat_status status =
        remat_budget_parse(s->ctx, text, s->info.keep_all_peak_bytes, budget_bytes);
    if (status == REMAT_OK && is_percentage_meant(s, text, *budget_bytes))
        return out_fail(s->out, REMAT_E_USAGE, command_name(s), place,
                        "%.40s would be bytes: for a share of keep-all write %.40s%%", text, text);
    if (status == REMAT_OK) return REMAT_OK;
    return out_fail(s->out, status, command_name(s), place, "%s", error_reason(s));
}

int session_strategy(session *s, const char *name)
{
    const remat_entry *entry;
    guess g = {.word = name};
    for (size_t i = 0; (entry = remat_strategy_at(i)); i++) {
        if (strcmp(entry->name, name) == 0) return REMAT_OK;
        guess_offer(&g, entry->name);
    }
    if (strchr(name, ','))
        return out_fail(s->out, REMAT_E_USAGE, command_name(s), "--strategy",
                        "'%.60s': one strategy makes the plan; remat compare takes a list", name);
    return out_fail(s->out, REMAT_E_USAGE, command_name(s), "--strategy",
                    "unknown strategy '%.60s'%s", name,
                    g.best ? guess_hint(&g, "").text : "; remat plan --help lists them");
}

int session_strategies(session *s, const char *list)
{
    char name[64];
    for (const char *p = list, *comma; p; p = comma ? comma + 1 : NULL) {
        comma = strchr(p, ',');
        const size_t length = strcspn(p, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, p);
        if (length == 0)
            return out_fail(s->out, REMAT_E_USAGE, command_name(s), "--strategy",
                            "'%.60s' has a name too few, or a comma too many", list);
        TRY(session_strategy(s, name));
        for (const char *q = list; q < p; q += strcspn(q, ",") + 1)
            if (strcspn(q, ",") == length && strncmp(p, q, length) == 0)
                return out_fail(s->out, REMAT_E_USAGE, command_name(s), "--strategy",
                                "'%s' is there twice", name);
    }
    return REMAT_OK;
}

/* ---- names ---- */

const char *session_name(const session *s)
{
    return s->chain ? remat_chain_name(s->chain) : remat_graph_name(s->original);
}
const char *session_digest(const session *s)
{
    return s->chain ? remat_chain_digest(s->chain) : remat_graph_digest(s->graph);
}
const char *session_cost_model(const session *s)
{
    return s->chain ? "given" : remat_graph_cost_model(s->graph);
}
const char *session_cost_unit(const session *s)
{
    return s->chain ? remat_chain_cost_unit(s->chain) : remat_graph_cost_unit(s->graph);
}

static const char *named(const char *name, const char *kind, uint32_t index, amount *buffer)
{
    if (index == REMAT_NONE) return NULL;
    if (*name) return name;
    snprintf(buffer->text, sizeof buffer->text, "%s %" PRIu32, kind, index);
    return buffer->text;
}

const char *session_op(const session *s, uint32_t op, amount *buffer)
{
    const remat_stage *stage = s->chain ? remat_chain_stage(s->chain, op) : NULL;
    if (s->chain) return named(stage ? stage->name : "", "stage", op, buffer);
    return named(s->original ? remat_graph_op_name(s->original, op) : "", "op", op, buffer);
}

const char *session_place(const session *s, uint32_t op, amount *buffer)
{
    return op == REMAT_NONE ? "the end of the step" : session_op(s, op, buffer);
}

label session_op_phrase(const session *s, uint32_t op)
{
    amount buffer;
    label phrase;
    const char *name = session_place(s, op, &buffer);
    const bool says_kind = op == REMAT_NONE || name == buffer.text;
    const char *kind = s->chain ? "stage " : "op ";
    snprintf(phrase.text, sizeof phrase.text, "%s%.200s", says_kind ? "" : kind,
             out_clean(s->out, name, 40).text);
    return phrase;
}

const char *session_value(const session *s, uint32_t value, amount *buffer)
{
    return named(remat_graph_value_name(s->original, value), "value", value, buffer);
}

/* ---- plans ---- */

const remat_plan *session_keep(session *s, remat_plan *plan)
{
    assert(plan);
    s->plans = out_resize(s->plans, s->n_plans + 1, sizeof *s->plans);
    s->plans[s->n_plans++] = plan;
    return plan;
}

int session_input_plan(session *s, const remat_input *input, const remat_plan **plan)
{
    remat_plan *read = NULL;
    CHECK(s, remat_plan_read(s->ctx, input, &read));
    *plan = session_keep(s, read);
    return REMAT_OK;
}

int session_read_plan(session *s, const char *source, const remat_plan **plan)
{
    remat_input *input;
    int status = session_input(s, source, &input);
    if (status) return status;
    status = session_input_plan(s, input, plan);
    remat_input_free(input);
    return status;
}

int session_keep_all(session *s)
{
    remat_plan *plan = NULL;
    if (s->keep_all) return REMAT_OK;
    if (s->chain)
        CHECK(s, remat_chain_plan(s->ctx, s->chain, "keep-all", REMAT_BUDGET_NONE, &plan));
    else CHECK(s, remat_plan_make(s->ctx, s->graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    s->keep_all = session_keep(s, plan);
    return REMAT_OK;
}

/* Of the commands that read a plan with its graph, report alone takes chains. */
static int read_for_plan(session *s, const remat_plan *plan, const char *plan_source)
{
    const char *source = s->args->operands[0];
    const int status = session_read(s, source, plan, plan_source);
    if (!status && s->chain && s->args->command != CMD_REPORT)
        return out_fail(s->out, REMAT_E_INPUT, source, "", "is a chain, where a graph is needed");
    return status;
}

int session_program(session *s, const remat_plan **plan)
{
    const args *a = s->args;
    if (a->n_operands < 2) {
        TRY(read_for_plan(s, NULL, NULL));
        TRY(session_keep_all(s));
        *plan = s->keep_all;
        return REMAT_OK;
    }
    int n_streams = 0;
    for (int i = 0; i < a->n_operands; i++) n_streams += strcmp(a->operands[i], "-") == 0;
    if (n_streams > 1)
        return out_fail(s->out, REMAT_E_USAGE, command_name(s), "",
                        "only one of GRAPH and PLAN can be standard input");
    TRY(session_read_plan(s, a->operands[1], plan));
    TRY(read_for_plan(s, *plan, a->operands[1]));
    return session_check_plan(s, *plan, a->operands[1]);
}

int session_check_plan(session *s, const remat_plan *plan, const char *plan_source)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    CHECK(s, s->chain ? remat_chain_plan_verify(s->ctx, s->chain, plan, &v)
                      : remat_plan_verify(s->ctx, s->graph, plan, &v));
    if (v.valid) return REMAT_OK;
    return out_fail(s->out, REMAT_E_PLAN, plan_source, "", "%s", v.reason);
}

static double seconds_since(int64_t begin_ns)
{
    return (double)((now_ns() - begin_ns + 500) / 1000) / 1e6;
}

static remat_status plans_of_chain(session *s, const char *strategy, const int64_t *budgets,
                                   uint32_t n, made *plans)
{
    remat_plan **all = out_resize(NULL, (size_t)n + 1, sizeof *all);
    const int64_t begin_ns = now_ns();
    const remat_status status = remat_chain_plans(s->ctx, s->chain, strategy, budgets, n, all);
    const double seconds = seconds_since(begin_ns);
    for (uint32_t i = 0; i < n && status == REMAT_OK; i++)
        plans[i] = (made){session_keep(s, all[i]), seconds / n};
    free(all);
    return status;
}

const char *session_why_not(session *s)
{
    static const char before[] = "does not apply: ";
    const char *full = remat_ctx_error_reason(s->ctx), *because = strstr(full, before);
    return because ? because + strlen(before) : full;
}

remat_status session_plans(session *s, const char *strategy, const int64_t *budgets, uint32_t n,
                           made *plans, uint32_t *n_made)
{
    *n_made = 0;
    if (s->chain) {
        const remat_status status = plans_of_chain(s, strategy, budgets, n, plans);
        if (status == REMAT_OK) *n_made = n;
        return status;
    }
    s->bar.points = n;
    for (uint32_t i = 0; i < n && !session_interrupted(); i++) {
        remat_plan *plan = NULL;
        s->bar.point = i;
        const int64_t begin_ns = now_ns();
        const bool after = i > 0 && remat_plan_status(plans[i - 1].plan) == REMAT_OK &&
                           budgets[i] > budgets[i - 1];
        const remat_status status =
            after ? remat_plan_improve(s->ctx, s->graph, plans[i - 1].plan, strategy, budgets[i],
                                       &plan)
                  : remat_plan_make(s->ctx, s->graph, strategy, budgets[i], &plan);
        if (status != REMAT_OK) return status;
        plans[(*n_made)++] = (made){session_keep(s, plan), seconds_since(begin_ns)};
    }
    return REMAT_OK;
}

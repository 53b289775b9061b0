/* backend_highs.c: HiGHS, found when the program runs and called through its C interface. Nothing
 * of it is needed to build.
 *
 * Where it is looked for:
 *   - the file that REMAT_HIGHS names, and then nowhere else;
 *   - libhighs, by the loader's own rules;
 *   - the Python package highsbox in the virtual environment at hand (VIRTUAL_ENV).
 * It is taken only if it has every function below, has integers of 32 bits, and is version 1.7 or
 * newer.
 *
 * Only opaque handles and plain arrays pass between us and HiGHS. Of the structure that callbacks
 * get we write one member: the wish to stop, which HiGHS promises to keep in front. A simplex
 * iteration counts as work in proportion to 1 + entries / 1000, where entries are the program's.
 * With one thread the same call takes the same steps. */
#include <assert.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "milp/backend.h"

enum { LEAST_MAJOR = 1, LEAST_MINOR = 7 };
/* Bits 6 to 19: of 1.15, from forcing rows on. */
enum { OPTIONAL_PRESOLVE_RULES = ((1 << 20) - 1) & ~((1 << 6) - 1) };
/* Constants of HiGHS' C interface. */
enum { ROWWISE = 2, MINIMIZE = 1, ERROR = -1 };
enum { SOLUTION_INFEASIBLE = 1, SOLUTION_FEASIBLE = 2 };
enum {
    SIMPLEX_CALLBACK = 1,
    IPM_CALLBACK = 2,
    SOLUTION_CALLBACK = 4,
    LOG_CALLBACK = 5,
    MIP_CALLBACK = 6
};
enum {
    STATUS_MODEL_EMPTY = 6,
    STATUS_OPTIMAL = 7,
    STATUS_INFEASIBLE = 8,
    STATUS_UNBOUNDED_OR_INFEASIBLE = 9,
    STATUS_MEMORY = 18
};

typedef void callback(int type, const char *message, const void *data_out, void *data_in,
                      void *user);

typedef struct calls {
    void *(*create)(void);
    void (*destroy)(void *h);
    const char *(*version)(void);
    int32_t (*major)(void), (*minor)(void);
    int32_t (*int_size)(const void *h);
    int32_t (*set_bool)(void *h, const char *option, int32_t value);
    int32_t (*set_int)(void *h, const char *option, int32_t value);
    int32_t (*set_double)(void *h, const char *option, double value);
    int32_t (*set_string)(void *h, const char *option, const char *value);
    int32_t (*pass)(void *h, int32_t n_columns, int32_t n_rows, int32_t n_terms, int32_t format,
                    int32_t sense, double offset, const double *cost, const double *lower,
                    const double *upper, const double *row_lower, const double *row_upper,
                    const int32_t *begin, const int32_t *index, const double *value,
                    const int32_t *integer);
    int32_t (*set_solution)(void *h, const double *column, const double *row,
                            const double *column_dual, const double *row_dual);
    int32_t (*set_callback)(void *h, callback *fn, void *user);
    int32_t (*start_callback)(void *h, int32_t type);
    const void *(*item)(const void *data_out, const char *name);
    int32_t (*run)(void *h);
    int32_t (*status)(const void *h);
    int32_t (*get_double)(const void *h, const char *info, double *out);
    int32_t (*get_int)(const void *h, const char *info, int32_t *out);
    int32_t (*solution)(const void *h, double *column, double *column_dual, double *row,
                        double *row_dual);
} calls;

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"Highs_create", offsetof(calls, create)},
    {"Highs_destroy", offsetof(calls, destroy)},
    {"Highs_version", offsetof(calls, version)},
    {"Highs_versionMajor", offsetof(calls, major)},
    {"Highs_versionMinor", offsetof(calls, minor)},
    {"Highs_getSizeofHighsInt", offsetof(calls, int_size)},
    {"Highs_setBoolOptionValue", offsetof(calls, set_bool)},
    {"Highs_setIntOptionValue", offsetof(calls, set_int)},
    {"Highs_setDoubleOptionValue", offsetof(calls, set_double)},
    {"Highs_setStringOptionValue", offsetof(calls, set_string)},
    {"Highs_passMip", offsetof(calls, pass)},
    {"Highs_setSolution", offsetof(calls, set_solution)},
    {"Highs_setCallback", offsetof(calls, set_callback)},
    {"Highs_startCallback", offsetof(calls, start_callback)},
    {"Highs_getCallbackDataOutItem", offsetof(calls, item)},
    {"Highs_run", offsetof(calls, run)},
    {"Highs_getModelStatus", offsetof(calls, status)},
    {"Highs_getDoubleInfoValue", offsetof(calls, get_double)},
    {"Highs_getIntInfoValue", offsetof(calls, get_int)},
    {"Highs_getSolution", offsetof(calls, solution)},
};

/* ---- solve ---- */

typedef struct job {
    remat_ctx *ctx;
    const calls *c;
    const rm_solve *how;
    double bound;
    int64_t spent;    /* iterations in all */
    int64_t finished; /* iterations of linear programs before the one at hand */
    int64_t weight;   /* work of an iteration */
    remat_status status;
} job;

/* Iterations in all, as far as this callback tells. */
static int64_t count_iterations(job *j, int type, const void *data_out)
{
    const int64_t *total = j->c->item(data_out, "mip_total_lp_iterations");
    const int32_t *now = j->c->item(data_out, "simplex_iteration_count");
    if (type == MIP_CALLBACK && total && *total > j->finished) j->finished = *total;
    const bool inside = type == SIMPLEX_CALLBACK && now && *now > 0;
    return j->finished + (inside ? *now : 0);
}

/* HiGHS says 1e308 and the like where it has no bound. */
static void raise_bound(double *bound, double to)
{
    if (to > *bound && to < 1e300) *bound = to;
}

static void on_callback(int type, const char *message, const void *data_out, void *data_in,
                        void *user)
{
    job *j = user;
    const double *x = NULL;
    (void)message;
    if (!data_out) return;
    if (type == SOLUTION_CALLBACK) x = j->c->item(data_out, "mip_solution");
    if (type == MIP_CALLBACK || type == SOLUTION_CALLBACK || type == LOG_CALLBACK) {
        const double *bound = j->c->item(data_out, "mip_dual_bound");
        if (bound) raise_bound(&j->bound, *bound);
    }
    const int64_t spent = count_iterations(j, type, data_out);
    const int64_t more = spent > j->spent ? spent - j->spent : 0;
    j->spent += more;
    if (j->status == REMAT_OK)
        j->status = j->how->on_progress(j->how->user, j->how->relax ? NULL : x, j->bound);
    const bool stop = rm_spend(j->ctx, more * j->weight) || j->status != REMAT_OK;
    const bool listens = data_in && type != SOLUTION_CALLBACK && type != LOG_CALLBACK;
    if (stop && listens) *(int *)data_in = 1;
}

static remat_status pass(const calls *c, remat_ctx *ctx, void *h, const rm_model *m, bool relax)
{
    const size_t n = m->columns.n, n_rows = m->rows.n, n_terms = m->n_done;
    double *cost, *lower, *upper, *row_lower, *row_upper, *value;
    int32_t *index, *integer, none = 0;
    assert(n_rows == 0 || m->row_begin.n == n_rows + 1);
    assert(m->terms.n == n_terms); /* no row is under construction */
    TRY(RM_SCRATCH(ctx, cost, n));
    TRY(RM_SCRATCH(ctx, lower, n));
    TRY(RM_SCRATCH(ctx, upper, n));
    TRY(RM_SCRATCH(ctx, integer, n));
    TRY(RM_SCRATCH(ctx, row_lower, n_rows));
    TRY(RM_SCRATCH(ctx, row_upper, n_rows));
    TRY(RM_SCRATCH(ctx, index, n_terms));
    TRY(RM_SCRATCH(ctx, value, n_terms));
    for (size_t i = 0; i < n; i++) {
        const rm_column *column = &m->columns.items[i];
        cost[i] = column->cost;
        lower[i] = column->lower;
        upper[i] = column->upper;
        integer[i] = column->integer && !relax;
    }
    for (size_t r = 0; r < n_rows; r++) {
        row_lower[r] = m->rows.items[r].lower;
        row_upper[r] = m->rows.items[r].upper;
    }
    for (size_t k = 0; k < n_terms; k++) {
        index[k] = (int32_t)m->terms.items[k].column;
        value[k] = m->terms.items[k].value;
    }
    if (c->pass(h, (int32_t)n, (int32_t)n_rows, (int32_t)n_terms, ROWWISE, MINIMIZE, 0, cost, lower,
                upper, row_lower, row_upper, n_rows ? m->row_begin.items : &none, index, value,
                integer) == ERROR)
        return rm_fail(ctx, REMAT_E_MEMORY,
                       "HiGHS does not take the program (%zu columns, %zu rows, %zu entries)", n,
                       n_rows, n_terms);
    return REMAT_OK;
}

/* An option that a version does not have does no harm. */
static void set_options(const calls *c, void *h, const rm_solve *how, double seconds)
{
    c->set_bool(h, "output_flag", 0);
    c->set_int(h, "threads", (int32_t)how->threads);
    c->set_int(h, "random_seed", 0);
    /* 1.15.1 calls programs infeasible that are not: with all rules the one of `prop_checkmate 1
     * 5022`, without the rule for parallel rows still that of `prop_checkmate 1 30451`. */
    c->set_int(h, "presolve_rule_off", OPTIONAL_PRESOLVE_RULES);
    if (seconds < 1e9) c->set_double(h, "time_limit", seconds);
    if (how->relax) {
        /* On these programs as fast as the interior point method, or ten times faster. */
        c->set_string(h, "solver", "simplex");
        return;
    }
    c->set_double(h, "mip_rel_gap", 0.0);
    c->set_double(h, "mip_abs_gap", how->gap);
    /* What a heuristic would look for is there already: all effort goes into the bound. */
    if (how->start) c->set_double(h, "mip_heuristic_effort", 0.0);
}

static rm_solve_outcome outcome_of(int32_t status)
{
    switch (status) {
    case STATUS_OPTIMAL:
    case STATUS_MODEL_EMPTY: return RM_SOLVE_OPTIMAL;
    case STATUS_INFEASIBLE:
    case STATUS_UNBOUNDED_OR_INFEASIBLE: return RM_SOLVE_INFEASIBLE;
    default: return RM_SOLVE_STOPPED;
    }
}

static remat_status take(const calls *c, remat_ctx *ctx, void *h, const job *j, rm_solved *out)
{
    const int32_t status = c->status(h);
    double bound;
    int32_t has = 0;
    out->bound = j->bound;
    out->outcome = outcome_of(status);
    if (status == STATUS_MEMORY) return rm_fail(ctx, REMAT_E_MEMORY, "HiGHS is out of memory");
    if (!j->how->relax && c->get_double(h, "mip_dual_bound", &bound) != ERROR)
        raise_bound(&out->bound, bound);
    if (c->get_int(h, "primal_solution_status", &has) == ERROR) has = 0;
    /* A relaxation that was stopped may have no feasible x yet: the one at hand will do. */
    if (has != SOLUTION_FEASIBLE && !(j->how->relax && has == SOLUTION_INFEASIBLE)) return REMAT_OK;
    out->any = c->get_double(h, "objective_function_value", &out->objective) != ERROR &&
               c->solution(h, out->x, NULL, NULL, NULL) != ERROR;
    return REMAT_OK;
}

static remat_status run(const calls *c, remat_ctx *ctx, void *h, const rm_model *m,
                        const rm_solve *how, rm_solved *out)
{
    static const int types[] = {SIMPLEX_CALLBACK, IPM_CALLBACK, SOLUTION_CALLBACK, LOG_CALLBACK,
                                MIP_CALLBACK};
    job j = {.ctx = ctx,
             .c = c,
             .how = how,
             .bound = -INFINITY,
             .weight = RM_WORK_UNIT * (1 + (int64_t)m->n_done / 1000),
             .status = REMAT_OK};
    const int64_t left_ns = rm_time_left(ctx);
    set_options(c, h, how, left_ns == RM_NO_LIMIT ? INFINITY : (double)left_ns * 1e-9);
    TRY(pass(c, ctx, h, m, how->relax));
    if (how->start) c->set_solution(h, how->start, NULL, NULL, NULL);
    if (c->set_callback(h, on_callback, &j) == ERROR)
        return rm_fail(ctx, REMAT_E_APPLIES, "HiGHS has no callbacks");
    for (size_t i = 0; i < RM_LEN(types); i++) c->start_callback(h, types[i]);
    const int32_t answer = c->run(h);
    TRY(j.status);
    const bool is_over = rm_is_over(ctx);
    if (answer == ERROR && c->status(h) != STATUS_MEMORY && !is_over)
        return rm_fail(ctx, REMAT_E_MEMORY,
                       "HiGHS gave up: out of memory, or the program is too hard for its numbers");
    return take(c, ctx, h, &j, out);
}

static remat_status solve(const rm_backend *backend, remat_ctx *ctx, const rm_model *m,
                          const rm_solve *how, rm_solved *out)
{
    const calls *c = backend->calls;
    *out = (rm_solved){.bound = -INFINITY};
    TRY(RM_SCRATCH(ctx, out->x, m->columns.n));
    const rm_mark mark = rm_scratch_mark(ctx);
    void *h = c->create();
    const remat_status status = h ? run(c, ctx, h, m, how, out) : rm_no_memory(ctx);
    if (h) c->destroy(h);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- find ---- */

static bool take_symbols(void *library, calls *c)
{
    for (size_t i = 0; i < RM_LEN(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) return false;
        /* This is how POSIX lets a pointer become a function. */
        memcpy((char *)c + symbols[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

/* Why it is not taken; NULL: it is. */
static const char *refuse(void *library, calls *c, char *version, size_t room)
{
    const char *(*says)(void);
    void *symbol = dlsym(library, "Highs_version");
    if (!symbol) return "is not HiGHS: it has no Highs_version";
    memcpy(&says, &symbol, sizeof symbol);
    snprintf(version, room, "%s", says());
    rm_clean_text(version);
    if (!take_symbols(library, c)) return "is too old: version 1.7 or newer is needed";
    if (c->major() < LEAST_MAJOR || (c->major() == LEAST_MAJOR && c->minor() < LEAST_MINOR))
        return "is too old: version 1.7 or newer is needed";
    void *h = c->create();
    const bool fits = h && c->int_size(h) == (int32_t)sizeof(int32_t);
    if (h) c->destroy(h);
    return fits ? NULL : "has integers of another width than 32 bits";
}

typedef struct finder {
    rm_backend *out;
    calls *c;
    char why[sizeof((rm_backend *)0)->path]; /* the reason against the last file tried, or "" */
} finder;

/* True: found and taken. A name without a slash that is not there is no fault: the system does not
 * have it. */
static bool try_file(finder *f, const char *path)
{
    rm_backend *out = f->out;
    /* NODELETE: it may leave threads behind. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        if (strchr(path, '/')) snprintf(f->why, sizeof f->why, "%s", dlerror());
        return false;
    }
    const char *fault = refuse(library, f->c, out->version, sizeof out->version);
    if (fault) {
        snprintf(f->why, sizeof f->why, "%.300s%s%s %s", path, *out->version ? " " : "",
                 out->version, fault);
        out->version[0] = '\0';
        dlclose(library);
        return false;
    }
    snprintf(out->path, sizeof out->path, "%s", path);
    out->library = library;
    out->calls = f->c;
    out->solve = solve;
    return true;
}

/* highsbox in the virtual environment at `root`. */
static bool try_environment(finder *f, const char *root)
{
    char pattern[512];
    glob_t found;
    bool taken = false;
    const int n =
        snprintf(pattern, sizeof pattern,
                 "%s/lib/python3*/site-packages/highsbox/highs_dist/lib/libhighs.so*", root);
    if (n < 0 || (size_t)n >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0) return false;
    for (size_t i = 0; i < found.gl_pathc && !taken; i++) taken = try_file(f, found.gl_pathv[i]);
    globfree(&found);
    return taken;
}

/* What REMAT_HIGHS names is taken, or nothing is. */
static bool try_given(finder *f, const char *path)
{
    if (try_file(f, path)) return true;
    char reason[sizeof f->why];
    snprintf(reason, sizeof reason, "%s", *f->why ? f->why : "there is no such library");
    snprintf(f->why, sizeof f->why, "REMAT_HIGHS=%.100s: %.380s", path, reason);
    return false;
}

static bool find(finder *f)
{
    const char *given = getenv("REMAT_HIGHS"), *environment = getenv("VIRTUAL_ENV");
    if (given && *given) return try_given(f, given);
    if (try_file(f, "libhighs.so.1") || try_file(f, "libhighs.so")) return true;
    return environment && *environment && try_environment(f, environment);
}

remat_status rm_backend_open(remat_ctx *ctx, rm_backend *out)
{
    static const char nowhere[] =
        "none was found: pip install highsbox, and say in REMAT_HIGHS where its libhighs.so is";
    finder f = {.out = out, .c = rm_alloc(ctx, sizeof *f.c)};
    if (!f.c) return REMAT_E_MEMORY;
    *out = (rm_backend){.solve = rm_solve_nothing};
    if (find(&f)) return REMAT_OK;
    rm_release(&ctx->heap, f.c, sizeof *f.c);
    rm_clean_text(f.why);
    snprintf(out->path, sizeof out->path, "%s", *f.why ? f.why : nowhere);
    return REMAT_OK;
}

void rm_backend_close(remat_ctx *ctx, rm_backend *backend)
{
    if (!backend->library) return;
    dlclose(backend->library);
    rm_release(&ctx->heap, (void *)(uintptr_t)backend->calls, sizeof(calls));
    backend->library = NULL;
}

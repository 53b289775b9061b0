/* apart.c: a solver that cannot take its caller with it.
 *
 * Out of memory, HiGHS ends the process it is in (an exception of C++ that no C program can catch), and for minutes of presolving it asks
 * nobody whether to stop. So it runs in a child process of its own. The child has the program by copy-on-write and sends letters through a
 * pipe: each better solution, each better bound, how much work is done, the end. The caller waits in short ticks: it takes letters, reports
 * progress, and kills the child at Ctrl-C, at a failure of its own, and when time is up and the child has not noticed.
 *
 * Invariants. Work limits are the child's to judge, by its own count, so that they stay reproducible; all that is known at the end came by
 * letter. After fork the child calls the solver, libc's allocator and write: nothing of the caller's (allocator, callbacks) runs in it.
 * Death is noticed by waitpid, not by the end of the pipe: children of other threads may hold that open too.
 * Cost: one fork, and 8 bytes a column for each better solution. */
#define _POSIX_C_SOURCE 200809L /* fork, poll, sigaction */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "milp/backend.h"

enum { TICK_MS = 20, LETTER_NS = 50000000, GRACE_NS = 300000000 };

typedef struct letter {
    int64_t work;
    double bound, objective;
    remat_status status;
    rm_solve_outcome outcome;
    bool last, has_x; /* has_x: as many doubles follow as there are columns */
    char reason[RM_LEN(((rm_error *)0)->reason)];
} letter;

/* ---- the child ---- */

typedef struct sender {
    remat_ctx ctx; /* the caller's limits; memory of its own */
    int fd;
    size_t n_columns;
    double bound;
    int64_t written_ns;
} sender;

static void write_all(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size;) {
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(1); /* nobody reads: the caller is gone */
        at += n;
        size -= (size_t)n;
    }
}

static void send_letter(sender *s, const letter *l, const double *x)
{
    write_all(s->fd, l, sizeof *l);
    if (x) write_all(s->fd, x, s->n_columns * sizeof *x);
}

static remat_status on_progress(void *user, const double *x, double bound)
{
    sender *s = user;
    const int64_t now = rm_clock_ns();
    if (!x && bound <= s->bound && now - s->written_ns < LETTER_NS) return REMAT_OK;
    s->bound = bound;
    s->written_ns = now;
    send_letter(s, &(letter){.work = s->ctx.work, .bound = bound, .has_x = x != NULL}, x);
    return REMAT_OK;
}

static _Noreturn void be_the_child(const rm_backend *backend, const remat_ctx *ctx, const rm_model *m, const rm_solve *how,
                                   int fd)
{
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO), dup2(nowhere, STDERR_FILENO); /* last words: the caller has better ones */
    signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN);   /* the caller hears them, and decides */
    signal(SIGPIPE, SIG_DFL), signal(SIGABRT, SIG_DFL);
    sender s = {.ctx = {.heap = rm_libc_heap,
                        .options = ctx->options,
                        .work = ctx->work,
                        .work_limit = ctx->work_limit,
                        .deadline_ns = ctx->deadline_ns,
                        .bound_cost = REMAT_ABSENT},
                .fd = fd,
                .n_columns = m->columns.n,
                .bound = -INFINITY};
    rm_solve mine = *how;
    mine.on_progress = on_progress;
    mine.user = &s;
    rm_solved solved = {.bound = -INFINITY};
    letter end = {.last = true, .status = backend->solve(backend, &s.ctx, m, &mine, &solved)};
    end.work = s.ctx.work;
    end.bound = solved.bound;
    end.objective = solved.objective;
    end.outcome = solved.outcome;
    end.has_x = end.status == REMAT_OK && solved.any;
    memcpy(end.reason, s.ctx.error.reason, sizeof end.reason);
    send_letter(&s, &end, end.has_x ? solved.x : NULL);
    _exit(0);
}

/* ---- the caller ---- */

typedef struct listener {
    remat_ctx *ctx;
    const rm_solve *how;
    pid_t child;
    int fd;
    bool dead, killed;
    size_t x_size, have; /* bytes: of the columns, and of the letter that is coming in */
    char *inbox;         /* a letter, then its x */
    double bound;
} listener;

static size_t wanted(const listener *l)
{
    return l->have < sizeof(letter) || !((const letter *)(void *)l->inbox)->has_x ? sizeof(letter) : sizeof(letter) + l->x_size;
}

/* Takes what is there. True: a letter is complete. */
static bool take_bytes(listener *l)
{
    while (l->have < sizeof(letter) || l->have < wanted(l)) {
        const ssize_t n = read(l->fd, l->inbox + l->have, wanted(l) - l->have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        l->have += (size_t)n;
    }
    return true;
}

/* Takes every letter that is there. *end: the last of them, where it is. */
static remat_status take_letters(listener *l, const letter **end)
{
    while (take_bytes(l)) {
        const letter *now = (const letter *)(void *)l->inbox;
        if (now->work > l->ctx->work) l->ctx->work = now->work;
        if (now->bound > l->bound) l->bound = now->bound;
        if (now->last) {
            *end = now;
            return REMAT_OK;
        }
        l->have = 0;
        if (now->has_x) TRY(l->how->on_progress(l->how->user, (const double *)(const void *)(now + 1), l->bound));
    }
    return REMAT_OK;
}

static bool overdue(remat_ctx *ctx)
{
    rm_spend(ctx, 0);
    return ctx->stopped == REMAT_SIGNAL || (ctx->stopped == REMAT_TIME && rm_clock_ns() - ctx->deadline_ns > GRACE_NS);
}

static remat_status listen(listener *l, const letter **end)
{
    struct pollfd readable = {.fd = l->fd, .events = POLLIN};
    while (!*end && !l->dead) {
        poll(&readable, 1, TICK_MS);
        l->dead = waitpid(l->child, NULL, WNOHANG) != 0; /* before the letters: what it sent is there to be read then */
        TRY(take_letters(l, end));
        if (*end || l->dead) break;
        TRY(l->how->on_progress(l->how->user, NULL, l->bound));
        if (overdue(l->ctx)) break;
    }
    return REMAT_OK;
}

static remat_status finish(listener *l, const letter *end, rm_solved *out)
{
    const bool died = !end && !l->killed;
    out->bound = l->bound;
    if (died || (end && end->status == REMAT_E_MEMORY)) /* what was known before stands */
        rm_warn(l->ctx, "%s", died ? "the solver's process has ended: out of memory, or a fault in it" : end->reason);
    else if (end && end->status != REMAT_OK) return rm_fail(l->ctx, end->status, "%s", end->reason);
    if (!end || end->status != REMAT_OK) return REMAT_OK;
    out->outcome = end->outcome;
    out->any = end->has_x;
    out->objective = end->objective;
    if (out->any) memcpy(out->x, end + 1, l->x_size);
    return REMAT_OK;
}

static remat_status follow(listener *l, rm_solved *out)
{
    const letter *end = NULL;
    const remat_status status = listen(l, &end);
    if (!end && !l->dead) l->killed = kill(l->child, SIGKILL) == 0;
    while (!l->dead) l->dead = waitpid(l->child, NULL, 0) != -1 || errno != EINTR;
    TRY(status);
    TRY(finish(l, end, out));
    rm_spend(l->ctx, 0); /* why it came back */
    return REMAT_OK;
}

remat_status rm_solve_apart(const rm_backend *backend, remat_ctx *ctx, const rm_model *m, const rm_solve *how, rm_solved *out)
{
    listener l = {.ctx = ctx, .how = how, .x_size = m->columns.n * sizeof(double), .bound = -INFINITY};
    int fd[2];
    *out = (rm_solved){.bound = -INFINITY};
    if (!backend->library) return backend->solve(backend, ctx, m, how, out);
    TRY(RM_SCRATCH(ctx, out->x, m->columns.n));
    TRY(RM_SCRATCH(ctx, l.inbox, sizeof(letter) + l.x_size));
    if (pipe(fd) != 0) return rm_fail(ctx, REMAT_E_MEMORY, "no pipe for the solver: %s", strerror(errno));
    fcntl(fd[0], F_SETFD, FD_CLOEXEC),
        fcntl(fd[1], F_SETFD, FD_CLOEXEC); /* not for programs that the caller starts meanwhile */
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    l.fd = fd[0];
    l.child = fork();
    if (l.child == 0) be_the_child(backend, ctx, m, how, fd[1]);
    const int reason = errno;
    close(fd[1]);
    const remat_status status =
        l.child > 0 ? follow(&l, out) : rm_fail(ctx, REMAT_E_MEMORY, "no process for the solver: %s", strerror(reason));
    close(fd[0]);
    return status;
}

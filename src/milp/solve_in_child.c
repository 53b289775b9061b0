/* solve_in_child.c: a solver that cannot take its caller with it.
 *
 * Problem: HiGHS ends its process when memory runs out (by a C++ exception that no C program can
 * catch). It also presolves for minutes without asking whether to stop.
 *
 * Method: HiGHS runs in a child process. The child has the program by copy-on-write. It sends
 * letters through a pipe: each better solution, each better bound, how much work is done, the end.
 * The caller waits in short ticks, takes letters and reports progress. It kills the child
 *   - at Ctrl-C,
 *   - at a failure of its own,
 *   - when time is up and the child has not noticed.
 * A child whose caller is gone ends with its next letter, on Linux at once.
 *
 * Invariants:
 *   - The child judges work limits, by its own count. So they stay reproducible.
 *   - All that is known at the end came by letter.
 *   - After fork the child calls the solver, libc's allocator and write. The caller's allocator,
 *     callbacks and signal handlers do not run in it.
 *   - The child holds no file of the caller's but the pipe.
 *   - waitpid notices the child's death, not the end of the pipe. A child that another thread has
 *     just forked may hold that open too.
 *
 * Cost: one fork, and 8 bytes a column for each better solution. */
#define _XOPEN_SOURCE 700 /* fork, poll, setrlimit */
#define _DEFAULT_SOURCE   /* syscall */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "milp/backend.h"

enum {
    TICK_MS = 20,         /* the caller looks this often */
    LETTER_NS = 50000000, /* least time between two letters without news */
    GRACE_NS = 200000000  /* for the child to notice that time is up */
};
enum { LAST_SIGNAL = 31 };
enum { CHILD_PIPE = STDERR_FILENO + 1 }; /* the child's end of the pipe */
enum { MOST_FILES = 65536 };             /* closed one by one, where close_range is missing */

typedef struct letter {
    int64_t work;
    double bound, objective;
    remat_status status;
    rm_solve_outcome outcome;
    bool last;
    bool has_x; /* as many doubles follow as there are columns */
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

static void send_letter(const sender *s, const letter *l, const double *x)
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
    letter l;
    memset(&l, 0, sizeof l); /* all that is written is known, padding too */
    l.work = s->ctx.limits.work;
    l.bound = bound;
    l.has_x = x != NULL;
    send_letter(s, &l, x);
    return REMAT_OK;
}

static void close_from(int lowest)
{
#ifdef SYS_close_range /* Linux 5.9 and newer */
    if (syscall(SYS_close_range, (unsigned)lowest, ~0u, 0u) == 0) return;
#endif
    const long most = sysconf(_SC_OPEN_MAX);
    const int end = most > 0 && most < MOST_FILES ? (int)most : MOST_FILES;
    for (int fd = lowest; fd < end; fd++) close(fd);
}

/* Keeps only the pipe of the caller's files, as CHILD_PIPE: else somebody could wait in vain for
 * the end of a pipe that only the child still has open. The standard streams lead nowhere: what
 * HiGHS prints as it dies, the caller says better. */
static void keep_pipe_only(int fd)
{
    assert(fd >= CHILD_PIPE);
    if (fd != CHILD_PIPE && dup2(fd, CHILD_PIPE) < 0) _exit(1);
    close_from(CHILD_PIPE + 1);
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0) return;
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) dup2(nowhere, stream);
    if (nowhere > CHILD_PIPE) close(nowhere);
}

/* Leaves the child nothing of the caller's but memory and the pipe. */
static void come_loose(pid_t caller, int fd)
{
    const struct rlimit no_core = {0, 0};
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != caller) _exit(1);
    keep_pipe_only(fd);
    setrlimit(RLIMIT_CORE, &no_core);
    for (int i = 1; i <= LAST_SIGNAL; i++) signal(i, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* at Ctrl-C the caller decides */
}

static _Noreturn void be_the_child(const rm_backend *backend, const remat_ctx *ctx,
                                   const rm_model *m, const rm_solve *how, int fd, pid_t caller)
{
    come_loose(caller, fd);
    sender s = {.ctx = {.heap = rm_libc_heap,
                        .own_heap = rm_libc_heap,
                        .options = ctx->options,
                        .limits = ctx->limits,
                        .bound_cost = REMAT_ABSENT},
                .fd = CHILD_PIPE,
                .n_columns = m->columns.n,
                .bound = -INFINITY};
    rm_solve mine = *how;
    mine.on_progress = on_progress;
    mine.user = &s;
    rm_solved solved = {.bound = -INFINITY};
    letter end;
    memset(&end, 0, sizeof end);
    end.status = backend->solve(backend, &s.ctx, m, &mine, &solved);
    end.last = true;
    end.work = s.ctx.limits.work;
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
    int64_t late_ns; /* when it was seen that time is up; 0: not yet */
    letter *inbox;   /* the letter that is coming in, and its x behind it */
    size_t have;     /* bytes of it that are there */
    size_t x_size;   /* bytes of an x */
    double bound;
} listener;

/* The size of the letter that is coming in, as far as it is known yet. */
static size_t wanted(const listener *l)
{
    const bool has_x = l->have >= sizeof(letter) && l->inbox->has_x;
    return sizeof(letter) + (has_x ? l->x_size : 0);
}

/* Takes the bytes that are there. True: a letter is complete. */
static bool take_bytes(listener *l)
{
    while (l->have < wanted(l)) {
        const ssize_t n = read(l->fd, (char *)l->inbox + l->have, wanted(l) - l->have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        l->have += (size_t)n;
    }
    return true;
}

/* Takes every letter that is there. *end: the child's last one, once it has come. */
static remat_status take_letters(listener *l, const letter **end)
{
    while (!*end && take_bytes(l)) {
        const letter *now = l->inbox;
        const double *x = (const double *)(const void *)(now + 1);
        if (now->work > l->ctx->limits.work) l->ctx->limits.work = now->work;
        if (now->bound > l->bound) l->bound = now->bound;
        if (now->last) {
            *end = now;
            return REMAT_OK;
        }
        l->have = 0;
        if (now->has_x) TRY(l->how->on_progress(l->how->user, x, l->bound));
    }
    return REMAT_OK;
}

/* True at Ctrl-C, and when time is up and the child has had its grace. Notes when that began. */
static bool is_overdue(listener *l)
{
    if (!rm_is_late(l->ctx)) return false;
    const int64_t now_ns = rm_clock_ns();
    if (l->late_ns == 0) l->late_ns = now_ns;
    return atomic_load_explicit(&l->ctx->stop, memory_order_relaxed) ||
           now_ns - l->late_ns > GRACE_NS;
}

static remat_status hear(listener *l, const letter **end)
{
    struct pollfd readable = {.fd = l->fd, .events = POLLIN};
    while (!*end && !l->dead) {
        poll(&readable, 1, TICK_MS);
        /* First whether it is dead: then all that it sent is there to be read. */
        l->dead = waitpid(l->child, NULL, WNOHANG) != 0;
        TRY(take_letters(l, end));
        if (*end || l->dead) break;
        TRY(l->how->on_progress(l->how->user, NULL, l->bound));
        if (is_overdue(l)) break;
    }
    return REMAT_OK;
}

static remat_status give_up(remat_ctx *ctx, const char *reason, rm_solved *out)
{
    rm_warn(ctx, "no answer from the solver: %s", reason);
    out->outcome = RM_SOLVE_FAILED;
    return REMAT_OK;
}

static remat_status finish(listener *l, const letter *end, rm_solved *out)
{
    out->bound = l->bound;
    if (!end && l->killed) return REMAT_OK;
    if (!end) return give_up(l->ctx, "its process has ended: out of memory, or a fault in it", out);
    if (end->status == REMAT_E_MEMORY) return give_up(l->ctx, end->reason, out);
    if (end->status != REMAT_OK) return rm_fail(l->ctx, end->status, "%s", end->reason);
    out->outcome = end->outcome;
    out->any = end->has_x;
    out->objective = end->objective;
    if (out->any) memcpy(out->x, end + 1, l->x_size);
    return REMAT_OK;
}

static remat_status follow(listener *l, rm_solved *out)
{
    const letter *end = NULL;
    const remat_status status = hear(l, &end);
    if (!end && !l->dead) l->killed = kill(l->child, SIGKILL) == 0;
    while (!l->dead) l->dead = waitpid(l->child, NULL, 0) != -1 || errno != EINTR;
    TRY(status);
    TRY(take_letters(l, &end)); /* what it sent before it was killed */
    TRY(finish(l, end, out));
    rm_is_over(l->ctx); /* a limit that was reached is noted */
    return REMAT_OK;
}

/* Both ends lie above the standard streams, even where those are closed. Programs that the caller
 * starts meanwhile do not inherit them. */
static bool open_pipe(int fd[2])
{
    int low[2];
    if (pipe(low) != 0) return false;
    for (int i = 0; i < 2; i++) {
        fd[i] = fcntl(low[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(low[i]);
    }
    if (fd[0] >= 0 && fd[1] >= 0) return fcntl(fd[0], F_SETFL, O_NONBLOCK) == 0;
    if (fd[0] >= 0) close(fd[0]);
    if (fd[1] >= 0) close(fd[1]);
    return false;
}

remat_status rm_solve_in_child(const rm_backend *backend, remat_ctx *ctx, const rm_model *m,
                               const rm_solve *how, rm_solved *out)
{
    listener l = {
        .ctx = ctx, .how = how, .x_size = m->columns.n * sizeof(double), .bound = -INFINITY};
    int fd[2];
    *out = (rm_solved){.bound = -INFINITY};
    if (!backend->library) return backend->solve(backend, ctx, m, how, out);
    TRY(RM_SCRATCH(ctx, out->x, m->columns.n));
    l.inbox = rm_scratch(ctx, 1, sizeof(letter) + l.x_size);
    if (!l.inbox) return REMAT_E_MEMORY;
    if (!open_pipe(fd)) return give_up(ctx, "no pipe to it: too many files are open", out);
    const pid_t caller = getpid();
    l.fd = fd[0];
    l.child = fork();
    if (l.child == 0) be_the_child(backend, ctx, m, how, fd[1], caller);
    close(fd[1]);
    const remat_status status =
        l.child > 0 ? follow(&l, out)
                    : give_up(ctx, "no process for it: out of memory, or too many of them", out);
    close(fd[0]);
    return status;
}

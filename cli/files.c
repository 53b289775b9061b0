/* files.c: where results go.
 *
 * Problem: planning takes long, and what it makes must not get lost, nor anything that was there
 * before. Method: before anything is read, every file that is to be written is looked at. One that
 * cannot be written is an error then. So is one that is an input or standard output too, or that
 * two flags name, whatever the paths look like: files are compared by device and inode, and those
 * that do not exist yet by folder and name.
 *
 * Invariant: a regular file is never seen half written. The bytes go into a new file beside it,
 * which takes its name once all of them are there. A link stays; what it leads to is replaced. What
 * is no regular file (/dev/full, a pipe, a link to nothing) is written directly. So is a file where
 * no other can be made. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session.h"

remat_format session_format(const char *path, remat_format plain)
{
    const size_t length = strlen(path);
    const bool gz = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    return gz && plain == REMAT_JSON ? REMAT_JSON_GZ : plain;
}

/* A new file beside `path`, with the permissions of `path`. NULL: write to `path` directly.
 * `temporary` is to be freed. */
static FILE *open_beside(const char *path, char **temporary)
{
    static const char ending[] = ".XXXXXX";
    struct stat about;
    const bool exists = lstat(path, &about) == 0;
    if (exists && (!S_ISREG(about.st_mode) || access(path, W_OK) != 0)) return NULL;
    *temporary = out_resize(NULL, strlen(path) + sizeof ending, 1);
    strcat(strcpy(*temporary, path), ending);
    const int fd = mkstemp(*temporary);
    if (fd < 0) return NULL;
    const mode_t mask = umask(0);
    umask(mask);
    const mode_t mode = exists ? about.st_mode & 0777 : 0666 & ~mask;
    FILE *file = fchmod(fd, mode) == 0 ? fdopen(fd, "wb") : NULL;
    if (!file) {
        close(fd);
        unlink(*temporary);
    }
    return file;
}

/* Writes to `path`, whose links were followed; errors name it as `shown`. */
static int write_file(session *s, const char *path, const char *shown, session_writer *write,
                      const void *object, remat_format format)
{
    char *temporary = NULL;
    FILE *file = open_beside(path, &temporary);
    const bool beside = file != NULL;
    if (!file) file = fopen(path, "wb");
    const int failed = file ? 0 : errno;
    if (failed) {
        free(temporary);
        return out_fail(s->out, REMAT_E_IO, shown, "", "%s", out_errno(failed).text);
    }
    out to;
    out_open(&to, file, shown, s->out->json);
    const remat_status status = write(s, object, format, &to);
    if (fclose(file) != 0 && !to.error) to.error = errno;
    if (beside && !to.error && status == REMAT_OK && rename(temporary, path) != 0) to.error = errno;
    if (beside && (to.error || status != REMAT_OK)) unlink(temporary);
    free(temporary);
    if (to.error) return out_fail(s->out, REMAT_E_IO, shown, "", "%s", out_errno(to.error).text);
    return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
}

static bool is_stream(const char *path) { return !path || strcmp(path, "-") == 0; }

int session_write(session *s, const char *path, session_writer *write, const void *object,
                  remat_format format)
{
    if (is_stream(path)) {
        const remat_status status = write(s, object, format, s->out);
        if (s->out->error) return REMAT_E_IO; /* out_close says why */
        return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
    }
    char *followed = realpath(path, NULL); /* NULL: there is no such file yet */
    const int status = write_file(s, followed ? followed : path, path, write, object, format);
    free(followed);
    return status;
}

/* ---- before anything is read ---- */

/* The folder of a path, to be freed, and where the name begins. */
static char *folder_of(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    const size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
    char *folder = out_resize(NULL, n + 1, 1);
    memcpy(folder, slash ? path : ".", n);
    folder[n] = '\0';
    return folder;
}

static bool same_inode(const struct stat *x, const struct stat *y)
{
    return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
}

/* Would both be the same new file? */
static bool same_place(const char *a, const char *b)
{
    const char *name_a, *name_b;
    char *folder_a = folder_of(a, &name_a), *folder_b = folder_of(b, &name_b);
    struct stat x, y;
    const bool same = strcmp(name_a, name_b) == 0 && stat(folder_a, &x) == 0 &&
                      stat(folder_b, &y) == 0 && same_inode(&x, &y);
    free(folder_a);
    free(folder_b);
    return same;
}

/* Is `path`, a regular file or none yet, what `other` names? As an input - is standard input. */
static bool same_file(const char *path, const char *other, bool is_input)
{
    struct stat x, y;
    const bool exists = stat(path, &x) == 0;
    const bool other_exists =
        is_input && is_stream(other) ? fstat(STDIN_FILENO, &y) == 0 : stat(other, &y) == 0;
    if (exists && other_exists) return S_ISREG(x.st_mode) && same_inode(&x, &y);
    return !exists && !other_exists && !is_input && same_place(path, other);
}

/* Did the shell send standard output to the same regular file? */
static bool is_standard_output(const char *path)
{
    struct stat x, y;
    return stat(path, &x) == 0 && S_ISREG(x.st_mode) && fstat(STDOUT_FILENO, &y) == 0 &&
           same_inode(&x, &y);
}

/* 0, or the errno of writing there. */
static int why_not_writable(const char *path)
{
    struct stat about;
    const char *name;
    if (stat(path, &about) == 0) {
        if (S_ISDIR(about.st_mode)) return EISDIR;
        return access(path, W_OK) == 0 ? 0 : errno;
    }
    if (errno != ENOENT) return errno;
    char *folder = folder_of(path, &name);
    int error = stat(folder, &about) == 0 ? 0 : errno;
    if (!error && !S_ISDIR(about.st_mode)) error = ENOTDIR;
    if (!error && access(folder, W_OK | X_OK) != 0) error = errno;
    free(folder);
    return error;
}

static int check_inputs(session *s, const char *shown, const char *path)
{
    const args *a = s->args;
    const char *inputs[LEN(a->operands) + 1];
    size_t n = 0;
    /* The operand of gen is a model. */
    for (int i = 0; i < a->n_operands && a->command != CMD_GEN; i++) inputs[n++] = a->operands[i];
    if (a->text[FLAG_MPS_SOLUTION]) inputs[n++] = a->text[FLAG_MPS_SOLUTION];
    for (size_t i = 0; i < n; i++)
        if (same_file(path, inputs[i], true))
            return out_fail(s->out, REMAT_E_USAGE, commands[a->command].name, shown,
                            "'%.200s' is an input and would be lost: choose another name", path);
    return REMAT_OK;
}

/* What else goes to standard output, or NULL. */
static const char *other_output(const session *s)
{
    const args *a = s->args;
    const char *path = a->text[FLAG_OUTPUT];
    if (path && is_stream(path)) return "-o";
    if (a->command == CMD_LOWER && path) return NULL; /* that is where --json goes */
    return a->text[FLAG_CSV] ? "--csv" : s->out->json ? "--json" : NULL;
}

int session_check_outputs(session *s)
{
    static const struct {
        flag_id id;
        const char *shown;
    } outputs[] = {{FLAG_OUTPUT, "-o"}, {FLAG_SVG, "--svg"}, {FLAG_MPS, "--mps"}};
    const args *a = s->args;
    const char *name = commands[a->command].name, *svg = a->text[FLAG_SVG];
    if (svg && session_format(svg, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, name, "--svg",
                        "is not compressed: choose a name without .gz");
    if (session_svg_is_output(s) && other_output(s))
        return out_fail(s->out, REMAT_E_USAGE, name, "--svg",
                        "and %s cannot both be standard output", other_output(s));
    for (size_t i = 0; i < LEN(outputs); i++) {
        const char *path = a->text[outputs[i].id];
        if (!path || is_stream(path)) continue;
        const int error = why_not_writable(path);
        if (error) return out_fail(s->out, REMAT_E_IO, path, "", "%s", out_errno(error).text);
        TRY(check_inputs(s, outputs[i].shown, path));
        if (is_standard_output(path))
            return out_fail(s->out, REMAT_E_USAGE, name, outputs[i].shown,
                            "'%.200s' is where standard output goes: write - for it", path);
        for (size_t k = 0; k < i; k++) {
            const char *other = a->text[outputs[k].id];
            if (other && !is_stream(other) && same_file(path, other, false))
                return out_fail(s->out, REMAT_E_USAGE, name, outputs[i].shown,
                                "and %s both name '%.200s'", outputs[k].shown, path);
        }
    }
    return REMAT_OK;
}

/* ---- pictures ---- */

bool session_svg_is_output(const session *s)
{
    const char *path = s->args->text[FLAG_SVG];
    return path && strcmp(path, "-") == 0;
}

int session_write_svg(session *s, session_writer *write, const void *object)
{
    const char *path = s->args->text[FLAG_SVG];
    return path ? session_write(s, path, write, object, REMAT_JSON) : REMAT_OK;
}

/* files.c: where results go. A regular file is never seen half written. The bytes go into a new
 * file beside it, which takes its name once all of them are there. What is no regular file
 * (/dev/full, a pipe, a link) is written directly. So is a file where no other can be made. */
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

int session_write(session *s, const char *path, session_writer *write, const void *object,
                  remat_format format)
{
    if (!path || strcmp(path, "-") == 0) {
        const remat_status status = write(s, object, format, s->out);
        if (s->out->error) return REMAT_E_IO; /* out_close says why */
        return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
    }
    char *temporary = NULL;
    FILE *file = open_beside(path, &temporary);
    const bool beside = file != NULL;
    if (!file) file = fopen(path, "wb");
    const int failed = file ? 0 : errno;
    if (failed) {
        free(temporary);
        return out_fail(s->out, REMAT_E_IO, path, "", "%s", out_errno(failed).text);
    }
    out to;
    out_open(&to, file, path, s->out->json);
    const remat_status status = write(s, object, format, &to);
    if (fclose(file) != 0 && !to.error) to.error = errno;
    if (beside && !to.error && status == REMAT_OK && rename(temporary, path) != 0) to.error = errno;
    if (beside && (to.error || status != REMAT_OK)) unlink(temporary);
    free(temporary);
    if (to.error) return out_fail(s->out, REMAT_E_IO, path, "", "%s", out_errno(to.error).text);
    return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
}

bool session_svg_is_output(const session *s)
{
    const char *path = s->args->text[FLAG_SVG];
    return path && strcmp(path, "-") == 0;
}

int session_check_svg(session *s)
{
    const char *path = s->args->text[FLAG_SVG], *name = commands[s->args->command].name,
               *other = s->args->text[FLAG_OUTPUT];
    if (path && session_format(path, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, name, "--svg",
                        "is not compressed: choose a name without .gz");
    if (session_svg_is_output(s) && other && strcmp(other, "-") == 0)
        return out_fail(s->out, REMAT_E_USAGE, name, "--svg",
                        "and -o cannot both be standard output");
    return REMAT_OK;
}

int session_write_svg(session *s, session_writer *write, const void *object)
{
    const char *path = s->args->text[FLAG_SVG];
    return path ? session_write(s, path, write, object, REMAT_JSON) : REMAT_OK;
}

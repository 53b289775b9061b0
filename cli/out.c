/* out.c: streams, errors and text for people.
 *
 * Problem: names come from files that anybody may have written. Output may go to a terminal, a pipe
 * that closes or a full disk. Method: names pass out_clean, which decodes UTF-8 strictly and drops
 * what a terminal could obey. Every write goes through out_print or out_sink, which remember the
 * first errno. out_close turns it into exit code 3. Invariant: nothing printed through out_clean
 * contains a control, a bidirectional override or broken UTF-8. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "out.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "utf8.h"

enum { DEFAULT_WIDTH = 80, NARROWEST = 20, WIDEST = 160, CLEAN_COLUMNS = 64 };

/* COLUMNS, else the terminal's, else 80. */
static int find_width(int fd, bool terminal)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int width = DEFAULT_WIDTH;
    if (columns && strspn(columns, "0123456789") == strlen(columns) && strlen(columns) < 5 &&
        atoi(columns) > 0)
        width = atoi(columns);
    else if (terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col;
    if (width < NARROWEST) return NARROWEST;
    return width > WIDEST ? WIDEST : width;
}

void out_open(out *o, FILE *file, const char *name, bool as_json)
{
    const char *codeset = nl_langinfo(CODESET);
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const int fd = fileno(file);
    *o = (out){.file = file, .name = name, .json = as_json};
    const bool terminal = fd >= 0 && isatty(fd);
    o->utf8 = strcasecmp(codeset, "UTF-8") == 0 || strcasecmp(codeset, "UTF8") == 0;
    o->moves = terminal && term && strcmp(term, "dumb") != 0;
    o->colour = o->moves && !(no_color && *no_color);
    o->width = find_width(fd, terminal);
}

label out_errno(int error)
{
    label text;
    if (strerror_r(error, text.text, sizeof text.text) != 0)
        snprintf(text.text, sizeof text.text, "error %d", error);
    return text;
}

remat_status out_close(out *o)
{
    if (fflush(o->file) != 0 && !o->error) o->error = errno;
    if (ferror(o->file) && !o->error) o->error = EIO;
    if (!o->error) return REMAT_OK;
    if (o->error != EPIPE) out_message(o, "%s: %s", o->name, out_errno(o->error).text);
    return REMAT_E_IO;
}

void out_print(out *o, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (vfprintf(o->file, format, list) < 0 && !o->error) o->error = errno;
    va_end(list);
}

int out_sink(void *user, const void *bytes, size_t n_bytes)
{
    out *o = user;
    if (fwrite(bytes, 1, n_bytes, o->file) != n_bytes && !o->error) o->error = errno;
    return o->error;
}

const char *out_style(const out *o, style s)
{
    static const char *const code[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[32m",
                                       "\033[31m", "\033[33m", "\033[36m"};
    return o->colour ? code[s] : "";
}

void out_wrap(out *o, int indent, int column, const char *text)
{
    bool space = false; /* owed before the next word, so that no line ends in one */
    while (*text) {
        const int word = (int)strcspn(text, " \n");
        if (*text == '\n' || (space && column + 1 + word > o->width)) {
            out_print(o, "\n%*s", indent, "");
            column = indent;
            space = false;
        }
        if (space && word) {
            out_print(o, " ");
            column++;
        }
        out_print(o, "%.*s", word, text);
        column += word;
        space = (space || word > 0) && text[word] == ' ';
        text += word;
        if (*text == ' ' || (*text && word == 0)) text++;
    }
    out_print(o, "\n");
}

void out_title(out *o, const char *name, const char *after)
{
    const int left = o->width - out_columns(o, after);
    const label shown = out_clean(o, *name ? name : "(unnamed)", left < 12 ? o->width : left);
    out_print(o, "%s%s%s%s", out_style(o, BOLD), shown.text, out_style(o, PLAIN),
              left < 12 ? "\n" : "");
    if (left < 12) out_wrap(o, 0, 0, after + strspn(after, " "));
    else out_print(o, "%s\n", after);
}

/* ---- safe text ---- */

/* May this character be printed as it is? */
static bool is_printable(const out *o, size_t length, uint32_t code)
{
    return length > 0 && !utf8_unsafe(code) && (code < 0x80 || o->utf8);
}

static int columns_of(const out *o, uint32_t code)
{
    if (code < 0x80) return 1;
    const int columns = o->utf8 ? wcwidth((wchar_t)code) : 1;
    return columns < 0 ? 1 : columns;
}

label out_clean(const out *o, const char *text, int width)
{
    label result = {""};
    const char *dots = o->utf8 ? "…" : "~";
    size_t used = 0, fits_at = 0; /* fits_at: where the dots go if the rest does not fit */
    int columns = 0;
    if (width > CLEAN_COLUMNS) width = CLEAN_COLUMNS;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t code;
        const size_t length = utf8_decode(p, &code);
        const bool keep = is_printable(o, length, code);
        const int wide = keep ? columns_of(o, code) : 1;
        const size_t n = keep ? length : 1;
        if (columns + wide > width || used + n + 4 > sizeof result.text) {
            strcpy(result.text + fits_at, dots);
            return result;
        }
        if (keep) memcpy(result.text + used, p, n);
        else result.text[used] = '?';
        used += n;
        columns += wide;
        result.text[used] = '\0';
        if (columns < width) fits_at = used;
        p += length ? length : 1;
    }
    return result;
}

int out_columns(const out *o, const char *text)
{
    int columns = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t code;
        const size_t length = utf8_decode(p, &code);
        columns += length ? columns_of(o, code) : 1;
        p += length ? length : 1;
    }
    return columns;
}

/* ---- errors ---- */

char *out_safe(const out *o, const char *text)
{
    char *safe = malloc(strlen(text) + 1), *end = safe; /* a '?' is never longer */
    if (!safe) return NULL;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t code;
        const size_t length = utf8_decode(p, &code);
        if (is_printable(o, length, code)) {
            memcpy(end, p, length);
            end += length;
        } else *end++ = '?';
        p += length ? length : 1;
    }
    *end = '\0';
    return safe;
}

static void put_message(const out *o, const char *line)
{
    char *safe = out_safe(o, line);
    if (!safe) return;
    if (o->before_message) o->before_message();
    fprintf(stderr, "remat: %s\n", safe);
    free(safe);
}

void out_message(out *o, const char *format, ...)
{
    if (fflush(o->file) != 0 && !o->error) o->error = errno;
    char line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    put_message(o, line);
}

int out_fail(out *o, remat_status status, const char *file, const char *place, const char *format,
             ...)
{
    char reason[1200];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    if (o->json) {
        emitter j = {.out = o};
        emit_open(&j, NULL, '{');
        emit_open(&j, "error", '{');
        emit_int(&j, "code", status);
        /* At a usage error `file` is the command. */
        emit_text(&j, "file", status == REMAT_E_USAGE ? "" : file);
        emit_text(&j, "place", place);
        emit_text(&j, "reason", reason);
        emit_close(&j, '}');
        emit_close(&j, '}');
    } else {
        out_message(o, "%s%s%s%s%s", file, *file ? ": " : "", place, *place ? ": " : "", reason);
    }
    return (int)status;
}

void *out_resize(void *p, size_t n, size_t size)
{
    void *result = n <= SIZE_MAX / size ? realloc(p, n * size) : NULL;
    if (result) return result;
    fputs("remat: out of memory\n", stderr);
    exit(REMAT_E_MEMORY);
}

/* ---- numbers for people: three significant digits ---- */

static amount three_digits(double x, const char *unit)
{
    amount result;
    int decimals = 0;
    if (x < 99.95) decimals = 1;
    if (x < 9.995) decimals = 2;
    snprintf(result.text, sizeof result.text, "%.*f %s", decimals, x, unit);
    return result;
}

amount out_size(const out *o, int64_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    amount result;
    if (size < 1024 || o->size_unit) {
        snprintf(result.text, sizeof result.text, "%" PRId64 "%s", size, o->size_unit ? "" : " B");
        return result;
    }
    double x = (double)size / 1024;
    size_t unit = 0;
    for (; x >= 1023.5 && unit + 1 < LEN(units); unit++) x /= 1024;
    return three_digits(x, units[unit]);
}

amount out_number(const out *o, int64_t x, const char *unit)
{
    amount result;
    const label clean = out_clean(o, strcmp(unit, "given") == 0 ? "" : unit, 12);
    snprintf(result.text, sizeof result.text, "%" PRId64 "%s%.24s", x, *clean.text ? " " : "",
             clean.text);
    return result;
}

amount out_exact(const out *o, int64_t size)
{
    if (size < 1024 || o->size_unit)
        return out_number(o, size, o->size_unit ? o->size_unit : "bytes");
    amount result;
    snprintf(result.text, sizeof result.text, "%.16s (%" PRId64 " bytes)", out_size(o, size).text,
             size);
    return result;
}

amount out_cost(const out *o, int64_t cost, const char *cost_unit)
{
    if (strcmp(cost_unit, "ns") != 0 || cost < 1000) return out_number(o, cost, cost_unit);
    static const char *const units[] = {"us", "ms", "s"};
    double x = (double)cost / 1000;
    size_t unit = 0;
    for (; x >= 999.5 && unit + 1 < LEN(units); unit++) x /= 1000;
    return three_digits(x, units[unit]);
}

amount out_percent(const out *o, int64_t per_myriad)
{
    amount result;
    (void)o;
    snprintf(result.text, sizeof result.text, "+%.*f%%", per_myriad < 1000 ? 2 : 0,
             (double)per_myriad / 100);
    return result;
}

amount human_percent(double share)
{
    amount result;
    const double x = 100 * share, size = x < 0 ? -x : x;
    snprintf(result.text, sizeof result.text, "%.*f%%", size < 9.995 ? 2 : 1, x);
    return result;
}

double share_of(int64_t part, int64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

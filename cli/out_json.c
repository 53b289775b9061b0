/* out_json.c: a JSON writer. Each element of an outermost array has a line; else there is no white
 * space.
 *
 * Problem: valid JSON whatever the names and the locale. Method: strings are decoded as UTF-8.
 * Broken bytes become U+FFFD, controls are escaped. Reals are tried with 15, 16 and 17 digits until
 * they read back. LC_NUMERIC stays "C" in this program. Invariant: used[depth] says whether the
 * open bracket at that depth has an element. So commas are never wrong. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "out.h"
#include "utf8.h"

static void put_string(out *o, const char *text)
{
    out_print(o, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t code;
        const size_t length = utf8_decode(p, &code);
        if (length == 0) out_print(o, "\xef\xbf\xbd");
        else if (code == '"' || code == '\\') out_print(o, "\\%c", (int)code);
        else if (code == '\n') out_print(o, "\\n");
        else if (code == '\t') out_print(o, "\\t");
        else if (utf8_unsafe(code)) out_print(o, "\\u%04x", (unsigned)code);
        else out_print(o, "%.*s", (int)length, (const char *)p);
        p += length ? length : 1;
    }
    out_print(o, "\"");
}

void emit_key(emitter *j, const char *key)
{
    if (j->used[j->depth]) out_print(j->out, !key && j->depth == 1 ? ",\n" : ",");
    j->used[j->depth] = true;
    if (!key) return;
    put_string(j->out, key);
    out_print(j->out, ":");
}

void emit_open(emitter *j, const char *key, char bracket)
{
    emit_key(j, key);
    out_print(j->out, "%c", bracket);
    j->depth++;
    assert(j->depth < (int)LEN(j->used));
    j->used[j->depth] = false;
}

void emit_close(emitter *j, char bracket)
{
    assert(j->depth > 0);
    out_print(j->out, "%c", bracket);
    j->depth--;
    if (j->depth == 0) out_print(j->out, "\n");
}

void emit_text(emitter *j, const char *key, const char *text)
{
    emit_key(j, key);
    if (text) put_string(j->out, text);
    else out_print(j->out, "null");
}

void emit_int(emitter *j, const char *key, int64_t x)
{
    emit_key(j, key);
    out_print(j->out, "%" PRId64, x);
}

void emit_int_or_null(emitter *j, const char *key, int64_t x)
{
    if (x < 0) emit_null(j, key);
    else emit_int(j, key, x);
}

void emit_real(emitter *j, const char *key, double x)
{
    char text[40];
    if (!isfinite(x)) {
        emit_null(j, key);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    emit_key(j, key);
    out_print(j->out, "%s", text);
}

void emit_bool(emitter *j, const char *key, bool x)
{
    emit_key(j, key);
    out_print(j->out, x ? "true" : "false");
}

void emit_null(emitter *j, const char *key)
{
    emit_key(j, key);
    out_print(j->out, "null");
}

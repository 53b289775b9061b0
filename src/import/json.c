/* json.c: a recursive descent parser for RFC 8259. It is strict:
 *   - no comments, no trailing commas, no NaN;
 *   - no duplicate keys;
 *   - valid UTF-8 only, no zero bytes;
 *   - integers fit into 64 bits, reals are below 1e309;
 *   - nesting of at most 512.
 *
 * Children are collected on one stack. They are copied to the arena when their parent closes, so
 * every array is contiguous. Strings are decoded into the arena. Reals stay text, because nothing
 * here needs their value. Time is linear, the search for duplicate keys included.
 *
 * It is our own because the common library (jansson) drops characters silently when memory runs
 * out. */
#include "import/json.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "import/names.h"

enum { MAX_DEPTH = 512, MIN_TREE_VALUES = 20000 };

typedef struct parser {
    remat_ctx *ctx;
    rm_arena *arena;
    const char *text, *at, *end;
    unsigned depth;
    int64_t n_values;
    int64_t most_values; /* the tree may take as much memory as the text may, and a bit */
    RM_VEC(rm_json) stack;
} parser;

static remat_status fail(const parser *p, const char *at, const char *reason)
{
    size_t line = 1, column = 1;
    for (const char *c = p->text; c < at; c++) {
        column++;
        if (*c == '\n') {
            line++;
            column = 1;
        }
    }
    char place[64];
    snprintf(place, sizeof place, "line %zu column %zu", line, column);
    return rm_fail_at(p->ctx, REMAT_E_INPUT, place, "%s", reason);
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static bool next_is(const parser *p, char c) { return p->at < p->end && *p->at == c; }

/* ---- strings ---- */

size_t rm_utf8_length(const unsigned char *p, const unsigned char *end)
{
    assert(p < end);
    size_t n = 0;
    if (p[0] < 0x80) return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) n = 2;
    if (p[0] >= 0xe0 && p[0] <= 0xef) n = 3;
    if (p[0] >= 0xf0 && p[0] <= 0xf4) n = 4;
    if (n == 0 || (size_t)(end - p) < n) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    const bool surrogate = p[0] == 0xed && p[1] > 0x9f;
    const bool past_unicode = p[0] == 0xf4 && p[1] > 0x8f;
    return overlong || surrogate || past_unicode ? 0 : n;
}

static bool hex4(const parser *p, const char *at, uint32_t *out)
{
    *out = 0;
    if (p->end - at < 4) return false;
    for (int i = 0; i < 4; i++) {
        const char c = at[i], low = (char)(c | 0x20);
        if (c >= '0' && c <= '9') *out = *out * 16 + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f') *out = *out * 16 + (uint32_t)(low - 'a') + 10;
        else return false;
    }
    return true;
}

/* Returns where the next character goes. */
static char *put_utf8(char *to, uint32_t c)
{
    static const unsigned char head[] = {0, 0, 0xc0, 0xe0, 0xf0}; /* by length */
    unsigned length = 4;
    if (c < 0x10000) length = 3;
    if (c < 0x800) length = 2;
    if (c < 0x80) length = 1;
    for (unsigned i = length - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (char)(head[length] | c);
    return to + length;
}

/* The second half of a surrogate pair at p->at. */
static bool low_surrogate(const parser *p, uint32_t *low)
{
    return p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u' && hex4(p, p->at + 2, low) &&
           *low >= 0xdc00 && *low <= 0xdfff;
}

/* The escape sequence at p->at, behind its backslash. */
static remat_status parse_escape(parser *p, char **to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *begin = p->at - 1;
    if (p->at == p->end) return fail(p, begin, "a string does not end");
    const char c = *p->at++;
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        *(*to)++ = values[name - names];
        return REMAT_OK;
    }
    uint32_t code, low;
    if (c != 'u' || !hex4(p, p->at, &code)) return fail(p, begin, "unknown escape sequence");
    p->at += 4;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || !low_surrogate(p, &low))
            return fail(p, begin, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    if (code == 0) return fail(p, begin, "a string must not hold a zero byte");
    *to = put_utf8(*to, code);
    return REMAT_OK;
}

static remat_status parse_string(parser *p, const char **out)
{
    const char *begin = p->at++, *close = p->at;
    while (close < p->end && *close != '"') close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    if (close >= p->end) return fail(p, begin, "a string does not end");
    /* Decoding never makes a string longer. */
    char *text = rm_arena_get(p->ctx, p->arena, (size_t)(close - p->at) + 1, 1), *to = text;
    if (!text) return REMAT_E_MEMORY;
    while (*p->at != '"') {
        if ((unsigned char)*p->at < 0x20) return fail(p, p->at, "a control character in a string");
        if (*p->at == '\\') {
            p->at++;
            TRY(parse_escape(p, &to));
            continue;
        }
        const size_t n =
            rm_utf8_length((const unsigned char *)p->at, (const unsigned char *)p->end);
        if (n == 0) return fail(p, p->at, "a string is not valid UTF-8");
        memcpy(to, p->at, n);
        p->at += n;
        to += n;
    }
    p->at++;
    *out = text;
    return REMAT_OK;
}

/* ---- numbers ---- */

static size_t digits(parser *p)
{
    const char *begin = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
    return (size_t)(p->at - begin);
}

/* What follows the e. Beyond a million its size does not matter. */
static remat_status parse_exponent(parser *p, const char *begin, int64_t *out)
{
    int64_t x = 0;
    const bool negative = next_is(p, '-');
    if (negative || next_is(p, '+')) p->at++;
    const char *c = p->at;
    if (digits(p) == 0) return fail(p, begin, "a number has an empty exponent");
    for (; c < p->at; c++)
        if (x < 1000000) x = 10 * x + (*c - '0');
    *out = negative ? -x : x;
    return REMAT_OK;
}

static remat_status parse_number(parser *p, rm_json *out)
{
    const char *begin = p->at;
    const bool negative = next_is(p, '-');
    if (negative) p->at++;
    const char *first = p->at;
    const size_t n = digits(p);
    if (n == 0 || (n > 1 && *first == '0')) return fail(p, begin, "not a JSON value");
    out->kind = RM_JSON_INTEGER;
    int64_t exponent = 0;
    if (next_is(p, '.')) {
        p->at++;
        out->kind = RM_JSON_REAL;
        if (digits(p) == 0) return fail(p, begin, "a number ends in its point");
    }
    if (next_is(p, 'e') || next_is(p, 'E')) {
        p->at++;
        out->kind = RM_JSON_REAL;
        TRY(parse_exponent(p, begin, &exponent));
    }
    if (out->kind == RM_JSON_REAL) {
        if (*first != '0' && (int64_t)n + exponent > 309)
            return fail(p, begin, "a number is too large");
        return REMAT_OK;
    }
    int64_t x = 0;
    for (const char *c = first; c < p->at; c++) {
        const int64_t digit = *c - '0';
        if (rm_mul_overflows(x, (int64_t)10, &x) ||
            rm_add_overflows(x, negative ? -digit : digit, &x))
            return fail(p, begin, "an integer does not fit into 64 bits");
    }
    out->integer = x;
    return REMAT_OK;
}

/* Behind the key of a member; else all of it. */
static const char *begin_of_number(const rm_json *number)
{
    const char *begin = number->raw + number->raw_length;
    if (!number->key) return number->raw;
    while (begin > number->raw && strchr("0123456789.eE+-", begin[-1])) begin--;
    return begin;
}

/* The digits from `c` to `end` as one number, and how many of them stand behind the point. Zeros at
 * the end of these do not count. False: it needs over 64 bits. */
static bool digits_of(const char *c, const char *end, int64_t *value, int64_t *behind_point)
{
    const char *point = memchr(c, '.', (size_t)(end - c));
    while (point && end[-1] == '0') end--;
    *value = *behind_point = 0;
    for (; c < end; c++) {
        if (c == point) continue;
        if (rm_mul_overflows(*value, (int64_t)10, value) ||
            rm_add_overflows(*value, (int64_t)(*c - '0'), value))
            return false;
        if (point && c > point) ++*behind_point;
    }
    return true;
}

/* The exponent between `c`, behind its e, and `end`; 0 where there is none. Beyond 10000 its size
 * does not matter. */
static int64_t exponent_of(const char *c, const char *end)
{
    int64_t exponent = 0;
    const bool negative = c < end && *c == '-';
    if (c < end && (*c == '-' || *c == '+')) c++;
    for (; c < end; c++)
        if (exponent < 10000) exponent = 10 * exponent + (*c - '0');
    return negative ? -exponent : exponent;
}

bool rm_json_decimal(const rm_json *number, int64_t *digits, int64_t *exponent)
{
    *exponent = 0;
    if (number->kind == RM_JSON_INTEGER) {
        *digits = number->integer;
        return true;
    }
    if (number->kind != RM_JSON_REAL) return false;
    const char *c = begin_of_number(number), *end = number->raw + number->raw_length;
    const bool negative = *c == '-';
    int64_t behind_point;
    if (negative) c++;
    const char *mantissa_end = c;
    while (mantissa_end < end && *mantissa_end != 'e' && *mantissa_end != 'E') mantissa_end++;
    if (!digits_of(c, mantissa_end, digits, &behind_point)) return false;
    if (mantissa_end < end) *exponent = exponent_of(mantissa_end + 1, end);
    *exponent -= behind_point;
    if (negative) *digits = -*digits;
    return true;
}

bool rm_json_whole(const rm_json *number, int64_t *out)
{
    int64_t value, exponent;
    if (!rm_json_decimal(number, &value, &exponent)) return false;
    for (; exponent > 0 && value; exponent--)
        if (rm_mul_overflows(value, (int64_t)10, &value)) return false;
    for (; exponent < 0 && value; exponent++) {
        if (value % 10) return false;
        value /= 10;
    }
    *out = value;
    return true;
}

/* ---- values ---- */

static remat_status parse_value(parser *p, rm_json *out);

/* Moves the children from the stack into the arena. */
static remat_status close_parent(parser *p, size_t base, rm_json *out)
{
    const size_t n = p->stack.n - base;
    if (n >= UINT32_MAX) return fail(p, p->at, "too many items");
    rm_json *items = rm_arena_get(p->ctx, p->arena, n, sizeof *items);
    if (!items) return REMAT_E_MEMORY;
    if (n) memcpy(items, p->stack.items + base, n * sizeof *items);
    p->stack.n = base;
    out->items = items;
    out->n = (uint32_t)n;
    return REMAT_OK;
}

static remat_status refuse_duplicates(parser *p, const rm_json *object, const char *at)
{
    enum { FEW = 12 }; /* up to here comparing all pairs is faster than a map */
    const rm_mark mark = rm_scratch_mark(p->ctx);
    rm_names seen = {NULL};
    for (uint32_t i = 0; i < object->n; i++) {
        const char *key = object->items[i].key;
        bool again = object->n > FEW && rm_names_find(&seen, key) != REMAT_NONE;
        for (uint32_t k = 0; k < i && object->n <= FEW; k++)
            again |= strcmp(object->items[k].key, key) == 0;
        if (again) {
            char reason[100];
            snprintf(reason, sizeof reason, "duplicate key '%.60s'", key);
            return fail(p, at, reason);
        }
        if (object->n > FEW) TRY(rm_names_add(p->ctx, &seen, key, i));
    }
    rm_scratch_release(p->ctx, mark);
    return REMAT_OK;
}

/* A member's key and its colon. `begin`: where the object begins. */
static remat_status parse_key(parser *p, const char *begin, const char **out)
{
    if (p->at == p->end) return fail(p, begin, "the file ends inside this object");
    if (!next_is(p, '"')) return fail(p, p->at, "expected a key");
    TRY(parse_string(p, out));
    skip_blanks(p);
    if (!next_is(p, ':')) return fail(p, p->at, "expected ':'");
    p->at++;
    skip_blanks(p);
    return REMAT_OK;
}

/* The items of an array or the members of an object, up to `close`. */
static remat_status parse_children(parser *p, rm_json *out, char close)
{
    const char *begin = p->at++;
    const size_t base = p->stack.n;
    if (++p->depth > MAX_DEPTH) return fail(p, begin, "nested too deeply");
    skip_blanks(p);
    for (bool first = true; !next_is(p, close); first = false) {
        rm_json child = {.raw = p->at};
        if (!first && p->at == p->end)
            return fail(p, begin, "the file ends inside this array or object");
        if (!first && !next_is(p, ','))
            return fail(p, p->at, "expected ',' or the end of the array or object");
        if (!first) {
            p->at++;
            skip_blanks(p);
            child.raw = p->at;
        }
        if (close == '}') TRY(parse_key(p, begin, &child.key));
        TRY(parse_value(p, &child));
        child.raw_length = (size_t)(p->at - child.raw);
        TRY(RM_PUSH(p->ctx, p->stack, child));
        if (++p->n_values > p->most_values)
            return fail(p, p->at, "the file has more values than option max_input_bytes allows");
        skip_blanks(p);
    }
    p->at++;
    p->depth--;
    TRY(close_parent(p, base, out));
    return close == '}' ? refuse_duplicates(p, out, begin) : REMAT_OK;
}

static remat_status parse_value(parser *p, rm_json *out)
{
    static const struct {
        const char *text;
        rm_json_kind kind;
    } words[] = {{"null", RM_JSON_NULL}, {"false", RM_JSON_FALSE}, {"true", RM_JSON_TRUE}};
    if (p->at == p->end) return fail(p, p->at, "the file ends where a value should be");
    switch (*p->at) {
    case '{': out->kind = RM_JSON_OBJECT; return parse_children(p, out, '}');
    case '[': out->kind = RM_JSON_ARRAY; return parse_children(p, out, ']');
    case '"': out->kind = RM_JSON_STRING; return parse_string(p, &out->string);
    }
    for (size_t i = 0; i < RM_LEN(words); i++) {
        const size_t n = strlen(words[i].text);
        if ((size_t)(p->end - p->at) >= n && memcmp(p->at, words[i].text, n) == 0) {
            p->at += n;
            out->kind = words[i].kind;
            return REMAT_OK;
        }
    }
    return parse_number(p, out);
}

remat_status rm_json_parse(remat_ctx *ctx, rm_arena *arena, const char *text, size_t n,
                           const rm_json **out)
{
    parser p = {.ctx = ctx,
                .arena = arena,
                .text = text,
                .at = text,
                .end = text + n,
                .most_values =
                    ctx->options.max_input_bytes / (int64_t)sizeof(rm_json) + MIN_TREE_VALUES};
    skip_blanks(&p);
    rm_json *root = rm_arena_get(ctx, arena, 1, sizeof *root);
    if (!root) return REMAT_E_MEMORY;
    root->raw = p.at;
    remat_status status = parse_value(&p, root);
    if (status == REMAT_OK) {
        root->raw_length = (size_t)(p.at - root->raw);
        skip_blanks(&p);
        if (p.at != p.end) status = fail(&p, p.at, "text after the end");
    }
    RM_VEC_FREE(&ctx->heap, p.stack);
    if (status == REMAT_OK) *out = root;
    return status;
}

const rm_json *rm_json_get(const rm_json *object, const char *key)
{
    if (!object || object->kind != RM_JSON_OBJECT) return NULL;
    for (uint32_t i = 0; i < object->n; i++)
        if (strcmp(object->items[i].key, key) == 0)
            return object->items[i].kind == RM_JSON_NULL ? NULL : &object->items[i];
    return NULL;
}

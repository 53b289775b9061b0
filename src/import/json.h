/* json.h: JSON (RFC 8259) as a tree in an arena. Every allocation goes through the context. So
 * running out of memory is always noticed, and never mistaken for something else. */
#ifndef RM_JSON_H
#define RM_JSON_H

#include "base/base.h"

typedef enum rm_json_kind {
    RM_JSON_NULL,
    RM_JSON_FALSE,
    RM_JSON_TRUE,
    RM_JSON_INTEGER,
    RM_JSON_REAL,
    RM_JSON_STRING,
    RM_JSON_ARRAY,
    RM_JSON_OBJECT
} rm_json_kind;

typedef struct rm_json {
    rm_json_kind kind;
    uint32_t n; /* items of an array, members of an object */
    union {
        int64_t integer;
        const char *string; /* decoded; no zero byte inside */
        const struct rm_json *items;
    };
    const char *key; /* of a member; else NULL */
    const char *raw; /* the value in the parsed text; of a member: key and value */
    size_t raw_length;
} rm_json;

/* `text` must outlive the tree. Errors are REMAT_E_INPUT at "line L column C". */
remat_status rm_json_parse(remat_ctx *ctx, rm_arena *arena, const char *text, size_t n,
                           const rm_json **out);
/* NULL: no object, no such member, or null. */
const rm_json *rm_json_get(const rm_json *object, const char *key);
/* The number is digits * 10^exponent. False: it is no number, or has more digits than 64 bits. */
bool rm_json_decimal(const rm_json *number, int64_t *digits, int64_t *exponent);
/* An integer, or a real that is one, such as 3.0 or 2e6. False: neither, or it needs over 64 bits.
 */
bool rm_json_whole(const rm_json *number, int64_t *out);

/* Bytes of the UTF-8 sequence at p; 0: it is not valid. */
size_t rm_utf8_length(const unsigned char *p, const unsigned char *end);

#endif

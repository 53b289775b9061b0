/* fields.c: typed members of JSON objects, with messages that name the place. Finding a member
 * takes time linear in the number of members. */
#include "import/input.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

remat_status rm_bad(remat_ctx *ctx, rm_place place, const char *format, ...)
{
    char where[120] = "", reason[240];
    size_t n = 0;
    if (place.list) n += (size_t)snprintf(where, sizeof where, "%.40s", place.list);
    if (place.list && place.index != RM_NO_ITEM)
        n += (size_t)snprintf(where + n, sizeof where - n, "[%zu]", place.index);
    if (place.key)
        n += (size_t)snprintf(where + n, sizeof where - n, "%s%.40s", n ? "." : "", place.key);
    if (place.item != RM_NO_ITEM) snprintf(where + n, sizeof where - n, "[%zu]", place.item);
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return rm_fail_at(ctx, REMAT_E_INPUT, where, "%s", reason);
}

rm_fields rm_root_fields(remat_ctx *ctx, const remat_input *input)
{
    return (rm_fields){ctx, input->json, {.item = RM_NO_ITEM}};
}

rm_place rm_place_of(const rm_fields *f, const char *key)
{
    rm_place place = f->place;
    assert(!place.key && place.item == RM_NO_ITEM);
    place.key = key;
    return place;
}

static remat_status int_of(remat_ctx *ctx, const rm_json *x, rm_place place, int64_t low,
                           int64_t *out)
{
    if (x->kind != RM_JSON_INTEGER) return rm_bad(ctx, place, "must be an integer");
    if (x->integer < low)
        return low == 0
                   ? rm_bad(ctx, place, "must not be negative: %" PRId64, x->integer)
                   : rm_bad(ctx, place, "must be at least %" PRId64 ": %" PRId64, low, x->integer);
    if (x->integer >= RM_MAX_SUM)
        return rm_bad(ctx, place, "must be below 2^62: %" PRId64, x->integer);
    *out = x->integer;
    return REMAT_OK;
}

remat_status rm_get_int(const rm_fields *f, const char *key, int64_t low, int64_t *out)
{
    const rm_json *x = rm_json_get(f->object, key);
    return x ? int_of(f->ctx, x, rm_place_of(f, key), low, out) : REMAT_OK;
}

remat_status rm_get_bool(const rm_fields *f, const char *key, bool *out)
{
    const rm_json *x = rm_json_get(f->object, key);
    if (!x) return REMAT_OK;
    if (x->kind != RM_JSON_TRUE && x->kind != RM_JSON_FALSE)
        return rm_bad(f->ctx, rm_place_of(f, key), "must be true or false");
    *out = x->kind == RM_JSON_TRUE;
    return REMAT_OK;
}

remat_status rm_get_string(const rm_fields *f, const char *key, const char **out)
{
    const rm_json *x = rm_json_get(f->object, key);
    if (!x) return REMAT_OK;
    if (x->kind != RM_JSON_STRING) return rm_bad(f->ctx, rm_place_of(f, key), "must be a string");
    *out = x->string;
    return REMAT_OK;
}

remat_status rm_get_choice(const rm_fields *f, const char *key, const char *const *names,
                           size_t n_names, uint32_t *out)
{
    const char *text = NULL;
    TRY(rm_get_string(f, key, &text));
    if (!text) return REMAT_OK;
    for (uint32_t i = 0; i < n_names; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return REMAT_OK;
        }
    char known[120] = "";
    for (size_t i = 0, n = 0; i < n_names && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", names[i]);
    return rm_bad(f->ctx, rm_place_of(f, key), "'%.40s' is none of %s", text, known);
}

remat_status rm_get_array(const rm_fields *f, const char *key, const rm_json **out)
{
    const rm_json *x = rm_json_get(f->object, key);
    if (!x) return rm_bad(f->ctx, rm_place_of(f, key), "is missing");
    if (x->kind != RM_JSON_ARRAY) return rm_bad(f->ctx, rm_place_of(f, key), "must be an array");
    if (x->n >= REMAT_NONE - 1) return rm_bad(f->ctx, rm_place_of(f, key), "is too long");
    *out = x;
    return REMAT_OK;
}

remat_status rm_get_indices(const rm_fields *f, const char *key, const uint32_t **items,
                            uint32_t *n)
{
    const rm_json *array = NULL;
    uint32_t *list;
    rm_place place = rm_place_of(f, key);
    TRY(rm_get_array(f, key, &array));
    *n = array->n;
    TRY(RM_SCRATCH(f->ctx, list, *n));
    for (uint32_t i = 0; i < *n; i++) {
        int64_t x = 0;
        place.item = i;
        TRY(int_of(f->ctx, &array->items[i], place, 0, &x));
        if (x >= REMAT_NONE) return rm_bad(f->ctx, place, "value %" PRId64 " does not exist", x);
        list[i] = (uint32_t)x;
    }
    *items = list;
    return REMAT_OK;
}

remat_status rm_require(const rm_fields *f, const char *key)
{
    if (rm_json_get(f->object, key)) return REMAT_OK;
    return rm_bad(f->ctx, rm_place_of(f, key), "is missing");
}

remat_status rm_check_object(remat_ctx *ctx, const rm_json *object, rm_place place)
{
    if (object && object->kind == RM_JSON_OBJECT) return REMAT_OK;
    return rm_bad(ctx, place, "must be an object");
}

remat_status rm_check_version(const rm_fields *root)
{
    int64_t version = 0;
    TRY(rm_require(root, "version"));
    TRY(rm_get_int(root, "version", 0, &version));
    if (version == 1) return REMAT_OK;
    return rm_bad(root->ctx, rm_place_of(root, "version"),
                  "version %" PRId64 " is not known: this library reads version 1", version);
}

static bool is_known(const char *key, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(key, *known) == 0) return true;
    return false;
}

remat_status rm_get_extra(const rm_fields *f, const char *const *known, const char **out)
{
    const rm_json *object = f->object;
    size_t n = 0; /* each member with a comma, and the last with the 0 */
    for (uint32_t i = 0; i < object->n; i++)
        if (!is_known(object->items[i].key, known)) n += object->items[i].raw_length + 1;
    *out = "";
    if (n == 0) return REMAT_OK;
    char *text = rm_scratch(f->ctx, n, 1), *to = text;
    if (!text) return REMAT_E_MEMORY;
    for (uint32_t i = 0; i < object->n; i++) {
        const rm_json *x = &object->items[i];
        if (is_known(x->key, known)) continue;
        if (to > text) *to++ = ',';
        memcpy(to, x->raw, x->raw_length);
        to += x->raw_length;
    }
    *out = text;
    return REMAT_OK;
}
